//! Buyers: each the next as soon as one is answered, or all of them as they come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::groups::{self, Wish};
use super::shop::{Manner, Shop, Spent};
use crate::bench::Context;
use crate::bench::arithmetic::{of_count, per_second};
use crate::bench::meter::{Meter, Used};

/// How often it is looked how many wait.
const LOOKS: u32 = 100;

/// One who buys, one after the other.
pub(super) enum Buyer {
    /// Each in a transaction of its own.
    Alone { shop: Shop, session: PoolConnection<Postgres>, manner: Manner },
    /// With those who wait meanwhile.
    InGroup(mpsc::Sender<Wish>),
}

impl Buyer {
    async fn buy(&mut self) -> anyhow::Result<Spent> {
        match self {
            Self::Alone { shop, session, manner } => shop.buy(session, *manner).await,
            Self::InGroup(wishes) => groups::buy(wishes).await,
        }
    }
}

/// What was answered while a case was measured.
#[derive(Debug)]
pub(super) struct Sales {
    answered: Vec<Sale>,
    pub(super) errors: u64,
    pub(super) used: Used,
    /// Where buyers come at a rate: seconds since it opened, with how many had come and had no answer.
    pub(super) queue: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Copy)]
struct Sale {
    /// From when the buyer came.
    took: Duration,
    spent: Spent,
}

impl Sales {
    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.answered.len()).unwrap_or(u64::MAX)
    }

    pub(super) fn per_second(&self) -> f64 {
        per_second(self.count(), self.used.elapsed)
    }

    /// In order.
    pub(super) fn latencies(&self) -> Vec<Duration> {
        sorted(self.answered.iter().map(|sale| sale.took))
    }

    /// In order.
    pub(super) fn lock_waits(&self) -> Vec<Duration> {
        sorted(self.answered.iter().filter_map(|sale| sale.spent.lock_wait))
    }

    pub(super) fn critical_sections(&self) -> Vec<Duration> {
        self.answered.iter().map(|sale| sale.spent.critical).collect()
    }
}

fn sorted(durations: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut durations: Vec<Duration> = durations.collect();
    durations.sort();
    durations
}

/// When it is sold, and to whom.
#[derive(Debug)]
struct Hours {
    /// Before that all buy as fast as they are answered: statements are prepared.
    opens: Instant,
    closes: Instant,
    /// How many come in a second, whatever becomes of those before. None: as they are answered.
    rate: Option<f64>,
    come: AtomicU64,
    answered: AtomicU64,
}

/// Serves them for as long as a case is measured.
pub(super) async fn serve(
    context: &Context<'_>,
    buyers: Vec<Buyer>,
    rate: Option<f64>,
    duration: Duration,
) -> anyhow::Result<Sales> {
    let opens = Instant::now() + context.plan.warm_up();
    let closes = opens + duration;
    let (come, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let hours = Arc::new(Hours { opens, closes, rate, come, answered });
    let mut running = JoinSet::new();
    for buyer in buyers {
        running.spawn(Arc::clone(&hours).keep_buying(buyer));
    }
    tokio::time::sleep_until(opens.into()).await;
    let meter = Meter { database: context.database.as_ref(), ..Meter::default() };
    let from = meter.read();
    let queue = hours.watch().await;
    let used = meter.read().since(from);
    let mut sales = Sales { answered: Vec::new(), errors: 0, used, queue };
    let mut first_error = None;
    while let Some(ended) = running.join_next().await {
        let (sold, errors, error) = ended.context("a buyer panicked")?;
        sales.answered.extend(sold);
        sales.errors += errors;
        first_error = first_error.or(error);
    }
    match first_error {
        Some(error) if sales.answered.is_empty() => Err(error),
        _ => Ok(sales),
    }
}

impl Hours {
    /// What was sold in time, how many errors there were, and the first of them.
    async fn keep_buying(
        self: Arc<Self>,
        mut buyer: Buyer,
    ) -> (Vec<Sale>, u64, Option<anyhow::Error>) {
        let (mut sales, mut errors, mut first_error) = (Vec::new(), 0, None);
        while let Some(came) = self.next().await {
            let bought = buyer.buy().await;
            let now = Instant::now();
            if came >= self.opens {
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
            match bought {
                Ok(spent) if now >= self.opens && now < self.closes => {
                    sales.push(Sale { took: now - came, spent });
                }
                Ok(_) => {}
                Err(error) => {
                    errors += 1;
                    first_error.get_or_insert(error);
                }
            }
        }
        (sales, errors, first_error)
    }

    /// When the next one came. None when it is closed.
    async fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        let came = match self.rate {
            Some(rate) if now >= self.opens => {
                let number = self.come.fetch_add(1, Ordering::Relaxed);
                self.opens + Duration::from_secs_f64(of_count(number) / rate)
            }
            _ => now,
        };
        if now.max(came) >= self.closes {
            return None;
        }
        tokio::time::sleep_until(came.into()).await;
        Some(came)
    }

    /// Looks until it is closed how many wait.
    async fn watch(&self) -> Vec<(f64, f64)> {
        let Some(rate) = self.rate else {
            tokio::time::sleep_until(self.closes.into()).await;
            return Vec::new();
        };
        let mut queue = Vec::new();
        let step = (self.closes - self.opens) / LOOKS;
        for look in 1..=LOOKS {
            tokio::time::sleep_until((self.opens + step * look).into()).await;
            let at = self.opens.elapsed().as_secs_f64();
            let answered = of_count(self.answered.load(Ordering::Relaxed));
            queue.push((at, waiting(rate, at, answered)));
        }
        queue
    }
}

/// How many have come by then, the first one at once, and are not answered.
fn waiting(rate: f64, seconds: f64, answered: f64) -> f64 {
    ((rate * seconds).floor() + 1.0 - answered).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_wait_who_have_come_and_are_not_answered() {
        let near = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(near(waiting(100.0, 0.0, 0.0), 1.0));
        assert!(near(waiting(100.0, 2.0, 150.0), 51.0));
        assert!(near(waiting(100.0, 1.0, 102.0), 0.0), "an answer that was counted since");
    }
}
