//! The dispatcher: which endpoints are due, whose turn it is, and what of it is claimed.
//!
//! It claims only what can be sent at once: as many deliveries as there are free places. Between two
//! claims of an endpoint, every other due endpoint has had its turn. It decides nothing about a
//! delivery, and holds nothing while a request is open.

mod at_cap;
mod lapses;
mod ring;
mod round;
mod stuck;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use domain::delivery::retry::jittered;
use domain::id::EndpointKey;
use process::metrics;
use store::StoreError;
use store::delivery::{ClaimBatch, ClaimRequest, Standing};
use store::wake_up::{Due, DueWatch};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::at_cap::Holding;
pub(crate) use self::at_cap::{AtCap, Share};
use self::ring::{ENDPOINTS_MAX, Ring};
use self::round::Round;
use self::stuck::Stuck;
use crate::Settings;
use crate::backoff::Backoff;
use crate::claim::{Claim, Claimed};
use crate::database::Database;
use crate::load::Loader;

/// How many claims are loaded at once: one while the next is made.
const LOADS_MAX: usize = 2;

/// How long a claim waits for more than one free place while the worker is busy: a claim of one
/// costs the database nearly as much as a claim of many.
const FULLER: Duration = Duration::from_millis(2);

/// Finds and claims until it is told to stop.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    settings: Arc<Settings>,
    database: Database,
    loader: Arc<Loader>,
    stop: CancellationToken,
    at_cap: Arc<AtCap>,
    places: Arc<Semaphore>,
    loads: Arc<Semaphore>,
    ring: Ring,
    round: Round,
    stuck: Stuck,
    /// Raised when somebody told that something is due.
    due: DueWatch,
    /// Found by a sweep and not emptied since: their claims ignore the low marks. True of those of
    /// which such a claim was made.
    swept: HashMap<EndpointKey, bool>,
    /// May not be claimed from, as the last claim said: a wake-up that names them is not heeded until a look
    /// finds them.
    closed: HashSet<EndpointKey>,
    /// When the claims of the last sweep are over, so that a backlog without end does not make every
    /// claim the expensive kind.
    swept_until: Instant,
}

impl Dispatcher {
    pub(crate) fn new(
        settings: Arc<Settings>,
        database: Database,
        loader: Arc<Loader>,
        at_cap: Arc<AtCap>,
        stop: CancellationToken,
    ) -> Self {
        let now = Instant::now();
        Self {
            places: Arc::new(Semaphore::new(usize::from(settings.concurrency))),
            loads: Arc::new(Semaphore::new(LOADS_MAX)),
            settings,
            due: database.store().due_signal().watch(),
            database,
            loader,
            stop,
            at_cap,
            ring: Ring::default(),
            stuck: Stuck::default(),
            round: Round::starting(now),
            swept: HashMap::new(),
            closed: HashSet::new(),
            swept_until: now,
        }
    }

    /// Claims until it is told to stop. What was claimed by then is with the loader. Tells `started`
    /// when the database has answered that it can be used, or cannot be reached for now.
    ///
    /// # Errors
    /// The database's schema is not one that this build can use. A database that is away, or that
    /// refuses a statement, is tried again.
    pub(crate) async fn run(mut self, started: oneshot::Sender<()>) -> Result<(), StoreError> {
        let stop = self.stop.clone();
        let mut started = Some(started);
        let mut backoff = Backoff::of_a_loop();
        let mut checked = false;
        while !stop.is_cancelled() {
            let done = if checked { self.step().await } else { self.check().await };
            if let Err(StoreError::SchemaOutdated { .. } | StoreError::SchemaTooNew { .. }) = done {
                return done;
            }
            if !stop.is_cancelled()
                && let Some(started) = started.take()
            {
                // Nobody has to listen.
                let _ = started.send(());
            }
            match done {
                Ok(()) => {
                    checked = true;
                    backoff.reset();
                }
                Err(error) => {
                    if !error.is_transient() {
                        tracing::error!(error = error.chain(), "nothing can be claimed");
                    }
                    stop.run_until_cancelled(backoff.wait()).await;
                }
            }
        }
        Ok(())
    }

