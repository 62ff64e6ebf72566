CREATE TABLE holds (
    one    INTEGER PRIMARY KEY DEFAULT 1 CONSTRAINT holds_is_one_row CHECK (one = 1),
    held   INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),
    since  INTEGER,
    reason TEXT
) STRICT;
INSERT INTO holds (one) VALUES (1);

ALTER TABLE endpoint_schedule ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1));

UPDATE schema_version SET version = 11;
