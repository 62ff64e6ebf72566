//! Deletes keys whose time is over. One that somebody renewed in between stays.

use domain::submission::IdempotencyKey;
use sqlx::PgExecutor;

use crate::submission::NewSubmission;

pub(in crate::postgres::submission) async fn forget_expired_keys(
    executor: impl PgExecutor<'_>,
    batch: &[&NewSubmission],
) -> Result<(), sqlx::Error> {
    let scopes: Vec<_> = batch.iter().map(|s| s.endpoint.as_uuid()).collect();
    let keys: Vec<Option<&str>> =
        batch.iter().map(|s| s.idempotency_key.as_ref().map(IdempotencyKey::as_str)).collect();
    sqlx::query!(
        r#"-- postgres::submission::accept::forget_expired_keys
        WITH l AS MATERIALIZED (
            SELECT k.ctid
            FROM unnest($1::uuid[], $2::text[]) AS r(scope, key)
            JOIN fencepost.idempotency_keys k
                ON k.scope = r.scope AND k.key = r.key COLLATE "C"
            WHERE k.expires_at <= statement_timestamp()
            ORDER BY k.scope, k.key
            FOR UPDATE OF k
        )
        DELETE FROM fencepost.idempotency_keys
        WHERE ctid = ANY(ARRAY(SELECT ctid FROM l))"#,
        &scopes,
        &keys as &[Option<&str>],
    )
    .execute(executor)
    .await
    .map(drop)
}
