//! What the upkeep consists of, and a step of each.

use std::time::Duration;

use domain::delivery::FailureReason;
use domain::id::EndpointKey;
use process::metrics;
use store::maintenance::{Cleared, WhyKept};
use store::{Store, StoreError};
use time::Date;

use super::events::submit_events;

/// How many deliveries one step changes at most.
const DELIVERIES_MAX: u32 = 500;
/// How many idempotency keys one step forgets at most.
const KEYS_MAX: u32 = 1_000;
/// How many endpoints one step recounts or disables at most. Claims of these wait meanwhile.
const ENDPOINTS_MAX: u32 = 50;
/// How many windows of rate limits one step forgets at most.
const WINDOWS_MAX: u32 = 1_000;
/// How many rows of history one step deletes at most (SQLite).
const HISTORY_MAX: u32 = 500;

/// A part of the upkeep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Deliveries of deleted endpoints.
    CancelDeleted,
    /// Deliveries whose cancellation waited for their lease.
    CancelRequested,
    /// Slots in use, counted anew.
    RecountSlots,
    /// Deliveries that a closed endpoint has held too long.
    FailHeld,
    /// Endpoints that have been failing for too long.
    DisableFailing,
    /// Events about the service itself.
    SubmitEvents,
    /// Failed deliveries that can no longer be replayed.
    ExpireFailed,
    /// Idempotency keys whose time is over.
    ExpireKeys,
    /// What is due, for the metrics.
    MeasureBacklog,
    /// Windows of rate limits that are over.
    SweepRateLimits,
    /// Room for the days to come.
    PrepareHistory,
    /// History whose time is over.
    ClearHistory,
}

impl Task {
    pub(super) const ALL: [Self; 12] = [
        Self::MeasureBacklog,
        Self::PrepareHistory,
        Self::CancelDeleted,
        Self::CancelRequested,
        Self::RecountSlots,
        Self::DisableFailing,
        Self::FailHeld,
        Self::SubmitEvents,
        Self::ExpireFailed,
        Self::ExpireKeys,
        Self::SweepRateLimits,
        Self::ClearHistory,
    ];

    /// How long it rests when there is nothing left to do.
    pub(super) fn interval(self) -> Duration {
        match self {
            Self::CancelDeleted | Self::CancelRequested | Self::SubmitEvents => {
                Duration::from_secs(5)
            }
            Self::MeasureBacklog => Duration::from_secs(15),
            Self::RecountSlots => Duration::from_secs(30),
            Self::DisableFailing
            | Self::FailHeld
            | Self::ExpireFailed
            | Self::ExpireKeys
            | Self::SweepRateLimits => Duration::from_mins(1),
            Self::PrepareHistory | Self::ClearHistory => Duration::from_hours(1),
        }
    }

    /// Whether somebody could miss what it does: under a hold it rests.
    fn ends_something(self) -> bool {
        matches!(
            self,
            Self::DisableFailing
                | Self::FailHeld
                | Self::ExpireFailed
                | Self::ExpireKeys
                | Self::ClearHistory
        )
    }

    /// Its name in logs.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::CancelDeleted => "cancel_deleted",
            Self::CancelRequested => "cancel_requested",
            Self::RecountSlots => "recount_slots",
            Self::DisableFailing => "disable_failing",
            Self::SubmitEvents => "submit_events",
            Self::FailHeld => "fail_held",
            Self::ExpireFailed => "expire_failed",
            Self::ExpireKeys => "expire_keys",
            Self::MeasureBacklog => "measure_backlog",
            Self::SweepRateLimits => "sweep_rate_limits",
            Self::PrepareHistory => "prepare_history",
            Self::ClearHistory => "clear_history",
        }
    }
}

/// How far the tasks are that go through a table, and what was told of them.
#[derive(Debug, Default)]
pub(super) struct Progress {
    recounted_to: Option<EndpointKey>,
    kept: Vec<(Date, WhyKept)>,
}

impl Progress {
    /// Takes a task a step further. Answers whether there is more to do at once.
    pub(super) async fn step(&mut self, task: Task, store: &dyn Store) -> Result<bool, StoreError> {
        if task.ends_something() && store.is_held().await? {
            return Ok(false);
        }
        let (done, full) = match task {
            Task::CancelDeleted => (store.cancel_deleted(DELIVERIES_MAX).await?, DELIVERIES_MAX),
            Task::CancelRequested => {
                (store.cancel_requested(DELIVERIES_MAX).await?, DELIVERIES_MAX)
            }
            Task::FailHeld => (store.fail_held(DELIVERIES_MAX).await?, DELIVERIES_MAX),
            Task::ExpireFailed => (store.expire_failed(DELIVERIES_MAX).await?, DELIVERIES_MAX),
            Task::ExpireKeys => (store.expire_keys(KEYS_MAX).await?, KEYS_MAX),
            Task::SweepRateLimits => (store.sweep_rate_limits(WINDOWS_MAX).await?, WINDOWS_MAX),
            Task::MeasureBacklog => {
                let backlog = store.read_backlog().await?;
                metrics::DUE.set(backlog.due);
                metrics::CIRCUITS_OPEN.set(backlog.circuits_open);
                metrics::DUE_OLDEST
                    .set_seconds(backlog.oldest.map(|it| it.age).unwrap_or_default());
                return Ok(false);
            }
            Task::DisableFailing => return disable_failing(store).await,
            Task::SubmitEvents => return submit_events(store).await,
            Task::RecountSlots => return self.recount(store).await,
            Task::PrepareHistory => return store.prepare_history().await.map(|()| false),
            Task::ClearHistory => {
                let cleared = store.clear_history(HISTORY_MAX).await?;
                return Ok(self.tell(cleared));
            }
        };
        if task == Task::FailHeld {
            metrics::FAILED.add_with("reason", FailureReason::HeldTooLong.as_str(), done);
        }
        // Windows end all the time, and nobody misses one.
        if done > 0 && task != Task::SweepRateLimits {
            tracing::info!(task = task.as_str(), count = done, "upkeep");
        }
        Ok(done >= full.into())
    }

    async fn recount(&mut self, store: &dyn Store) -> Result<bool, StoreError> {
        let recount = store.recount_slots(self.recounted_to, ENDPOINTS_MAX).await?;
        if recount.mended > 0 || recount.made > 0 {
            let (mended, made) = (recount.mended, recount.made);
            tracing::warn!(mended, made, "slots of endpoints were out of step with deliveries");
        }
        self.recounted_to = recount.next;
        Ok(recount.next.is_some())
    }

    /// Says of each day that has to stay why, once.
    fn tell(&mut self, cleared: Cleared) -> bool {
        if cleared.removed > 0 {
            tracing::info!(count = cleared.removed, "history whose time is over was removed");
        }
        for (day, why) in cleared.kept.iter().filter(|kept| !self.kept.contains(kept)) {
            tracing::warn!(%day, why = why.as_str(), "history whose time is over has to stay");
        }
        if !cleared.more {
            self.kept = cleared.kept;
        }
        cleared.more
    }
}

async fn disable_failing(store: &dyn Store) -> Result<bool, StoreError> {
    let disabled = store.disable_failing(ENDPOINTS_MAX).await?;
    for endpoint in &disabled {
        tracing::warn!(endpoint.key = %endpoint, "an endpoint that failed for five days is disabled");
    }
    Ok(disabled.len() >= ENDPOINTS_MAX as usize)
}
