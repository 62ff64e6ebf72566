//! Keys, revoked ones included, newest first.

use domain::id::ApplicationKey;

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
        SELECT k.id, k.name, k.shown_prefix, k.role, a.id AS "application_id?", k.created_at,
            k.last_used_at, k.revoked_at
        FROM fencepost.api_keys k LEFT JOIN fencepost.applications a ON a.key = k.application
        WHERE ($1::uuid IS NULL OR k.application = $1) AND ($2::uuid IS NULL OR k.id < $2)
        ORDER BY k.id DESC
        LIMIT $3"#,
        application.map(ApplicationKey::as_uuid),
        page.before,
        i64::from(page.limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("api_key::list", error))?;
    rows.into_iter().map(ApiKeyView::try_from).collect()
}
