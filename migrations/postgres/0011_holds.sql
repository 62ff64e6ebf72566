CREATE TABLE fencepost.holds (
    one    boolean PRIMARY KEY DEFAULT true CONSTRAINT holds_is_one_row CHECK (one),
    held   boolean NOT NULL DEFAULT false,
    since  timestamptz,
    reason text
);
INSERT INTO fencepost.holds (one) VALUES (true);
COMMENT ON TABLE fencepost.holds IS
    'One row: whether anything may be claimed at all. Claims read a copy of it on the schedule row that they lock.';

ALTER TABLE fencepost.endpoint_schedule ADD COLUMN held boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN fencepost.endpoint_schedule.held IS
    'Copied from holds, by whoever changes that and by whoever makes this row: nothing is claimed.';

COMMENT ON COLUMN fencepost.settled_deliveries.reason IS
    'Expired: why it had failed, as in deliveries. Cancelled: 21 operator, 22 endpoint deleted, 23 payload erased, '
    '24 marked as sent.';

UPDATE fencepost.schema_version SET version = 11;
