-- Everything of Fencepost lives in the schema `fencepost`, always named in full, so that it never meets the
-- tables and migrations of an application in the same database. The migrator has made the schema already.

CREATE TABLE fencepost.schema_version (
    one             boolean PRIMARY KEY DEFAULT true CONSTRAINT schema_version_is_one_row CHECK (one),
    version         integer NOT NULL,
    compatible_from integer NOT NULL
);
COMMENT ON TABLE fencepost.schema_version IS 'One row, changed by each migration.';
COMMENT ON COLUMN fencepost.schema_version.version IS 'Number of the newest migration.';
COMMENT ON COLUMN fencepost.schema_version.compatible_from IS
    'The oldest build, by its own schema version, that still understands this schema.';

CREATE TABLE fencepost.applications (
    key        uuid PRIMARY KEY,
    id         text NOT NULL,
    name       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    deleted_at timestamptz,
    CONSTRAINT application_id_is_unique UNIQUE (id)
);
COMMENT ON TABLE fencepost.applications IS 'Tenants. `default` exists from the start.';
COMMENT ON COLUMN fencepost.applications.id IS 'Public id: 1 to 64 of a-z 0-9 - _.';

CREATE TABLE fencepost.endpoints (
    key                 uuid PRIMARY KEY,
    application         uuid NOT NULL,
    id                  text NOT NULL,
    url                 text NOT NULL,
    name                text,
    event_types         text[],
    headers_sealed      bytea,
    headers_sealing_key text,
    disabled_cause      smallint,
    version             bigint NOT NULL DEFAULT 1,
    deadline_ms         integer NOT NULL,
    connect_deadline_ms integer NOT NULL,
    retry_schedule_ms   bigint[] NOT NULL,
    overload_floor_ms   bigint NOT NULL,
    final_statuses      smallint[] NOT NULL,
    in_flight_max       smallint NOT NULL,
    delivery_rate       integer,
    delivery_rate_ms    bigint,
    ingest_rate         integer NOT NULL DEFAULT 600,
    ingest_rate_ms      bigint NOT NULL DEFAULT 60000,
    signing             smallint NOT NULL DEFAULT 1,
    public_ingest       boolean NOT NULL DEFAULT false,
    created_at          timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at          timestamptz NOT NULL DEFAULT statement_timestamp(),
    deleted_at          timestamptz,
    -- Deleted ones count too: an id is never used again.
    CONSTRAINT endpoint_id_is_unique_in_its_application UNIQUE (application, id),
    CONSTRAINT disabled_cause_is_known CHECK (disabled_cause IN (1, 2)),
    CONSTRAINT signing_is_known CHECK (signing IN (1, 2, 3)),
    CONSTRAINT retry_schedule_has_1_to_30_delays CHECK (cardinality(retry_schedule_ms) BETWEEN 1 AND 30)
);
COMMENT ON TABLE fencepost.endpoints IS 'Configuration of endpoints. What claims read under a lock is in endpoint_schedule.';
COMMENT ON COLUMN fencepost.endpoints.key IS 'Internal identity (UUIDv7), in every hot table.';
COMMENT ON COLUMN fencepost.endpoints.id IS 'Public id: 1 to 64 of a-z 0-9 - _, unique in its application, never used again.';
COMMENT ON COLUMN fencepost.endpoints.disabled_cause IS 'NULL enabled, 1 operator, 2 the receiver answered 410.';
COMMENT ON COLUMN fencepost.endpoints.version IS 'Rises with every change of the configuration.';
COMMENT ON COLUMN fencepost.endpoints.retry_schedule_ms IS 'Waits between attempts.';
COMMENT ON COLUMN fencepost.endpoints.event_types IS 'Patterns for fan-out, not used yet.';
COMMENT ON COLUMN fencepost.endpoints.signing IS '1 v1 (HMAC-SHA256), 2 v1a (Ed25519), 3 both.';

CREATE TABLE fencepost.endpoint_secrets (
    id          uuid PRIMARY KEY,
    endpoint    uuid NOT NULL,
    kind        smallint NOT NULL DEFAULT 1,
    sealed      bytea NOT NULL,
    sealing_key text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    retires_at  timestamptz,
    CONSTRAINT kind_is_known CHECK (kind IN (1, 2))
);
CREATE INDEX endpoint_secrets_of_endpoint ON fencepost.endpoint_secrets (endpoint);
COMMENT ON COLUMN fencepost.endpoint_secrets.kind IS '1 HMAC key (v1), 2 Ed25519 key (v1a).';
COMMENT ON COLUMN fencepost.endpoint_secrets.sealed IS 'XChaCha20-Poly1305: nonce, ciphertext, tag. Bound to endpoint and id.';
COMMENT ON COLUMN fencepost.endpoint_secrets.sealing_key IS 'Name of the key that sealed it.';
COMMENT ON COLUMN fencepost.endpoint_secrets.retires_at IS 'From then on nothing is signed with it. NULL: live.';

CREATE TABLE fencepost.api_keys (
    id           uuid PRIMARY KEY,
    name         text NOT NULL,
    digest       bytea NOT NULL,
    shown_prefix text NOT NULL,
    role         smallint NOT NULL,
    application  uuid,
    created_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    last_used_at timestamptz,
    revoked_at   timestamptz,
    CONSTRAINT api_key_digest_is_unique UNIQUE (digest),
    CONSTRAINT role_is_known CHECK (role IN (1, 2, 3))
);
COMMENT ON COLUMN fencepost.api_keys.digest IS 'SHA-256 of the key, which itself is not stored.';
COMMENT ON COLUMN fencepost.api_keys.role IS '1 admin, 2 publish, 3 read.';
COMMENT ON COLUMN fencepost.api_keys.application IS 'The one application it is bound to. NULL: all.';

CREATE TABLE fencepost.endpoint_schedule (
    endpoint         uuid PRIMARY KEY,
    enabled          boolean NOT NULL DEFAULT true,
    deleted          boolean NOT NULL DEFAULT false,
    in_flight        integer NOT NULL DEFAULT 0,
    cap              integer NOT NULL,
    lease_ms         integer NOT NULL,
    paused_until     timestamptz,
    low_water        timestamptz NOT NULL DEFAULT '-infinity',
    lease_low        timestamptz NOT NULL DEFAULT '-infinity',
    rate_limit       integer,
    rate_window_ms   bigint,
    rate_window_start timestamptz,
    rate_window_used integer NOT NULL DEFAULT 0
    -- No check on in_flight: a counter that is out of step must never make a result unrecordable.
) WITH (
    -- Updated by every claim and record: room for HOT updates, and no index on a column that changes.
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
COMMENT ON TABLE fencepost.endpoint_schedule IS
    'One row an endpoint, made with it: what a claim reads under its lock. Submitters never touch it.';
COMMENT ON COLUMN fencepost.endpoint_schedule.in_flight IS 'Deliveries in state processing.';
COMMENT ON COLUMN fencepost.endpoint_schedule.cap IS 'Highest in_flight that a claim may lead to.';
COMMENT ON COLUMN fencepost.endpoint_schedule.low_water IS
    'Claims look for due times from here on. Only claims raise it, a give-back lowers it, a sweep ignores it.';
COMMENT ON COLUMN fencepost.endpoint_schedule.lease_low IS 'The same for ends of leases.';

INSERT INTO fencepost.applications (key, id, name)
VALUES ('00000000-0000-7000-8000-000000000000', 'default', 'Default');

INSERT INTO fencepost.schema_version (version, compatible_from) VALUES (1, 1);
