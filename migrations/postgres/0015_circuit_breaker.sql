ALTER TABLE fencepost.endpoints ADD COLUMN circuit_breaker boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN fencepost.endpoints.circuit_breaker IS 'Whether deliveries stop for a while when too many of them fail.';

-- Which of these belong together is a rule of domain::endpoint::circuit.
ALTER TABLE fencepost.endpoint_schedule
    ADD COLUMN circuit_breaker boolean NOT NULL DEFAULT true,
    ADD COLUMN failures_in_a_row integer NOT NULL DEFAULT 0,
    ADD COLUMN window_since timestamptz,
    ADD COLUMN window_succeeded integer NOT NULL DEFAULT 0,
    ADD COLUMN window_failed integer NOT NULL DEFAULT 0,
    ADD COLUMN circuit_times integer NOT NULL DEFAULT 0,
    ADD COLUMN circuit_since timestamptz,
    ADD COLUMN circuit_until timestamptz,
    ADD COLUMN circuit_cause smallint,
    ADD COLUMN circuit_probe uuid,
    ADD CONSTRAINT circuit_is_open_or_closed CHECK (
        (circuit_times > 0) = (circuit_since IS NOT NULL)
        AND (circuit_times > 0) = (circuit_until IS NOT NULL)
        AND (circuit_times > 0) = (circuit_cause IS NOT NULL)
        AND (circuit_times > 0 OR circuit_probe IS NULL)
    ),
    ADD CONSTRAINT circuit_cause_is_known CHECK (circuit_cause IN (1, 2));
COMMENT ON COLUMN fencepost.endpoint_schedule.circuit_breaker IS 'Copied from endpoints.';
COMMENT ON COLUMN fencepost.endpoint_schedule.failures_in_a_row IS 'Since results with a success among them.';
COMMENT ON COLUMN fencepost.endpoint_schedule.window_since IS
    'When the window began in which window_succeeded and window_failed are counted.';
COMMENT ON COLUMN fencepost.endpoint_schedule.circuit_times IS
    '0 while the circuit is closed, else how often it has opened since it was.';
COMMENT ON COLUMN fencepost.endpoint_schedule.circuit_until IS
    'Until then nothing is claimed; from then on one delivery, the probe, and its claim sets this to the end of its lease.';
COMMENT ON COLUMN fencepost.endpoint_schedule.circuit_cause IS '1 failures in a row, 2 their share in a window.';
COMMENT ON COLUMN fencepost.endpoint_schedule.circuit_probe IS 'The claim token of the probe, whose result alone decides.';

UPDATE fencepost.schema_version SET version = 15;
