//! Keys, revoked ones included, newest first.

use domain::id::ApplicationKey;
use sqlx::SqlitePool;

use crate::api_key::ApiKeyView;
use crate::sqlite::api_key::row::ApiKeyRow;
use crate::sqlite::codec::upper_bound;
use crate::sqlite::errors::store_error;
use crate::{Page, StoreError};

pub(in crate::sqlite) async fn list(
    readers: &SqlitePool,
    application: Option<ApplicationKey>,
    page: Page,
) -> Result<Vec<ApiKeyView>, StoreError> {
    let rows: Vec<ApiKeyRow> = sqlx::query_as(
        "-- sqlite::api_key::list
        SELECT k.id, k.name, k.shown_prefix, k.role, a.id AS application_id, k.created_at,
            k.last_used_at, k.revoked_at
        FROM api_keys k LEFT JOIN applications a ON a.key = k.application
        WHERE (?1 IS NULL OR k.application = ?1) AND k.id < ?2
        ORDER BY k.id DESC
        LIMIT ?3",
    )
    .bind(application.map(ApplicationKey::as_uuid))
    .bind(upper_bound(page.before))
    .bind(page.limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("api_key::list", error))?;
    rows.into_iter().map(ApiKeyView::try_from).collect()
}
