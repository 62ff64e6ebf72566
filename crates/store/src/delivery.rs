//! Deliveries, claims and reports as they cross the border of the store.

use std::time::Duration;

use bytes::Bytes;
use domain::delivery::{
    CancelReason, ClaimKind, FailureReason, Outcome, Recorded, StateName, Verdict,
};
use domain::id::{ApplicationKey, ClaimToken, DeliveryId, EndpointKey, SubmissionId};
use time::OffsetDateTime;

use crate::submission::Payload;
use crate::{CreatedWindow, Page};

/// How many bytes of a response are kept.
pub const RESPONSE_BYTES_KEPT: usize = 16 * 1024;
/// How many characters of a failure's text or of a `Location` are kept.
pub const DETAIL_CHARACTERS_KEPT: usize = 2_048;
/// How long a worker's name may be, in characters.
pub const WORKER_NAME_CHARACTERS_MAX: usize = 64;

/// How many due deliveries of one endpoint a look at the backlog counts at most.
pub const BACKLOG_PER_ENDPOINT_MAX: u32 = 100;

/// Which endpoints to look at for due deliveries.
#[derive(Debug, Clone, Copy)]
pub struct DueQuery {
    /// Start behind this endpoint, to go round all of them in turn.
    pub after: Option<EndpointKey>,
    /// At most this many endpoints.
    pub limit: u32,
    /// Ignore the low marks, to find what committed late.
    pub sweep: bool,
}

/// A claim of due deliveries.
#[derive(Debug, Clone)]
pub struct ClaimRequest<'a> {
    /// Of these endpoints.
    pub endpoints: &'a [EndpointKey],
    /// At most this many of each.
    pub per_endpoint: u32,
    /// At most this many in all.
    pub total: u32,
    /// Who claims, for people who read logs. At most [`WORKER_NAME_CHARACTERS_MAX`] characters.
    pub worker: &'a str,
    /// The token of this claim, never used before.
    pub token: ClaimToken,
    /// Ignore the low marks, to find what committed late.
    pub sweep: bool,
}

/// What a claim took.
#[derive(Debug, Clone)]
pub struct ClaimBatch {
    /// Deliveries that the claimer now owns and has to send, fresh and reclaimed.
    pub claimed: Vec<ClaimedDelivery>,
    /// Deliveries that lapsed again: parked or abandoned, not to be sent.
    pub set_aside: Vec<LapsedDelivery>,
    /// How each endpoint of the request stands now, in no particular order.
    pub endpoints: Vec<(EndpointKey, Standing)>,
    /// The database's clock when the claim was made.
    pub database_now: OffsetDateTime,
}

/// How an endpoint stands after a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// As much was taken as was asked for: there may be more.
    More,
    /// Nothing more is due.
    Empty,
    /// All its in-flight slots are taken.
    AtCap,
    /// All that its rate allows in this window was claimed. It is due again when the next one begins.
    Limited,
    /// It is paused, disabled, deleted or unknown.
    Closed,
}

/// The longest payload that comes with its claim, in bytes. A claim of a hundred brings less than 1 MiB.
pub const CLAIMED_PAYLOAD_MAX: u32 = 8 * 1024;

/// A delivery that the claimer owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// Which endpoint.
    pub endpoint: EndpointKey,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// Of which submission.
    pub submission: SubmissionId,
    /// [`ClaimKind::Fresh`] or [`ClaimKind::Reclaimed`].
    pub kind: ClaimKind,
    /// Whose claim lapsed, if it was reclaimed.
    pub lapsed_worker: Option<String>,
    /// Attempts for life so far.
    pub attempts: u32,
    /// Attempts of this cycle so far.
    pub cycle_attempts: u32,
    /// Lapses in a row so far.
    pub lapses: u32,
    /// How long the claim holds, from when the claim was sent.
    pub lease: Duration,
    /// Length of its payload, in bytes.
    pub payload_bytes: u32,
    /// Its payload, if that is short and could be read.
    pub payload: Option<Payload>,
}

/// A delivery whose claim lapsed again and which the claimer does not own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LapsedDelivery {
    /// Which endpoint.
    pub endpoint: EndpointKey,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// [`ClaimKind::Parked`] or [`ClaimKind::Abandoned`].
    pub kind: ClaimKind,
    /// Whose claim lapsed.
    pub lapsed_worker: Option<String>,
    /// Lapses in a row so far.
    pub lapses: u32,
}

/// Evidence of an attempt, for people. It never takes part in a decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// The URL that the attempt used.
    pub url: String,
    /// The start of the response body.
    pub response: Bytes,
    /// Whether there was more of it.
    pub response_truncated: bool,
    /// `Location` of a redirect, which is never followed.
    pub location: Option<String>,
    /// What went wrong, in words.
    pub detail: Option<String>,
}

impl Evidence {
    /// Evidence within its bounds, whatever the receiver sent: a response can never make recording
    /// fail. PostgreSQL's text holds every character but NUL, which is left out.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if self.response.len() > RESPONSE_BYTES_KEPT {
            self.response.truncate(RESPONSE_BYTES_KEPT);
            self.response_truncated = true;
        }
        self.url = bounded_text(&self.url);
        self.location = self.location.as_deref().map(bounded_text);
        self.detail = self.detail.as_deref().map(bounded_text);
        self
    }
}

fn bounded_text(text: &str) -> String {
    text.chars().filter(|c| *c != '\0').take(DETAIL_CHARACTERS_KEPT).collect()
}

