//! Accepts a submission inside an application's open transaction on the same file.
//!
//! The statements are those of [`accept`](super::accept), on the application's connection, inside a
//! savepoint: what cannot be stored as a whole leaves nothing, whatever the application does then.

mod find_endpoint;

use domain::id::EndpointKey;
use domain::submission::IdempotencyKey;
use sqlx::SqliteConnection;

use self::find_endpoint::find_endpoint;
use super::accept::accept_one;
use crate::outbox::{Addressed, Draft, Limits, SubmitError, Submitted};
use crate::sqlite::errors::{Fault, store_error};
use crate::sqlite::writer::BorrowedTransaction;
use crate::submission::{Acceptance, NewSubmission};

const OPERATION: &str = "submission::accept_in_tx";

/// Stores a submission, with its delivery, in the transaction that is open on `connection`: it exists,
/// and is delivered, if and only if that transaction commits.
///
/// The transaction is to hold the write lock from its start, as [`begin`](crate::sqlite::begin) does:
/// SQLite refuses one that read first if anybody has written in between. How durable its commit is, is
/// a setting of the application's connection; the store's own write with `synchronous = FULL`.
///
/// A transaction in which this future was dropped, or answered with an error, is to be rolled back.
///
/// ```no_run
/// use store::outbox::{Draft, Limits};
///
/// # async fn order(pool: &sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
/// let mut tx = store::sqlite::begin(pool, std::time::Duration::from_secs(1)).await?;
/// sqlx::query("INSERT INTO orders (id, total) VALUES (1, 1250)").execute(&mut *tx).await?;
/// let draft = Draft {
///     idempotency_key: Some("order-1"),
///     content_type: Some("application/json"),
///     ..Draft::new("orders", r#"{"order":1}"#)
/// };
/// store::sqlite::accept_in_tx(&mut tx, &draft, &Limits::default()).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
pub async fn accept_in_tx(
    connection: &mut SqliteConnection,
    draft: &Draft<'_>,
    limits: &Limits,
) -> Result<Submitted, SubmitError> {
    let addressed = Addressed::new(draft, limits)?;
    let failed = |error| store_error(OPERATION, error);
    let found = find_endpoint(&mut *connection, &addressed.application_id, &addressed.endpoint_id)
        .await
        .map_err(failed)?;
    let key = found.ok_or_else(|| addressed.application_missing())?;
    let key = key.ok_or_else(|| addressed.endpoint_missing())?;
    let new = addressed.parse(EndpointKey::from_uuid(key))?;
    run(connection, "SAVEPOINT fencepost_accept").await.map_err(failed)?;
    match accept_whole(connection, limits, &new).await {
        Ok(Acceptance::Accepted(accepted)) => Ok(Submitted { accepted, replayed: false }),
        Ok(Acceptance::Replayed(accepted)) => Ok(Submitted { accepted, replayed: true }),
        Ok(Acceptance::EndpointMissing) => Err(addressed.endpoint_missing()),
        // Nobody else can hold a key: there is one writer.
        Ok(Acceptance::Conflicted | Acceptance::KeyInProgress) => {
            let key = new.idempotency_key.as_ref().map(IdempotencyKey::to_string);
            Err(SubmitError::KeyReused { key: key.unwrap_or_default() })
        }
        Err(fault) => {
            // Where it fails the whole transaction is gone already.
            let _ = run(connection, "ROLLBACK TO fencepost_accept").await;
            let _ = run(connection, "RELEASE fencepost_accept").await;
            Err(fault.in_operation(OPERATION).into())
        }
    }
}

async fn accept_whole(
    connection: &mut SqliteConnection,
    limits: &Limits,
    new: &NewSubmission,
) -> Result<Acceptance, Fault> {
    let mut transaction = BorrowedTransaction::new(&mut *connection).await?;
    let answer = accept_one(&mut transaction, limits.idempotency_window, new).await?;
    run(connection, "RELEASE fencepost_accept").await?;
    Ok(answer)
}

async fn run(connection: &mut SqliteConnection, text: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(text).execute(connection).await.map(drop)
}
