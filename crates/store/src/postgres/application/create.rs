//! Creates an application.

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::application::{Application, ApplicationCreation, NewApplication};
use crate::postgres::application::row::ApplicationRow;
use crate::postgres::errors::store_error;

pub(in crate::postgres) async fn create(
    pool: &Pool,
    new: &NewApplication,
) -> Result<ApplicationCreation, StoreError> {
    let row = sqlx::query_as!(
        ApplicationRow,
        "-- postgres::application::create
        INSERT INTO fencepost.applications (key, id, name) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO NOTHING
        RETURNING key, id, name, created_at",
        new.key.as_uuid(),
        new.id.as_str(),
        new.name.as_str(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("application::create", error))?;
    let created = row.map(|row| ApplicationCreation::Created(Application::from(row)));
    Ok(created.unwrap_or(ApplicationCreation::IdTaken))
}
