//! What a database tells of its health, and what that means to the person who runs it.
//!
//! The store reads [`Facts`]; [`judge`](judge::judge) makes [`Finding`]s of them: what is wrong, in plain
//! words, and what to do.

pub mod judge;

use std::time::Duration;

use time::Date;

use crate::id::EndpointKey;

/// A fact, or in words why it could not be read. One that cannot be read hides no other.
pub type Reading<T> = Result<T, String>;

/// All that was read.
#[derive(Debug, Clone)]
pub struct Facts {
    /// What keeps dead rows alive, oldest first.
    pub snapshots: Reading<Snapshots>,
    /// Tables with dead rows, the fullest first.
    pub dead_rows: Reading<Vec<DeadRows>>,
    /// Indexes that the database does not use.
    pub invalid_indexes: Reading<Vec<String>>,
    /// The days that history has room for.
    pub partitions: Reading<Partitions>,
    /// Whether a hold is on.
    pub hold: Reading<bool>,
    /// What is due.
    pub backlog: Reading<Backlog>,
    /// Whether a notification comes back. `None` where there are none.
    pub wake_ups: Reading<Option<WakeUps>>,
    /// Both clocks at one instant.
    pub clock: Reading<ClockOffset>,
    /// Endpoints whose count of slots is wrong.
    pub slots: Reading<Vec<SlotsOutOfStep>>,
    /// Rows that belong to nothing.
    pub strays: Reading<Vec<Stray>>,
    /// Who does the upkeep.
    pub upkeep: Reading<Upkeep>,
}

/// What keeps dead rows alive.
#[derive(Debug, Clone, Default)]
pub struct Snapshots {
    /// Oldest first.
    pub holders: Vec<SnapshotHolder>,
    /// Whether this user is shown the sessions of others.
    pub sees_all: bool,
}

/// Who holds an old snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotHolder {
    /// What it is.
    pub kind: HolderKind,
    /// How it is named where it is ended: a process id, a transaction's or a slot's name.
    pub name: String,
    /// What it is doing, and of whom it is.
    pub detail: String,
    /// For how long. `None` where the database does not know, for a slot.
    pub age: Option<Duration>,
    /// How many transactions have begun since.
    pub transactions: u64,
}

/// Kinds of holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderKind {
    /// A session with an open transaction.
    Session,
    /// A transaction that was prepared and neither committed nor rolled back.
    Prepared,
    /// A replication slot.
    Slot,
}

/// Dead rows of a table.
#[derive(Debug, Clone)]
pub struct DeadRows {
    /// The table.
    pub table: String,
    /// Rows that nobody can see any more, and that are still there.
    pub dead: u64,
    /// Rows that are alive.
    pub live: u64,
}

/// The days that history has room for.
#[derive(Debug, Clone, Default)]
pub struct Partitions {
    /// Days for which something is missing, from today to a week ahead.
    pub missing: Vec<Date>,
    /// Days that are over and still there, oldest first.
    pub overdue: Vec<OverdueDay>,
}

/// A day whose time is over and that is still there.
#[derive(Debug, Clone)]
pub struct OverdueDay {
    /// Which.
    pub day: Date,
    /// Deliveries of that day that are owed or replayable.
    pub owed: u64,
    /// Sessions, by process id, with a lock on its tables.
    pub used_by: Vec<i32>,
}

/// What could be claimed now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backlog {
    /// How many deliveries are due at endpoints that are open, counted up to a bound.
    pub due: u64,
    /// Whether there are more: an endpoint is counted to a bound of its own, and so are all.
    pub more: bool,
    /// The one that has been due for longest.
    pub oldest: Option<OldestDue>,
    /// How many endpoints have an open circuit. What is due there is not counted.
    pub circuits_open: u64,
}

/// The delivery that has been due for longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestDue {
    /// Whose.
    pub endpoint: EndpointKey,
    /// For how long.
    pub age: Duration,
    /// Whether all slots of the endpoint are taken.
    pub at_cap: bool,
}

/// Whether wake-ups arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeUps {
    /// What was told came back.
    Arrive,
    /// It did not.
    DoNotArrive,
}

/// How far the clocks of this machine and of the database are apart.
#[derive(Debug, Clone, Copy)]
pub struct ClockOffset {
    /// The database's clock less this machine's, in milliseconds.
    pub offset_ms: i64,
    /// By how much that may be wrong: half of the round trip.
    pub uncertainty: Duration,
}

/// An endpoint whose count of slots is wrong.
#[derive(Debug, Clone)]
pub struct SlotsOutOfStep {
    /// Which.
    pub endpoint: EndpointKey,
    /// What its schedule row says.
    pub counted: i64,
    /// How many deliveries hold one.
    pub held: i64,
}

/// Rows that belong to nothing.
#[derive(Debug, Clone)]
pub struct Stray {
    /// Which.
    pub kind: StrayKind,
    /// How many were found, counted up to a bound.
    pub count: u64,
    /// One of them.
    pub example: String,
}

/// Kinds of rows that belong to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrayKind {
    /// An endpoint without a schedule row: nothing of it is claimed.
    EndpointWithoutSchedule,
    /// A schedule row without an endpoint.
    ScheduleWithoutEndpoint,
    /// A secret without an endpoint.
    SecretWithoutEndpoint,
    /// A delivery without a submission: there is nothing to send.
    DeliveryWithoutSubmission,
    /// A delivery of an endpoint that is not there.
    DeliveryWithoutEndpoint,
    /// An attempt of a delivery that is not there, among the newest.
    AttemptWithoutDelivery,
}

/// Who does the upkeep. Every worker asks to, so somebody does while one lives.
#[derive(Debug, Clone, Default)]
pub struct Upkeep {
    /// Who did last.
    pub holder: Option<String>,
    /// Whether the lease still holds.
    pub lives: bool,
    /// How long ago it ended.
    pub ended_ago: Duration,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It is well.
    Fine,
    /// It will do harm if it stays.
    Warning,
    /// Deliveries are late or cannot be made.
    Critical,
}

impl Level {
    /// The level in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// What was found in one matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The matter, for machines.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it. Empty if nothing has to be done.
    pub what_to_do: String,
}

impl Finding {
    /// Nothing has to be done.
    #[must_use]
    pub fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Fine, found: found.into(), what_to_do: String::new() }
    }

    /// It will do harm if it stays.
    #[must_use]
    pub fn warning(
        check: &'static str,
        found: impl Into<String>,
        what_to_do: impl Into<String>,
    ) -> Self {
        let (found, what_to_do) = (found.into(), what_to_do.into());
        Self { check, level: Level::Warning, found, what_to_do }
    }

    /// Deliveries are late or cannot be made.
    #[must_use]
    pub fn critical(
        check: &'static str,
        found: impl Into<String>,
        what_to_do: impl Into<String>,
    ) -> Self {
        Self { level: Level::Critical, ..Self::warning(check, found, what_to_do) }
    }
}
