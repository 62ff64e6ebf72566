CREATE TABLE fencepost.leaders (
    role       text PRIMARY KEY,
    holder     text NOT NULL,
    token      uuid NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE fencepost.leaders IS
    'Who does what only one process has to do, maintenance first of all. A leased row and no advisory lock: it survives poolers.';
COMMENT ON COLUMN fencepost.leaders.token IS 'Which term it is. Only its holder renews or ends it.';

UPDATE fencepost.schema_version SET version = 5;
