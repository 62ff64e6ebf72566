-- How an endpoint does: what its results tell is counted on the schedule row, which claims and records lock
-- and write anyway.
ALTER TABLE fencepost.endpoints ADD COLUMN disabled_at timestamptz;
COMMENT ON COLUMN fencepost.endpoints.disabled_at IS 'When disabled_cause was set. NULL for those from before schema 14.';

-- Expands: the check allows one value more, which is met after five days of failures, counted from here on.
ALTER TABLE fencepost.endpoints DROP CONSTRAINT disabled_cause_is_known;
-- Expands: the check allows one value more.
ALTER TABLE fencepost.endpoints ADD CONSTRAINT disabled_cause_is_known CHECK (disabled_cause IN (1, 2, 3));
COMMENT ON COLUMN fencepost.endpoints.disabled_cause IS
    'NULL enabled, 1 operator, 2 the receiver answered 410, 3 it failed for too long.';

ALTER TABLE fencepost.endpoint_schedule
    ADD COLUMN counts_from bigint NOT NULL DEFAULT 0,
    ADD COLUMN failing_since timestamptz,
    ADD COLUMN failed_at timestamptz,
    ADD CONSTRAINT failed_at_iff_failing CHECK ((failing_since IS NULL) = (failed_at IS NULL));
COMMENT ON COLUMN fencepost.endpoint_schedule.counts_from IS
    'Results count for the endpoint if their request was made by this version of it, or a later one.';
COMMENT ON COLUMN fencepost.endpoint_schedule.failing_since IS
    'The first failure of a run with no success between and one on each day. NULL: none.';
COMMENT ON COLUMN fencepost.endpoint_schedule.failed_at IS 'The last failure of that run.';

UPDATE fencepost.schema_version SET version = 14;
