-- Sources of other people's webhooks. What they send becomes a receipt, a submission and a delivery in one transaction.

CREATE TABLE sources (
    key         BLOB NOT NULL PRIMARY KEY,
    application BLOB NOT NULL,
    id          TEXT NOT NULL,
    name        TEXT,
    endpoint    BLOB NOT NULL,
    scheme      TEXT NOT NULL,
    event_id    TEXT,
    headers     TEXT NOT NULL DEFAULT '[]',
    version     INTEGER NOT NULL DEFAULT 1,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    deleted_at  INTEGER,
    -- Deleted ones count too: an id is never used again.
    CONSTRAINT source_id_is_unique_in_its_application UNIQUE (application, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE source_secrets (
    id          BLOB NOT NULL PRIMARY KEY,
    source      BLOB NOT NULL,
    sealed      BLOB NOT NULL,
    sealing_key TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    retires_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX source_secrets_of_source ON source_secrets (source);

CREATE TABLE source_refusals (
    source  BLOB NOT NULL PRIMARY KEY,
    refused INTEGER NOT NULL DEFAULT 0,
    newest  TEXT NOT NULL DEFAULT '[]'
) STRICT, WITHOUT ROWID;

ALTER TABLE receipts ADD COLUMN submission BLOB;
ALTER TABLE receipts ADD COLUMN headers TEXT;

-- SQLite cannot change a check. What is counted counts for a window, a day at the longest: it begins anew.
DROP TABLE rate_limit_counters;
CREATE TABLE rate_limit_counters (
    limiter      INTEGER NOT NULL,
    subject      TEXT NOT NULL,
    window_start INTEGER NOT NULL,
    used         INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (limiter, subject, window_start),
    CONSTRAINT limiter_is_known CHECK (limiter IN (1, 2, 3, 4)),
    CONSTRAINT used_is_positive CHECK (used > 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_limit_counters_expiry ON rate_limit_counters (expires_at);

UPDATE schema_version SET version = 10;
