//! A model of the delivery protocol, in every interleaving within its bounds.
//!
//! Three workers share two deliveries, or one; every step of a delivery is the domain's own `decide` or
//! transition. A cycle has two attempts. Beside what happens by itself there are, for all deliveries
//! together, so many faults (a crash, a stall beyond the lease, a report whose answer is lost, a claim
//! given back), replays and cancellations as [`Bounds`] says. A delivery is new, or has lapsed eight
//! times over a day while its last holder is still at work.

mod progress;
mod protocol;
mod world;

use stateright::{Checker, Expectation, Model};

use self::progress::Graph;
use self::protocol::{Protocol, Step};
use self::world::{Bounds, Fence, Tracked, World};

fn two_deliveries(fence: Fence) -> Protocol {
    let bounds = Bounds { faults: 2, replays: 1, cancels: 1 };
    let fresh = World::new(vec![Tracked::accepted(), Tracked::accepted()], bounds);
    let deadly = World::new(vec![Tracked::lapsed_eight_times(), Tracked::accepted()], bounds);
    Protocol { fence, starts: vec![fresh, deadly] }
}

fn one_delivery(fence: Fence) -> Protocol {
    let bounds = Bounds { faults: 3, replays: 2, cancels: 1 };
    let starts = [Tracked::accepted(), Tracked::lapsed_eight_times()];
    Protocol { fence, starts: starts.map(|it| World::new(vec![it], bounds)).to_vec() }
}

#[test]
fn the_promises_hold_in_every_interleaving() {
    for model in [two_deliveries(Fence::Token), one_delivery(Fence::Token)] {
        let checked = model.checker().threads(2).spawn_bfs().join();
        eprintln!("{} states", checked.unique_state_count());
        for property in checked.model().properties() {
            let discovery = checked.discovery(property.name);
            match property.expectation {
                Expectation::Sometimes => {
                    assert!(discovery.is_some(), "never met: {}", property.name);
                }
                _ => assert!(discovery.is_none(), "not kept: {}\n{discovery:#?}", property.name),
            }
        }
    }
}

#[test]
fn without_further_faults_every_state_comes_to_its_end() {
    for model in [two_deliveries(Fence::Token), one_delivery(Fence::Token)] {
        let graph = Graph::explore(&model);
        eprintln!("{} states", graph.len());
        assert_eq!(graph.dead_end(), None, "nothing settles this any more");
        assert_eq!(graph.on_a_circle(), None, "this may go on for ever");
    }
}

/// The token is what keeps the promise: compared by state or by lease, the report of a worker that lost
/// its lease takes the delivery from the one that has it now.
#[test]
fn a_guard_without_the_token_lets_a_superseded_worker_through() {
    let bounds = Bounds { faults: 1, replays: 0, cancels: 0 };
    let starts = vec![World::new(vec![Tracked::accepted(), Tracked::accepted()], bounds)];
    for fence in [Fence::State, Fence::Lease] {
        let model = Protocol { fence, starts: starts.clone() };
        // Counted in states, so in four steps.
        let checked = model.checker().target_max_depth(6).spawn_bfs().join();
        let path = checked.discovery(protocol::KEPT).expect("a counterexample of four steps");
        let broken = path.last_state().broken;
        assert_eq!(broken, Some("G2: the report of a superseded worker moved the delivery"));
        let steps = path.into_actions();
        assert!(is_report_beside_a_reclaim(&steps), "{fence:?}: {steps:#?}");
    }
}

fn is_report_beside_a_reclaim(steps: &[Step]) -> bool {
    let [Step::Claim(first), Step::LeaseEnds(lapsed), Step::Claim(again), Step::Report(hand, _)] =
        steps
    else {
        return false;
    };
    [lapsed, again, &hand.delivery] == [first; 3] && hand.claim == 1
}
