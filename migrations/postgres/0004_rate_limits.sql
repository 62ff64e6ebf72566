CREATE TABLE fencepost.rate_limit_counters (
    limiter      smallint NOT NULL,
    subject      text NOT NULL COLLATE "C",
    window_start timestamptz NOT NULL,
    used         integer NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (limiter, subject, window_start),
    CONSTRAINT limiter_is_known CHECK (limiter IN (1, 2, 3)),
    CONSTRAINT used_is_positive CHECK (used > 0)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX rate_limit_counters_expiry ON fencepost.rate_limit_counters (expires_at);
COMMENT ON TABLE fencepost.rate_limit_counters IS
    'Requests counted in fixed windows of the database''s clock, floored to the epoch: every process spends from the same.';
COMMENT ON COLUMN fencepost.rate_limit_counters.limiter IS '1 source address, 2 endpoint, 3 api key.';
COMMENT ON COLUMN fencepost.rate_limit_counters.subject IS 'Whom it counts. An address is a keyed digest.';
COMMENT ON COLUMN fencepost.rate_limit_counters.used IS 'Units reserved so far. Only rises within a window.';
COMMENT ON COLUMN fencepost.rate_limit_counters.expires_at IS 'The end of the window: from then on the row is swept.';

UPDATE fencepost.schema_version SET version = 4;
