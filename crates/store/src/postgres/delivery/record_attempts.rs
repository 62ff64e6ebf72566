//! Records the results of tries (G2, G3).
//!
//! 1. [`record_live`] takes those whose delivery is still owed or replayable.
//! 2. [`record_settled`] takes, in a statement of its own whose snapshot sees what was settled while
//!    the first one waited, those that the first did not find.
//!
//! A delivery stands at most once in a statement: the reports are split where it stands twice. Two
//! copies of one report at the same instant collide on the key of `attempts` (23505); the statement is
//! run again and then finds the attempt recorded. A batch with a row that the database refuses is
//! recorded row by row, so that one cannot hold back the others.

mod columns;
mod record_live;
mod record_settled;

use std::collections::HashSet;
use std::time::Duration;

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::delivery::{Recording, Report};
use crate::postgres::errors::{sqlstate, sqlstate_of, store_error};
use crate::postgres::retry::after_conflict;

const OPERATION: &str = "delivery::record_attempts";
/// Another copy of a report can be in the way once; more means that something else is wrong.
const COLLISIONS_MAX: u32 = 3;

pub(in crate::postgres) async fn record_attempts(
    pool: &Pool,
    retention: Duration,
    reports: &[Report],
) -> Result<Vec<Recording>, StoreError> {
    let mut recordings = Vec::with_capacity(reports.len());
    for part in parts_without_repeats(reports) {
        match record_part(pool, retention, part).await {
            Err(StoreError::Refused { .. }) if part.len() > 1 => {
                recordings.extend(record_singly(pool, retention, part).await?);
            }
            answer => recordings.extend(answer?),
        }
    }
    Ok(recordings)
}

/// Records each report by itself. The first error is answered after all the others are recorded: asked
/// again, those are recognised.
async fn record_singly(
    pool: &Pool,
    retention: Duration,
    reports: &[Report],
) -> Result<Vec<Recording>, StoreError> {
    let (mut recordings, mut first_error) = (Vec::new(), None);
    for one in reports.chunks(1) {
        match record_part(pool, retention, one).await {
            Ok(recorded) => recordings.extend(recorded),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.map_or(Ok(recordings), Err)
}

/// Cuts the reports, keeping their order, where a delivery would stand twice in one part.
fn parts_without_repeats(reports: &[Report]) -> Vec<&[Report]> {
    let mut parts = Vec::new();
    let (mut rest, mut seen, mut length) = (reports, HashSet::new(), 0);
    while let Some(report) = rest.get(length) {
        if seen.insert(report.delivery) {
            length += 1;
        } else {
            let (part, behind) = rest.split_at(length);
            parts.push(part);
            (rest, length) = (behind, 0);
            seen.clear();
        }
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

async fn record_part(
    pool: &Pool,
    retention: Duration,
    reports: &[Report],
) -> Result<Vec<Recording>, StoreError> {
    let all: Vec<&Report> = reports.iter().collect();
    let live = repeat_after_collision(|| record_live::record_live(pool, retention, &all)).await?;
    let missing: Vec<usize> =
        live.iter().enumerate().filter(|(_, r)| r.is_none()).map(|(index, _)| index).collect();
    let mut recordings: Vec<Recording> =
        live.into_iter().map(|r| r.unwrap_or(Recording::Gone)).collect();
    if missing.is_empty() {
        return Ok(recordings);
    }
    let late: Vec<&Report> = missing.iter().filter_map(|index| all.get(*index).copied()).collect();
    let settled = repeat_after_collision(|| record_settled::record_settled(pool, &late)).await?;
    for (index, recording) in missing.into_iter().zip(settled) {
        if let Some(slot) = recordings.get_mut(index) {
            *slot = recording.unwrap_or(Recording::Gone);
        }
    }
    Ok(recordings)
}

async fn repeat_after_collision<T, F>(mut statement: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let mut collisions = 0;
    loop {
        match after_conflict(&mut statement).await {
            Err(error)
                if collisions < COLLISIONS_MAX
                    && sqlstate_of(&error).as_deref() == Some(sqlstate::UNIQUE_VIOLATION) =>
            {
                collisions += 1;
            }
            answer => return answer.map_err(|error| store_error(OPERATION, error)),
        }
    }
}
