-- The application's own tables, beside the schema `fencepost`, which they never meet.
CREATE TABLE stock (
    sku       text PRIMARY KEY,
    available bigint NOT NULL,
    CONSTRAINT nothing_is_sold_twice CHECK (available >= 0)
);

CREATE TABLE reservations (
    op_key      text NOT NULL,
    sku         text NOT NULL,
    quantity    bigint NOT NULL,
    fingerprint bytea NOT NULL,
    CONSTRAINT op_key_is_reserved_once UNIQUE (op_key)
);
COMMENT ON COLUMN reservations.op_key IS 'The name that the buyer gave to the operation.';
COMMENT ON COLUMN reservations.fingerprint IS 'SHA-256 of sku and quantity: what the key stands for.';
