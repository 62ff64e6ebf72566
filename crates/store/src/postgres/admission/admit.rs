//! Looks key, application and endpoint up and charges the budgets, in one statement.
//!
//! Each budget is charged for those whom the one before it let through, so the three upserts follow one
//! another: a counter is incremented and read by one of them, as in `rate_limit::reserve`, and whoever came
//! first within the statement gets what is left. A request that is denied by one costs the next nothing.
//!
//! Counters are locked in the order source, key, endpoint, and by subject within each. `reserve` locks
//! sources before endpoints, too, and no keys. As there, the commit does not wait for the disk: storing
//! the submission does, and the log is written in order.

use std::time::Duration;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, EndpointKey};
use domain::rate_limit::RateLimit;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::admission::{Admission, AdmissionRequest, Budgets, submitting_roles};
use crate::api_key::ApiKey;
use crate::postgres::codec::{corrupt, integer, millis, rate};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::rate_limit::Limiter;
use crate::{StoreError, codes};

struct Row {
    key: Option<Uuid>,
    name: Option<String>,
    role: Option<i16>,
    bound_to: Option<Uuid>,
    created_at: Option<OffsetDateTime>,
    use_due: Option<bool>,
    may: Option<bool>,
    application: Option<Uuid>,
    source_denies: bool,
    key_denies: bool,
    endpoint: Option<Uuid>,
    endpoint_denies: bool,
    ingest_rate: Option<i32>,
    ingest_rate_ms: Option<i64>,
    since_epoch_micros: i64,
}

