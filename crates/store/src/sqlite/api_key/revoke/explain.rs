//! Why a key was not revoked.

use uuid::Uuid;

use crate::api_key::Revocation;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

pub(super) async fn explain(
    tx: &mut WriteTransaction,
    application: Option<Uuid>,
    id: Uuid,
) -> Result<Revocation, Fault> {
    let revoked: Option<bool> = sqlx::query_scalar(
        "-- sqlite::api_key::revoke::explain
        SELECT revoked_at IS NOT NULL FROM api_keys
        WHERE id = ?1 AND (?2 IS NULL OR application = ?2)",
    )
    .bind(id)
    .bind(application)
    .fetch_optional(tx.connection())
    .await?;
    Ok(match revoked {
        None => Revocation::Missing,
        Some(true) => Revocation::WasRevoked,
        Some(false) => Revocation::LastAdmin,
    })
}