    async fn check(&self) -> Result<(), StoreError> {
        match self.stop.run_until_cancelled(self.database.store().check()).await {
            Some(checked) => {
                let checked = self.database.noted(checked);
                if checked.is_ok() {
                    self.database.health().checked();
                }
                checked
            }
            None => Ok(()),
        }
    }

    async fn step(&mut self) -> Result<(), StoreError> {
        for endpoint in self.at_cap.take_freed() {
            self.ring.add(endpoint);
        }
        self.look().await?;
        if self.ring.is_empty() {
            self.idle().await;
            return Ok(());
        }
        let stop = self.stop.clone();
        match stop.run_until_cancelled(self.free_places()).await {
            Some(Some((load, places))) => self.claim(load, places).await,
            // Stopping.
            Some(None) | None => Ok(()),
        }
    }

    /// Looks for due endpoints, if it is time.
    async fn look(&mut self) -> Result<(), StoreError> {
        if let Some(due) = self.due.take() {
            self.heard(due);
        }
        let Some(query) = self.round.due(Instant::now(), self.ring.room()) else {
            return Ok(());
        };
        let looking = self.database.store().find_due_endpoints(query);
        let Some(found) = self.stop.run_until_cancelled(looking).await else {
            return Ok(());
        };
        let found = self.database.noted(found)?;
        if !found.is_empty() {
            self.database.health().found_due();
        } else if query.after.is_none() {
            self.database.health().progressed();
        }
        let now = Instant::now();
        let poll = jittered(self.settings.poll_interval, fastrand::f64());
        self.round.found(&found, now, poll, self.settings.sweep_interval);
        if query.sweep {
            self.swept_until = now + self.settings.sweep_interval / 3;
            self.swept.extend(found.iter().map(|endpoint| (*endpoint, false)));
        }
        for endpoint in found {
            self.closed.remove(&endpoint);
            if !self.stuck.is_stuck(endpoint, now) {
                self.ring.add(endpoint);
            }
        }
        Ok(())
    }

    /// Gives those their turn that a wake-up named, and looks for others where it did not name all.
    fn heard(&mut self, due: Due) {
        let now = Instant::now();
        if due.others || due.endpoints.len() > self.ring.room() {
            self.round.wake();
        }
        for endpoint in due.endpoints {
            let is_open = !self.closed.contains(&endpoint)
                && !self.at_cap.is_waiting(endpoint)
                && !self.stuck.is_stuck(endpoint, now);
            if is_open {
                self.ring.add(endpoint);
            }
        }
    }

