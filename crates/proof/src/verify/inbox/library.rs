//! Copies of one event, each received and processed in a transaction of its own.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Map, Value as Json, json};
use store::StoreError;
use store::receipt::{PATIENCE, Receiving};

use super::Event;
use crate::barrier::{Rendezvous, race};
use crate::connections::{Connection, Connections, Value};
use crate::effects;
use crate::ground::Ground;
use crate::transaction::Transaction;
use crate::verify::check::{Check, Round};

/// How long the processing of an event takes, at most.
const PROCESSING_MAX: Duration = Duration::from_millis(25);
/// How often a copy comes again that was told to.
const COMES_AGAIN: u32 = 20;

#[derive(Debug)]
pub(super) struct Library;

#[async_trait]
impl Check for Library {
    fn name(&self) -> &'static str {
        "inbox"
    }

    fn guarantee(&self) -> &'static str {
        "G9"
    }

    fn tried(&self, ground: &Ground) -> String {
        format!(
            "{} copies of one event are processed at once, each in a transaction on a connection of \
             its own, for a random time of up to {} ms",
            ground.crowd().asked,
            PROCESSING_MAX.as_millis()
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        effects::make_tables(&mut ground.connections()?.get().await?).await?;
        // The wait for an SQLite file's lock is the store's, not the driver's.
        let connections =
            Connections::open(ground.url(), ground.crowd().connections, Duration::ZERO)?;
        drop(connections.get_many(ground.crowd().connections).await?);
        let event = Event::new();
        let shared = (connections.clone(), event.clone());
        let copies = race(0..ground.crowd().asked, move |_, _| {
            let (connections, event) = shared.clone();
            async move { Ok(receive(&connections, &event).await) }
        })
        .await?;
        let effects = effects::count(&mut connections.get().await?, &event.id).await?;
        connections.close().await;
        Ok(judge(&event, &copies, effects))
    }

    fn naive(&self) -> &'static str {
        "look whether the event was processed, process it, then note it"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let connections = ground.connections()?;
        effects::make_tables(&mut connections.get().await?).await?;
        let event = Event::new();
        let all_have_read = Rendezvous::of(ground.crowd().asked);
        let shared = (connections.clone(), event.clone());
        let copies = race(0..ground.crowd().asked, move |_, _| {
            let ((connections, event), all_have_read) = (shared.clone(), all_have_read.clone());
            async move {
                let began = Instant::now();
                let processed = effects::count(&mut connections.get().await?, &event.id).await? > 0;
                all_have_read.meet().await?;
                if !processed {
                    process(&mut connections.get().await?, &event).await?;
                }
                let fate = if processed { Fate::Duplicate } else { Fate::Processed };
                Ok(Copy { fate, tries: 1, took: began.elapsed() })
            }
        })
        .await?;
        let effects = effects::count(&mut connections.get().await?, &event.id).await?;
        Ok(judge(&event, &copies, effects))
    }
}

/// What became of a copy.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    Processed,
    Duplicate,
    Failed(String),
}

#[derive(Debug, Clone)]
pub(super) struct Copy {
    pub(super) fate: Fate,
    tries: u32,
    took: Duration,
}

/// Receives a copy, and again as long as it is told to come again.
pub(super) async fn receive(connections: &Connections, event: &Event) -> Copy {
    let began = Instant::now();
    let mut tries = 0;
    let fate = loop {
        tries += 1;
        match receive_once(connections, event).await {
            Ok(Some(fate)) => break fate,
            Ok(None) if tries < COMES_AGAIN => wait_a_while().await,
            Ok(None) => break Fate::Failed(format!("told to come again {tries} times")),
            Err(error) => break Fate::Failed(format!("{error:#}")),
        }
    };
    Copy { fate, tries, took: began.elapsed() }
}

