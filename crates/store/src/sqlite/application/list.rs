//! Live applications, newest first.

use domain::id::ApplicationKey;
use sqlx::SqlitePool;

use crate::application::Application;
use crate::sqlite::application::row::ApplicationRow;
use crate::sqlite::codec::upper_bound;
use crate::sqlite::errors::store_error;
use crate::{Page, StoreError};

pub(in crate::sqlite) async fn list(
    readers: &SqlitePool,
    only: Option<ApplicationKey>,
    page: Page,
) -> Result<Vec<Application>, StoreError> {
    let rows: Vec<ApplicationRow> = sqlx::query_as(
        "-- sqlite::application::list
        SELECT key, id, name, created_at
        FROM applications
        WHERE deleted_at IS NULL AND (?1 IS NULL OR key = ?1) AND key < ?2
        ORDER BY key DESC
        LIMIT ?3",
    )
    .bind(only.map(ApplicationKey::as_uuid))
    .bind(upper_bound(page.before))
    .bind(page.limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("application::list", error))?;
    Ok(rows.into_iter().map(Application::from).collect())
}
