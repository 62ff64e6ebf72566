//! Replaces the sealed headers of an endpoint that are still as they were read. Answers whether they
//! were.

use domain::id::EndpointKey;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::Sealed;

pub(super) async fn replace(
    pool: &Pool,
    endpoint: EndpointKey,
    before: Sealed,
    after: Sealed,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- postgres::endpoint::reseal_headers::replace
        UPDATE fencepost.endpoints
        SET headers_sealed = $3, headers_sealing_key = $4
        WHERE key = $1 AND headers_sealed = $2",
        endpoint.as_uuid(),
        before.bytes,
        after.bytes,
        after.key_id,
    )
    .execute(pool)
    .await
    .map_err(|error| store_error("endpoint::reseal_headers::replace", error))?;
    Ok(done.rows_affected() > 0)
}
