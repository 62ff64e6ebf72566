CREATE TABLE fencepost.idempotency_keys (
    scope       uuid NOT NULL,
    key         text NOT NULL COLLATE "C",
    fingerprint bytea NOT NULL,
    submission  uuid NOT NULL,
    deliveries  uuid[] NOT NULL,
    received_at timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (scope, key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX idempotency_keys_expiry ON fencepost.idempotency_keys (expires_at);
COMMENT ON TABLE fencepost.idempotency_keys IS
    'The authority on what was submitted before. Not partitioned: the unique constraint would have to contain the partition key.';
COMMENT ON COLUMN fencepost.idempotency_keys.scope IS 'The endpoint.';
COMMENT ON COLUMN fencepost.idempotency_keys.fingerprint IS 'SHA-256 of scope, event type, content type and payload.';
COMMENT ON COLUMN fencepost.idempotency_keys.expires_at IS 'From then on the key is new.';

CREATE TABLE fencepost.submissions (
    endpoint      uuid NOT NULL,
    id            uuid NOT NULL,
    webhook_id    uuid NOT NULL,
    resend_of     uuid,
    received_at   timestamptz NOT NULL,
    erased_at     timestamptz,
    payload_bytes integer NOT NULL,
    deliveries    uuid[] NOT NULL,
    event_type    text,
    content_type  text NOT NULL,
    payload       bytea,
    PRIMARY KEY (endpoint, id),
    CONSTRAINT payload_is_there_until_it_is_erased CHECK ((payload IS NULL) = (erased_at IS NOT NULL))
) PARTITION BY RANGE (id);
CREATE INDEX submissions_id ON fencepost.submissions (id);
COMMENT ON TABLE fencepost.submissions IS 'Accepted messages. Insert-only but for erasure; a partition a day, by the millisecond in the id.';
COMMENT ON COLUMN fencepost.submissions.webhook_id IS 'What its requests carry as webhook-id: its own id unless it is a resend.';
COMMENT ON COLUMN fencepost.submissions.payload IS 'The bytes as they were accepted: what is signed and sent.';

UPDATE fencepost.schema_version SET version = 2, compatible_from = 2;
