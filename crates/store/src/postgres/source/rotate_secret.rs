//! Gives a source a new secret (G7).
//!
//! One conditional update, as for an endpoint: it applies to the version of the configuration that was
//! read before. A statement that waited for the source's row would read that row again, and not the
//! secret that the winner has inserted meanwhile, which would then verify for ever.

mod read_current;

use domain::signing::Overlap;
use uuid::Uuid;

use crate::StoreError;
use crate::postgres::codec::millis;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::sealing::{Sealed, Sealer};
use crate::source::{NewSourceSecret, SOURCE_SECRETS_MAX, SourceRotation, seal_secret};

/// How often it is tried. Each time somebody else has changed the source in between.
const TRIES: u32 = 50;

const OPERATION: &str = "source::rotate_secret";

pub(in crate::postgres) async fn rotate_secret(
    pool: &Pool,
    sealer: &Sealer,
    new: &NewSourceSecret,
) -> Result<SourceRotation, StoreError> {
    let secret = seal_secret(sealer, new.source, &new.secret)?;
    for _ in 0..TRIES {
        let Some((version, live)) = read_current::read_current(pool, new.source).await? else {
            return Ok(SourceRotation::Missing);
        };
        // Without an overlap the old ones end at once.
        if live >= SOURCE_SECRETS_MAX && !new.overlap.duration().is_zero() {
            return Ok(SourceRotation::TooManyLive);
        }
        if let Some(rotated) = rotate_version(pool, new, &secret, version).await? {
            return Ok(rotated);
        }
    }
    let source = "the source's configuration never stood still".into();
    Err(StoreError::Contended { operation: OPERATION, source })
}

/// Answers none if the source is of another version by now.
async fn rotate_version(
    pool: &Pool,
    new: &NewSourceSecret,
    (id, sealed): &(Uuid, Sealed),
    version: i64,
) -> Result<Option<SourceRotation>, StoreError> {
    let overlap: Overlap = new.overlap;
    let row = after_conflict(|| async {
        sqlx::query!(
            r#"-- postgres::source::rotate_secret
            WITH s AS (
                UPDATE fencepost.sources
                SET version = version + 1, updated_at = statement_timestamp()
                WHERE key = $1 AND version = $2 AND deleted_at IS NULL
                RETURNING key, version
            ), old AS (
                UPDATE fencepost.source_secrets x
                SET retires_at = least(
                    x.retires_at, statement_timestamp() + $3::bigint * interval '1 millisecond'
                )
                FROM s
                WHERE x.source = s.key
                    AND (x.retires_at IS NULL OR x.retires_at > statement_timestamp())
                RETURNING x.retires_at
            ), new AS (
                INSERT INTO fencepost.source_secrets (id, source, sealed, sealing_key)
                SELECT $4, key, $5, $6 FROM s
            )
            SELECT version, (SELECT max(retires_at) FROM old) AS retires_at
            FROM s"#,
            new.source.as_uuid(),
            version,
            millis(overlap.duration()),
            *id,
            sealed.bytes,
            sealed.key_id,
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error(OPERATION, error))?;
    Ok(row.map(|row| SourceRotation::Rotated { version: row.version, retires_at: row.retires_at }))
}
