//! The circuit breaker: each row of the specification, and what holds in any sequence of events.
#![expect(clippy::panic, reason = "a test that meets something else has failed")]

use std::time::Duration;

use domain::endpoint::circuit::{
    Circuit, Counts, OPEN_MAX, OpenCause, Opening, Turn, WINDOW, open_for,
};
use domain::endpoint::{Signal, Tally};
use domain::id::ClaimToken;
use proptest::prelude::*;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

const NOW: OffsetDateTime = datetime!(2026-12-01 12:00 UTC);
const LEASE: Duration = Duration::from_secs(30);

fn token(n: u128) -> ClaimToken {
    ClaimToken::from_uuid(Uuid::from_u128(n))
}

fn tally(succeeded: u32, failed: u32) -> Tally {
    Tally { succeeded, failed }
}

/// Records results one after another at one instant.
fn closed_after(results: &[(u32, u32)]) -> Circuit {
    let mut circuit = Circuit::default();
    for (succeeded, failed) in results {
        circuit.record(tally(*succeeded, *failed), None, NOW);
    }
    circuit
}

fn opening(circuit: &Circuit) -> Opening {
    match circuit {
        Circuit::Open(opening) => *opening,
        Circuit::Closed(counts) => panic!("it is closed: {counts:?}"),
    }
}

fn is_open(circuit: &Circuit) -> bool {
    matches!(circuit, Circuit::Open(_))
}

#[test]
fn ten_failures_in_a_row_open_it_and_nine_do_not() {
    assert!(!is_open(&closed_after(&[(0, 9)])));
    let opened = opening(&closed_after(&[(0, 9), (0, 1)]));
    assert_eq!(opened.cause, OpenCause::InARow);
    assert_eq!((opened.since, opened.until, opened.times), (NOW, NOW + open_for(1), 1));
    // A success between begins the row anew, and so do results with one among them.
    assert!(!is_open(&closed_after(&[(20, 0), (0, 9), (1, 0), (0, 9)])));
    assert!(!is_open(&closed_after(&[(20, 0), (0, 9), (1, 5), (0, 4)])));
}

#[test]
fn seventy_percent_of_ten_open_it_and_less_of_either_does_not() {
    for (results, opens) in [
        (vec![(3, 0), (0, 6)], false),
        (vec![(3, 0), (0, 7)], true),
        (vec![(4, 0), (0, 7)], false),
        (vec![(31, 0), (0, 9), (1, 0), (0, 9)], false),
        (vec![(30, 70)], true),
        (vec![(31, 69)], false),
    ] {
        let circuit = closed_after(&results);
        assert_eq!(is_open(&circuit), opens, "{results:?}");
        if opens {
            assert_eq!(opening(&circuit).cause, OpenCause::Share);
        }
    }
    // The tenth result is a success: it opens nothing, the next failure does.
    assert!(!is_open(&closed_after(&[(2, 0), (0, 7), (1, 0)])));
    assert!(is_open(&closed_after(&[(2, 0), (0, 7), (1, 0), (0, 1)])));
}

#[test]
fn a_window_is_five_minutes_from_its_first_result() {
    let mut circuit = closed_after(&[(3, 0), (0, 6)]);
    let last = NOW + WINDOW - Duration::from_micros(1);
    let mut within = circuit;
    assert_eq!(within.record(tally(0, 1), None, last), Some(Turn::Opened));
    assert_eq!(circuit.record(tally(0, 1), None, NOW + WINDOW), None);
    let counts = Counts { in_a_row: 7, since: Some(NOW + WINDOW), succeeded: 0, failed: 1 };
    assert_eq!(circuit, Circuit::Closed(counts));
}

#[test]
fn an_open_circuit_admits_nothing_and_one_when_its_time_is_over() {
    let mut circuit = closed_after(&[(0, 10)]);
    let until = opening(&circuit).until;
    assert_eq!(closed_after(&[]).admits(NOW), u32::MAX);
    assert_eq!(circuit.admits(until - Duration::from_micros(1)), 0);
    assert_eq!(circuit.admits(until), 1);
    circuit.claim(token(1), LEASE, until);
    assert_eq!(circuit.admits(until), 0);
    assert_eq!(circuit.admits(until + LEASE), 1, "the probe's worker died");
}

