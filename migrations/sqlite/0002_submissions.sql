CREATE TABLE idempotency_keys (
    scope       BLOB NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    submission  BLOB NOT NULL,
    deliveries  TEXT NOT NULL,                      -- JSON array of UUIDs
    received_at INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- With a rowid, unlike the narrow tables: payloads would make the primary key's tree deep.
CREATE TABLE submissions (
    endpoint      BLOB NOT NULL,
    id            BLOB NOT NULL,
    webhook_id    BLOB NOT NULL,
    resend_of     BLOB,
    received_at   INTEGER NOT NULL,
    erased_at     INTEGER,
    payload_bytes INTEGER NOT NULL,
    deliveries    TEXT NOT NULL,                    -- JSON array of UUIDs
    event_type    TEXT,
    content_type  TEXT NOT NULL,
    payload       BLOB,
    PRIMARY KEY (endpoint, id),
    CONSTRAINT submission_id_is_a_uuid CHECK (length(id) = 16),
    CONSTRAINT payload_is_there_until_it_is_erased CHECK ((payload IS NULL) = (erased_at IS NOT NULL))
) STRICT;
CREATE INDEX submissions_id ON submissions (id);

UPDATE schema_version SET version = 2, compatible_from = 2;
