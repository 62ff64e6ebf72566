-- `fencepost.submit`: a submission from any language, inside the caller's own transaction (G8).
--
-- It checks what the api checks for a request, in the same order and with the same codes, spends from no rate
-- limit and sends no NOTIFY. What it refuses it names: the SQLSTATE, the field as the message's first word, and the
-- api's code in the detail. Class WH is ours; the server's own classes never begin with W.
--
--   WH001 application_not_found   WH002 endpoint_not_found         WH003 idempotency_key_invalid
--   WH004 event_type_invalid      WH005 content_type_malformed     WH006 json_malformed
--   WH007 body_too_large          WH008 idempotency_key_reused     WH009 partition_missing
--   WH010 payload_missing         40001 the loser of a key, which is to repeat its whole transaction
--
-- Every function here is the owner's alone; `fencepost migrate grants` lets a role call the three of `submit`.

-- The api's `--body-limit`, and how long a key is remembered. Where the api has other settings, replace this
-- function by one with the same.
CREATE FUNCTION fencepost.submit_limits(OUT payload_bytes_max integer, OUT idempotency_window interval)
LANGUAGE sql IMMUTABLE AS $$ SELECT 262144, interval '720 hours' $$;

CREATE FUNCTION fencepost.refuse_submission(state text, field text, code text, message text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = field || ': ' || message, DETAIL = 'code: ' || code, COLUMN = field;
END $$;

-- A UUIDv7 of that millisecond, on servers that have no function for it too: random bits under the millisecond,
-- and the version's nibble, which gen_random_uuid leaves at 4, made 7.
CREATE FUNCTION fencepost.uuid_of_millis(millis bigint) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    SELECT encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(millis) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1),
        'hex')::uuid
$$;