    /// Waits for the next look, a wake-up, a freed slot, or the stop.
    async fn idle(&self) {
        tokio::select! {
            () = tokio::time::sleep_until(self.round.next_at()) => {}
            () = self.due.raised() => {}
            () = self.at_cap.changed() => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Waits until something can be loaded and sent. `None` if the semaphores are closed, which they
    /// never are.
    async fn free_places(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let load = Arc::clone(&self.loads).acquire_owned().await.ok()?;
        let mut places = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let fuller = self.settings.claim_total.min(self.settings.concurrency) / 4;
        if fuller > 1 {
            let more = Arc::clone(&self.places).acquire_many_owned(u32::from(fuller - 1));
            if let Ok(Ok(more)) = timeout(FULLER, more).await {
                places.merge(more);
            }
        }
        // At most half of what is free: the rest is for those whose turn comes next.
        let free = places.num_permits() + self.places.available_permits();
        let wanted = free.div_ceil(2).min(usize::from(self.settings.claim_total));
        let taken = places.num_permits();
        if taken > wanted {
            drop(places.split(taken - wanted));
        } else {
            let more = u32::try_from(wanted - taken).unwrap_or_default();
            if let Ok(more) = Arc::clone(&self.places).try_acquire_many_owned(more) {
                places.merge(more);
            }
        }
        Some((load, places))
    }

    async fn claim(
        &mut self,
        load: OwnedSemaphorePermit,
        mut places: OwnedSemaphorePermit,
    ) -> Result<(), StoreError> {
        let free = u16::try_from(places.num_permits()).unwrap_or(u16::MAX);
        let endpoints_max = self.stuck.endpoints_per_claim();
        let mut turn = self.ring.take_turn(free, self.settings.claim_per_endpoint, endpoints_max);
        let unclaimed = Holding {
            places: places.num_permits() + self.places.available_permits(),
            bytes: self.loader.free_memory(),
        };
        turn.endpoints.retain(|endpoint| !self.at_cap.has_its_share(*endpoint, unclaimed));
        if turn.endpoints.is_empty() {
            return Ok(());
        }
        if Instant::now() >= self.swept_until {
            self.swept.retain(|_, made| !*made);
        }
        let token = store::new_id::claim_token();
        let request = ClaimRequest {
            endpoints: &turn.endpoints,
            per_endpoint: u32::from(turn.per_endpoint),
            total: u32::from(free),
            worker: &self.settings.name,
            token,
            sweep: turn.endpoints.iter().any(|endpoint| self.swept.contains_key(endpoint)),
        };
        self.at_cap.claim_begins();
        let sent = Instant::now();
        // Never cut off: what it takes has to be known, to be sent or given back.
        let batch = self.database.noted(self.database.store().claim_due(&request).await);
        let batch = match batch {
            Ok(batch) => batch,
            Err(error @ StoreError::Unavailable { .. }) => {
                self.ring.put_back(&turn.endpoints);
                return Err(error);
            }
            Err(error) => {
                self.set_stuck_aside(&turn.endpoints, &error);
                return Ok(());
            }
        };
        self.stuck.went_well();
        self.note(&batch, sent.elapsed());
        for endpoint in &turn.endpoints {
            if let Some(made) = self.swept.get_mut(endpoint) {
                *made |= request.sweep;
            }
        }
        for (endpoint, standing) in &batch.endpoints {
            self.place(*endpoint, *standing);
        }
        if !batch.claimed.is_empty() {
            // The places that nothing was claimed for are free at once.
            drop(places.split(places.num_permits().saturating_sub(batch.claimed.len())));
            let claim = Claim::new(token, sent, batch.database_now);
            let claimed = batch.claimed.into_iter().map(|row| {
                let share = self.at_cap.take_place(row.endpoint, row.payload_bytes);
                Claimed { row, share }
            });
            self.loader.start(claim, claimed.collect(), places, load);
        }
        Ok(())
    }

    /// Counts what a claim took. One that took nothing from endpoints that may give more is no progress.
    fn note(&self, batch: &ClaimBatch, took: Duration) {
        metrics::CLAIM_SECONDS.took(took);
        metrics::CLAIM_BATCH.sized(batch.claimed.len());
        let is_closed = |standing: &Standing| !matches!(standing, Standing::More | Standing::Empty);
        if !batch.claimed.is_empty()
            || !batch.set_aside.is_empty()
            || batch.endpoints.iter().all(|(_, standing)| is_closed(standing))
        {
            self.database.health().progressed();
        }
        lapses::tell_of(batch);
    }

    /// One of them holds up the claim: its row is locked for long, or the database refuses what the
    /// claim would do to it. The others go on without it.
    fn set_stuck_aside(&mut self, endpoints: &[EndpointKey], error: &StoreError) {
        let error = error.chain();
        if let Some(endpoint) = self.stuck.after(endpoints, Instant::now()) {
            tracing::warn!(endpoint.key = %endpoint, error, "an endpoint cannot be claimed from for now");
        } else {
            self.ring.put_back(endpoints);
        }
    }

    /// One that finds no room here costs a claim for each wake-up that names it.
    fn close(&mut self, endpoint: EndpointKey) {
        if self.closed.len() < ENDPOINTS_MAX {
            self.closed.insert(endpoint);
        }
    }

    /// Puts an endpoint where its standing belongs.
    fn place(&mut self, endpoint: EndpointKey, standing: Standing) {
        match standing {
            // With no room for those that were not found yet, it waits to be found again as well.
            Standing::More if self.round.is_held_up(Instant::now(), self.ring.room()) => {}
            Standing::More => self.ring.add(endpoint),
            Standing::AtCap => {
                if self.at_cap.is_stale(endpoint) {
                    self.ring.add(endpoint);
                }
            }
            // Until its next window begins, no look finds it.
            Standing::Limited => self.close(endpoint),
            Standing::Empty => {
                self.swept.remove(&endpoint);
            }
            Standing::Closed => {
                self.swept.remove(&endpoint);
                self.close(endpoint);
            }
        }
    }
}
