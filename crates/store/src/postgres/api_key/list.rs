//! Keys, revoked ones included, newest first.
//!
//! Those of one application come from its own index, those of all from the primary key: the part that
//! is not asked for is never run.

use domain::id::ApplicationKey;
use uuid::Uuid;

use crate::api_key::ApiKeyView;
use crate::postgres::api_key::row::ApiKeyRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{Page, StoreError};

pub(in crate::postgres) async fn list(
    pool: &Pool,
    application: Option<ApplicationKey>,
    page: Page,
) -> Result<Vec<ApiKeyView>, StoreError> {
    let rows = sqlx::query_as!(
        ApiKeyRow,
        r#"-- postgres::api_key::list
        SELECT k.id AS "id!", k.name AS "name!", k.shown_prefix AS "shown_prefix!",
            k.role AS "role!", a.id AS "application_id?", k.created_at AS "created_at!",
            k.last_used_at, k.revoked_at
        FROM (
            (SELECT q.id, q.name, q.shown_prefix, q.role, q.application, q.created_at,
                q.last_used_at, q.revoked_at
            FROM fencepost.api_keys q
            WHERE $1::uuid IS NULL AND q.id < $2
            ORDER BY q.id DESC LIMIT $3)
            UNION ALL
            (SELECT q.id, q.name, q.shown_prefix, q.role, q.application, q.created_at,
                q.last_used_at, q.revoked_at
            FROM fencepost.api_keys q
            WHERE q.application = $1 AND q.id < $2
            ORDER BY q.id DESC LIMIT $3)
        ) k
        LEFT JOIN fencepost.applications a ON a.key = k.application
        ORDER BY k.id DESC
        LIMIT $3"#,
        application.map(ApplicationKey::as_uuid),
        page.before.unwrap_or(Uuid::max()),
        i64::from(page.limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("api_key::list", error))?;
    rows.into_iter().map(ApiKeyView::try_from).collect()
}
