//! Creates an application.

use crate::StoreError;
use crate::application::{Application, ApplicationCreation, NewApplication};
use crate::sqlite::application::row::ApplicationRow;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(in crate::sqlite) async fn create(
    writer: &Writer,
    new: &NewApplication,
) -> Result<ApplicationCreation, StoreError> {
    let insert = sqlx::query_as(
        "-- sqlite::application::create
        INSERT INTO applications (key, id, name, created_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (id) DO NOTHING
        RETURNING key, id, name, created_at",
    )
    .bind(new.key.as_uuid())
    .bind(new.id.as_str().to_owned())
    .bind(new.name.as_str().to_owned());
    writer
        .run("application::create", move |tx| {
            Box::pin(async move {
                let insert = insert.bind(UnixMicros(tx.now()));
                let mut rows: Vec<ApplicationRow> = insert.fetch_all(tx.connection()).await?;
                let created = rows.pop().map(Application::from).map(ApplicationCreation::Created);
                Ok(created.unwrap_or(ApplicationCreation::IdTaken))
            })
        })
        .await
}
