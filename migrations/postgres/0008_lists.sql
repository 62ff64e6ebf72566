-- What the lists stand on: each page is read from the end of an index, however much lies beside it.

CREATE INDEX endpoints_of_application ON fencepost.endpoints (application, key);
CREATE INDEX endpoints_live ON fencepost.endpoints (application, key) WHERE deleted_at IS NULL;
CREATE INDEX applications_live ON fencepost.applications (key) WHERE deleted_at IS NULL;
CREATE INDEX api_keys_of_application ON fencepost.api_keys (application, id);

-- Of rare states only: what is delivered at once pays for neither.
CREATE INDEX deliveries_failed ON fencepost.deliveries (endpoint, id) WHERE state = 3;
CREATE INDEX settled_deliveries_undelivered ON fencepost.settled_deliveries (endpoint, state, id)
    WHERE state <> 4;

-- A plan made for few owners reads the rows of all others on its way to those of one: what a sample says
-- of how many there are says nothing of how much each of them has. With this each is one of many.
ALTER TABLE fencepost.endpoints ALTER COLUMN application SET (n_distinct = 100);
ALTER TABLE fencepost.api_keys ALTER COLUMN application SET (n_distinct = 100);
ALTER TABLE fencepost.deliveries ALTER COLUMN endpoint SET (n_distinct = 1000);
DO $$
DECLARE
    partition regclass;
BEGIN
    FOR partition IN
        SELECT inhrelid FROM pg_catalog.pg_inherits
        WHERE inhparent IN ('fencepost.submissions'::regclass, 'fencepost.settled_deliveries'::regclass,
            'fencepost.attempts'::regclass)
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN endpoint SET (n_distinct = 1000)', partition);
    END LOOP;
END $$;

UPDATE fencepost.schema_version SET version = 8;
