//! A row of `applications`.

use domain::id::ApplicationKey;
use sqlx::FromRow;
use uuid::Uuid;

use crate::application::Application;
use crate::sqlite::codec::UnixMicros;

#[derive(Debug, FromRow)]
pub(super) struct ApplicationRow {
    key: Uuid,
    id: String,
    name: String,
    created_at: UnixMicros,
}

impl From<ApplicationRow> for Application {
    fn from(row: ApplicationRow) -> Self {
        Self {
            key: ApplicationKey::from_uuid(row.key),
            id: row.id,
            name: row.name,
            created_at: row.created_at.0,
        }
    }
}