#[test]
fn only_the_probe_closes_or_prolongs_it() {
    let mut circuit = closed_after(&[(0, 10)]);
    let before = circuit;
    assert_eq!(circuit.record(tally(5, 0), None, NOW), None);
    assert_eq!(circuit.record(tally(0, 50), None, NOW), None);
    assert_eq!(circuit, before, "what was sent before it opened changes nothing");

    let until = opening(&circuit).until;
    circuit.claim(token(1), LEASE, until);
    let mut failing = circuit;
    assert_eq!(failing.record(tally(0, 1), Some(Signal::Failed), until), None);
    let again = opening(&failing);
    assert_eq!((again.times, again.until, again.probe), (2, until + open_for(2), None));
    assert_eq!(again.since, NOW);

    let mut unsent = circuit;
    assert_eq!(unsent.record(tally(0, 0), Some(Signal::Nothing), until), None);
    assert_eq!((opening(&unsent).times, opening(&unsent).until), (1, until + open_for(1)));

    assert_eq!(circuit.record(tally(1, 3), Some(Signal::Succeeded), until), Some(Turn::Closed));
    assert_eq!(circuit, Circuit::default(), "what it closes with counts for nothing more");
}

#[test]
fn a_probe_that_is_given_back_leaves_room_for_another_at_once() {
    let mut circuit = closed_after(&[(0, 10)]);
    let until = opening(&circuit).until;
    circuit.claim(token(1), LEASE, until);
    circuit.give_back(token(2), until);
    assert_eq!(circuit.admits(until), 0, "another claim is not the probe");
    circuit.give_back(token(1), until);
    assert_eq!(circuit.admits(until), 1);
}

#[test]
fn it_is_open_for_30_seconds_doubling_to_10_minutes() {
    let seconds: Vec<u64> = (1..=7).map(|times| open_for(times).as_secs()).collect();
    assert_eq!(seconds, [30, 60, 120, 240, 480, 600, 600]);
    assert_eq!(open_for(u32::MAX), OPEN_MAX);
}

/// What can happen, in any order.
#[derive(Debug, Clone, Copy)]
enum Event {
    Pass(u64),
    Claim,
    GiveBack(usize),
    /// The nth claim that is out reports: well or not.
    Report(usize, bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (1_u64..400).prop_map(Event::Pass),
        4 => Just(Event::Claim),
        1 => (0_usize..8).prop_map(Event::GiveBack),
        6 => ((0_usize..8), prop::bool::weighted(0.2)).prop_map(|(n, ok)| Event::Report(n, ok)),
    ]
}

proptest! {
    /// While it is open at most one live claim was made since it opened, none is made before its time, and
    /// only the newest of these claims ends it.
    #[test]
    fn at_most_one_probe_is_out_and_only_it_decides(
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let (mut circuit, mut now, mut next) = (Circuit::default(), NOW, 0_u128);
        // Claims that are out, and until when each lives. A worker reports after that too.
        let mut out: Vec<(ClaimToken, OffsetDateTime)> = Vec::new();
        let mut probes: Vec<(ClaimToken, OffsetDateTime)> = Vec::new();
        for event in events {
            let was_open = is_open(&circuit);
            match event {
                Event::Pass(seconds) => now += Duration::from_secs(seconds),
                Event::Claim if circuit.admits(now) > 0 => {
                    next += 1;
                    circuit.claim(token(next), LEASE, now);
                    out.push((token(next), now + LEASE));
                    if was_open {
                        prop_assert!(probes.iter().all(|(_, until)| *until <= now), "two probes");
                        probes.push((token(next), now + LEASE));
                    }
                }
                Event::GiveBack(n) if !out.is_empty() => {
                    let (claim, _) = out.remove(n % out.len());
                    circuit.give_back(claim, now);
                    probes.retain(|(probe, _)| *probe != claim);
                }
                Event::Report(n, succeeded) if !out.is_empty() => {
                    let (claim, _) = out.remove(n % out.len());
                    let signal = if succeeded { Signal::Succeeded } else { Signal::Failed };
                    let mut results = Tally::default();
                    results.count(signal);
                    let is_probe = matches!(circuit, Circuit::Open(it) if it.probe == Some(claim));
                    let newest = probes.last().is_some_and(|(probe, _)| *probe == claim);
                    prop_assert!(!is_probe || newest, "an older claim decides");
                    let before = circuit;
                    let turn = circuit.record(results, is_probe.then_some(signal), now);
                    if was_open && !is_probe {
                        prop_assert_eq!(circuit, before);
                    }
                    prop_assert_eq!(turn == Some(Turn::Closed), was_open && !is_open(&circuit));
                    prop_assert_eq!(turn == Some(Turn::Opened), !was_open && is_open(&circuit));
                    probes.retain(|(probe, _)| *probe != claim);
                }
                Event::Claim | Event::GiveBack(_) | Event::Report(..) => {}
            }
            if was_open != is_open(&circuit) {
                probes.clear();
            }
            if let Circuit::Open(opening) = circuit {
                prop_assert!(opening.until <= now + OPEN_MAX.max(LEASE));
            }
        }
    }
}
