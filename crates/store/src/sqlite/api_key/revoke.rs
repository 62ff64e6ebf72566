//! Revokes a key, unless it is the last live admin key of all applications.
//!
//! The write lock is held throughout, so of two operators who revoke each other's keys at once the
//! second sees that the first is gone.

mod explain;

use domain::id::ApplicationKey;
use uuid::Uuid;

use crate::StoreError;
use crate::api_key::Revocation;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(in crate::sqlite) async fn revoke(
    writer: &Writer,
    application: Option<ApplicationKey>,
    id: Uuid,
) -> Result<Revocation, StoreError> {
    let application = application.map(ApplicationKey::as_uuid);
    writer
        .run("api_key::revoke", move |tx| {
            Box::pin(async move {
                let revoked = sqlx::query(
                    "-- sqlite::api_key::revoke
                    UPDATE api_keys SET revoked_at = ?3
                    WHERE id = ?1 AND revoked_at IS NULL AND (?2 IS NULL OR application = ?2)
                        AND (
                            role <> 1 OR application IS NOT NULL
                            OR EXISTS (
                                SELECT 1 FROM api_keys other
                                WHERE other.role = 1 AND other.application IS NULL
                                    AND other.revoked_at IS NULL AND other.id <> ?1
                            )
                        )",
                )
                .bind(id)
                .bind(application)
                .bind(UnixMicros(tx.now()))
                .execute(tx.connection())
                .await?;
                if revoked.rows_affected() > 0 {
                    return Ok(Revocation::Revoked);
                }
                explain::explain(tx, application, id).await
            })
        })
        .await
}
