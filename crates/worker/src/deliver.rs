//! One delivery: send, decide, report.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::{Failure, Outcome, RetryPolicy, decide};
use domain::endpoint::{DisabledCause, EndpointSettings};
use store::delivery::{ClaimedDelivery, Evidence, Recording, Report};
use store::endpoint::Target;
use store::submission::Payload;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::backoff::Backoff;
use crate::claim::{Claim, Claimed};
use crate::counting;
use crate::database::Database;
use crate::dispatch::AtCap;
use crate::give_back::GiveBack;
use crate::guard::guarded;
use crate::record::Recorder;
use crate::send::{Sender, Tried};

/// How often the disabling of an endpoint is tried. Its next 410 would try again.
const DISABLE_TRIES: u32 = 5;

/// Carries deliveries from their claim to their report. Shared by all tasks.
#[derive(Debug)]
pub(crate) struct Deliverer {
    pub(crate) worker: String,
    pub(crate) sender: Sender,
    pub(crate) database: Database,
    pub(crate) recorder: Recorder,
    pub(crate) give_back: GiveBack,
    pub(crate) at_cap: Arc<AtCap>,
    /// Nothing more is begun.
    pub(crate) stop: CancellationToken,
    /// What is not done now is left to its lease.
    pub(crate) abandon: CancellationToken,
}

/// A claimed delivery with all that its request needs.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) claim: Claim,
    pub(crate) delivery: Claimed,
    pub(crate) contents: Contents,
    /// Its place among the open requests, held until its result is recorded.
    pub(crate) place: OwnedSemaphorePermit,
    /// Its share of the payloads' memory, held until it was sent.
    pub(crate) memory: OwnedSemaphorePermit,
}

/// What is sent where.
#[derive(Debug)]
pub(crate) enum Contents {
    /// It can be sent.
    Ready {
        /// Where it goes.
        target: Arc<Target>,
        /// What goes there.
        payload: Payload,
    },
    /// It cannot.
    Unsendable {
        /// Where it would go, as far as that is known.
        target: Option<Arc<Target>>,
        /// Why.
        detail: String,
    },
}

impl Contents {
    fn target(&self) -> Option<&Arc<Target>> {
        match self {
            Self::Ready { target, .. } => Some(target),
            Self::Unsendable { target, .. } => target.as_ref(),
        }
    }
}

impl Deliverer {
    /// Runs a future until the worker is told to stop.
    pub(crate) async fn until_stop<F: Future>(&self, future: F) -> Option<F::Output> {
        self.stop.run_until_cancelled(future).await
    }

    /// Gives a claim back that was not sent.
    pub(crate) async fn give_back(&self, claim: Claim, delivery: &ClaimedDelivery) {
        self.give_back.add(claim.held(delivery)).await;
    }

    /// Delivers. A panic is logged, and frees the place; the claim ends with its lease.
    pub(crate) async fn run(self: Arc<Self>, job: Job) {
        // Whatever is said on the way says of what: the submission's id is in the api's answer and log.
        let span = tracing::error_span!(
            "delivery",
            submission.id = %job.delivery.submission,
            delivery.id = %job.delivery.delivery,
            endpoint.key = %job.delivery.endpoint,
            claim.token = %job.claim.token(),
        );
        let delivering = async {
            if let Err(panic) = guarded(self.deliver(job)).await {
                tracing::error!(panic, "a delivery panicked; its lease ends its claim");
            }
        };
        delivering.instrument(span).await;
    }

