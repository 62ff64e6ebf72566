//! Rotates the secrets of an endpoint (G7).
//!
//! One conditional update: it applies to the version of the configuration that was read before. A
//! statement that waited for the endpoint's row would read the row again, but not the secrets that
//! the winner has inserted meanwhile: it would let them sign for ever, and count them as absent. So
//! a rotation that lost reads again and decides again, with a snapshot that sees the winner.

mod read_current;

use domain::signing::may_rotate;

use crate::postgres::codec::{corrupt, millis};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::sealing::Sealer;
use crate::secret::{NewRotation, NewSecret, Rotated, Rotation, seal_new};
use crate::{StoreError, codes};

/// How often it is tried. Each time somebody else has changed the endpoint in between.
const TRIES: u32 = 50;

const OPERATION: &str = "endpoint::rotate_secrets";

pub(in crate::postgres) async fn rotate_secrets(
    pool: &Pool,
    sealer: &Sealer,
    new: &NewRotation,
) -> Result<Rotation, StoreError> {
    let secrets = seal_new(sealer, new.endpoint, &new.secret, &new.ed25519)?;
    for _ in 0..TRIES {
        let Some(current) = read_current::read_current(pool, new.endpoint).await? else {
            return Ok(Rotation::Missing);
        };
        if let Err(refused) = may_rotate(current.schemes, current.live, new.given, new.overlap) {
            return Ok(Rotation::Refused(refused));
        }
        if let Some(rotated) = rotate_version(pool, new, &secrets, current.version).await? {
            return Ok(Rotation::Rotated(rotated));
        }
    }
    let source = "the endpoint's configuration never stood still".into();
    Err(StoreError::Contended { operation: OPERATION, source })
}

/// Answers none if the endpoint is of another version by now.
async fn rotate_version(
    pool: &Pool,
    new: &NewRotation,
    [v1, v1a]: &[NewSecret; 2],
    version: i64,
) -> Result<Option<Rotated>, StoreError> {
    let row = after_conflict(|| async {
        sqlx::query!(
            r#"-- postgres::endpoint::rotate_secrets
            WITH e AS (
                UPDATE fencepost.endpoints
                SET version = version + 1, updated_at = statement_timestamp()
                WHERE key = $1 AND version = $2 AND deleted_at IS NULL
                RETURNING key, version, signing
            ), old AS (
                UPDATE fencepost.endpoint_secrets s
                SET retires_at = least(
                    s.retires_at, statement_timestamp() + $3::bigint * interval '1 millisecond'
                )
                FROM e
                WHERE s.endpoint = e.key AND (s.kind & e.signing) <> 0
                    AND (s.retires_at IS NULL OR s.retires_at > statement_timestamp())
                RETURNING s.retires_at
            ), new AS (
                INSERT INTO fencepost.endpoint_secrets (id, endpoint, kind, sealed, sealing_key)
                SELECT n.id, e.key, n.kind, n.sealed, $4
                FROM e CROSS JOIN (
                    VALUES ($5::uuid, 1::smallint, $6::bytea), ($7, 2, $8)
                ) AS n (id, kind, sealed)
                WHERE (n.kind & e.signing) <> 0
            ), told AS (
                INSERT INTO fencepost.operational_events (kind, endpoint)
                SELECT 5, e.key
                FROM e JOIN fencepost.operational_endpoint o ON o.endpoint <> e.key
            )
            SELECT version, signing, (SELECT max(retires_at) FROM old) AS retires_at
            FROM e"#,
            new.endpoint.as_uuid(),
            version,
            millis(new.overlap.duration()),
            v1.sealed.key_id,
            v1.id,
            v1.sealed.bytes,
            v1a.id,
            v1a.sealed.bytes,
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error(OPERATION, error))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Rotated {
        schemes: codes::signing(row.signing)
            .ok_or_else(|| corrupt("endpoints", "signing", new.endpoint))?,
        version: row.version,
        retires_at: row.retires_at,
    }))
}
