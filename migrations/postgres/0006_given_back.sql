ALTER TABLE fencepost.endpoint_schedule ADD COLUMN given_back bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN fencepost.endpoint_schedule.given_back IS
    'Rises with each give-back. A claim that waited for the row sees by it that its snapshot is older than one, and '
    'leaves the marks alone.';

UPDATE fencepost.schema_version SET version = 6;
