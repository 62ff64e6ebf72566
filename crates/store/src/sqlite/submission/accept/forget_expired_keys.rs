//! Deletes a key whose time is over.

use domain::id::EndpointKey;
use domain::submission::IdempotencyKey;

use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::Writing;

pub(in crate::sqlite::submission) async fn forget_expired_key(
    tx: &mut impl Writing,
    scope: EndpointKey,
    key: &IdempotencyKey,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::submission::accept::forget_expired_keys::forget_expired_key
        DELETE FROM idempotency_keys WHERE scope = ?1 AND key = ?2 AND expires_at <= ?3",
    )
    .bind(scope.as_uuid())
    .bind(key.as_str())
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}
