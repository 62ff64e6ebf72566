//! Two deliveries, the workers that hold claims on them, and what each step makes of both.
//!
//! Every step of a delivery is the domain's own transition. What stands beside it in [`Tracked`] is
//! kept without the domain, from the steps alone, and is what the domain is held against.
//!
//! Time is what a timer does to a row: now never moves, and a lease, a due time or a retention time
//! that is over is set to now. Each timer runs out on its own, so every order of them is covered.

use std::time::Duration;

use domain::delivery::retry::RetrySchedule;
use domain::delivery::{
    ClaimKind, Delivery, DeliveryState, Lapses, NotApplicable, Outcome, Recorded, RetryPolicy,
    Verdict, decide,
};
use domain::id::ClaimToken;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

pub(crate) const WORKERS: usize = 3;
pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const RETENTION: Duration = Duration::from_hours(720);
pub(crate) const NOW: OffsetDateTime = datetime!(2023-11-14 22:13:20 UTC);

/// The state of the whole system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) deliveries: Vec<Tracked>,
    /// Claims that a living worker has in hand, one a worker. Which worker has which makes no
    /// difference to anybody, so they stand in order and not by worker.
    pub(crate) hands: Vec<Hand>,
    /// What the endpoint's schedule row counts.
    pub(crate) in_flight: i8,
    /// What may still happen that does not happen by itself.
    pub(crate) bounds: Bounds,
    /// The promise that a step broke, if one did.
    pub(crate) broken: Option<&'static str>,
}

/// How often what may happen, or may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// A crash, a stall beyond the lease, a report whose answer is lost, a claim given back.
    pub(crate) faults: u8,
    pub(crate) replays: u8,
    pub(crate) cancels: u8,
}

/// A delivery, and what is known of it from the steps alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Tracked {
    pub(crate) delivery: Delivery,
    /// How many attempts stand in its history.
    pub(crate) attempts: u32,
    /// The claim whose lease runs.
    pub(crate) leased: Option<u8>,
    /// The claim whose result counts: the last one, until it reports, is given back or is overruled
    /// by an operator.
    pub(crate) owner: Option<u8>,
    /// Results that counted since it last entered the queue.
    pub(crate) cycle: u8,
}

/// A claim that a worker has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hand {
    pub(crate) delivery: usize,
    pub(crate) claim: u8,
    /// Attempts of the cycle, as the claim told the worker.
    cycle_attempts: u32,
    /// The number of the claim's attempt, if its report was recorded and the answer lost.
    recorded: Option<u32>,
}

/// What decides whether a result counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fence {
    /// The token of the claim: as it is.
    Token,
    /// That the delivery is being processed, by whomever.
    State,
    /// That the lease on the delivery runs, whoever has it.
    Lease,
}

impl Fence {
    /// The token that a report passes to the domain: under a wrong guard that of the row itself, so
    /// that comparing the two lets the report through.
    fn passes(self, hand: Hand, state: &DeliveryState) -> ClaimToken {
        match (self, state) {
            (Self::State, DeliveryState::Processing { claim, .. }) => *claim,
            (Self::Lease, DeliveryState::Processing { claim, claim_expires_at, .. })
                if *claim_expires_at > NOW =>
            {
                *claim
            }
            _ => token(hand.claim),
        }
    }
}

fn token(number: u8) -> ClaimToken {
    ClaimToken::from_uuid(Uuid::from_u128(number.into()))
}

/// Two attempts a cycle.
fn schedule() -> RetrySchedule {
    match RetrySchedule::new(vec![Duration::from_hours(1)]) {
        Ok(schedule) => schedule,
        Err(error) => unreachable!("{error}"),
    }
}

impl Tracked {
    pub(crate) fn accepted() -> Self {
        let delivery = Delivery::accepted(NOW);
        Self { delivery, attempts: 0, leased: None, owner: None, cycle: 0 }
    }

    /// Parked after eight lapses over a day; the last holder may still report.
    pub(crate) fn lapsed_eight_times() -> Self {
        let lapses = Some(Lapses { count: 8, since: NOW - Duration::from_hours(25) });
        let state = DeliveryState::Pending { due_at: NOW, lapses, claim: Some(token(1)) };
        let delivery = Delivery { state, ..Delivery::accepted(NOW) };
        Self { delivery, owner: Some(1), ..Self::accepted() }
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.delivery.state.name().is_settled()
    }

    pub(crate) fn carries_the_token_of_its_owner(&self) -> bool {
        self.delivery.state.claim() == self.owner.map(token)
    }

    /// Nobody's result counts any more.
    fn disown(&mut self) {
        (self.leased, self.owner) = (None, None);
    }
}

impl World {
    pub(crate) fn new(deliveries: Vec<Tracked>, bounds: Bounds) -> Self {
        let mut world = Self { deliveries, hands: Vec::new(), in_flight: 0, bounds, broken: None };
        for index in 0..world.deliveries.len() {
            if let Some(claim) = world.deliveries[index].owner {
                world.hold(index, claim);
            }
        }
        world
    }

    pub(crate) fn claim(&mut self, index: usize) -> Result<ClaimKind, NotApplicable> {
        let next = self.unused_token(index);
        let tracked = &mut self.deliveries[index];
        let kind = tracked.delivery.claim(token(next), LEASE, &schedule(), RETENTION, NOW)?;
        self.in_flight += match kind {
            ClaimKind::Fresh => 1,
            ClaimKind::Reclaimed => 0,
            ClaimKind::Parked | ClaimKind::Abandoned => -1,
        };
        if tracked.leased.is_some() {
            self.broken = Some("G1: a delivery was claimed while another's lease on it ran");
        }
        if kind.is_owned() {
            (tracked.leased, tracked.owner) = (Some(next), Some(next));
            self.hold(index, next);
        }
        Ok(kind)
    }