#[expect(clippy::too_many_lines, reason = "it is one statement")]
pub(in crate::postgres) async fn admit(
    pool: &Pool,
    requests: &[AdmissionRequest],
    budgets: Budgets,
) -> Result<Vec<Admission>, StoreError> {
    let digests: Vec<&[u8]> = requests.iter().map(|r| r.digest.as_bytes().as_slice()).collect();
    let name = |id: &Option<domain::id::PublicId>| id.as_ref().map(|id| id.as_str().to_owned());
    let applications: Vec<Option<String>> = requests.iter().map(|r| name(&r.application)).collect();
    let endpoints: Vec<Option<String>> = requests.iter().map(|r| name(&r.endpoint)).collect();
    let sources: Vec<Option<&str>> = requests.iter().map(|r| r.source.as_deref()).collect();
    let units = |limit: Option<RateLimit>| limit.map(|limit| integer(limit.units()));
    let window_ms = |limit: Option<RateLimit>| limit.map(|limit| millis(limit.window()));
    let roles = submitting_roles();
    let rows = after_conflict(|| async {
        sqlx::query_as!(
            Row,
            r#"-- postgres::admission::admit
            WITH t AS MATERIALIZED (
                SELECT set_config('synchronous_commit', 'off', true)
            ), r AS MATERIALIZED (
                SELECT q.n, q.source, k.id AS key, k.name, k.role, k.application AS bound_to,
                    k.created_at, (k.last_used_at IS NULL
                        OR k.last_used_at < statement_timestamp() - interval '1 hour') AS use_due,
                    k.role = ANY($5) AS may, a.key AS application,
                    e.key AS endpoint, e.ingest_rate, e.ingest_rate_ms
                FROM t CROSS JOIN unnest($1::bytea[], $2::text[], $3::text[], $4::text[])
                    WITH ORDINALITY AS q(digest, application, endpoint, source, n)
                LEFT JOIN fencepost.api_keys k ON k.digest = q.digest AND k.revoked_at IS NULL
                    AND (k.application IS NULL OR EXISTS (
                        SELECT FROM fencepost.applications b
                        WHERE b.key = k.application AND b.deleted_at IS NULL
                    ))
                LEFT JOIN LATERAL (
                    SELECT COALESCE(k.application, $6::uuid) AS key WHERE q.application IS NULL
                    UNION ALL
                    SELECT b.key FROM fencepost.applications b
                    WHERE b.id = q.application AND b.deleted_at IS NULL
                        AND (k.application IS NULL OR b.key = k.application)
                ) a ON true
                LEFT JOIN fencepost.endpoints e
                    ON e.application = a.key AND e.id = q.endpoint AND e.deleted_at IS NULL
            ), s AS (
                INSERT INTO fencepost.rate_limit_counters AS c
                    (limiter, subject, window_start, used, expires_at)
                SELECT 1, r.source, w.start, count(*), w.start + w.length
                FROM r CROSS JOIN (
                    SELECT l.length, date_bin(l.length, statement_timestamp(), 'epoch') AS start
                    FROM (SELECT $8::bigint * interval '1 millisecond' AS length) l
                ) w
                WHERE r.may AND r.application IS NOT NULL AND r.source IS NOT NULL
                    AND $7::integer IS NOT NULL
                GROUP BY r.source, w.start, w.length
                ORDER BY r.source COLLATE "C"
                ON CONFLICT (limiter, subject, window_start) DO UPDATE
                SET used = LEAST(c.used::bigint + EXCLUDED.used, 2147483647)::integer,
                    expires_at = GREATEST(c.expires_at, EXCLUDED.expires_at)
                RETURNING c.subject, c.used
            ), rs AS MATERIALIZED (
                SELECT r.n, r.key, r.endpoint, r.ingest_rate, r.ingest_rate_ms,
                    COALESCE(s.used - count(*) OVER (PARTITION BY r.source)
                        + row_number() OVER (PARTITION BY r.source ORDER BY r.n) > $7, false) AS denied
                FROM r LEFT JOIN s ON s.subject = r.source
                WHERE r.may AND r.application IS NOT NULL
            ), k AS (
                INSERT INTO fencepost.rate_limit_counters AS c
                    (limiter, subject, window_start, used, expires_at)
                SELECT 3, rs.key::text, w.start, count(*), w.start + w.length
                FROM rs CROSS JOIN (
                    SELECT l.length, date_bin(l.length, statement_timestamp(), 'epoch') AS start
                    FROM (SELECT $10::bigint * interval '1 millisecond' AS length) l
                ) w
                WHERE NOT rs.denied AND $9::integer IS NOT NULL
                GROUP BY rs.key, w.start, w.length
                ORDER BY rs.key
                ON CONFLICT (limiter, subject, window_start) DO UPDATE
                SET used = LEAST(c.used::bigint + EXCLUDED.used, 2147483647)::integer,
                    expires_at = GREATEST(c.expires_at, EXCLUDED.expires_at)
                RETURNING c.subject, c.used
            ), rk AS MATERIALIZED (
                SELECT rs.n, rs.endpoint, rs.ingest_rate, rs.ingest_rate_ms,
                    COALESCE(k.used - count(*) OVER (PARTITION BY rs.key)
                        + row_number() OVER (PARTITION BY rs.key ORDER BY rs.n) > $9, false) AS denied
                FROM rs LEFT JOIN k ON k.subject = rs.key::text
                WHERE NOT rs.denied
            ), e AS (
                INSERT INTO fencepost.rate_limit_counters AS c
                    (limiter, subject, window_start, used, expires_at)
                SELECT 2, rk.endpoint::text, w.start, count(*), w.start + l.length
                FROM rk
                CROSS JOIN LATERAL (SELECT rk.ingest_rate_ms * interval '1 millisecond' AS length) l
                CROSS JOIN LATERAL (
                    SELECT date_bin(l.length, statement_timestamp(), 'epoch') AS start
                ) w
                WHERE NOT rk.denied AND rk.endpoint IS NOT NULL
                GROUP BY rk.endpoint, w.start, l.length
                ORDER BY rk.endpoint
                ON CONFLICT (limiter, subject, window_start) DO UPDATE
                SET used = LEAST(c.used::bigint + EXCLUDED.used, 2147483647)::integer,
                    expires_at = GREATEST(c.expires_at, EXCLUDED.expires_at)
                RETURNING c.subject, c.used
            ), re AS MATERIALIZED (
                SELECT rk.n, e.used - count(*) OVER (PARTITION BY rk.endpoint)
                    + row_number() OVER (PARTITION BY rk.endpoint ORDER BY rk.n)
                    > rk.ingest_rate AS denied
                FROM rk JOIN e ON e.subject = rk.endpoint::text
                WHERE NOT rk.denied
            )
            SELECT r.key AS "key?", r.name AS "name?", r.role AS "role?", r.bound_to,
                r.created_at AS "created_at?", r.use_due, r.may, r.application AS "application?",
                COALESCE(rs.denied, false) AS "source_denies!",
                COALESCE(rk.denied, false) AS "key_denies!",
                r.endpoint AS "endpoint?", COALESCE(re.denied, false) AS "endpoint_denies!",
                r.ingest_rate AS "ingest_rate?", r.ingest_rate_ms AS "ingest_rate_ms?",
                (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
                    AS "since_epoch_micros!"
            FROM r
            LEFT JOIN rs ON rs.n = r.n
            LEFT JOIN rk ON rk.n = r.n
            LEFT JOIN re ON re.n = r.n
            ORDER BY r.n"#,
            &digests as &[&[u8]],
            &applications as &[Option<String>],
            &endpoints as &[Option<String>],
            &sources as &[Option<&str>],
            &roles,
            DEFAULT_APPLICATION_KEY.as_uuid(),
            units(budgets.source),
            window_ms(budgets.source),
            units(budgets.key),
            window_ms(budgets.key),
        )
        .fetch_all(pool)
        .await
    })
    .await
    .map_err(|error| store_error("admission::admit", error))?;
    rows.into_iter().map(|row| row.admission(budgets)).collect()
}

impl Row {
    fn admission(self, budgets: Budgets) -> Result<Admission, StoreError> {
        let now = Duration::from_micros(u64::try_from(self.since_epoch_micros).unwrap_or(0));
        let Some(key) = self.api_key()? else { return Ok(Admission::KeyUnknown) };
        if self.may != Some(true) {
            return Ok(Admission::RoleInsufficient(key));
        }
        let Some(application) = self.application.map(ApplicationKey::from_uuid) else {
            return Ok(Admission::ApplicationNotFound(key));
        };
        let denied = |key, limiter, limit: RateLimit| Admission::Denied {
            key,
            limiter,
            limit,
            window_ends_in: limit.window().saturating_sub(limit.elapsed(now)),
        };
        match (budgets.source, budgets.key) {
            (Some(limit), _) if self.source_denies => Ok(denied(key, Limiter::Source, limit)),
            (_, Some(limit)) if self.key_denies => Ok(denied(key, Limiter::Key, limit)),
            _ => {
                let Some(endpoint) = self.endpoint else {
                    return Ok(Admission::EndpointNotFound(key));
                };
                if self.endpoint_denies {
                    let limit = self.ingest_rate.zip(self.ingest_rate_ms);
                    let limit = limit.and_then(|(units, window_ms)| rate(units, window_ms));
                    let limit =
                        limit.ok_or_else(|| corrupt("endpoints", "ingest_rate", endpoint))?;
                    return Ok(denied(key, Limiter::Endpoint, limit));
                }
                let endpoint = EndpointKey::from_uuid(endpoint);
                Ok(Admission::Admitted { key, application, endpoint })
            }
        }
    }

    fn api_key(&self) -> Result<Option<ApiKey>, StoreError> {
        let (Some(id), Some(name), Some(role), Some(created_at)) =
            (self.key, &self.name, self.role, self.created_at)
        else {
            return Ok(None);
        };
        Ok(Some(ApiKey {
            id,
            name: name.clone(),
            role: codes::role(role).ok_or_else(|| corrupt("api_keys", "role", id))?,
            application: self.bound_to.map(ApplicationKey::from_uuid),
            created_at,
            use_due: self.use_due.unwrap_or(false),
        }))
    }
}
