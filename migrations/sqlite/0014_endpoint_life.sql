-- SQLite cannot change a check: the table is made anew, with what it holds.
CREATE TABLE endpoints_anew (
    key                 BLOB NOT NULL PRIMARY KEY,
    application         BLOB NOT NULL,
    id                  TEXT NOT NULL,
    url                 TEXT NOT NULL,
    name                TEXT,
    event_types         TEXT,                       -- JSON array of texts
    headers_sealed      BLOB,
    headers_sealing_key TEXT,
    disabled_cause      INTEGER,
    disabled_at         INTEGER,
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
    only_networks       TEXT
        CONSTRAINT only_networks_are_1_to_32 CHECK (json_array_length(only_networks) BETWEEN 1 AND 32),
    ca_certificates     TEXT,
    -- Deleted ones count too: an id is never used again.
    CONSTRAINT endpoint_id_is_unique_in_its_application UNIQUE (application, id),
    CONSTRAINT endpoint_key_is_a_uuid CHECK (length(key) = 16),
    CONSTRAINT disabled_cause_is_known CHECK (disabled_cause IN (1, 2, 3)),
    CONSTRAINT signing_is_known CHECK (signing IN (1, 2, 3)),
    CONSTRAINT retry_schedule_has_1_to_30_delays CHECK (json_array_length(retry_schedule_ms) BETWEEN 1 AND 30)
) STRICT;
INSERT INTO endpoints_anew (
    key, application, id, url, name, event_types, headers_sealed, headers_sealing_key, disabled_cause, version,
    deadline_ms, connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses, in_flight_max,
    delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms, signing, public_ingest, created_at, updated_at,
    deleted_at, only_networks, ca_certificates
)
SELECT
    key, application, id, url, name, event_types, headers_sealed, headers_sealing_key, disabled_cause, version,
    deadline_ms, connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses, in_flight_max,
    delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms, signing, public_ingest, created_at, updated_at,
    deleted_at, only_networks, ca_certificates
FROM endpoints;
-- Expands: the same table follows.
DROP TABLE endpoints;
-- Expands: it has its name back.
ALTER TABLE endpoints_anew RENAME TO endpoints;
CREATE INDEX endpoints_of_application ON endpoints (application, key);

ALTER TABLE endpoint_schedule ADD COLUMN counts_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_schedule ADD COLUMN failing_since INTEGER;
ALTER TABLE endpoint_schedule ADD COLUMN failed_at INTEGER
    CONSTRAINT failed_at_iff_failing CHECK ((failing_since IS NULL) = (failed_at IS NULL));

UPDATE schema_version SET version = 14;
