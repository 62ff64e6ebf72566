CREATE TABLE rate_limit_counters (
    limiter      INTEGER NOT NULL,
    subject      TEXT NOT NULL,
    window_start INTEGER NOT NULL,
    used         INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (limiter, subject, window_start),
    CONSTRAINT limiter_is_known CHECK (limiter IN (1, 2, 3)),
    CONSTRAINT used_is_positive CHECK (used > 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_limit_counters_expiry ON rate_limit_counters (expires_at);

UPDATE schema_version SET version = 4;
