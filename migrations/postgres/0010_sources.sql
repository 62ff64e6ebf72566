-- Sources of other people's webhooks. What they send becomes a receipt, a submission and a delivery in one statement.

CREATE TABLE fencepost.sources (
    key         uuid PRIMARY KEY,
    application uuid NOT NULL,
    id          text NOT NULL,
    name        text,
    endpoint    uuid NOT NULL,
    scheme      jsonb NOT NULL,
    event_id    jsonb,
    headers     text[] NOT NULL DEFAULT '{}',
    version     bigint NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    deleted_at  timestamptz,
    -- Deleted ones count too: an id is never used again.
    CONSTRAINT source_id_is_unique_in_its_application UNIQUE (application, id),
    CONSTRAINT scheme_has_a_type CHECK (scheme ? 'type'),
    CONSTRAINT kept_headers_are_at_most_20 CHECK (cardinality(headers) <= 20)
);
COMMENT ON TABLE fencepost.sources IS 'Where inbound webhooks come from: configuration, few rows, soft-deleted.';
COMMENT ON COLUMN fencepost.sources.key IS 'Internal identity (UUIDv7); as text, the source of its receipts.';
COMMENT ON COLUMN fencepost.sources.id IS 'Public id: 1 to 64 of a-z 0-9 - _, unique in its application, never used again.';
COMMENT ON COLUMN fencepost.sources.endpoint IS 'Where its events go: a key of endpoints.';
COMMENT ON COLUMN fencepost.sources.scheme IS 'How requests are verified: `type` and the settings of that scheme.';
COMMENT ON COLUMN fencepost.sources.event_id IS 'Where an event''s id stands. NULL: where the scheme has it.';
COMMENT ON COLUMN fencepost.sources.headers IS 'Names of the headers that are kept with each receipt.';
COMMENT ON COLUMN fencepost.sources.version IS 'Rises with every change of the configuration.';

CREATE TABLE fencepost.source_secrets (
    id          uuid PRIMARY KEY,
    source      uuid NOT NULL,
    sealed      bytea NOT NULL,
    sealing_key text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    retires_at  timestamptz
);
CREATE INDEX source_secrets_of_source ON fencepost.source_secrets (source);
COMMENT ON COLUMN fencepost.source_secrets.sealed IS 'XChaCha20-Poly1305: nonce, ciphertext, tag. Bound to source and id.';
COMMENT ON COLUMN fencepost.source_secrets.sealing_key IS 'Name of the key that sealed it.';
COMMENT ON COLUMN fencepost.source_secrets.retires_at IS 'From then on nothing is verified with it. NULL: live.';

CREATE TABLE fencepost.source_refusals (
    source  uuid PRIMARY KEY,
    refused bigint NOT NULL DEFAULT 0,
    newest  jsonb NOT NULL DEFAULT '[]',
    CONSTRAINT refusals_are_at_most_10 CHECK (jsonb_array_length(newest) <= 10)
) WITH (fillfactor = 50);
COMMENT ON TABLE fencepost.source_refusals IS
    'What could not be verified, for the operator. Apart from sources, so that strangers never make a reader wait.';
COMMENT ON COLUMN fencepost.source_refusals.refused IS 'How many were noted: at most as many a minute as their budget.';
COMMENT ON COLUMN fencepost.source_refusals.newest IS 'The newest reasons, at most 10, newest first.';

ALTER TABLE fencepost.receipts ADD COLUMN submission uuid, ADD COLUMN headers jsonb;
COMMENT ON COLUMN fencepost.receipts.submission IS
    'The submission that brings the event to the endpoint of its source. NULL: processed by an application itself.';
COMMENT ON COLUMN fencepost.receipts.headers IS 'The headers that its source keeps: a list of names and values.';

ALTER TABLE fencepost.rate_limit_counters DROP CONSTRAINT limiter_is_known;
ALTER TABLE fencepost.rate_limit_counters
    ADD CONSTRAINT limiter_is_known CHECK (limiter IN (1, 2, 3, 4));
COMMENT ON COLUMN fencepost.rate_limit_counters.limiter IS
    '1 source address, 2 endpoint, 3 api key, 4 refused requests of a source.';

-- The same as `receive_once_in_tx` of the store crate, for any language: to be called first in the transaction that
-- does what the event asks for. The fingerprint has the same encoding, so that both tell copies alike.
CREATE FUNCTION fencepost.receive(
    source text, event_id text, body bytea, patience interval DEFAULT interval '2 seconds',
    OUT outcome text, OUT processed_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mine constant bytea := sha256(
        convert_to('fencepost.received.1', 'UTF8') || int8send(octet_length(body)::bigint) || body
    );
    before constant text := current_setting('lock_timeout');
    stored bytea;
BEGIN
    IF source IS NULL OR char_length(source) NOT BETWEEN 1 AND 200 OR source ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'source must have 1 to 200 characters, no control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF event_id IS NULL OR octet_length(event_id) NOT BETWEEN 1 AND 255 OR event_id ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'event_id must have 1 to 255 bytes, no control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF body IS NULL THEN
        RAISE EXCEPTION 'body must not be null' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Three times: a receipt that is there at the insert may be expired at the look.
    FOR round IN 1 .. 3 LOOP
        BEGIN
            -- Zero would mean no limit.
            PERFORM set_config('lock_timeout', greatest(1, least(60000,
                ceil(extract(epoch FROM patience) * 1000)))::bigint || 'ms', true);
            INSERT INTO fencepost.receipts AS r (source, event_id, fingerprint, received_at, processed_at)
            VALUES (receive.source, receive.event_id, mine, transaction_timestamp(), statement_timestamp())
            ON CONFLICT DO NOTHING
            RETURNING r.processed_at INTO receive.processed_at;
            PERFORM set_config('lock_timeout', before, true);
        EXCEPTION WHEN lock_not_available THEN
            -- What the block set is undone with it.
            outcome := 'in_progress';
            RETURN;
        END;
        IF processed_at IS NOT NULL THEN
            outcome := 'first';
            RETURN;
        END IF;
        SELECT r.fingerprint, r.processed_at INTO stored, receive.processed_at
        FROM fencepost.receipts r
        WHERE r.source = receive.source AND r.event_id = receive.event_id;
        IF FOUND THEN
            outcome := CASE WHEN stored = mine THEN 'duplicate' ELSE 'conflicted' END;
            RETURN;
        END IF;
    END LOOP;
    outcome := 'in_progress';
END
$$;
COMMENT ON FUNCTION fencepost.receive IS
    'Whether the caller is the first to process this inbound event, on its own transaction: first, duplicate, conflicted '
    '(other content was processed under this id) or in_progress (a concurrent copy did not end in time: ask again later).';
REVOKE ALL ON FUNCTION fencepost.receive(text, text, bytea, interval) FROM PUBLIC;

UPDATE fencepost.schema_version SET version = 10;
