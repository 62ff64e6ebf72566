//! The steps that can be taken in each state of the world, and what must hold in all of them.

use domain::delivery::{CancelReason, Delivery, DeliveryState, NotApplicable, Outcome};
use stateright::{Model, Property};

use super::world::{Fence, Hand, NOW, Tracked, WORKERS, World};

/// The protocol within its bounds.
#[derive(Debug, Clone)]
pub(crate) struct Protocol {
    pub(crate) fence: Fence,
    pub(crate) starts: Vec<World>,
}

/// One step of somebody. A hand names the claim that a worker acts under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A free worker claims what is due or has lapsed.
    Claim(usize),
    /// A worker reports the answer to its request, 204 or 500.
    Report(Hand, u16),
    /// The same, and the answer to the report is lost: the worker will report again.
    ReportUnheard(Hand, u16),
    GiveBack(Hand),
    /// The worker dies. What it sent, if it did, nobody knows.
    Crash(Hand),
    /// The lease of a claim ends.
    LeaseEnds(usize),
    BecomesDue(usize),
    RetentionEnds(usize),
    Replay(usize),
    Cancel(usize),
    /// Maintenance settles what was called off while a worker had it.
    CallOff(usize),
    /// Maintenance expires what failed.
    Expire(usize),
}

impl Protocol {
    /// Whether the step is taken by itself, sooner or later: nothing goes wrong, and no operator acts.
    pub(crate) fn is_in_the_course_of_things(world: &World, step: Step) -> bool {
        match step {
            Step::Claim(_)
            | Step::Report(..)
            | Step::BecomesDue(_)
            | Step::RetentionEnds(_)
            | Step::CallOff(_)
            | Step::Expire(_) => true,
            // The holder is dead. A living one reports before its lease ends.
            Step::LeaseEnds(delivery) => !has_living_holder(world, delivery),
            Step::ReportUnheard(..)
            | Step::GiveBack(_)
            | Step::Crash(_)
            | Step::Replay(_)
            | Step::Cancel(_) => false,
        }
    }

    fn take(&self, world: &mut World, step: Step) -> Result<(), NotApplicable> {
        match step {
            Step::Claim(delivery) => world.claim(delivery).map(drop)?,
            Step::Report(hand, status) => {
                world.report(hand, &answer(status), self.fence);
                world.drop_hand(hand);
            }
            Step::ReportUnheard(hand, status) => {
                world.bounds.faults -= 1;
                let recorded = world.report(hand, &answer(status), self.fence);
                world.replace_hand(hand, recorded);
            }
            Step::GiveBack(hand) => {
                world.bounds.faults -= 1;
                world.give_back(hand);
            }
            Step::Crash(hand) => {
                world.bounds.faults -= 1;
                world.drop_hand(hand);
            }
            Step::LeaseEnds(delivery) => {
                if has_living_holder(world, delivery) {
                    world.bounds.faults -= 1;
                }
                world.deliveries[delivery].leased = None;
                run_out(&mut world.deliveries[delivery].delivery);
            }
            Step::BecomesDue(delivery) | Step::RetentionEnds(delivery) => {
                run_out(&mut world.deliveries[delivery].delivery);
            }
            Step::Replay(delivery) => {
                world.replay(delivery)?;
                world.bounds.replays -= 1;
            }
            Step::Cancel(delivery) => {
                world.settle(delivery, |it| it.cancel(CancelReason::Operator))?;
                world.bounds.cancels -= 1;
            }
            Step::CallOff(delivery) => {
                world.settle(delivery, |it| it.call_off(CancelReason::Operator, NOW))?;
            }
            Step::Expire(delivery) => world.settle(delivery, |it| it.expire(NOW))?,
        }
        Ok(())
    }
}

fn answer(status: u16) -> Outcome {
    Outcome::Answered { status, retry_after: None }
}

fn has_living_holder(world: &World, delivery: usize) -> bool {
    let owner = world.deliveries[delivery].owner;
    world.hands.iter().any(|hand| hand.delivery == delivery && Some(hand.claim) == owner)
}

/// The time that the state waits for comes.
fn run_out(delivery: &mut Delivery) {
    match &mut delivery.state {
        DeliveryState::Pending { due_at: until, .. }
        | DeliveryState::Processing { claim_expires_at: until, .. }
        | DeliveryState::Failed { expires_at: until, .. } => *until = NOW,
        _ => {}
    }
}

