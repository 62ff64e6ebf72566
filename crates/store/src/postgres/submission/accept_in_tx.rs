//! Accepts a submission inside an application's open transaction.
//!
//! The statements are those of [`accept`](super::accept), on the application's connection. It only
//! inserts, but for a key whose time is over, which it deletes as a request over HTTP does. It locks no
//! row that others share, sends no NOTIFY and makes no partition.
//!
//! Beside an open transaction that holds the same key it waits for that one's end, for as long as the
//! session's `lock_timeout` lets it; the application's settings are left as they are.

mod find_endpoint;

use std::time::Duration;

use domain::id::EndpointKey;
use domain::submission::IdempotencyKey;
use sqlx::PgConnection;

use self::find_endpoint::find_endpoint;
use super::accept::insert_new::{Inserted, insert_new};
use super::accept::read_winners::{Winner, read_winners};
use super::accept::{ROUNDS, forget_expired_keys};
use crate::outbox::{Addressed, Draft, Limits, SubmitError, Submitted};
use crate::postgres::errors::{sqlstate, sqlstate_of, store_error};
use crate::postgres::schema::partitions;
use crate::submission::{Accepted, NewSubmission};

const OPERATION: &str = "submission::accept_in_tx";

/// Stores a submission, with its delivery, in the transaction that is open on `connection`: it exists,
/// and is delivered, if and only if that transaction commits.
///
/// It is written for READ COMMITTED, the default of PostgreSQL: whoever comes second with a key waits
/// for the first and gets its answer. Under REPEATABLE READ and SERIALIZABLE the second cannot see the
/// first and gets [`SubmitError::KeyContended`]; the whole transaction is to be repeated then, as for
/// every serialization failure.
///
/// A transaction in which this future was dropped, or answered with an error, is to be rolled back.
///
/// ```no_run
/// use store::outbox::{Draft, Limits};
///
/// # async fn order(pool: &sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let mut tx = store::postgres::begin(pool).await?;
/// sqlx::query("INSERT INTO orders (id, total) VALUES (1, 12.50)").execute(&mut *tx).await?;
/// let submitted = store::postgres::accept_in_tx(
///     &mut tx,
///     &Draft {
///         idempotency_key: Some("order-1"),
///         event_type: Some("order.paid"),
///         content_type: Some("application/json"),
///         ..Draft::new("orders", r#"{"order":1,"total":12.50}"#)
///     },
///     &Limits::default(),
/// )
/// .await?;
/// tx.commit().await?;
/// println!("{} is going to be delivered", submitted.accepted.submission);
/// # Ok(())
/// # }
/// ```
pub async fn accept_in_tx(
    connection: &mut PgConnection,
    draft: &Draft<'_>,
    limits: &Limits,
) -> Result<Submitted, SubmitError> {
    let addressed = Addressed::new(draft, limits)?;
    let found = find_endpoint(&mut *connection, &addressed.application_id, &addressed.endpoint_id)
        .await
        .map_err(|error| store_error(OPERATION, error))?;
    let key = found.ok_or_else(|| addressed.application_missing())?;
    let key = key.ok_or_else(|| addressed.endpoint_missing())?;
    let new = addressed.parse(EndpointKey::from_uuid(key))?;
    match store_new(connection, limits.idempotency_window, &new).await {
        Ok(Some(submitted)) => submitted,
        Ok(None) => Err(addressed.endpoint_missing()),
        Err(error) => Err(submit_error(&new, error)),
    }
}

/// None if the endpoint was deleted in between.
async fn store_new(
    connection: &mut PgConnection,
    window: Duration,
    new: &NewSubmission,
) -> Result<Option<Result<Submitted, SubmitError>>, sqlx::Error> {
    for _ in 0..ROUNDS {
        let inserted = insert_new(&mut *connection, None, window, &[new]).await?.pop();
        match inserted {
            Some(Inserted::Stored { received_at }) => {
                let accepted =
                    Accepted { submission: new.id, deliveries: vec![new.delivery], received_at };
                return Ok(Some(Ok(Submitted { accepted, replayed: false })));
            }
            Some(Inserted::EndpointMissing) | None => return Ok(None),
            Some(Inserted::KeyTaken) => {}
        }
        match read_winners(&mut *connection, &[new]).await?.pop() {
            Some(Winner::Same(accepted)) => {
                return Ok(Some(Ok(Submitted { accepted, replayed: true })));
            }
            Some(Winner::Other) => {
                return Ok(Some(Err(SubmitError::KeyReused { key: key_of(new) })));
            }
            Some(Winner::Expired) => {
                forget_expired_keys::forget_expired_keys(&mut *connection, &[new]).await?;
            }
            Some(Winner::Gone) | None => {}
        }
    }
    let source = "it changed hands again and again".into();
    Ok(Some(Err(SubmitError::KeyContended { key: key_of(new), source })))
}

fn key_of(new: &NewSubmission) -> String {
    new.idempotency_key.as_ref().map(IdempotencyKey::to_string).unwrap_or_default()
}

fn submit_error(new: &NewSubmission, error: sqlx::Error) -> SubmitError {
    if partitions::is_missing(&error) {
        return SubmitError::PartitionMissing;
    }
    match sqlstate_of(&error).as_deref() {
        Some(sqlstate::SERIALIZATION_FAILURE | sqlstate::LOCK_NOT_AVAILABLE)
            if new.idempotency_key.is_some() =>
        {
            SubmitError::KeyContended { key: key_of(new), source: Box::new(error) }
        }
        _ => SubmitError::Store(store_error(OPERATION, error)),
    }
}
