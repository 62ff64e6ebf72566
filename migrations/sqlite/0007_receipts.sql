CREATE TABLE receipts (
    source       TEXT NOT NULL,
    event_id     TEXT NOT NULL,
    fingerprint  BLOB NOT NULL,
    resource_id  TEXT,
    action       TEXT,
    status       INTEGER NOT NULL DEFAULT 1,
    sent_at      INTEGER,
    received_at  INTEGER NOT NULL,
    processed_at INTEGER NOT NULL,
    PRIMARY KEY (source, event_id),
    CONSTRAINT receipt_status_is_known CHECK (status IN (1, 2))
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_processed_at ON receipts (processed_at);

UPDATE schema_version SET version = 7;
