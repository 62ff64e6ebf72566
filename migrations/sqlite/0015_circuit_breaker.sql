ALTER TABLE endpoints ADD COLUMN circuit_breaker INTEGER NOT NULL DEFAULT 1 CHECK (circuit_breaker IN (0, 1));

ALTER TABLE endpoint_schedule ADD COLUMN circuit_breaker INTEGER NOT NULL DEFAULT 1 CHECK (circuit_breaker IN (0, 1));
ALTER TABLE endpoint_schedule ADD COLUMN failures_in_a_row INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_schedule ADD COLUMN window_since INTEGER;
ALTER TABLE endpoint_schedule ADD COLUMN window_succeeded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_schedule ADD COLUMN window_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_schedule ADD COLUMN circuit_times INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_schedule ADD COLUMN circuit_since INTEGER;
ALTER TABLE endpoint_schedule ADD COLUMN circuit_until INTEGER;
ALTER TABLE endpoint_schedule ADD COLUMN circuit_cause INTEGER
    CONSTRAINT circuit_cause_is_known CHECK (circuit_cause IN (1, 2));
ALTER TABLE endpoint_schedule ADD COLUMN circuit_probe BLOB
    CONSTRAINT circuit_is_open_or_closed CHECK (
        (circuit_times > 0) = (circuit_since IS NOT NULL)
        AND (circuit_times > 0) = (circuit_until IS NOT NULL)
        AND (circuit_times > 0) = (circuit_cause IS NOT NULL)
        AND (circuit_times > 0 OR circuit_probe IS NULL)
    );

UPDATE schema_version SET version = 15;
