CREATE TABLE fencepost.operational_endpoint (
    one      boolean PRIMARY KEY DEFAULT true CONSTRAINT operational_endpoint_is_one_row CHECK (one),
    endpoint uuid
);
INSERT INTO fencepost.operational_endpoint (one) VALUES (true);
COMMENT ON TABLE fencepost.operational_endpoint IS
    'One row: the endpoint that events about the service go to. NULL: nowhere, and none is written.';

CREATE TABLE fencepost.operational_events (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    occurred_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    kind        smallint NOT NULL,
    code        smallint,
    endpoint    uuid NOT NULL,
    delivery    uuid,
    submission  uuid,
    CONSTRAINT event_kind_is_known CHECK (kind BETWEEN 1 AND 5),
    CONSTRAINT delivery_iff_it_failed CHECK ((kind = 4) = (delivery IS NOT NULL AND submission IS NOT NULL))
);
CREATE INDEX operational_events_in_order ON fencepost.operational_events (occurred_at, id);
COMMENT ON TABLE fencepost.operational_events IS
    'Events that are not submitted yet, written by the statement of what they tell of.';
COMMENT ON COLUMN fencepost.operational_events.kind IS
    '1 endpoint disabled, 2 endpoint failing, 3 endpoint recovered, 4 delivery failed, 5 secret rotated.';
COMMENT ON COLUMN fencepost.operational_events.code IS
    'Why: disabled_cause, circuit_cause, or reason of deliveries.';

UPDATE fencepost.schema_version SET version = 16;
