CREATE TABLE fencepost.receipts (
    source       text NOT NULL COLLATE "C",
    event_id     text NOT NULL COLLATE "C",
    fingerprint  bytea NOT NULL,
    resource_id  text,
    action       text,
    status       smallint NOT NULL DEFAULT 1,
    sent_at      timestamptz,
    received_at  timestamptz NOT NULL,
    processed_at timestamptz NOT NULL,
    PRIMARY KEY (source, event_id),
    CONSTRAINT receipt_status_is_known CHECK (status IN (1, 2))
);
CREATE INDEX receipts_processed_at ON fencepost.receipts (processed_at);
COMMENT ON TABLE fencepost.receipts IS
    'The authority on which inbound events were processed: a row is written in the transaction of their effect.';
COMMENT ON COLUMN fencepost.receipts.source IS 'Where the event came from: the scope of its id.';
COMMENT ON COLUMN fencepost.receipts.event_id IS 'What the sender calls the event: copies of it have the same.';
COMMENT ON COLUMN fencepost.receipts.fingerprint IS 'SHA-256 of what was received, by which copies are told from other content.';
COMMENT ON COLUMN fencepost.receipts.status IS '1 processed, 2 processed, and other content came under the same id.';
COMMENT ON COLUMN fencepost.receipts.sent_at IS 'The sender''s own timestamp.';
COMMENT ON COLUMN fencepost.receipts.received_at IS 'When the transaction began that processed it.';
COMMENT ON COLUMN fencepost.receipts.processed_at IS 'When that transaction wrote the receipt.';

UPDATE fencepost.schema_version SET version = 7;
