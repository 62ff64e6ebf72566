//! Copies of one event that reach several api processes, one of which dies with a copy half stored.

mod pause;

use std::fmt;
use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use bytes::Bytes;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{EndpointKey, PublicId, SourceKey};
use domain::source::{EventIdLocation, HeaderName, Scheme, SchemeKind, SourceSecret};
use http::Request;
use http_body_util::Full;
use store::source::{NewSource, SourceCreation};

use self::pause::Pause;
use super::Event;
use crate::barrier::race;
use crate::client;
use crate::connections::{Connection, Value};
use crate::contestant::{Contestant, Done, Step, Task};
use crate::effects;
use crate::ground::Ground;
use crate::processes::Process;
use crate::verify::check::{Check, Round};

/// A process costs a start, and two cores race no more at once.
const PROCESSES: usize = 3;
/// What the sender shows.
const KEY: &str = "what the sender shows";

#[derive(Debug, Default)]
pub(super) struct Gateway {
    processes: Vec<Running>,
}

type Running = (Process, SocketAddr);

#[async_trait]
impl Check for Gateway {
    fn name(&self) -> &'static str {
        "inbox-gateway"
    }

    fn guarantee(&self) -> &'static str {
        "G9"
    }

    fn tried(&self, ground: &Ground) -> String {
        format!(
            "{} copies of one event are sent to {PROCESSES} api processes at once; another process is \
             killed between receipt and delivery of the next event, which then comes again",
            ground.crowd().asked
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        while self.processes.len() < PROCESSES {
            self.processes.push(start(ground).await?);
        }
        let copies = ground.crowd().asked;
        let (answered, raced) = self.race(ground, copies).await?;
        let (killed, again, stored) = self.kill(ground).await?;
        Ok(Seen { answered, raced, killed, again, stored }.judge(copies))
    }

    fn naive(&self) -> &'static str {
        "look whether the event was processed, then process it"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        self.processes.clear();
        effects::make_tables(&mut ground.connections()?.get().await?).await?;
        let event = Event::new().id;
        let mut processes = Vec::new();
        for _ in 0..PROCESSES {
            processes.push(Contestant::start(ground).await?);
        }
        // All have looked before the first is told to process.
        let look = Task::Inbox(Step::LookFor { event: event.clone() });
        let seen = Contestant::all(&mut processes, &look).await?;
        for (process, seen) in processes.iter_mut().zip(seen) {
            if seen == Done::Counter(0) {
                process.tell(&Task::Inbox(Step::Apply { event: event.clone() })).await?;
                process.hear().await?;
            }
        }
        let effects = effects::count(&mut ground.connections()?.get().await?, &event).await?;
        let raced = Stored { receipts: 1, submissions: effects, deliveries: effects };
        Ok(Seen { answered: PROCESSES, raced, ..Seen::wanted(PROCESSES) }.judge(PROCESSES))
    }
}

impl Gateway {
    /// How many copies were answered 2xx, and what was stored.
    async fn race(&self, ground: &Ground, copies: usize) -> anyhow::Result<(usize, Stored)> {
        let source = Source::create(ground).await?;
        let event = Event::new();
        let mut connections = Vec::with_capacity(copies);
        for (_, address) in self.processes.iter().cycle().take(copies) {
            connections.push(client::Connection::open(*address).await?);
        }
        let shared = (source.path.clone(), event);
        let answered = race(connections, move |_, connection| {
            let (path, event) = shared.clone();
            async move { send(connection, &path, &event).await }
        });
        let answered = answered.await?.into_iter().filter(|answered| *answered).count();
        let mut connection = ground.connections()?.get().await?;
        Ok((answered, source.stored(&mut connection).await?))
    }

    /// What was stored after the kill, whether the copy that came then was answered 2xx, and what was
    /// stored after that.
    async fn kill(&self, ground: &Ground) -> anyhow::Result<(Stored, bool, Stored)> {
        let source = Source::create(ground).await?;
        let event = Event::new();
        let mut connection = ground.connections()?.get().await?;
        let (victim, address) = start(ground).await?;
        let pause = Pause::begin(&ground.connections()?).await?;
        let half_way = {
            let open = client::Connection::open(address).await?;
            let (path, event) = (source.path.clone(), event.clone());
            let copy = tokio::spawn(async move { send(open, &path, &event).await });
            pause.reached(&mut connection).await?;
            victim.kill().await?;
            copy.await.context("the copy panicked")?
        };
        anyhow::ensure!(half_way.is_err(), "a killed process answered");
        pause.end(&mut connection).await?;
        let killed = source.stored(&mut connection).await?;
        let (_, survivor) = self.processes.first().context("a process")?;
        let again = send(client::Connection::open(*survivor).await?, &source.path, &event).await?;
        Ok((killed, again, source.stored(&mut connection).await?))
    }
}

