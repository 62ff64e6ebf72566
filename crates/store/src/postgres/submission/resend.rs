//! Stores the submission of a delivery once more, with a delivery of its own.
//!
//! 1. [`find`] reads what the delivery stands for: the endpoint, which is the scope of the key, and
//!    the submission. Neither ever changes.
//! 2. [`copy::copy`] stores the new submission, in one statement that is right by itself: only of an
//!    endpoint that takes deliveries, and only a payload that nobody has erased by then.
//! 3. What was not stored is explained: by the key, or by a second look.

mod copy;

use domain::id::{EndpointKey, SubmissionId};
use uuid::Uuid;

use crate::postgres::pool::Pool;

use self::copy::Copied;
use super::accept::read_winners::Winner;
use super::accept::{KeyLimits, forget_expired_keys, is_lock_timeout, read_winners};
use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::retry::after_conflict;
use crate::postgres::schema::partitions;
use crate::submission::{Accepted, NewResend, Resend, Resent};

const OPERATION: &str = "submission::resend";
const ROUNDS: u32 = 3;

pub(in crate::postgres) async fn resend(
    pool: &Pool,
    limits: KeyLimits,
    resend: &NewResend,
) -> Result<Resend, StoreError> {
    let mut answer = try_resend(pool, limits, resend).await;
    if answer.as_ref().is_err_and(partitions::is_missing)
        && partitions::ensure_of(pool, &[resend.id.as_uuid()]).await
    {
        answer = try_resend(pool, limits, resend).await;
    }
    answer.or_else(|error| match resend.idempotency_key {
        Some(_) if is_lock_timeout(&error) => Ok(Resend::KeyInProgress),
        _ => Err(store_error(OPERATION, error)),
    })
}

async fn try_resend(
    pool: &Pool,
    limits: KeyLimits,
    resend: &NewResend,
) -> Result<Resend, sqlx::Error> {
    for _ in 0..ROUNDS {
        let Some(source) = find(pool, resend).await? else { return Ok(Resend::Missing) };
        let resent = |accepted| Resent {
            accepted,
            endpoint_id: source.endpoint_id.clone(),
            resend_of: source.submission,
        };
        let keyed = resend.keyed(source.endpoint, source.submission);
        match after_conflict(|| copy::copy(pool, limits, &keyed, source.submission)).await? {
            Copied::Stored { received_at } => {
                return Ok(Resend::Accepted(resent(Accepted {
                    submission: resend.id,
                    deliveries: vec![resend.new_delivery],
                    received_at,
                })));
            }
            // Read before the copy was tried: if it has changed since, the next round sees it.
            Copied::NothingToCopy => match source.refusal() {
                Some(refusal) => return Ok(refusal),
                None => continue,
            },
            Copied::KeyTaken => {}
        }
        match read_winners::read_winners(pool, &[&keyed]).await?.pop() {
            Some(Winner::Same(accepted)) if accepted.submission == resend.id => {
                return Ok(Resend::Accepted(resent(accepted)));
            }
            Some(Winner::Same(accepted)) => return Ok(Resend::Replayed(resent(accepted))),
            Some(Winner::Other) => return Ok(Resend::Conflicted),
            Some(Winner::Expired) => {
                let expired = [&keyed];
                after_conflict(|| forget_expired_keys::forget_expired_keys(pool, &expired)).await?;
            }
            Some(Winner::Gone) | None => {}
        }
    }
    Ok(Resend::KeyInProgress)
}

/// What a delivery stands for, and whether it can be sent once more.
struct Source {
    endpoint: EndpointKey,
    endpoint_id: String,
    submission: SubmissionId,
    open: bool,
    /// None if the submission is no longer there.
    erased: Option<bool>,
}

impl Source {
    fn refusal(&self) -> Option<Resend> {
        match self.erased {
            None => Some(Resend::PayloadExpired),
            Some(true) => Some(Resend::PayloadErased),
            Some(false) if !self.open => Some(Resend::EndpointDisabled),
            Some(false) => None,
        }
    }
}

async fn find(pool: &Pool, resend: &NewResend) -> Result<Option<Source>, sqlx::Error> {
    let row = sqlx::query!(
        r#"-- postgres::submission::resend::find
        SELECT q.endpoint AS "endpoint!", e.id AS "endpoint_id!", q.submission AS "submission!",
            COALESCE(c.enabled AND NOT c.deleted, false) AS "open!", s.id AS "there?: Uuid",
            s.erased_at IS NOT NULL AS "erased!"
        FROM (
            SELECT d.endpoint, d.submission FROM fencepost.deliveries d WHERE d.id = $2
            UNION ALL
            SELECT d.endpoint, d.submission FROM fencepost.settled_deliveries d WHERE d.id = $2
        ) q
        CROSS JOIN LATERAL (
            SELECT o.id FROM fencepost.endpoints o
            WHERE o.key = q.endpoint AND o.application = $1 OFFSET 0
        ) e
        LEFT JOIN fencepost.endpoint_schedule c ON c.endpoint = q.endpoint
        LEFT JOIN fencepost.submissions s ON s.endpoint = q.endpoint AND s.id = q.submission"#,
        resend.application.as_uuid(),
        resend.delivery.as_uuid(),
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.map(|row| Source {
        endpoint: EndpointKey::from_uuid(row.endpoint),
        endpoint_id: row.endpoint_id,
        submission: SubmissionId::from_uuid(row.submission),
        open: row.open,
        erased: row.there.map(|_| row.erased),
    }))
}
