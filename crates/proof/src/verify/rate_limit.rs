//! G6: any number of processes spend from one budget, and exactly the limit is admitted.

use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use domain::rate_limit::RateLimit;
use store::rate_limit::{Limiter, Reservation};

use super::check::{Check, Round};
use crate::connections::{Connection, Value};
use crate::contestant::{Contestant, Done, Task};
use crate::ground::{Ground, patiently};

/// Units that each asks for.
const REQUESTS: u32 = 25;
/// The longest window: a race that runs into the next one is run again.
const WINDOW_SECONDS: u64 = 24 * 60 * 60;

#[derive(Debug, Default)]
pub(super) struct RateLimits {
    processes: Vec<Contestant>,
}

#[async_trait]
impl Check for RateLimits {
    fn name(&self) -> &'static str {
        "rate-limit"
    }

    fn guarantee(&self) -> &'static str {
        "G6"
    }

    fn tried(&self, ground: &Ground) -> String {
        let (processes, limit) = (ground.processes(), limit(ground));
        format!(
            "{processes} processes ask for {REQUESTS} units each of a budget of {limit} at once; then \
             another one asks"
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        loop {
            let subject = store::new_id::uuid_now().to_string();
            let task = Task::Reserve {
                subject: subject.clone(),
                limit: limit(ground),
                window_seconds: WINDOW_SECONDS,
                requests: REQUESTS,
            };
            let done = Contestant::all(self.started(ground).await?, &task).await?;
            let (mut admitted, mut counted, mut ends) = (0, 0, Vec::new());
            for one in done {
                let Done::Reserved { granted, used, ends_in_ms: (first, last) } = one else {
                    anyhow::bail!("not reserved: {one:?}")
                };
                admitted += granted;
                counted = counted.max(used);
                ends.extend([first, last]);
            }
            let (later, end) = one_more(ground, subject).await?;
            ends.push(end);
            // Within a window its end comes nearer. A new one's is almost a whole window away.
            let spread = ends.iter().max().zip(ends.iter().min()).map_or(0, |(max, min)| max - min);
            if spread < WINDOW_SECONDS * 1_000 / 2 {
                return Ok(judge(limit(ground), asked(ground), admitted, counted, later));
            }
        }
    }

    fn naive(&self) -> &'static str {
        "read the counter, compare it with the limit, then write it one higher"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let subject = store::new_id::uuid_now().to_string();
        let limit = limit(ground);
        let mut connection = ground.connections()?.get().await?;
        // One unit is left.
        make_counter(&mut connection, &subject, i64::from(limit) - 1).await?;
        let processes = self.started(ground).await?;
        let asked = limit - 1 + u32::try_from(processes.len())?;
        let read = Task::ReadCounter { subject: subject.clone() };
        // All have read before the first is told to write.
        let seen = Contestant::all(processes, &read).await?;
        let mut admitted = limit - 1;
        for (process, seen) in processes.iter_mut().zip(seen) {
            let Done::Counter(used) = seen else { anyhow::bail!("not read: {seen:?}") };
            if used < i64::from(limit) {
                admitted += 1;
                let write = Task::WriteCounter { subject: subject.clone(), used: used + 1 };
                process.tell(&write).await?;
                process.hear().await?;
            }
        }
        self.processes.clear();
        let counted = u32::try_from(read_counter(&mut connection, &subject).await?)?;
        Ok(judge(limit, asked, admitted, counted, u32::from(counted < limit)))
    }
}

impl RateLimits {
    /// The processes, which go on from round to round.
    async fn started(&mut self, ground: &Ground) -> anyhow::Result<&mut [Contestant]> {
        while self.processes.len() < ground.processes() {
            self.processes.push(Contestant::start(ground).await?);
        }
        Ok(&mut self.processes)
    }
}

/// What all of them ask for.
fn asked(ground: &Ground) -> u32 {
    REQUESTS.saturating_mul(u32::try_from(ground.processes()).unwrap_or(u32::MAX))
}

/// Half of that.
fn limit(ground: &Ground) -> u32 {
    asked(ground) / 2
}

/// One more unit, for another process: how many were granted, and when the window ends.
async fn one_more(ground: &Ground, subject: String) -> anyhow::Result<(u32, u64)> {
    let limit = RateLimit::new(limit(ground), Duration::from_secs(WINDOW_SECONDS))?;
    let unit = [Reservation { limiter: Limiter::Endpoint, subject, limit, units: 1 }];
    let store = ground.store().await?;
    let told = patiently(|| store.reserve(&unit)).await?;
    let told = told.first().context("no answer to a reservation")?;
    Ok((told.granted, u64::try_from(told.window_ends_in.as_millis())?))
}

fn judge(limit: u32, asked: u32, admitted: u32, counted: u32, later: u32) -> Round {
    let tell = |admitted: u32, counted: u32, later: u32| {
        format!("{admitted} of {asked} admitted, {counted} counted, {later} afterwards")
    };
    Round::of(tell(limit, asked, 0), tell(admitted, counted, later))
}

/// As the counters of rate limits, for who reads and writes.
async fn make_counter(connection: &mut Connection, subject: &str, used: i64) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::verify::rate_limit::make_counter
            CREATE TABLE {}naive_counters (subject text PRIMARY KEY, used bigint NOT NULL)",
            &[],
        )
        .await?;
    connection
        .run(
            "-- proof::verify::rate_limit::make_counter
            INSERT INTO {}naive_counters VALUES ($1, $2)",
            &[Value::Text(subject), Value::Integer(used)],
        )
        .await?;
    Ok(())
}

async fn read_counter(connection: &mut Connection, subject: &str) -> anyhow::Result<i64> {
    let counter = connection
        .read_one(
            "-- proof::verify::rate_limit::read_counter
            SELECT used FROM {}naive_counters WHERE subject = $1",
            &[Value::Text(subject)],
        )
        .await?;
    Ok(counter.integer("used")?)
}
