-- Not read here: nothing waits for a row with an older snapshot.
ALTER TABLE endpoint_schedule ADD COLUMN given_back INTEGER NOT NULL DEFAULT 0;

UPDATE schema_version SET version = 6;
