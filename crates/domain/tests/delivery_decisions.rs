//! What outcomes mean, and what holds for every sequence of them.

use std::time::Duration;

use domain::delivery::retry::RetrySchedule;
use domain::delivery::{
    CancelReason, ClaimKind, Delivery, DeliveryState, Failure, FailureReason, Outcome, Recorded,
    RetryPolicy, Verdict, decide,
};
use domain::endpoint::DisabledCause;
use domain::id::ClaimToken;
use proptest::prelude::*;
use time::OffsetDateTime;
use uuid::Uuid;

const FLOOR: Duration = Duration::from_secs(60);
/// The draw at which the jitter adds nothing.
const MIDDLE: f64 = 0.5;

fn answered(status: u16) -> Outcome {
    Outcome::Answered { status, retry_after: None }
}

fn verdict(cycle_attempts: u32, outcome: &Outcome) -> Verdict {
    let schedule = RetrySchedule::default();
    let policy =
        RetryPolicy { schedule: &schedule, overload_floor: FLOOR, final_statuses: &[422, 451] };
    decide(cycle_attempts, outcome, policy, MIDDLE).verdict
}

fn retry(seconds: u64) -> Verdict {
    Verdict::Retry { after: Duration::from_secs(seconds) }
}

#[test]
fn each_status_means_what_the_design_says() {
    for status in [200, 201, 202, 204, 299] {
        assert_eq!(verdict(0, &answered(status)), Verdict::Delivered, "{status}");
    }
    for status in [100, 301, 302, 307, 308, 400, 401, 403, 404, 405, 413, 500, 501] {
        assert_eq!(verdict(0, &answered(status)), retry(5), "{status}");
    }
    for status in [429, 502, 503, 504] {
        assert_eq!(verdict(0, &answered(status)), retry(60), "{status}");
        assert_eq!(verdict(1, &answered(status)), retry(300), "{status}: the schedule is later");
    }
    for status in [422, 451] {
        let reason = FailureReason::FinalStatus;
        assert_eq!(verdict(0, &answered(status)), Verdict::Failed { reason }, "{status}");
    }
}

#[test]
fn gone_fails_the_delivery_and_disables_the_endpoint() {
    let schedule = RetrySchedule::default();
    let policy = RetryPolicy { schedule: &schedule, overload_floor: FLOOR, final_statuses: &[] };
    let decision = decide(0, &answered(410), policy, MIDDLE);
    assert_eq!(decision.verdict, Verdict::Failed { reason: FailureReason::Gone });
    assert_eq!(decision.disable_endpoint, Some(DisabledCause::Gone));
    for status in [200, 404, 500] {
        assert_eq!(decide(0, &answered(status), policy, MIDDLE).disable_endpoint, None);
    }
}

#[test]
fn only_a_time_out_says_overloaded_among_the_failures() {
    for failure in Failure::ALL {
        let expected = if failure == Failure::TimedOut { retry(60) } else { retry(5) };
        assert_eq!(verdict(0, &Outcome::Unanswered(failure)), expected, "{failure:?}");
    }
}

#[test]
fn retry_after_is_honoured_up_to_a_day_and_only_where_the_receiver_is_overloaded() {
    let asking = |status, seconds| Outcome::Answered {
        status,
        retry_after: Some(Duration::from_secs(seconds)),
    };
    assert_eq!(verdict(0, &asking(503, 120)), retry(120));
    assert_eq!(verdict(0, &asking(429, 1)), retry(60), "not before the floor");
    assert_eq!(verdict(1, &asking(503, 120)), retry(300), "not before the schedule");
    assert_eq!(verdict(0, &asking(503, 1_000_000)), retry(86_400));
    assert_eq!(verdict(0, &asking(500, 120)), retry(5));
}

#[test]
fn the_last_attempt_of_the_cycle_fails_the_delivery() {
    let reason = FailureReason::AttemptsExhausted;
    assert_eq!(verdict(8, &answered(500)), retry(86_400));
    assert_eq!(verdict(9, &answered(500)), Verdict::Failed { reason });
    assert_eq!(verdict(u32::MAX, &answered(500)), Verdict::Failed { reason });
    assert_eq!(verdict(9, &answered(200)), Verdict::Delivered);
}

