//! Seals the headers of endpoints with the current key that other keys have sealed, one batch in the
//! order of the endpoints' keys. As `reseal_secrets.rs`, for the other thing that is sealed.

mod replace;

use domain::id::EndpointKey;
use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealed_headers::headers_row;
use crate::sealing::{Sealed, Sealer};
use crate::secret::{Owner, Resealing, Unopened};

pub(in crate::postgres) async fn reseal_headers(
    pool: &Pool,
    sealer: &Sealer,
    after: Option<Uuid>,
    limit: u16,
) -> Result<Resealing, StoreError> {
    let rows = sqlx::query!(
        r#"-- postgres::endpoint::reseal_headers
        SELECT key, headers_sealed AS "sealed!", headers_sealing_key AS "sealing_key!"
        FROM fencepost.endpoints
        WHERE key > $1 AND headers_sealed IS NOT NULL AND headers_sealing_key <> $2
        ORDER BY key
        LIMIT $3"#,
        after.unwrap_or(Uuid::nil()),
        sealer.current_id(),
        i64::from(limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("endpoint::reseal_headers", error))?;
    let mut batch = Resealing { last: rows.last().map(|row| row.key), ..Resealing::default() };
    for row in rows {
        let endpoint = EndpointKey::from_uuid(row.key);
        let before = Sealed { key_id: row.sealing_key, bytes: row.sealed };
        match sealer.reseal(&before, &headers_row(endpoint)) {
            Ok(after) => {
                if replace::replace(pool, endpoint, before, after).await? {
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
