CREATE TABLE operational_endpoint (
    one      INTEGER PRIMARY KEY DEFAULT 1 CONSTRAINT operational_endpoint_is_one_row CHECK (one = 1),
    endpoint BLOB
) STRICT;
INSERT INTO operational_endpoint (one) VALUES (1);

CREATE TABLE operational_events (
    id          BLOB NOT NULL PRIMARY KEY,
    occurred_at INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    code        INTEGER,
    endpoint    BLOB NOT NULL,
    delivery    BLOB,
    submission  BLOB,
    CONSTRAINT event_kind_is_known CHECK (kind BETWEEN 1 AND 5),
    CONSTRAINT delivery_iff_it_failed CHECK ((kind = 4) = (delivery IS NOT NULL AND submission IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX operational_events_in_order ON operational_events (occurred_at, id);

UPDATE schema_version SET version = 16;
