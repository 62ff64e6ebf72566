//! The process that is the first dies between its receipt and its effect, and the event comes again.

use async_trait::async_trait;

use super::library::{Fate, receive};
use super::{Event, SOURCE};
use crate::contestant::{Contestant, Done, Step, Task};
use crate::effects;
use crate::ground::Ground;
use crate::verify::check::{Check, Round};

#[derive(Debug)]
pub(super) struct Killed;

#[async_trait]
impl Check for Killed {
    fn name(&self) -> &'static str {
        "inbox-killed"
    }

    fn guarantee(&self) -> &'static str {
        "G9"
    }

    fn tried(&self, _ground: &Ground) -> String {
        "a process is told that its copy is the first and killed before the effect; then the event comes \
         again"
            .to_owned()
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let connections = ground.connections()?;
        effects::make_tables(&mut connections.get().await?).await?;
        let event = Event::new();
        let step = Step::Receive {
            source: SOURCE.to_owned(),
            event: event.id.clone(),
            body: event.body(),
        };
        die_after(ground, step, &Done::Received).await?;
        let copy = receive(&connections, &event).await;
        let effects = effects::count(&mut connections.get().await?, &event.id).await?;
        Ok(judge(&copy.fate, effects))
    }

    fn naive(&self) -> &'static str {
        "note that the event was seen, then process it"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let connections = ground.connections()?;
        let mut connection = connections.get().await?;
        effects::make_tables(&mut connection).await?;
        let event = Event::new();
        die_after(ground, Step::Note { event: event.id.clone() }, &Done::Written).await?;
        let fate = if effects::count_notes(&mut connection, &event.id).await? > 0 {
            Fate::Duplicate
        } else {
            effects::apply(&mut connection, &event.id).await?;
            Fate::Processed
        };
        Ok(judge(&fate, effects::count(&mut connection, &event.id).await?))
    }
}

/// A process takes one step and is killed.
async fn die_after(ground: &Ground, step: Step, expected: &Done) -> anyhow::Result<()> {
    let mut process = Contestant::start(ground).await?;
    process.tell(&Task::Inbox(step)).await?;
    let done = process.hear().await?;
    anyhow::ensure!(done == *expected, "not {expected:?}: {done:?}");
    process.kill().await
}

fn judge(fate: &Fate, effects: i64) -> Round {
    let tell = |fate: &str, effects: i64| format!("the copy is {fate}, {effects} effect");
    let observed = match fate {
        Fate::Processed => "processed",
        Fate::Duplicate => "a duplicate",
        Fate::Failed(why) => why,
    };
    Round::of(tell("processed", 1), tell(observed, effects))
}
