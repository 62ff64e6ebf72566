//! What each event does to each state.
//!
//! An event that does not apply answers [`NotApplicable`] and the delivery stays as it was: losing a
//! race is an answer, not an error. Instants are the database's, passed in.

use std::time::Duration;

use time::OffsetDateTime;

use super::lease::{LAPSE_WINDOW, LAPSES_MAX};
use super::retry::RetrySchedule;
use super::{CancelReason, Delivery, DeliveryState, FailureReason, Lapses, StateName, Verdict};
use crate::id::ClaimToken;

/// What a claim did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimKind {
    /// A pending delivery was taken; it takes a slot. To be sent.
    Fresh,
    /// The first lapse in a row was taken over at once; its slot goes along. To be sent.
    Reclaimed,
    /// A further lapse: pending again after a delay, slot freed, token kept. Not to be sent.
    Parked,
    /// Ten lapses over 24 hours: failed, slot freed, token kept. Not to be sent.
    Abandoned,
}

impl ClaimKind {
    /// Whether the claimer owns the delivery and has to send it.
    #[must_use]
    pub fn is_owned(self) -> bool {
        matches!(self, Self::Fresh | Self::Reclaimed)
    }
}

/// How a report was taken. The number is that of its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recorded {
    /// The delivery still carried the token: the verdict took effect.
    Fenced(u32),
    /// Somebody else owns it, or nobody: the attempt is history and nothing else changed.
    Late(u32),
    /// This claim had reported before: nothing was written.
    Repeated(u32),
}

/// The event does not apply in this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("does not apply to a delivery that is {}", .0.as_str())]
pub struct NotApplicable(pub StateName);

impl Delivery {
    /// A delivery as it is accepted: due at once.
    #[must_use]
    pub fn accepted(now: OffsetDateTime) -> Self {
        let state = DeliveryState::Pending { due_at: now, lapses: None, claim: None };
        Self { attempts: 0, cycle_attempts: 0, state }
    }

    /// A worker claims it under `token` for `lease`.
    ///
    /// A pending delivery must be due, a processing one must have outlived its lease, and none may
    /// wait for its cancellation. `retention` is how long a failed delivery stays replayable.
    pub fn claim(
        &mut self,
        token: ClaimToken,
        lease: Duration,
        schedule: &RetrySchedule,
        retention: Duration,
        now: OffsetDateTime,
    ) -> Result<ClaimKind, NotApplicable> {
        let refused = Err(NotApplicable(self.state.name()));
        let owned = |lapses| DeliveryState::Processing {
            claim: token,
            claim_expires_at: now + lease,
            lapses,
            cancel_requested: false,
        };
        let (kind, next) = match self.state {
            DeliveryState::Pending { due_at, lapses, .. } if due_at <= now => {
                (ClaimKind::Fresh, owned(lapses))
            }
            DeliveryState::Processing {
                claim,
                claim_expires_at,
                lapses,
                cancel_requested: false,
            } if claim_expires_at <= now => {
                let before = lapses.map_or(0, |l| l.count);
                let lapses = Lapses {
                    count: before.saturating_add(1),
                    since: lapses.map_or(claim_expires_at, |l| l.since),
                };
                if before == 0 {
                    (ClaimKind::Reclaimed, owned(Some(lapses)))
                } else if lapses.count >= LAPSES_MAX && lapses.since + LAPSE_WINDOW <= now {
                    let reason = FailureReason::Abandoned;
                    let expires_at = now + retention;
                    let next = DeliveryState::Failed { reason, expires_at, claim: Some(claim) };
                    (ClaimKind::Abandoned, next)
                } else {
                    let due_at = now + schedule.lapse_delay(before, self.cycle_attempts);
                    let (claim, lapses) = (Some(claim), Some(lapses));
                    (ClaimKind::Parked, DeliveryState::Pending { due_at, lapses, claim })
                }
            }
            _ => return refused,
        };
        self.state = next;
        Ok(kind)
    }

    /// A worker reports the verdict on the request that it sent under `token`.
    ///
    /// `reported` is the number of the attempt that this claim already has, if any. A verdict takes
    /// effect only while the delivery carries the token. An endpoint that is deleted by now, or a
    /// cancellation that was asked for meanwhile, turns retry and failure into cancelled.
    pub fn report(
        &mut self,
        token: ClaimToken,
        verdict: Verdict,
        reported: Option<u32>,
        endpoint_deleted: bool,
        retention: Duration,
        now: OffsetDateTime,
    ) -> Recorded {
        if let Some(number) = reported {
            return Recorded::Repeated(number);
        }
        let fenced = self.state.claim() == Some(token);
        self.attempts = self.attempts.saturating_add(1);
        if !fenced {
            return Recorded::Late(self.attempts);
        }
        self.cycle_attempts = self.cycle_attempts.saturating_add(1);
        let called_off = if endpoint_deleted {
            Some(CancelReason::EndpointDeleted)
        } else {
            matches!(self.state, DeliveryState::Processing { cancel_requested: true, .. })
                .then_some(CancelReason::Operator)
        };
        self.state = match (verdict, called_off) {
            (Verdict::Delivered, _) => DeliveryState::Delivered,
            (_, Some(reason)) => DeliveryState::Cancelled { reason },
            (Verdict::Retry { after }, None) => {
                DeliveryState::Pending { due_at: now + after, lapses: None, claim: None }
            }
            (Verdict::Failed { reason }, None) => {
                DeliveryState::Failed { reason, expires_at: now + retention, claim: None }
            }
        };
        Recorded::Fenced(self.attempts)
    }

