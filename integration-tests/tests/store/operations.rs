//! Random sequences of operations on a store and on a model of it in memory: after every step, both
//! have given the same answer and hold the same.
//!
//! The model stands on the domain's own functions and knows no SQL. Time passes by aging rows, so no
//! case waits. A failing sequence is shrunk, and told one step a line.
//!
//! `FENCEPOST_OPERATIONS_CASES` is how many sequences are drawn (500), `FENCEPOST_OPERATIONS_SEED` from
//! which seed (0): the same sequences each time, unless somebody asks for others.

mod answer;
mod model;
mod operation;
mod rows;
mod step;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use domain::delivery::retry::RetrySchedule;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use store::endpoint::Endpoint;
use time::OffsetDateTime;
use time::macros::datetime;
use tokio::runtime::Handle;

use self::answer::{Answer, Subject};
use self::operation::Operation;
use self::rows::{Rows, Snapshot};
use self::step::{Case, Handed, Step};
use crate::fixture::Fixture;

/// Two thirds of the lease of every endpoint here. A case takes a fraction of a second; what a machine
/// makes of it that stood still for so long says nothing.
const CASE_TIME_MAX: Duration = Duration::from_secs(30);

on_both_stores! {
    any_sequence_of_operations_leaves_the_store_as_the_model_says,
}

async fn any_sequence_of_operations_leaves_the_store_as_the_model_says(
    fixture: Fixture,
) -> anyhow::Result<()> {
    let cases = number("FENCEPOST_OPERATIONS_CASES", 500)?;
    let seed = number("FENCEPOST_OPERATIONS_SEED", 0)?;
    let mut rows = Rows::of(&fixture).await?;
    tokio::task::block_in_place(|| {
        let mut seed_bytes = [0; 32];
        seed_bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Config {
            cases: u32::try_from(cases)?,
            failure_persistence: None,
            max_shrink_iters: 2_000,
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let rows = std::cell::RefCell::new(&mut rows);
        let found = runner.run(&operation::operations(), |operations| {
            let started = Instant::now();
            let rows = &mut rows.borrow_mut();
            let ran = Handle::current().block_on(run(&fixture, rows, &operations));
            ran.map_err(|error| {
                if started.elapsed() < CASE_TIME_MAX {
                    TestCaseError::fail(format!("{error:#}"))
                } else {
                    TestCaseError::reject("the machine stood still")
                }
            })
        });
        match found {
            Ok(()) => Ok(()),
            Err(TestError::Fail(reason, _)) => {
                anyhow::bail!("seed {seed}, shrunk to:\n{}", reason.message())
            }
            Err(error) => Err(error.into()),
        }
    })
}

fn number(name: &str, default: u64) -> anyhow::Result<u64> {
    match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name} is no number")),
        Err(_) => Ok(default),
    }
}

/// The error tells every step up to the one after which store and model differ.
async fn run(fixture: &Fixture, rows: &mut Rows, operations: &[Operation]) -> anyhow::Result<()> {
    rows.clear().await?;
    let endpoints = vec![endpoint(fixture).await?, endpoint(fixture).await?];
    let mut case = Case::new(endpoints, datetime!(2023-11-14 22:13:20 UTC));
    let store = fixture.store.as_ref();
    let mut subject = Subject { store, rows, received_at: BTreeMap::new() };
    let mut steps = Vec::new();
    for operation in operations {
        await_another_millisecond().await;
        case.model.tick();
        let Some(step) = case.resolve(operation)? else { continue };
        steps.push(format!("  {step}\n"));
        let difference = take(&mut case, &mut subject, &step).await;
        difference.map_err(|difference| {
            anyhow::anyhow!(case.named(&format!("{}{difference:#}", steps.concat())))
        })?;
    }
    Ok(())
}

async fn take(case: &mut Case, subject: &mut Subject<'_>, step: &Step) -> anyhow::Result<()> {
    let expected = case.model.answer(step);
    if let (Step::Claim(claim), Answer::Claimed(taken, _)) = (step, &expected) {
        for it in taken.iter().filter(|it| it.attempts.is_some()) {
            let held = case.model.deliveries.get(&it.delivery).map(|owner| Handed {
                claim: store::delivery::HeldClaim {
                    endpoint: owner.endpoint,
                    delivery: it.delivery,
                    token: claim.token,
                },
                cycle_attempts: owner.delivery.cycle_attempts,
                version: case.model.endpoints.get(&owner.endpoint).map_or(0, |it| it.version),
            });
            case.handed.extend(held);
        }
    }
    let answer = subject.answer(step).await?;
    ensure!(answer == expected, "model answers {expected:?}\nstore answers {answer:?}");
    let is_postgres = matches!(subject.rows, Rows::Postgres(_));
    let expected = Snapshot::of(&case.model, is_postgres);
    let mut found = subject.rows.snapshot().await?;
    found.align(&expected);
    let differences = found.differences(&expected);
    ensure!(differences.is_empty(), "model and store hold:\n{differences}");
    Ok(())
}

/// SQLite's clock counts milliseconds, and what is accepted in the same one has no order.
async fn await_another_millisecond() {
    let millisecond = || OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    let before = millisecond();
    while millisecond() == before {
        tokio::task::yield_now().await;
    }
}

/// With a long lease, few slots, and waits of hours.
async fn endpoint(fixture: &Fixture) -> anyhow::Result<Endpoint> {
    let schedule = RetrySchedule::new([1, 2].map(Duration::from_hours).to_vec())?;
    fixture
        .endpoint_with(|draft| {
            draft.deadline = Duration::from_secs(30);
            draft.in_flight_max = 3;
            draft.retry_schedule = schedule;
            draft.overload_floor = Duration::from_hours(4);
            draft.final_statuses = vec![404];
        })
        .await
}
