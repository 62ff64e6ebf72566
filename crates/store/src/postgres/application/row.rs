//! A row of `applications`.

use domain::id::ApplicationKey;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::application::Application;

#[derive(Debug)]
pub(super) struct ApplicationRow {
    pub(super) key: Uuid,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created_at: OffsetDateTime,
}

impl From<ApplicationRow> for Application {
    fn from(row: ApplicationRow) -> Self {
        Self {
            key: ApplicationKey::from_uuid(row.key),
            id: row.id,
            name: row.name,
            created_at: row.created_at,
        }
    }
}
