-- The same tables as on PostgreSQL, see migrations/postgres, where every column is described. What differs:
--
-- * Instants are INTEGER, microseconds since 1970 in UTC; durations are INTEGER, in the unit of their name.
-- * UUIDs are BLOB, 16 bytes, which sort as on PostgreSQL; lists are TEXT, JSON arrays; yes and no are 1 and 0.
-- * There are no partitions. Every table is STRICT, so that a value of another type is refused when it is written.

CREATE TABLE schema_version (
    one             INTEGER PRIMARY KEY DEFAULT 1 CONSTRAINT schema_version_is_one_row CHECK (one = 1),
    version         INTEGER NOT NULL,
    compatible_from INTEGER NOT NULL
) STRICT;

CREATE TABLE applications (
    key        BLOB NOT NULL PRIMARY KEY,
    id         TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT application_id_is_unique UNIQUE (id),
    CONSTRAINT application_key_is_a_uuid CHECK (length(key) = 16)
) STRICT;

CREATE TABLE endpoints (
    key                 BLOB NOT NULL PRIMARY KEY,
    application         BLOB NOT NULL,
    id                  TEXT NOT NULL,
    url                 TEXT NOT NULL,
    name                TEXT,
    event_types         TEXT,                       -- JSON array of texts
    headers_sealed      BLOB,
    headers_sealing_key TEXT,
    disabled_cause      INTEGER,
    version             INTEGER NOT NULL DEFAULT 1,
    deadline_ms         INTEGER NOT NULL,
    connect_deadline_ms INTEGER NOT NULL,
    retry_schedule_ms   TEXT NOT NULL,              -- JSON array of integers
    overload_floor_ms   INTEGER NOT NULL,
    final_statuses      TEXT NOT NULL,              -- JSON array of integers
    in_flight_max       INTEGER NOT NULL,
    delivery_rate       INTEGER,
    delivery_rate_ms    INTEGER,
    ingest_rate         INTEGER NOT NULL DEFAULT 600,
    ingest_rate_ms      INTEGER NOT NULL DEFAULT 60000,
    signing             INTEGER NOT NULL DEFAULT 1,
    public_ingest       INTEGER NOT NULL DEFAULT 0 CHECK (public_ingest IN (0, 1)),
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    deleted_at          INTEGER,
    -- Deleted ones count too: an id is never used again.
    CONSTRAINT endpoint_id_is_unique_in_its_application UNIQUE (application, id),
    CONSTRAINT endpoint_key_is_a_uuid CHECK (length(key) = 16),
    CONSTRAINT disabled_cause_is_known CHECK (disabled_cause IN (1, 2)),
    CONSTRAINT signing_is_known CHECK (signing IN (1, 2, 3)),
    CONSTRAINT retry_schedule_has_1_to_30_delays CHECK (json_array_length(retry_schedule_ms) BETWEEN 1 AND 30)
) STRICT;

CREATE TABLE endpoint_secrets (
    id          BLOB NOT NULL PRIMARY KEY,
    endpoint    BLOB NOT NULL,
    kind        INTEGER NOT NULL DEFAULT 1,
    sealed      BLOB NOT NULL,
    sealing_key TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    retires_at  INTEGER,
    CONSTRAINT kind_is_known CHECK (kind IN (1, 2))
) STRICT;
CREATE INDEX endpoint_secrets_of_endpoint ON endpoint_secrets (endpoint);

CREATE TABLE api_keys (
    id           BLOB NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    digest       BLOB NOT NULL,
    shown_prefix TEXT NOT NULL,
    role         INTEGER NOT NULL,
    application  BLOB,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    CONSTRAINT api_key_digest_is_unique UNIQUE (digest),
    CONSTRAINT role_is_known CHECK (role IN (1, 2, 3))
) STRICT;

CREATE TABLE endpoint_schedule (
    endpoint          BLOB NOT NULL PRIMARY KEY,
    enabled           INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    deleted           INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1)),
    in_flight         INTEGER NOT NULL DEFAULT 0,
    cap               INTEGER NOT NULL,
    lease_ms          INTEGER NOT NULL,
    paused_until      INTEGER,
    -- Not read here: they bound scans against the dead index entries that open snapshots keep alive on
    -- PostgreSQL, and SQLite has none of those.
    low_water         INTEGER NOT NULL DEFAULT 0,
    lease_low         INTEGER NOT NULL DEFAULT 0,
    rate_limit        INTEGER,
    rate_window_ms    INTEGER,
    rate_window_start INTEGER,
    rate_window_used  INTEGER NOT NULL DEFAULT 0
    -- No check on in_flight: a counter that is out of step must never make a result unrecordable.
) STRICT, WITHOUT ROWID;

INSERT INTO applications (key, id, name, created_at)
VALUES (
    x'00000000000070008000000000000000', 'default', 'Default',
    CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
);

INSERT INTO schema_version (version, compatible_from) VALUES (1, 1);
