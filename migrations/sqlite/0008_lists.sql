-- A page of a list is read from the end of an index, however many endpoints others have.
CREATE INDEX endpoints_of_application ON endpoints (application, key);

UPDATE schema_version SET version = 8;