/// What time, maintenance and operators can do to one delivery.
fn offer(world: &World, index: usize, steps: &mut Vec<Step>) {
    let may_fail = world.bounds.faults > 0;
    match world.deliveries[index].delivery.state {
        DeliveryState::Pending { due_at, .. } if due_at > NOW => {
            steps.push(Step::BecomesDue(index));
        }
        DeliveryState::Processing { claim_expires_at, .. }
            if claim_expires_at > NOW && (may_fail || !has_living_holder(world, index)) =>
        {
            steps.push(Step::LeaseEnds(index));
        }
        DeliveryState::Processing { claim_expires_at, cancel_requested: true, .. }
            if claim_expires_at <= NOW =>
        {
            steps.push(Step::CallOff(index));
        }
        DeliveryState::Failed { expires_at, .. } if expires_at > NOW => {
            steps.push(Step::RetentionEnds(index));
        }
        _ => {}
    }
    // Offered in every state: whether they apply is for the domain to say.
    if world.hands.len() < WORKERS {
        steps.push(Step::Claim(index));
    }
    steps.push(Step::Expire(index));
    if world.bounds.replays > 0 {
        steps.push(Step::Replay(index));
    }
    if world.bounds.cancels > 0 {
        steps.push(Step::Cancel(index));
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        self.starts.clone()
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.broken.is_some() {
            return;
        }
        for index in 0..world.deliveries.len() {
            offer(world, index, steps);
        }
        for hand in world.hands.iter().copied() {
            steps.extend([Step::Report(hand, 204), Step::Report(hand, 500)]);
            if world.bounds.faults > 0 {
                let unheard = [Step::ReportUnheard(hand, 204), Step::ReportUnheard(hand, 500)];
                steps.extend(unheard);
                steps.extend([Step::GiveBack(hand), Step::Crash(hand)]);
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        self.take(&mut next, step).ok()?;
        let mut pairs = world.deliveries.iter().zip(&next.deliveries);
        if pairs.any(|(before, after)| before.is_settled() && !stays_settled(before, after)) {
            next.broken = Some("a settled delivery changed");
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(KEPT, |_, world: &World| world.broken.is_none()),
            Property::always(NUMBERS, |_, world: &World| {
                world.deliveries.iter().all(|it| it.delivery.attempts == it.attempts)
            }),
            Property::always(CYCLE, |_, world: &World| {
                let spent = |it: &Tracked| it.delivery.cycle_attempts == u32::from(it.cycle);
                world.deliveries.iter().all(spent)
            }),
            Property::always(TOKENS, |_, world: &World| {
                world.deliveries.iter().all(Tracked::carries_the_token_of_its_owner)
            }),
            Property::always(SLOTS, |_, world: &World| {
                let held = world.deliveries.iter().filter(|it| it.delivery.state.holds_slot());
                usize::try_from(world.in_flight) == Ok(held.count())
            }),
            Property::sometimes(
                "a delivery is parked and its holder may still report",
                |_, world| {
                    some_state(world, |it| {
                        matches!(it, DeliveryState::Pending { claim: Some(_), .. })
                    })
                },
            ),
            Property::sometimes(
                "a delivery is abandoned and its holder may still report",
                |_, world| {
                    some_state(world, |it| {
                        matches!(it, DeliveryState::Failed { claim: Some(_), .. })
                    })
                },
            ),
            Property::sometimes(
                "all is settled and somebody still has a result",
                |_, world: &World| {
                    world.deliveries.iter().all(Tracked::is_settled) && !world.hands.is_empty()
                },
            ),
            Property::sometimes("a cancellation waits for its report", |_, world| {
                some_state(world, |it| {
                    matches!(it, DeliveryState::Processing { cancel_requested: true, .. })
                })
            }),
            Property::sometimes("what was replayed fails again", |_, world: &World| {
                world.bounds.replays == 0
                    && some_state(world, |it| matches!(it, DeliveryState::Failed { .. }))
            }),
        ]
    }
}

pub(crate) const KEPT: &str = "no step breaks G1, G2, G3 or G5";
const NUMBERS: &str = "G3: the count of attempts is the last number";
const CYCLE: &str = "G2: only results that count spend the cycle";
const TOKENS: &str = "G2: a delivery carries the token of the claim whose result counts";
const SLOTS: &str = "the slots in use are the deliveries in processing";

fn stays_settled(before: &Tracked, after: &Tracked) -> bool {
    before.delivery.state == after.delivery.state
        && before.delivery.cycle_attempts == after.delivery.cycle_attempts
}

fn some_state(world: &World, is_meant: fn(&DeliveryState) -> bool) -> bool {
    world.deliveries.iter().any(|it| is_meant(&it.delivery.state))
}