/// An api of its own, with its share of the connections.
async fn start(ground: &Ground) -> anyhow::Result<Running> {
    // The one that is killed has its share too.
    let share = (ground.crowd().connections / (PROCESSES + 1)).clamp(2, 10).to_string();
    let environment = ground.environment().with("FENCEPOST_DATABASE_CONNECTIONS", &share);
    Process::api(&environment).await
}

/// Whether a copy was answered 2xx.
async fn send(
    mut connection: client::Connection,
    path: &str,
    event: &Event,
) -> anyhow::Result<bool> {
    let request = Request::post(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("x-key", KEY)
        .header("x-event", &event.id)
        .body(Full::new(Bytes::from(event.body())))?;
    Ok(connection.send(request).await?.status().is_success())
}

/// A source of its own, with an endpoint of its own: what is stored for it is of one event.
struct Source {
    key: SourceKey,
    endpoint: EndpointKey,
    path: String,
}

impl Source {
    async fn create(ground: &Ground) -> anyhow::Result<Self> {
        let endpoint = ground.endpoint().await?;
        let key = store::new_id::source_key();
        let id = PublicId::of_source(key);
        let path = format!("/in/{id}");
        let new = NewSource {
            key,
            application: DEFAULT_APPLICATION_KEY,
            id,
            name: None,
            endpoint: (endpoint.key, endpoint.id),
            scheme: Scheme::from_json(r#"{"type":"api_key","header":"x-key"}"#)?,
            event_id: Some(EventIdLocation::Header(HeaderName::parse("x-event")?)),
            headers: Vec::new(),
            secret: SourceSecret::parse(SchemeKind::ApiKey, KEY)?,
        };
        match ground.store().await?.create_source(&new).await? {
            SourceCreation::Created(_) => Ok(Self { key, endpoint: endpoint.key, path }),
            other => bail!("no source: {other:?}"),
        }
    }

    async fn stored(&self, connection: &mut Connection) -> anyhow::Result<Stored> {
        let row = connection
            .read_one(
                "-- proof::verify::inbox::gateway::stored
                SELECT
                    (SELECT count(*) FROM {}receipts WHERE source = CAST($1 AS text)) AS receipts,
                    (SELECT count(*) FROM {}submissions WHERE endpoint = $2) AS submissions,
                    (SELECT count(*) FROM {}deliveries WHERE endpoint = $2) AS deliveries",
                &[Value::Text(&self.key.to_string()), Value::Uuid(self.endpoint.as_uuid())],
            )
            .await?;
        Ok(Stored {
            receipts: row.integer("receipts")?,
            submissions: row.integer("submissions")?,
            deliveries: row.integer("deliveries")?,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stored {
    receipts: i64,
    submissions: i64,
    deliveries: i64,
}

impl Stored {
    fn each(count: i64) -> Self {
        Self { receipts: count, submissions: count, deliveries: count }
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { receipts, submissions, deliveries } = self;
        write!(f, "{receipts} receipt, {submissions} submission, {deliveries} delivery")
    }
}

/// What a round left behind.
struct Seen {
    /// How many copies were answered 2xx.
    answered: usize,
    raced: Stored,
    killed: Stored,
    again: bool,
    stored: Stored,
}

impl Seen {
    fn wanted(copies: usize) -> Self {
        let (raced, killed) = (Stored::each(1), Stored::each(0));
        Self { answered: copies, raced, killed, again: true, stored: Stored::each(1) }
    }

    fn judge(&self, copies: usize) -> Round {
        Round::of(Self::wanted(copies).to_string(), self.to_string())
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, raced, killed, again, stored } = self;
        let again = if *again { "answered 2xx" } else { "refused" };
        write!(
            f,
            "{answered} copies answered 2xx, {raced}; after the kill {killed}; the next copy {again}, \
             {stored}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_copy_a_second_delivery_or_half_of_an_event_break_it() {
        let seen = || Seen::wanted(20);
        assert!(seen().judge(20).holds);
        assert!(!Seen { answered: 19, ..seen() }.judge(20).holds);
        let twice = Stored { deliveries: 2, ..Stored::each(1) };
        assert!(!Seen { raced: twice, ..seen() }.judge(20).holds);
        let half = Stored { receipts: 1, ..Stored::each(0) };
        assert!(!Seen { killed: half, ..seen() }.judge(20).holds);
        assert!(!Seen { again: false, stored: Stored::each(0), ..seen() }.judge(20).holds);
    }
}
