//! The one place where a statement that the database rolled back to end a conflict is repeated.

use std::time::Duration;

use super::errors::{sqlstate, sqlstate_of};

const TRIES: u32 = 5;

/// Runs the statement, and again after a deadlock (40P01) or a serialization failure (40001), at most
/// five times in all, with a random wait of up to 5, 10, 20 and 40 ms.
pub(super) async fn after_conflict<T, F>(mut statement: impl FnMut() -> F) -> Result<T, sqlx::Error>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let mut tried = 1;
    loop {
        match statement().await {
            Err(error) if tried < TRIES && is_conflict(&error) => {
                let bound_micros = 5_000_u64 << (tried - 1);
                tokio::time::sleep(Duration::from_micros(fastrand::u64(..bound_micros))).await;
                tried += 1;
            }
            answer => return answer,
        }
    }
}

fn is_conflict(error: &sqlx::Error) -> bool {
    matches!(
        sqlstate_of(error).as_deref(),
        Some(sqlstate::DEADLOCK_DETECTED | sqlstate::SERIALIZATION_FAILURE)
    )
}
