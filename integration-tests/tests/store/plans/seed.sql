-- 100,000 submissions of two applications with 2,040 endpoints, over the last 24 hours and a half, with an empty
-- hour in the middle.
--
-- Of the application `default`: endpoint 1 has a fourth of all, one by one pending, failed, delivered; endpoint 2
-- has a fourth, all pending; the rest of its forty have a few. Of `neighbour`: endpoint 41 has a fourth, all
-- delivered but for one in five hundred; its two thousand others have the rest.
create function pg_temp.v7(at timestamptz, n bigint) returns uuid language sql immutable as $$
    select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7'
        || lpad(to_hex(n & 4095), 3, '0') || '8' || lpad(to_hex(n >> 12), 15, '0'))::uuid
$$;

insert into fencepost.applications (key, id, name)
select pg_temp.v7(now() - n * interval '1 second', n), case n when 1 then 'neighbour' else 'other-' || n end, 'Other'
from generate_series(1, 2000) n;

insert into fencepost.endpoints (key, application, id, url, deadline_ms, connect_deadline_ms, retry_schedule_ms,
    overload_floor_ms, final_statuses, in_flight_max)
select pg_temp.v7(now() - n * interval '1 second', n), a.key, 'endpoint-' || n, 'https://receiver.example.com/',
    20000, 10000, array[1000, 60000], 60000, array[]::smallint[], 32
from generate_series(1, 2040) n
join fencepost.applications a on a.id = case when n <= 40 then 'default' else 'neighbour' end;

insert into fencepost.endpoint_schedule (endpoint, cap, lease_ms) select key, 1000, 35000 from fencepost.endpoints;

create temp table owed as
select n, e.key as endpoint, e.id as name,
    pg_temp.v7(now() - interval '24 hours 30 minutes' + n * interval '810 milliseconds'
        + case when n > 50000 then interval '1 hour' else interval '0' end, n) as id
from generate_series(1, 100000) n
join fencepost.endpoints e on e.id = 'endpoint-' || case n % 4
    when 0 then 1 when 1 then 2 when 2 then 41
    else case when n % 8 = 3 then 3 + n % 38 else 42 + n % 1999 end end;

insert into fencepost.submissions (endpoint, id, webhook_id, received_at, payload_bytes, deliveries, content_type, payload)
select endpoint, id, id, now(), 2, array[id], 'application/json', '{}' from owed;

-- Processing are a hundred of endpoint 1 and of all others together, their leases over; failed expire from now on.
insert into fencepost.deliveries (endpoint, id, submission, due_at, payload_bytes, state, reason, claim_token,
    claim_expires_at, claimed_by)
select endpoint, id, id, now() + (n % 2000 - 1000) * interval '1 second', 2, state,
    case when state = 3 then 1 end, case when state = 2 then id end,
    case when state = 2 then now() - interval '1 minute' end, case when state = 2 then 'a worker' end
from (
    select *, case when name = 'endpoint-1' and n % 12 = 0 then 3 when n % 500 = 4 or n % 500 = 7 then 2
        else 1 end as state
    from owed
    where name in ('endpoint-1', 'endpoint-2') and n % 12 <> 4 or n % 4 = 3 and n % 3 = 0
) live;

insert into fencepost.settled_deliveries (endpoint, id, submission, settled_at, attempts, cycle_attempts,
    payload_bytes, state, reason)
select endpoint, id, id, now(), 1, 1, 2, state, case state when 5 then 21 when 6 then 1 end
from (
    select o.*, case when o.n % 1000 = 2 then 5 when o.n % 1000 = 502 then 6 else 4 end as state
    from owed o
    where not exists (select from fencepost.deliveries d where d.endpoint = o.endpoint and d.id = o.id)
) settled;

insert into fencepost.attempts (endpoint, delivery, claim_token, started_at, recorded_at, number, duration_ms, outcome,
    status, late, response_truncated, worker, url)
select endpoint, id, id, now(), now(), 1, 5, 1, 200, false, false, 'a worker', 'https://receiver.example.com/'
from fencepost.settled_deliveries;

insert into fencepost.idempotency_keys (scope, key, fingerprint, submission, deliveries, received_at, expires_at)
select endpoint, 'key-' || n, '\x00', id, array[id], now(), now() + (n - 10000) * interval '1 second'
from owed where n % 4 = 2;

insert into fencepost.api_keys (id, name, digest, shown_prefix, role, application)
select pg_temp.v7(now() - n * interval '1 second', n), 'key', int8send(n), 'fp_live_', 1, a.key
from generate_series(1, 2000) n
left join fencepost.applications a on n % 2 = 0 and a.id = 'neighbour';

insert into fencepost.rate_limit_counters (limiter, subject, window_start, used, expires_at)
select 2, 'endpoint-' || n, now(), 1, now() + (n - 1000) * interval '1 minute' from generate_series(1, 2000) n;

analyze fencepost.applications, fencepost.endpoints, fencepost.endpoint_schedule, fencepost.submissions,
    fencepost.deliveries, fencepost.settled_deliveries, fencepost.attempts, fencepost.idempotency_keys,
    fencepost.api_keys, fencepost.rate_limit_counters;
