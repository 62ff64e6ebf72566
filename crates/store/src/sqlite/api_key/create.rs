//! Stores the digest of a key.

use domain::id::ApplicationKey;

use crate::api_key::NewApiKey;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn create(writer: &Writer, key: &NewApiKey) -> Result<(), StoreError> {
    let insert = sqlx::query(
        "-- sqlite::api_key::create
        INSERT INTO api_keys (id, name, digest, shown_prefix, role, application, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(key.id)
    .bind(key.name.clone())
    .bind(key.digest().as_bytes().to_vec())
    .bind(key.shown_prefix())
    .bind(codes::of_role(key.role))
    .bind(key.application.map(ApplicationKey::as_uuid));
    writer
        .run("api_key::create", move |tx| {
            Box::pin(async move {
                insert.bind(UnixMicros(tx.now())).execute(tx.connection()).await?;
                Ok(())
            })
        })
        .await
}
