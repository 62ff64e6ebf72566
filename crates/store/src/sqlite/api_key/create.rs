//! Stores the digest of a key.

use domain::id::ApplicationKey;

use crate::api_key::{ApiKeyView, NewApiKey};
use crate::sqlite::api_key::row::ApiKeyRow;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn create(
    writer: &Writer,
    key: &NewApiKey,
) -> Result<ApiKeyView, StoreError> {
    let insert = sqlx::query_as(
        "-- sqlite::api_key::create
        INSERT INTO api_keys (id, name, digest, shown_prefix, role, application, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        RETURNING id, name, shown_prefix, role,
            (SELECT a.id FROM applications a WHERE a.key = application) AS application_id,
            created_at, last_used_at, revoked_at",
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
                let row: ApiKeyRow =
                    insert.bind(UnixMicros(tx.now())).fetch_one(tx.connection()).await?;
                Ok(row.try_into()?)
            })
        })
        .await
}
