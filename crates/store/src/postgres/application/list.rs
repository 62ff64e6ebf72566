//! Live applications, newest first.

use domain::id::ApplicationKey;
use uuid::Uuid;

use crate::application::Application;
use crate::postgres::application::row::ApplicationRow;
use crate::postgres::codec::bounds;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{Page, StoreError};

pub(in crate::postgres) async fn list(
    pool: &Pool,
    only: Option<ApplicationKey>,
    page: Page,
) -> Result<Vec<Application>, StoreError> {
    let (lowest, highest) = bounds(only.map(ApplicationKey::as_uuid));
    let rows = sqlx::query_as!(
        ApplicationRow,
        "-- postgres::application::list
        SELECT key, id, name, created_at
        FROM fencepost.applications
        WHERE deleted_at IS NULL AND key >= $1 AND key <= $2 AND key < $3
        ORDER BY key DESC
        LIMIT $4",
        lowest,
        highest,
        page.before.unwrap_or(Uuid::max()),
        i64::from(page.limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("application::list", error))?;
    Ok(rows.into_iter().map(Application::from).collect())
}