#[derive(Debug, Clone)]
enum Event {
    Claim(u8),
    Report(u8, Outcome),
    GiveBack(u8),
    Replay,
    Cancel,
    Expire,
    Wait(u32),
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        (100_u16..600, proptest::option::of(0_u64..100_000)).prop_map(|(status, after)| {
            Outcome::Answered { status, retry_after: after.map(Duration::from_secs) }
        }),
        (0..Failure::ALL.len()).prop_map(|i| Outcome::Unanswered(Failure::ALL[i])),
    ]
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0_u8..6).prop_map(Event::Claim),
        4 => (0_u8..6, outcomes()).prop_map(|(claim, outcome)| Event::Report(claim, outcome)),
        1 => (0_u8..6).prop_map(Event::GiveBack),
        1 => Just(Event::Replay),
        1 => Just(Event::Cancel),
        1 => Just(Event::Expire),
        3 => (0_u32..200_000).prop_map(Event::Wait),
    ]
}

proptest! {
    #[test]
    fn no_sequence_of_events_breaks_the_rules(events in prop::collection::vec(events(), 1..80)) {
        let retention = Duration::from_hours(720);
        let schedule = RetrySchedule::new(vec![Duration::from_secs(5); 3]).unwrap();
        let policy =
            RetryPolicy { schedule: &schedule, overload_floor: FLOOR, final_statuses: &[] };
        let mut now = OffsetDateTime::UNIX_EPOCH;
        let mut delivery = Delivery::accepted(now);
        let (mut reported, mut numbers) = (std::collections::BTreeMap::new(), Vec::new());
        for event in events {
            let before = delivery.clone();
            let token = |claim: u8| ClaimToken::from_uuid(Uuid::from_u128(claim.into()));
            match event {
                Event::Claim(claim) => {
                    // A token is never used again.
                    if reported.contains_key(&claim) || before.state.claim() == Some(token(claim)) {
                        continue;
                    }
                    let lease = Duration::from_secs(30);
                    match delivery.claim(token(claim), lease, &schedule, retention, now) {
                        Ok(ClaimKind::Fresh) => prop_assert!(!before.state.holds_slot()),
                        Ok(_) => prop_assert!(before.state.holds_slot()),
                        Err(_) => prop_assert_eq!(&delivery, &before),
                    }
                }
                Event::Report(claim, outcome) => {
                    let verdict = decide(before.cycle_attempts, &outcome, policy, MIDDLE).verdict;
                    let known = reported.get(&claim).copied();
                    let recorded =
                        delivery.report(token(claim), verdict, known, false, retention, now);
                    match recorded {
                        Recorded::Repeated(_) => prop_assert_eq!(&delivery, &before),
                        Recorded::Fenced(number) => {
                            prop_assert_eq!(before.state.claim(), Some(token(claim)));
                            prop_assert_eq!(delivery.state.claim(), None);
                            numbers.push(number);
                            reported.insert(claim, number);
                        }
                        Recorded::Late(number) => {
                            prop_assert_eq!(&delivery.state, &before.state);
                            prop_assert_eq!(delivery.cycle_attempts, before.cycle_attempts);
                            numbers.push(number);
                            reported.insert(claim, number);
                        }
                    }
                }
                // That these do not apply everywhere is the other test's table.
                Event::GiveBack(claim) => {
                    let _ = delivery.give_back(token(claim), now);
                }
                Event::Replay => {
                    let _ = delivery.replay(now);
                }
                Event::Cancel => {
                    let _ = delivery.cancel(CancelReason::Operator);
                }
                Event::Expire => {
                    let _ = delivery.expire(now);
                }
                Event::Wait(seconds) => now += Duration::from_secs(seconds.into()),
            }
            prop_assert!(delivery.attempts >= before.attempts, "the lifetime count only rises");
            prop_assert!(delivery.cycle_attempts <= schedule.attempts_max());
            prop_assert!(delivery.cycle_attempts <= delivery.attempts);
            if before.state.name().is_settled() {
                prop_assert_eq!(&delivery.state, &before.state, "settled stays settled");
            }
            if let DeliveryState::Pending { due_at, .. } = delivery.state {
                prop_assert!(due_at <= now + Duration::from_hours(24));
            }
        }
        let gap_free: Vec<u32> = (1..=delivery.attempts).collect();
        prop_assert_eq!(numbers, gap_free);
    }
}
