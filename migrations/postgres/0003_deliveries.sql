CREATE TABLE fencepost.deliveries (
    endpoint            uuid NOT NULL,
    id                  uuid NOT NULL,
    submission          uuid NOT NULL,
    claim_token         uuid,
    due_at              timestamptz NOT NULL,
    claim_expires_at    timestamptz,
    lapse_since         timestamptz,
    cancel_requested_at timestamptz,
    attempts            integer NOT NULL DEFAULT 0,
    cycle_attempts      integer NOT NULL DEFAULT 0,
    lapses              integer NOT NULL DEFAULT 0,
    payload_bytes       integer NOT NULL,
    state               smallint NOT NULL,
    reason              smallint,
    claimed_by          text,
    PRIMARY KEY (endpoint, id),
    CONSTRAINT state_is_owed_or_replayable CHECK (state IN (1, 2, 3)),
    CONSTRAINT claim_held_while_processing
        CHECK (state <> 2 OR (claim_token IS NOT NULL AND claim_expires_at IS NOT NULL)),
    CONSTRAINT reason_iff_failed CHECK ((state = 3) = (reason IS NOT NULL)),
    CONSTRAINT lapse_since_iff_lapsed CHECK ((lapses > 0) = (lapse_since IS NOT NULL)),
    CONSTRAINT attempts_cover_the_cycle CHECK (cycle_attempts BETWEEN 0 AND attempts)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
-- Each index is paid for by every change of state, which is why there are no more.
CREATE INDEX deliveries_id ON fencepost.deliveries (id);
CREATE INDEX deliveries_due ON fencepost.deliveries (endpoint, due_at, id) WHERE state = 1;
CREATE INDEX deliveries_lease ON fencepost.deliveries (endpoint, claim_expires_at) WHERE state = 2;
CREATE INDEX deliveries_expiry ON fencepost.deliveries (due_at) WHERE state = 3;
COMMENT ON TABLE fencepost.deliveries IS 'What is owed or can be replayed. A settled delivery moves to settled_deliveries.';
COMMENT ON COLUMN fencepost.deliveries.state IS '1 pending, 2 processing, 3 failed.';
COMMENT ON COLUMN fencepost.deliveries.due_at IS 'Pending: the next attempt. Failed: when it expires.';
COMMENT ON COLUMN fencepost.deliveries.claim_token IS
    'The claim whose report still counts. A fenced report, a give-back and a replay clear it, a lapse does not.';
COMMENT ON COLUMN fencepost.deliveries.claim_expires_at IS 'The end of the lease of claim_token.';
COMMENT ON COLUMN fencepost.deliveries.attempts IS 'Attempts for life, and the highest attempt number. Only rises.';
COMMENT ON COLUMN fencepost.deliveries.cycle_attempts IS 'Attempts under the fence since it last entered the queue.';
COMMENT ON COLUMN fencepost.deliveries.lapses IS 'Claims in a row whose lease ended with no report.';
COMMENT ON COLUMN fencepost.deliveries.reason IS
    '1 attempts exhausted, 2 gone (410), 3 final status, 4 abandoned, 5 held too long.';

CREATE TABLE fencepost.settled_deliveries (
    endpoint         uuid NOT NULL,
    id               uuid NOT NULL,
    submission       uuid NOT NULL,
    settled_at       timestamptz NOT NULL,
    attempts         integer NOT NULL,
    cycle_attempts   integer NOT NULL,
    payload_bytes    integer NOT NULL,
    state            smallint NOT NULL,
    reason           smallint,
    claimed_by       text,
    PRIMARY KEY (endpoint, id),
    CONSTRAINT state_is_settled CHECK (state IN (4, 5, 6)),
    CONSTRAINT reason_iff_not_delivered CHECK ((state = 4) = (reason IS NULL))
) PARTITION BY RANGE (id);
CREATE INDEX settled_deliveries_id ON fencepost.settled_deliveries (id);
COMMENT ON TABLE fencepost.settled_deliveries IS 'What is over. Changed only by late reports, which raise attempts.';
COMMENT ON COLUMN fencepost.settled_deliveries.state IS '4 delivered, 5 cancelled, 6 expired.';
COMMENT ON COLUMN fencepost.settled_deliveries.reason IS
    'Expired: why it had failed, as in deliveries. Cancelled: 21 operator, 22 endpoint deleted, 23 payload erased.';

CREATE TABLE fencepost.attempts (
    endpoint           uuid NOT NULL,
    delivery           uuid NOT NULL,
    claim_token        uuid NOT NULL,
    started_at         timestamptz NOT NULL,
    recorded_at        timestamptz NOT NULL,
    number             integer NOT NULL,
    duration_ms        integer NOT NULL,
    outcome            smallint NOT NULL,
    status             smallint,
    late               boolean NOT NULL,
    response_truncated boolean NOT NULL,
    worker             text NOT NULL,
    url                text NOT NULL,
    location           text,
    detail             text,
    response           bytea,
    -- One claim has at most one attempt: a report that comes twice cannot become two.
    PRIMARY KEY (endpoint, delivery, claim_token),
    CONSTRAINT status_iff_answered CHECK ((outcome = 1) = (status IS NOT NULL)),
    CONSTRAINT numbers_start_at_one CHECK (number >= 1)
) PARTITION BY RANGE (delivery);
COMMENT ON TABLE fencepost.attempts IS 'Tries whose outcome a worker reported. Insert-only; a partition a day, by the delivery''s id.';
COMMENT ON COLUMN fencepost.attempts.number IS 'From deliveries.attempts under its row lock: without gap or repeat for life.';
COMMENT ON COLUMN fencepost.attempts.late IS 'The claim was superseded by then: nothing else changed.';
COMMENT ON COLUMN fencepost.attempts.outcome IS
    '1 answered, 2 timed out, 3 connect timed out, 4 connect failed, 5 DNS failed, 6 TLS failed, 7 connection closed, '
    '8 response invalid, 9 address refused, 10 unsendable.';
COMMENT ON COLUMN fencepost.attempts.response IS 'The first 16 KiB of the response body.';

UPDATE fencepost.schema_version SET version = 3, compatible_from = 3;