/// The result of one try, under the token of its claim.
#[derive(Debug, Clone)]
pub struct Report {
    /// Which endpoint.
    pub endpoint: EndpointKey,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The claim that the request was sent under.
    pub token: ClaimToken,
    /// The version of the endpoint's configuration that the request was made by.
    pub version: i64,
    /// Who sent it.
    pub worker: String,
    /// When the try began: the database's clock at the claim plus what the worker measured since.
    pub started_at: OffsetDateTime,
    /// How long the try took.
    pub duration: Duration,
    /// What it yielded.
    pub outcome: Outcome,
    /// What that means.
    pub verdict: Verdict,
    /// What people may want to see of it.
    pub evidence: Evidence,
}

/// How a report was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recording {
    /// The delivery carried the token: the verdict took effect. The number of the attempt.
    Fenced(u32),
    /// The claim was superseded: the attempt is history, and nothing else changed. Its number.
    Late(u32),
    /// This claim had reported before: nothing was written. The number that it has.
    Repeated(u32),
    /// There is no such delivery: its day was dropped.
    Gone,
}

impl From<Recorded> for Recording {
    fn from(recorded: Recorded) -> Self {
        match recorded {
            Recorded::Fenced(number) => Self::Fenced(number),
            Recorded::Late(number) => Self::Late(number),
            Recorded::Repeated(number) => Self::Repeated(number),
        }
    }
}

/// A claim that is given back unsent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeldClaim {
    /// Which endpoint.
    pub endpoint: EndpointKey,
    /// Which delivery.
    pub delivery: DeliveryId,
    /// The claim.
    pub token: ClaimToken,
}

/// What became of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Replay {
    /// It is pending again, with a fresh cycle.
    Replayed,
    /// It is not failed, but this.
    NotReplayable(StateName),
    /// Its endpoint is disabled or deleted.
    EndpointDisabled,
    /// The time in which it could be replayed is over.
    Expired,
    /// Its payload was erased: there is nothing to send.
    PayloadErased,
    /// Its payload is no longer kept: there is nothing to send.
    PayloadExpired,
    /// There is no such delivery.
    Missing,
}

/// What became of an operator's cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cancellation {
    /// It is cancelled.
    Cancelled,
    /// A worker has it: its report still counts, and it is not tried again.
    Requested,
    /// It is settled, as this.
    NotCancellable(StateName),
    /// There is no such delivery.
    Missing,
}

/// A delivery as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    /// Its id.
    pub id: DeliveryId,
    /// The endpoint's internal identity.
    pub endpoint: EndpointKey,
    /// The endpoint's name in URLs.
    pub endpoint_id: String,
    /// Its submission.
    pub submission: SubmissionId,
    /// Where it stands.
    pub state: StateName,
    /// Why it failed or expired.
    pub failure: Option<FailureReason>,
    /// Why it was cancelled.
    pub cancellation: Option<CancelReason>,
    /// Attempts for life.
    pub attempts: u32,
    /// Attempts of this cycle.
    pub cycle_attempts: u32,
    /// Lapses in a row.
    pub lapses: u32,
    /// The next attempt, if it is pending.
    pub due_at: Option<OffsetDateTime>,
    /// The lease's end, if it is processing.
    pub claim_expires_at: Option<OffsetDateTime>,
    /// Who claimed it last.
    pub claimed_by: Option<String>,
    /// Whether it was called off while a worker had it. Its report still counts.
    pub cancel_requested: bool,
    /// Until when it can be replayed, if it is failed.
    pub replayable_until: Option<OffsetDateTime>,
    /// When it was settled.
    pub settled_at: Option<OffsetDateTime>,
}

/// One recorded attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptView {
    /// Its number, from 1, for life.
    pub number: u32,
    /// Whether its claim was superseded by then.
    pub late: bool,
    /// Who sent it.
    pub worker: String,
    /// When it began.
    pub started_at: OffsetDateTime,
    /// When its result was recorded.
    pub recorded_at: OffsetDateTime,
    /// How long it took, in milliseconds.
    pub duration_millis: u32,
    /// `answered`, or the name of a failure.
    pub outcome: &'static str,
    /// The response's status.
    pub status: Option<u16>,
    /// What was seen of it.
    pub evidence: Evidence,
}

/// A delivery with its attempts in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryDetail {
    /// The delivery.
    pub delivery: DeliveryView,
    /// Its attempts, by number.
    pub attempts: Vec<AttemptView>,
}

/// Which deliveries to list, newest first.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryFilter {
    /// Of which application.
    pub application: ApplicationKey,
    /// Of one endpoint only.
    pub endpoint: Option<EndpointKey>,
    /// In one state only.
    pub state: Option<StateName>,
    /// Created in this time only.
    pub created: CreatedWindow,
    /// Which part of the list.
    pub page: Page,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_cut_to_its_bounds_and_keeps_no_nul() {
        let evidence = Evidence {
            url: "http://a/\0b".to_owned(),
            response: Bytes::from(vec![0xff; RESPONSE_BYTES_KEPT + 1]),
            detail: Some("ü".repeat(DETAIL_CHARACTERS_KEPT + 1)),
            ..Evidence::default()
        }
        .bounded();
        assert_eq!(evidence.url, "http://a/b");
        assert_eq!(evidence.response.len(), RESPONSE_BYTES_KEPT);
        assert!(evidence.response_truncated);
        assert_eq!(evidence.detail.unwrap().chars().count(), DETAIL_CHARACTERS_KEPT);
    }
}