    /// A token that no worker has in hand and the row does not carry: nobody can show one that was
    /// used before, so using it again is the same as using a new one, and keeps the states few.
    fn unused_token(&self, index: usize) -> u8 {
        let tracked = &self.deliveries[index];
        let is_used = |number: u8| {
            let in_hand = |hand: &Hand| (hand.delivery, hand.claim) == (index, number);
            tracked.delivery.state.claim() == Some(token(number)) || self.hands.iter().any(in_hand)
        };
        (1..=u8::MAX).find(|number| !is_used(*number)).unwrap_or(u8::MAX)
    }

    fn hold(&mut self, index: usize, claim: u8) {
        let cycle_attempts = self.deliveries[index].delivery.cycle_attempts;
        self.hands.push(Hand { delivery: index, claim, cycle_attempts, recorded: None });
        self.hands.sort_unstable();
    }

    pub(crate) fn drop_hand(&mut self, hand: Hand) {
        self.hands.retain(|other| *other != hand);
    }

    /// Answers the hand as it is if the worker does not hear that it was recorded.
    pub(crate) fn report(&mut self, hand: Hand, outcome: &Outcome, fence: Fence) -> Hand {
        let schedule = schedule();
        let overload_floor = Duration::ZERO;
        let policy = RetryPolicy { schedule: &schedule, overload_floor, final_statuses: &[] };
        let verdict = decide(hand.cycle_attempts, outcome, policy, 0.5).verdict;

        let tracked = &mut self.deliveries[hand.delivery];
        let before = tracked.delivery.clone();
        let passed = fence.passes(hand, &before.state);
        let delivery = &mut tracked.delivery;
        let recorded = delivery.report(passed, verdict, hand.recorded, false, RETENTION, NOW);

        let owns = tracked.owner == Some(hand.claim);
        let next = tracked.attempts + 1;
        let history_alone = Delivery { attempts: next, ..before.clone() };
        self.broken = if let Some(number) = hand.recorded {
            let same = recorded == Recorded::Repeated(number) && tracked.delivery == before;
            (!same).then_some("G2: a report that came twice wrote something")
        } else if !matches!(recorded, Recorded::Fenced(n) | Recorded::Late(n) if n == next) {
            Some("G3: an attempt did not take the next number")
        } else if !owns && tracked.delivery != history_alone {
            Some("G2: the report of a superseded worker moved the delivery")
        } else if owns && !follows(&before.state, verdict, &tracked.delivery.state) {
            Some("G2: the owner's verdict did not take effect")
        } else {
            None
        };
        if hand.recorded.is_none() {
            tracked.attempts = next;
            if owns {
                self.in_flight -= i8::from(before.state.holds_slot());
                tracked.cycle += 1;
                tracked.disown();
            }
        }
        Hand { recorded: hand.recorded.or(Some(next)), ..hand }
    }

    pub(crate) fn replace_hand(&mut self, hand: Hand, by: Hand) {
        self.drop_hand(hand);
        self.hands.push(by);
        self.hands.sort_unstable();
    }

    pub(crate) fn give_back(&mut self, hand: Hand) {
        let tracked = &mut self.deliveries[hand.delivery];
        let before = tracked.delivery.clone();
        let given_back = tracked.delivery.give_back(token(hand.claim), NOW).is_ok();
        let owns = tracked.owner == Some(hand.claim);
        if !owns && tracked.delivery != before {
            self.broken = Some("G2: a superseded worker gave back what another owns");
        }
        if given_back {
            self.in_flight -= i8::from(before.state.holds_slot());
            tracked.disown();
        }
        self.drop_hand(hand);
    }

    pub(crate) fn replay(&mut self, index: usize) -> Result<(), NotApplicable> {
        let tracked = &mut self.deliveries[index];
        let before = tracked.delivery.clone();
        tracked.delivery.replay(NOW)?;
        let once = tracked.delivery.clone().replay(NOW).is_err();
        let was_failed = matches!(before.state, DeliveryState::Failed { .. });
        if !(once && was_failed && tracked.delivery.attempts == before.attempts) {
            self.broken =
                Some("G5: a replay was not of a failed delivery, not once, or lost attempts");
        }
        tracked.cycle = 0;
        tracked.disown();
        Ok(())
    }

    /// A step of an operator or of maintenance that ends the delivery's claims.
    pub(crate) fn settle(
        &mut self,
        index: usize,
        event: impl FnOnce(&mut Delivery) -> Result<(), NotApplicable>,
    ) -> Result<(), NotApplicable> {
        let tracked = &mut self.deliveries[index];
        let held = tracked.delivery.state.holds_slot();
        event(&mut tracked.delivery)?;
        if tracked.is_settled() {
            self.in_flight -= i8::from(held);
            tracked.disown();
        }
        Ok(())
    }
}

/// Whether a verdict that counts leads from the one state to the other.
fn follows(from: &DeliveryState, verdict: Verdict, to: &DeliveryState) -> bool {
    let called_off = matches!(from, DeliveryState::Processing { cancel_requested: true, .. });
    match (verdict, to) {
        (Verdict::Delivered, DeliveryState::Delivered) => true,
        (Verdict::Retry { .. } | Verdict::Failed { .. }, DeliveryState::Cancelled { .. }) => {
            called_off
        }
        (Verdict::Retry { .. }, DeliveryState::Pending { claim: None, lapses: None, .. })
        | (Verdict::Failed { .. }, DeliveryState::Failed { claim: None, .. }) => !called_off,
        _ => false,
    }
}
