//! Seals the headers of endpoints with the current key that other keys have sealed, one batch in the
//! order of the endpoints' keys. As `reseal_secrets.rs`, for the other thing that is sealed.

mod replace;

use domain::id::EndpointKey;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::StoreError;
use crate::sealed_headers::headers_row;
use crate::sealing::{Sealed, Sealer};
use crate::secret::{Owner, Resealing, Unopened};
use crate::sqlite::errors::store_error;
use crate::sqlite::writer::Writer;

pub(in crate::sqlite) async fn reseal_headers(
    readers: &SqlitePool,
    writer: &Writer,
    sealer: &Sealer,
    after: Option<Uuid>,
    limit: u16,
) -> Result<Resealing, StoreError> {
    let rows: Vec<(Uuid, Vec<u8>, String)> = sqlx::query_as(
        "-- sqlite::endpoint::reseal_headers
        SELECT key, headers_sealed, headers_sealing_key
        FROM endpoints
        WHERE key > ?1 AND headers_sealed IS NOT NULL AND headers_sealing_key <> ?2
        ORDER BY key
        LIMIT ?3",
    )
    .bind(after.unwrap_or(Uuid::nil()))
    .bind(sealer.current_id())
    .bind(limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("endpoint::reseal_headers", error))?;
    let mut batch = Resealing { last: rows.last().map(|row| row.0), ..Resealing::default() };
    for (key, bytes, key_id) in rows {
        let endpoint = EndpointKey::from_uuid(key);
        let before = Sealed { key_id, bytes };
        match sealer.reseal(&before, &headers_row(endpoint)) {
            Ok(after) => {
                if replace::replace(writer, endpoint, before, after).await? {
                    batch.resealed += 1;
                } else {
                    batch.overtaken += 1;
                }
            }
            Err(error) => {
                let why = error.to_string();
                batch.unopened.push(Unopened {
                    owner: Owner::Endpoint(endpoint),
                    secret: None,
                    why,
                });
            }
        }
    }
    Ok(batch)
}
