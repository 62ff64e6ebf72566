//! The producers: they submit over HTTP, each on a connection that it keeps.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde::Deserialize;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::client::Connection;
use super::payloads::Payloads;
use super::receiver::Delivered;
use super::{Plan, threads, usage};

/// What its threads are called.
const THREADS: &str = "bench-load";
/// How long who is ahead of the deliveries waits before it looks again.
const AHEAD_WAIT: Duration = Duration::from_millis(2);

/// How long the first answer may take, and how often it is looked for. Why there is none is told when they
/// are stopped.
const FIRST_ANSWER: Duration = Duration::from_secs(20);
const FIRST_LOOK: Duration = Duration::from_millis(2);

/// What is submitted where.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// The apis, which the connections are spread over.
    pub(super) addresses: Vec<SocketAddr>,
    /// The paths that are posted to, in turn.
    pub(super) paths: Vec<String>,
    pub(super) key: String,
    pub(super) connections: usize,
    pub(super) payloads: Payloads,
    /// Of a hundred submissions, how many repeat the key and content of an earlier one.
    pub(super) repeated_percent: u64,
    pub(super) pace: Pace,
    /// Whether who submitted what when is kept.
    pub(super) kept: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Pace {
    /// The next as soon as one is answered.
    AsAnswered,
    /// The same, while no more than so many are accepted and not yet delivered.
    KeepingUp { delivered: Delivered, ahead_max: u64 },
    /// So many a second, whatever becomes of them while a connection is free.
    PerSecond(f64),
}

/// A submission that was accepted, and when its first byte was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) submission: Uuid,
    pub(super) at: Instant,
}

/// Producers at work, on threads of their own.
#[derive(Debug)]
pub(super) struct Producers {
    shared: Arc<Shared>,
    running: JoinSet<anyhow::Result<Vec<Sent>>>,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    load: Load,
    began: Instant,
    stop: AtomicBool,
    next: AtomicU64,
    accepted: AtomicU64,
    replayed: AtomicU64,
    /// Tells keys of this load from those of others.
    run: Uuid,
}

#[derive(Deserialize)]
struct Answer {
    submission_id: Uuid,
}

impl Load {
    /// Submissions to these paths, each with a key of its own, as fast as they are answered.
    pub(super) fn of(plan: &Plan, paths: Vec<String>, key: &str, addresses: &[SocketAddr]) -> Self {
        Self {
            addresses: addresses.to_vec(),
            paths,
            key: key.to_owned(),
            connections: plan.connections,
            payloads: plan.payloads.clone(),
            repeated_percent: 0,
            pace: Pace::AsAnswered,
            kept: false,
        }
    }
}

impl Producers {
    /// Opens the connections and begins.
    pub(super) fn start(load: Load) -> anyhow::Result<Self> {
        let runtime = threads::runtime(THREADS)?;
        let connections = load.connections;
        let shared = Arc::new(Shared {
            load,
            began: Instant::now(),
            stop: AtomicBool::new(false),
            next: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            replayed: AtomicU64::new(0),
            run: store::new_id::uuid_now(),
        });
        let mut running = JoinSet::new();
        for address in shared.load.addresses.iter().copied().cycle().take(connections) {
            running.spawn_on(Arc::clone(&shared).produce(address), runtime.handle());
        }
        Ok(Self { shared, running, runtime: Some(runtime) })
    }

    /// Lets them go on for so long from the first answer on: connections open, statements are prepared.
    pub(super) async fn warm_up(&self, duration: Duration) {
        let until = Instant::now() + FIRST_ANSWER;
        while self.answered() == 0 && Instant::now() < until {
            tokio::time::sleep(FIRST_LOOK).await;
        }
        tokio::time::sleep(duration).await;
    }

    /// How many were accepted as new.
    pub(super) fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// How many were answered at all, repeated ones included.
    pub(super) fn answered(&self) -> u64 {
        self.accepted() + self.shared.replayed.load(Ordering::Relaxed)
    }

    /// Ends them, and answers what they kept.
    pub(super) async fn stop(mut self) -> anyhow::Result<Vec<Sent>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut sent = Vec::new();
        while let Some(ended) = self.running.join_next().await {
            sent.extend(ended.context("a producer panicked")??);
        }
        Ok(sent)
    }

    /// Processor time of all producers so far; those that have ended do not count any more.
    pub(super) fn used() -> Option<Duration> {
        usage::of_own_threads(THREADS)
    }
}

impl Drop for Producers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    async fn produce(self: Arc<Self>, address: SocketAddr) -> anyhow::Result<Vec<Sent>> {
        let mut connection = Connection::open(address).await?;
        let mut sent = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            self.wait_for_turn(number).await;
            let request = self.request(number)?;
            let at = Instant::now();
            let response = connection.send(request).await?;
            if !matches!(response.status(), StatusCode::ACCEPTED) {
                let (status, body) = (response.status(), response.into_body());
                bail!("a submission was answered {status}: {}", String::from_utf8_lossy(&body));
            }
            if response.headers().contains_key("idempotent-replayed") {
                self.replayed.fetch_add(1, Ordering::Relaxed);
            } else {
                self.accepted.fetch_add(1, Ordering::Relaxed);
            }
            if self.load.kept {
                let answer: Answer = serde_json::from_slice(response.body())?;
                sent.push(Sent { submission: answer.submission_id, at });
            }
        }
        Ok(sent)
    }

    async fn wait_for_turn(&self, number: u64) {
        match &self.load.pace {
            Pace::AsAnswered => {}
            Pace::PerSecond(rate) => {
                let at = Duration::from_secs_f64(super::arithmetic::of_count(number) / rate);
                tokio::time::sleep_until((self.began + at).into()).await;
            }
            Pace::KeepingUp { delivered, ahead_max } => {
                let is_ahead = || {
                    let accepted = self.accepted.load(Ordering::Relaxed);
                    accepted.saturating_sub(delivered.count()) > *ahead_max
                };
                while is_ahead() && !self.stop.load(Ordering::Relaxed) {
                    tokio::time::sleep(AHEAD_WAIT).await;
                }
            }
        }
    }

    fn request(&self, number: u64) -> anyhow::Result<Request<Full<Bytes>>> {
        let original = original(number, self.load.repeated_percent);
        let places = u64::try_from(self.load.paths.len()).unwrap_or(1).max(1);
        let place = usize::try_from(original % places).unwrap_or(0);
        let path = self.load.paths.get(place).context("nowhere to submit to")?;
        let request = Request::post(path)
            .header(HOST, "bench")
            .header(AUTHORIZATION, &self.load.key)
            .header(CONTENT_TYPE, "application/json")
            .header("idempotency-key", format!("{}-{original}", self.run.simple()));
        Ok(request.body(Full::new(self.load.payloads.of(original)))?)
    }
}

/// Which submission this one is: of every hundred, the last so many repeat the first ones, which were
/// answered long before.
fn original(number: u64, repeated_percent: u64) -> u64 {
    let in_hundred = number % 100;
    match (in_hundred + repeated_percent).checked_sub(100) {
        Some(place) => number - in_hundred + place,
        None => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_so_many_repeat_an_earlier_one() {
        let repeats = |percent| (0..1_000).filter(|n| original(*n, percent) != *n).count();
        assert_eq!((repeats(0), repeats(10), repeats(100)), (0, 100, 0));
        assert_eq!((original(290, 10), original(299, 10), original(289, 10)), (200, 209, 289));
    }
}