/// In one transaction: the receipt, and the effect of who is the first. `None` is told to come again.
async fn receive_once(connections: &Connections, event: &Event) -> anyhow::Result<Option<Fate>> {
    let mut transaction = match Transaction::begin(connections, PATIENCE).await {
        Ok(transaction) => transaction,
        Err(StoreError::Contended { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let fate = match transaction.receive_once(&event.receipt()?, PATIENCE).await {
        Ok(Receiving::First) => Fate::Processed,
        Ok(Receiving::Duplicate { .. }) => Fate::Duplicate,
        Ok(Receiving::Conflicted) => Fate::Failed("told that the content is other".to_owned()),
        Ok(Receiving::InProgress) | Err(StoreError::Contended { .. }) => {
            transaction.rollback().await?;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    if fate == Fate::Processed {
        tokio::time::sleep(PROCESSING_MAX.mul_f64(fastrand::f64())).await;
        transaction.run(effects::APPLY, &[Value::Text(&event.id)]).await?;
    }
    transaction.commit().await?;
    Ok(Some(fate))
}

async fn wait_a_while() {
    tokio::time::sleep(PATIENCE.mul_f64(fastrand::f64() / 4.0)).await;
}

/// The effect alone, without a guard.
async fn process(connection: &mut Connection, event: &Event) -> anyhow::Result<()> {
    tokio::time::sleep(PROCESSING_MAX.mul_f64(fastrand::f64())).await;
    effects::apply(connection, &event.id).await
}

/// Kept if one copy had success and one effect, all others are duplicates, and there was no error.
fn judge(event: &Event, copies: &[Copy], effects: i64) -> Round {
    let of = |is: fn(&Fate) -> bool| copies.iter().filter(|copy| is(&copy.fate)).count();
    let success = of(|fate| *fate == Fate::Processed);
    let duplicates = of(|fate| *fate == Fate::Duplicate);
    let errors = of(|fate| matches!(fate, Fate::Failed(_)));
    let tell = |success: usize, duplicates: usize, errors: usize, effects: i64| {
        format!("{success} success, {duplicates} duplicates, {errors} errors, {effects} effect")
    };
    let total = copies.len();
    let expected = tell(1, total.saturating_sub(1), 0, 1);
    let mut round = Round::of(expected, tell(success, duplicates, errors, effects));
    let details: Vec<Json> = copies.iter().enumerate().map(|(copy, it)| it.told(copy)).collect();
    round.fields = Map::from_iter([
        ("event".to_owned(), event.told()),
        ("total_requests".to_owned(), total.into()),
        ("success_count".to_owned(), success.into()),
        ("duplicate_blocked_count".to_owned(), duplicates.into()),
        ("db_error_count".to_owned(), errors.into()),
        ("details".to_owned(), details.into()),
    ]);
    round
}

impl Copy {
    fn told(&self, copy: usize) -> Json {
        let (outcome, error) = match &self.fate {
            Fate::Processed => ("success", None),
            Fate::Duplicate => ("duplicate_blocked", None),
            Fate::Failed(why) => ("db_error", Some(why)),
        };
        let mut told = json!({
            "request": copy + 1,
            "outcome": outcome,
            "tries": self.tries,
            "milliseconds": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        });
        if let (Some(error), Some(told)) = (error, told.as_object_mut()) {
            told.insert("error".to_owned(), error.as_str().into());
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(fates: impl IntoIterator<Item = Fate>) -> Vec<Copy> {
        fates.into_iter().map(|fate| Copy { fate, tries: 1, took: Duration::ZERO }).collect()
    }

    fn holds(fates: impl IntoIterator<Item = Fate>, effects: i64) -> bool {
        judge(&Event::new(), &copies(fates), effects).holds
    }

    #[test]
    fn twenty_copies_are_one_success_nineteen_duplicates_and_no_error() {
        let fates = || std::iter::once(Fate::Processed).chain(vec![Fate::Duplicate; 19]);
        let round = judge(&Event::new(), &copies(fates()), 1);
        assert!(round.holds);
        let names =
            ["total_requests", "success_count", "duplicate_blocked_count", "db_error_count"];
        assert_eq!(names.map(|name| round.fields[name].as_u64()), [20, 1, 19, 0].map(Some));
        assert_eq!(round.fields["details"].as_array().map(Vec::len), Some(20));
    }

    #[test]
    fn two_successes_none_an_error_or_a_second_effect_break_it() {
        assert!(!holds([Fate::Processed, Fate::Processed], 2));
        assert!(!holds([Fate::Duplicate, Fate::Duplicate], 0));
        assert!(!holds([Fate::Processed, Fate::Failed("lost".to_owned())], 1));
        assert!(!holds([Fate::Processed, Fate::Duplicate], 2));
        assert!(holds([Fate::Processed, Fate::Duplicate], 1));
    }
}