    async fn deliver(&self, job: Job) {
        let Job { claim, delivery, contents, place, memory } = job;
        let target = contents.target().cloned();
        let defaults = EndpointSettings::default();
        let settings = target.as_ref().map_or(&defaults, |target| &target.settings);

        if self.stop.is_cancelled() || !claim.may_start(&delivery, settings.deadline()) {
            self.give_back(claim, &delivery).await;
            return;
        }
        let started_at = claim.now();
        let began = Instant::now();
        let tried = match contents {
            Contents::Ready { target, payload } => {
                let sending = self.sender.send(&target, &payload, started_at);
                let Some(tried) = self.abandon.run_until_cancelled(sending).await else {
                    tracing::warn!(
                        delivery.id = %delivery.delivery,
                        endpoint.id = %target.id,
                        "the stop left an open request to its lease"
                    );
                    return;
                };
                tried
            }
            Contents::Unsendable { detail, .. } => unsendable(target.as_deref(), detail),
        };
        let duration = began.elapsed();
        drop(memory);

        let policy = RetryPolicy::from(settings);
        let decision = decide(delivery.cycle_attempts, &tried.outcome, policy, fastrand::f64());
        let report = Report {
            endpoint: delivery.endpoint,
            delivery: delivery.delivery,
            token: claim.token(),
            // Without a target nothing was sent, which tells nothing of the endpoint.
            version: target.as_ref().map_or(0, |target| target.version),
            worker: self.worker.clone(),
            started_at,
            duration,
            outcome: tried.outcome,
            verdict: decision.verdict,
            evidence: tried.evidence,
        };
        let outcome = report.outcome.clone();
        let recording = self.recorder.record(report).await;
        counting::attempt(&outcome, decision.verdict, recording, duration);
        if let Some(recording) = recording {
            self.at_cap.slot_freed(delivery.endpoint);
            tell(&delivery, recording, duration);
        }
        // Repeated: an earlier try to record it was committed, and its answer was lost.
        let counts = matches!(recording, Some(Recording::Fenced(_) | Recording::Repeated(_)));
        if let (true, Some(cause), Some(target)) = (counts, decision.disable_endpoint, target) {
            self.disable(&target, cause).await;
        }
        drop(place);
    }

    /// Disables an endpoint, unless its configuration changed since it was read.
    async fn disable(&self, target: &Target, cause: DisabledCause) {
        let mut backoff = Backoff::of_a_record();
        for _ in 0..DISABLE_TRIES {
            let disabling =
                self.database.store().disable_endpoint(target.endpoint, target.version, cause);
            match self.database.noted(disabling.await) {
                Ok(disabled) => {
                    let cause = cause.as_str();
                    tracing::info!(endpoint.id = %target.id, cause, disabled, "an endpoint ends");
                    return;
                }
                Err(error) if error.is_transient() => {
                    if self.abandon.run_until_cancelled(backoff.wait()).await.is_none() {
                        break;
                    }
                }
                Err(error) => {
                    let error = error.chain();
                    tracing::error!(endpoint.id = %target.id, error, "it cannot be disabled");
                    return;
                }
            }
        }
        tracing::warn!(endpoint.id = %target.id, "it was not disabled; its next 410 tries again");
    }
}

fn unsendable(target: Option<&Target>, detail: String) -> Tried {
    let url = target.map(|target| target.url.clone()).unwrap_or_default();
    let evidence = Evidence { url, detail: Some(detail), ..Evidence::default() }.bounded();
    Tried { outcome: Outcome::Unanswered(Failure::Unsendable), evidence }
}

/// Says how a result was taken.
fn tell(delivery: &ClaimedDelivery, recording: Recording, duration: Duration) {
    match recording {
        Recording::Fenced(number) | Recording::Repeated(number) => tracing::debug!(
            delivery.id = %delivery.delivery,
            attempt.number = number,
            ?duration,
            "an attempt was recorded"
        ),
        Recording::Late(number) => tracing::info!(
            delivery.id = %delivery.delivery,
            attempt.number = number,
            ?duration,
            "the claim was superseded before its result came"
        ),
        Recording::Gone => tracing::warn!(
            delivery.id = %delivery.delivery,
            endpoint.key = %delivery.endpoint,
            "a result came for a delivery that is not there any more"
        ),
    }
}