    /// A worker gives back a claim that it has not sent: no lapse, no attempt, the old due time.
    ///
    /// `due_at` is when it was due before the claim. A cancellation asked for meanwhile takes effect.
    pub fn give_back(
        &mut self,
        token: ClaimToken,
        due_at: OffsetDateTime,
    ) -> Result<(), NotApplicable> {
        self.state = match self.state {
            DeliveryState::Processing { claim, cancel_requested: true, .. } if claim == token => {
                DeliveryState::Cancelled { reason: CancelReason::Operator }
            }
            DeliveryState::Processing { claim, lapses, .. } if claim == token => {
                DeliveryState::Pending { due_at, lapses, claim: None }
            }
            // Parked: it is due when the park said, which `due_at` may not undo.
            DeliveryState::Pending { claim, lapses, due_at } if claim == Some(token) => {
                DeliveryState::Pending { due_at, lapses, claim: None }
            }
            _ => return Err(NotApplicable(self.state.name())),
        };
        Ok(())
    }

    /// An operator replays it before it expires: a fresh cycle, due at once; its attempts stay and
    /// go on.
    pub fn replay(&mut self, now: OffsetDateTime) -> Result<(), NotApplicable> {
        match self.state {
            DeliveryState::Failed { expires_at, .. } if expires_at > now => {
                self.cycle_attempts = 0;
                self.state = DeliveryState::Pending { due_at: now, lapses: None, claim: None };
                Ok(())
            }
            _ => Err(NotApplicable(self.state.name())),
        }
    }

    /// An operator cancels it. A claimed delivery is only marked: its report still counts.
    pub fn cancel(&mut self, why: CancelReason) -> Result<(), NotApplicable> {
        match &mut self.state {
            DeliveryState::Pending { .. } | DeliveryState::Failed { .. } => {
                self.state = DeliveryState::Cancelled { reason: why };
            }
            DeliveryState::Processing { cancel_requested, .. } => *cancel_requested = true,
            settled => return Err(NotApplicable(settled.name())),
        }
        Ok(())
    }

    /// The time in which it could be replayed is over.
    pub fn expire(&mut self, now: OffsetDateTime) -> Result<(), NotApplicable> {
        match self.state {
            DeliveryState::Failed { reason, expires_at, .. } if expires_at <= now => {
                self.state = DeliveryState::Expired { reason };
                Ok(())
            }
            _ => Err(NotApplicable(self.state.name())),
        }
    }

    /// Maintenance settles it: its endpoint is gone, or a cancellation was asked for while it was
    /// claimed. A claimed delivery is left to its holder until the lease is over.
    pub fn call_off(
        &mut self,
        why: CancelReason,
        now: OffsetDateTime,
    ) -> Result<(), NotApplicable> {
        match self.state {
            DeliveryState::Pending { .. } | DeliveryState::Failed { .. } => {}
            DeliveryState::Processing { claim_expires_at, .. } if claim_expires_at <= now => {}
            _ => return Err(NotApplicable(self.state.name())),
        }
        self.state = DeliveryState::Cancelled { reason: why };
        Ok(())
    }

    /// Its endpoint is closed, and it has been due for the whole retention time, or its lease has been
    /// over for that long, since nobody claims there: it fails, and can be replayed for that time
    /// again. Who still holds a claim on it can still report.
    pub fn give_up_held(
        &mut self,
        retention: Duration,
        now: OffsetDateTime,
    ) -> Result<(), NotApplicable> {
        let claim = match self.state {
            DeliveryState::Pending { due_at, claim, .. } if due_at + retention <= now => claim,
            DeliveryState::Processing {
                claim, claim_expires_at, cancel_requested: false, ..
            } if claim_expires_at + retention <= now => Some(claim),
            _ => return Err(NotApplicable(self.state.name())),
        };
        let (reason, expires_at) = (FailureReason::HeldTooLong, now + retention);
        self.state = DeliveryState::Failed { reason, expires_at, claim };
        Ok(())
    }
}
