//! What the processes, the database and the bench itself have used between two instants.

use std::time::{Duration, Instant};

use super::arithmetic::each;
use super::database::{Database, Done};
use super::figures::Figures;
use super::load::Producers;
use super::processes::Process;
use super::receiver::Receiver;

/// What is measured.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meter<'a> {
    pub(super) apis: &'a [Process],
    pub(super) workers: &'a [Process],
    pub(super) database: Option<&'a Database>,
}

/// What had been used at one instant. None is what cannot be seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) at: Instant,
    api: Option<Duration>,
    worker: Option<Duration>,
    postgres: Option<Duration>,
    load: Option<Duration>,
    receiver: Option<Duration>,
}

impl Meter<'_> {
    pub(super) fn read(self) -> Reading {
        Reading {
            at: Instant::now(),
            api: all(self.apis),
            worker: all(self.workers),
            postgres: self.database.and_then(Database::used),
            load: Producers::used(),
            receiver: Receiver::used(),
        }
    }
}

/// What these have used together. None of none.
fn all(processes: &[Process]) -> Option<Duration> {
    let used = || processes.iter().map(Process::used).sum::<Option<Duration>>();
    (!processes.is_empty()).then(used).flatten()
}

impl Reading {
    /// What was used since an earlier reading.
    pub(super) fn since(self, earlier: Self) -> Used {
        let micros = |now: Option<Duration>, then: Option<Duration>| {
            Some(now?.saturating_sub(then?).as_secs_f64() * 1e6)
        };
        Used {
            elapsed: self.at - earlier.at,
            api: micros(self.api, earlier.api),
            worker: micros(self.worker, earlier.worker),
            postgres: micros(self.postgres, earlier.postgres),
            load: micros(self.load, earlier.load),
            receiver: micros(self.receiver, earlier.receiver),
        }
    }
}

/// Microseconds of processor time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub(super) elapsed: Duration,
    api: Option<f64>,
    worker: Option<f64>,
    postgres: Option<f64>,
    load: Option<f64>,
    receiver: Option<f64>,
}

impl Used {
    /// What the product and its database used for each of so many.
    pub(super) fn of_the_product(self, count: u64) -> Option<f64> {
        let product = self.api.unwrap_or(0.0) + self.worker.unwrap_or(0.0) + self.postgres?;
        Some(each(product, count))
    }

    /// Adds what each of so many cost.
    pub(super) fn add_to(self, figures: &mut Figures, case: &str, count: u64) {
        let parts = [
            ("api", self.api),
            ("worker", self.worker),
            ("PostgreSQL", self.postgres),
            ("load", self.load),
            ("receiver", self.receiver),
        ];
        for (part, micros) in parts {
            // A part that did nothing has no part in this case.
            let micros = micros.filter(|micros| *micros > 0.0).map(|micros| each(micros, count));
            figures.add_if(format!("{case}: CPU of {part}"), "µs each", micros);
        }
    }
}

/// Adds what the database wrote and was asked for each of so many.
pub(super) fn add_done(figures: &mut Figures, case: &str, from: Done, to: Done, count: u64) {
    let difference = |from: i64, to: i64| u32::try_from((to - from).max(0)).unwrap_or(u32::MAX);
    let wal = f64::from(difference(from.wal_bytes, to.wal_bytes));
    let statements = f64::from(difference(from.transactions, to.transactions));
    figures.add(format!("{case}: WAL"), "bytes each", each(wal, count));
    figures.add(format!("{case}: statements"), "each", each(statements, count));
}
