//! Rotates the secrets of an endpoint (G7).

mod read_current;

use domain::endpoint::SigningSchemes;
use domain::id::EndpointKey;
use domain::operational::What;
use domain::signing::{Scheme, may_rotate};
use time::OffsetDateTime;

use crate::sealing::Sealer;
use crate::secret::{NewRotation, NewSecret, Rotated, Rotation, seal_new};
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::operational::tell;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn rotate_secrets(
    writer: &Writer,
    sealer: &Sealer,
    new: &NewRotation,
) -> Result<Rotation, StoreError> {
    let secrets = seal_new(sealer, new.endpoint, &new.secret, &new.ed25519)?;
    let (endpoint, given, overlap) = (new.endpoint, new.given, new.overlap);
    writer
        .run("endpoint::rotate_secrets", move |tx| {
            Box::pin(async move {
                let Some(current) = read_current::read_current(tx, endpoint).await? else {
                    return Ok(Rotation::Missing);
                };
                let schemes = current.schemes;
                if let Err(refused) = may_rotate(schemes, current.live, given, overlap) {
                    return Ok(Rotation::Refused(refused));
                }
                raise_version(tx, endpoint).await?;
                let ends_at = tx.now() + overlap.duration();
                let retires_at = retire_live(tx, endpoint, schemes, ends_at).await?;
                for secret in secrets {
                    if codes::scheme(secret.kind)
                        .is_some_and(|kind: Scheme| kind.is_used_by(schemes))
                    {
                        insert_secret(tx, endpoint, secret).await?;
                    }
                }
                tell(tx, endpoint, What::SecretRotated).await?;
                let version = current.version + 1;
                Ok(Rotation::Rotated(Rotated { schemes, version, retires_at }))
            })
        })
        .await
}

async fn raise_version(tx: &mut WriteTransaction, endpoint: EndpointKey) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::rotate_secrets::raise_version
        UPDATE endpoints SET version = version + 1, updated_at = ?2 WHERE key = ?1",
    )
    .bind(endpoint.as_uuid())
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Lets live secrets end at that instant, those that end earlier left as they are. Answers when the
/// last of them ends.
async fn retire_live(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    schemes: SigningSchemes,
    ends_at: OffsetDateTime,
) -> Result<Option<OffsetDateTime>, Fault> {
    let ends: Vec<UnixMicros> = sqlx::query_scalar(
        "-- sqlite::endpoint::rotate_secrets::retire_live
        UPDATE endpoint_secrets
        SET retires_at = min(ifnull(retires_at, ?3), ?3)
        WHERE endpoint = ?1 AND (kind & ?2) <> 0 AND (retires_at IS NULL OR retires_at > ?4)
        RETURNING retires_at",
    )
    .bind(endpoint.as_uuid())
    .bind(codes::of_signing(schemes))
    .bind(UnixMicros(ends_at))
    .bind(UnixMicros(tx.now()))
    .fetch_all(tx.connection())
    .await?;
    Ok(ends.into_iter().max().map(|UnixMicros(at)| at))
}

pub(in crate::sqlite) async fn insert_secret(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    secret: NewSecret,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::rotate_secrets::insert_secret
        INSERT INTO endpoint_secrets (id, endpoint, kind, sealed, sealing_key, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .bind(secret.id)
    .bind(endpoint.as_uuid())
    .bind(secret.kind)
    .bind(secret.sealed.bytes)
    .bind(secret.sealed.key_id)
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}