-- The bytes of a field with their number before them.
CREATE FUNCTION fencepost.with_length(field bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$ SELECT int8send(octet_length(field)) || field $$;

-- What a key is compared by: byte for byte that of crates/domain/src/submission/fingerprint.rs.
CREATE FUNCTION fencepost.submission_fingerprint(scope uuid, event_type text, content_type text, payload bytea)
RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(
        convert_to('fencepost.fingerprint.1', 'UTF8') || uuid_send(scope)
        || CASE WHEN event_type IS NULL THEN '\x00'::bytea
            ELSE '\x01'::bytea || fencepost.with_length(convert_to(event_type, 'UTF8')) END
        || fencepost.with_length(convert_to(content_type, 'UTF8')) || fencepost.with_length(payload))
$$;

-- Whether bytes are one JSON value of at most 128 levels. The exception's block writes nothing, so it costs no
-- transaction id.
CREATE FUNCTION fencepost.is_json(payload bytea) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    content text;
    brackets text;
BEGIN
    BEGIN
        content := convert_from(payload, 'UTF8');
        PERFORM content::json;
    EXCEPTION WHEN data_exception OR statement_too_complex THEN
        RETURN false;
    END;
    IF length(content) - length(translate(content, '[{', '')) <= 128 THEN
        RETURN true;
    END IF;
    -- Brackets outside of strings, all of one kind; then the innermost pairs are taken away, level by level.
    brackets := regexp_replace(content, '(?:"(?:[^"\\]|\\.)*"|[^][{}"])+', '', 'g');
    brackets := translate(brackets, '{}', '[]');
    FOR level IN 1..128 LOOP
        EXIT WHEN brackets = '';
        brackets := replace(brackets, '[]', '');
    END LOOP;
    RETURN brackets = '';
END $$;

-- Raises what is wrong with a field; the grammars are those of the domain crate.
CREATE FUNCTION fencepost.check_submission(
    payload bytea, content_type text, event_type text, idempotency_key text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    token CONSTANT text := '[A-Za-z0-9!#$%&''*+.^_`|~-]+';
    media_type CONSTANT text := '^' || token || '/' || token || '(?:[ \t]*;[ \t]*(?:' || token || '=(?:' || token
        || '|"(?:[\t !#-[\]-~]|\\[\t -~])*"))?)*$';
    bytes integer;
BEGIN
    IF idempotency_key IS NOT NULL THEN
        bytes := octet_length(idempotency_key);
        IF bytes = 0 THEN
            PERFORM fencepost.refuse_submission('WH003', 'idempotency_key', 'idempotency_key_empty',
                'an idempotency key has 1 to 255 characters, this one none');
        ELSIF bytes > 255 THEN
            PERFORM fencepost.refuse_submission('WH003', 'idempotency_key', 'idempotency_key_too_long',
                format('an idempotency key has at most 255 characters, this one %s', bytes));
        ELSIF idempotency_key COLLATE "C" !~ '^[!-~]+$' THEN
            PERFORM fencepost.refuse_submission('WH003', 'idempotency_key', 'idempotency_key_not_visible_ascii',
                'an idempotency key holds only visible ASCII characters');
        END IF;
    END IF;
    IF event_type IS NOT NULL THEN
        bytes := octet_length(event_type);
        IF bytes = 0 THEN
            PERFORM fencepost.refuse_submission('WH004', 'event_type', 'event_type_empty',
                'an event type has 1 to 128 bytes, this one none');
        ELSIF bytes > 128 THEN
            PERFORM fencepost.refuse_submission('WH004', 'event_type', 'event_type_too_long',
                format('an event type has at most 128 bytes, this one %s', bytes));
        -- What comes first: identifiers and full stops, then a character that neither has.
        ELSIF event_type COLLATE "C" ~ '^(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]*[^A-Za-z0-9._-]' THEN
            PERFORM fencepost.refuse_submission('WH004', 'event_type', 'event_type_forbidden_character',
                'an event type holds only a-z, A-Z, 0-9, _, - and full stops');
        ELSIF event_type COLLATE "C" !~ '^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$' THEN
            PERFORM fencepost.refuse_submission('WH004', 'event_type', 'event_type_empty_identifier',
                'an event type has an identifier on either side of a full stop');
        END IF;
    END IF;
    bytes := octet_length(content_type);
    IF bytes = 0 THEN
        PERFORM fencepost.refuse_submission('WH005', 'content_type', 'content_type_empty',
            'a content type has 1 to 255 bytes, this one none');
    ELSIF bytes > 255 THEN
        PERFORM fencepost.refuse_submission('WH005', 'content_type', 'content_type_too_long',
            format('a content type has at most 255 bytes, this one %s', bytes));
    ELSIF content_type COLLATE "C" !~ media_type THEN
        PERFORM fencepost.refuse_submission('WH005', 'content_type', 'content_type_malformed',
            'a content type is type/subtype with optional ; name=value parameters in ASCII');
    END IF;
    IF lower(substring(content_type COLLATE "C" FROM '^[^; \t]+')) ~ '(^application/json|^text/json|\+json)$'
        AND NOT fencepost.is_json(payload)
    THEN
        PERFORM fencepost.refuse_submission('WH006', 'payload', 'json_malformed',
            'the payload is declared to be JSON and is not, or is nested more than 128 levels deep');
    END IF;
END $$;

-- Takes a key for a submission that is going to be stored. False if it is taken already.
CREATE FUNCTION fencepost.take_idempotency_key(
    of_scope uuid, name text, content bytea, new_submission uuid, new_delivery uuid, until timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fencepost.idempotency_keys (scope, key, fingerprint, submission, deliveries, received_at, expires_at)
    VALUES (of_scope, name, content, new_submission, ARRAY[new_delivery], statement_timestamp(), until)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;

CREATE FUNCTION fencepost.submit(
    endpoint_id text, payload bytea, content_type text DEFAULT NULL, event_type text DEFAULT NULL,
    idempotency_key text DEFAULT NULL, application_id text DEFAULT 'default',
    OUT submission_id uuid, OUT delivery_ids uuid[], OUT replayed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    limits record;
    of_application uuid;
    of_endpoint uuid;
    media_type CONSTANT text := COALESCE(content_type, 'application/octet-stream');
    -- The ids of one accept carry one millisecond: both lie in partitions of the same day.
    millis CONSTANT bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    new_submission CONSTANT uuid := fencepost.uuid_of_millis(millis);
    new_delivery CONSTANT uuid := fencepost.uuid_of_millis(millis);
    content bytea;
    taken boolean;
    winner record;
BEGIN
    SELECT * INTO limits FROM fencepost.submit_limits();
    IF payload IS NULL THEN
        PERFORM fencepost.refuse_submission('WH010', 'payload', 'payload_missing', 'a payload is NULL, it may be empty');
    ELSIF octet_length(payload) > limits.payload_bytes_max THEN
        PERFORM fencepost.refuse_submission('WH007', 'payload', 'body_too_large',
            format('a payload has at most %s bytes, this one %s', limits.payload_bytes_max, octet_length(payload)));
    END IF;
    SELECT a.key INTO of_application FROM fencepost.applications a
    WHERE a.id = COALESCE(application_id, 'default') AND a.deleted_at IS NULL;
    IF of_application IS NULL THEN
        PERFORM fencepost.refuse_submission('WH001', 'application_id', 'application_not_found',
            format('no application has the id %L', left(application_id, 100)));
    END IF;
    SELECT e.key INTO of_endpoint FROM fencepost.endpoints e
    WHERE e.application = of_application AND e.id = endpoint_id AND e.deleted_at IS NULL;
    IF of_endpoint IS NULL THEN
        PERFORM fencepost.refuse_submission('WH002', 'endpoint_id', 'endpoint_not_found',
            format('the application has no endpoint %L', left(endpoint_id, 100)));
    END IF;
    PERFORM fencepost.check_submission(payload, media_type, event_type, idempotency_key);
    -- Made beforehand, by `fencepost migrate` and by workers: never here.
    IF to_regclass('fencepost.submissions_' || to_char(to_timestamp(millis / 1000) AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NULL
    THEN
        PERFORM fencepost.refuse_submission('WH009', 'partition', 'partition_missing',
            'no partition for today''s submissions: run `fencepost migrate`, or a worker');
    END IF;

    content := fencepost.submission_fingerprint(of_endpoint, event_type, media_type, payload);
    FOR round IN 1..3 LOOP
        EXIT WHEN idempotency_key IS NULL;
        taken := false;
        IF current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN
            taken := NOT fencepost.take_idempotency_key(of_endpoint, idempotency_key, content, new_submission, new_delivery,
                statement_timestamp() + limits.idempotency_window);
        ELSE
            -- Only these levels pay for the block, which is a subtransaction.
            BEGIN
                taken := NOT fencepost.take_idempotency_key(of_endpoint, idempotency_key, content, new_submission,
                    new_delivery, statement_timestamp() + limits.idempotency_window);
            EXCEPTION WHEN serialization_failure THEN
                PERFORM fencepost.refuse_submission('40001', 'idempotency_key', 'idempotency_key_in_progress',
                    format('%L is or was held by a concurrent transaction, repeat this one', idempotency_key));
            END;
        END IF;
        EXIT WHEN NOT taken;
        -- A statement of its own: under READ COMMITTED its snapshot sees the winner.
        SELECT k.fingerprint = content AS same, k.expires_at <= statement_timestamp() AS expired, k.submission, k.deliveries
        INTO winner FROM fencepost.idempotency_keys k WHERE k.scope = of_endpoint AND k.key = idempotency_key COLLATE "C";
        IF NOT FOUND THEN
            CONTINUE;
        ELSIF winner.expired THEN
            DELETE FROM fencepost.idempotency_keys k WHERE k.scope = of_endpoint AND k.key = idempotency_key COLLATE "C"
                AND k.expires_at <= statement_timestamp();
        ELSIF winner.same THEN
            submission_id := winner.submission;
            delivery_ids := winner.deliveries;
            replayed := true;
            RETURN;
        ELSE
            PERFORM fencepost.refuse_submission('WH008', 'idempotency_key', 'idempotency_key_reused',
                format('%L was used for other content', idempotency_key));
        END IF;
    END LOOP;
    IF taken THEN
        PERFORM fencepost.refuse_submission('40001', 'idempotency_key', 'idempotency_key_in_progress',
            format('%L changes hands again and again, repeat this transaction', idempotency_key));
    END IF;

    INSERT INTO fencepost.submissions
        (endpoint, id, webhook_id, received_at, payload_bytes, deliveries, event_type, content_type, payload)
    VALUES (of_endpoint, new_submission, new_submission, statement_timestamp(), octet_length(submit.payload),
        ARRAY[new_delivery], submit.event_type, media_type, submit.payload);
    INSERT INTO fencepost.deliveries (endpoint, id, submission, due_at, payload_bytes, state)
    VALUES (of_endpoint, new_delivery, new_submission, statement_timestamp(), octet_length(submit.payload), 1);
    submission_id := new_submission;
    delivery_ids := ARRAY[new_delivery];
    replayed := false;
END $$;
COMMENT ON FUNCTION fencepost.submit(text, bytea, text, text, text, text) IS
    'Stores bytes and the obligation to deliver them in the caller''s transaction. See docs/EMBEDDING.md.';

-- Text is sent as UTF-8.
CREATE FUNCTION fencepost.submit(
    endpoint_id text, payload text, content_type text DEFAULT NULL, event_type text DEFAULT NULL,
    idempotency_key text DEFAULT NULL, application_id text DEFAULT 'default',
    OUT submission_id uuid, OUT delivery_ids uuid[], OUT replayed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT s.* INTO submission_id, delivery_ids, replayed
    FROM fencepost.submit(endpoint_id, convert_to(payload, 'UTF8'), content_type, event_type, idempotency_key,
        application_id) s;
END $$;
COMMENT ON FUNCTION fencepost.submit(text, text, text, text, text, text) IS 'The same for text, which is sent as UTF-8.';

-- JSON as it was written: its spaces and the order of its names are kept, and are part of what a key stands for.
CREATE FUNCTION fencepost.submit(
    endpoint_id text, payload json, content_type text DEFAULT 'application/json', event_type text DEFAULT NULL,
    idempotency_key text DEFAULT NULL, application_id text DEFAULT 'default',
    OUT submission_id uuid, OUT delivery_ids uuid[], OUT replayed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT s.* INTO submission_id, delivery_ids, replayed
    FROM fencepost.submit(endpoint_id, convert_to(payload::text, 'UTF8'), COALESCE(content_type, 'application/json'),
        event_type, idempotency_key, application_id) s;
END $$;
COMMENT ON FUNCTION fencepost.submit(text, json, text, text, text, text) IS 'The same for JSON, which is sent as it was written.';

REVOKE ALL ON FUNCTION
    fencepost.submit_limits(), fencepost.refuse_submission(text, text, text, text), fencepost.uuid_of_millis(bigint),
    fencepost.with_length(bytea), fencepost.submission_fingerprint(uuid, text, text, bytea), fencepost.is_json(bytea),
    fencepost.check_submission(bytea, text, text, text),
    fencepost.take_idempotency_key(uuid, text, bytea, uuid, uuid, timestamptz),
    fencepost.submit(text, bytea, text, text, text, text), fencepost.submit(text, text, text, text, text, text),
    fencepost.submit(text, json, text, text, text, text)
FROM PUBLIC;

UPDATE fencepost.schema_version SET version = 9;
