CREATE TABLE deliveries (
    endpoint            BLOB NOT NULL,
    id                  BLOB NOT NULL,
    submission          BLOB NOT NULL,
    claim_token         BLOB,
    due_at              INTEGER NOT NULL,
    claim_expires_at    INTEGER,
    lapse_since         INTEGER,
    cancel_requested_at INTEGER,
    attempts            INTEGER NOT NULL DEFAULT 0,
    cycle_attempts      INTEGER NOT NULL DEFAULT 0,
    lapses              INTEGER NOT NULL DEFAULT 0,
    payload_bytes       INTEGER NOT NULL,
    state               INTEGER NOT NULL,
    reason              INTEGER,
    claimed_by          TEXT,
    PRIMARY KEY (endpoint, id),
    CONSTRAINT delivery_id_is_a_uuid CHECK (length(id) = 16),
    CONSTRAINT state_is_owed_or_replayable CHECK (state IN (1, 2, 3)),
    CONSTRAINT claim_held_while_processing
        CHECK (state <> 2 OR (claim_token IS NOT NULL AND claim_expires_at IS NOT NULL)),
    CONSTRAINT reason_iff_failed CHECK ((state = 3) = (reason IS NOT NULL)),
    CONSTRAINT lapse_since_iff_lapsed CHECK ((lapses > 0) = (lapse_since IS NOT NULL)),
    CONSTRAINT attempts_cover_the_cycle CHECK (cycle_attempts BETWEEN 0 AND attempts)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_id ON deliveries (id);
CREATE INDEX deliveries_due ON deliveries (endpoint, due_at, id) WHERE state = 1;
CREATE INDEX deliveries_lease ON deliveries (endpoint, claim_expires_at) WHERE state = 2;
CREATE INDEX deliveries_expiry ON deliveries (due_at) WHERE state = 3;

CREATE TABLE settled_deliveries (
    endpoint       BLOB NOT NULL,
    id             BLOB NOT NULL,
    submission     BLOB NOT NULL,
    settled_at     INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    cycle_attempts INTEGER NOT NULL,
    payload_bytes  INTEGER NOT NULL,
    state          INTEGER NOT NULL,
    reason         INTEGER,
    claimed_by     TEXT,
    PRIMARY KEY (endpoint, id),
    CONSTRAINT state_is_settled CHECK (state IN (4, 5, 6)),
    CONSTRAINT reason_iff_not_delivered CHECK ((state = 4) = (reason IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX settled_deliveries_id ON settled_deliveries (id);

CREATE TABLE attempts (
    endpoint           BLOB NOT NULL,
    delivery           BLOB NOT NULL,
    claim_token        BLOB NOT NULL,
    started_at         INTEGER NOT NULL,
    recorded_at        INTEGER NOT NULL,
    number             INTEGER NOT NULL,
    duration_ms        INTEGER NOT NULL,
    outcome            INTEGER NOT NULL,
    status             INTEGER,
    late               INTEGER NOT NULL CHECK (late IN (0, 1)),
    response_truncated INTEGER NOT NULL CHECK (response_truncated IN (0, 1)),
    worker             TEXT NOT NULL,
    url                TEXT NOT NULL,
    location           TEXT,
    detail             TEXT,
    response           BLOB,
    -- One claim has at most one attempt: a report that comes twice cannot become two.
    PRIMARY KEY (endpoint, delivery, claim_token),
    CONSTRAINT status_iff_answered CHECK ((outcome = 1) = (status IS NOT NULL)),
    CONSTRAINT numbers_start_at_one CHECK (number >= 1)
) STRICT;

UPDATE schema_version SET version = 3, compatible_from = 3;
