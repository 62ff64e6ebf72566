//! Every state times every event: what happens, and what does not.

use std::time::Duration;

use domain::delivery::retry::RetrySchedule;
use domain::delivery::{
    CancelReason, ClaimKind, Delivery, DeliveryState, FailureReason, Lapses, NotApplicable,
    Recorded, StateName, Verdict,
};
use domain::id::ClaimToken;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_hours(720);

fn at(seconds: i64) -> OffsetDateTime {
    datetime!(2023-11-14 22:13:20 UTC) + time::Duration::seconds(seconds)
}

fn token(number: u128) -> ClaimToken {
    ClaimToken::from_uuid(Uuid::from_u128(number))
}

fn lapses(count: u32) -> Lapses {
    Lapses { count, since: at(-90_000) }
}

/// One of each kind of state that decisions tell apart. Claim tokens, where there is one, are 1.
fn states() -> Vec<(&'static str, DeliveryState)> {
    let claim = token(1);
    let pending = |due_at, lapses, claim| DeliveryState::Pending { due_at, lapses, claim };
    let processing = |claim_expires_at, lapses, cancel_requested| DeliveryState::Processing {
        claim,
        claim_expires_at,
        lapses,
        cancel_requested,
    };
    let failed = |expires_at, claim| DeliveryState::Failed {
        reason: FailureReason::AttemptsExhausted,
        expires_at,
        claim,
    };
    vec![
        ("due", pending(at(0), None, None)),
        ("not due", pending(at(1), None, None)),
        ("parked, due", pending(at(0), Some(lapses(2)), Some(claim))),
        ("leased", processing(at(1), None, false)),
        ("lapsed once", processing(at(0), None, false)),
        ("lapsed twice", processing(at(0), Some(lapses(1)), false)),
        ("lapsed ten times", processing(at(0), Some(lapses(9)), false)),
        ("lapsed, cancel requested", processing(at(0), None, true)),
        ("failed", failed(at(1), None)),
        ("abandoned", failed(at(1), Some(claim))),
        ("failed long ago", failed(at(0), None)),
        ("delivered", DeliveryState::Delivered),
        ("cancelled", DeliveryState::Cancelled { reason: CancelReason::Operator }),
        ("expired", DeliveryState::Expired { reason: FailureReason::Gone }),
    ]
}

fn in_state(state: DeliveryState) -> Delivery {
    Delivery { attempts: 5, cycle_attempts: 2, state }
}

fn claim(delivery: &mut Delivery) -> Result<ClaimKind, NotApplicable> {
    delivery.claim(token(2), LEASE, &RetrySchedule::default(), RETENTION, at(0))
}

/// What an event yields in each of [`states`], as words, so that a difference reads as a table.
fn table(mut event: impl FnMut(&mut Delivery) -> String) -> Vec<(&'static str, String)> {
    states()
        .into_iter()
        .map(|(name, state)| {
            let mut delivery = in_state(state);
            let before = delivery.clone();
            let answer = event(&mut delivery);
            let unchanged = if delivery == before { "unchanged" } else { "changed" };
            let after = delivery.state.name().as_str();
            (name, format!("{answer}; {unchanged}, {after}"))
        })
        .collect()
}

fn assert_table(event: impl FnMut(&mut Delivery) -> String, expected: &[(&'static str, &str); 14]) {
    let expected: Vec<_> = expected.iter().map(|(n, t)| (*n, (*t).to_owned())).collect();
    assert_eq!(table(event), expected);
}

fn word<T: std::fmt::Debug>(answer: Result<T, NotApplicable>) -> String {
    answer.map_or("refused".to_owned(), |value| format!("{value:?}"))
}

#[test]
fn a_claim_takes_what_is_due_and_what_has_lapsed() {
    assert_table(
        |delivery| word(claim(delivery)),
        &[
            ("due", "Fresh; changed, processing"),
            ("not due", "refused; unchanged, pending"),
            ("parked, due", "Fresh; changed, processing"),
            ("leased", "refused; unchanged, processing"),
            ("lapsed once", "Reclaimed; changed, processing"),
            ("lapsed twice", "Parked; changed, pending"),
            ("lapsed ten times", "Abandoned; changed, failed"),
            ("lapsed, cancel requested", "refused; unchanged, processing"),
            ("failed", "refused; unchanged, failed"),
            ("abandoned", "refused; unchanged, failed"),
            ("failed long ago", "refused; unchanged, failed"),
            ("delivered", "refused; unchanged, delivered"),
            ("cancelled", "refused; unchanged, cancelled"),
            ("expired", "refused; unchanged, expired"),
        ],
    );
}

fn report(delivery: &mut Delivery, claim: ClaimToken, verdict: Verdict) -> String {
    format!("{:?}", delivery.report(claim, verdict, None, false, RETENTION, at(0)))
}

#[test]
fn a_report_of_the_claim_that_the_delivery_carries_takes_effect_in_whatever_state() {
    assert_table(
        |delivery| report(delivery, token(1), Verdict::Delivered),
        &[
            ("due", "Late(6); changed, pending"),
            ("not due", "Late(6); changed, pending"),
            ("parked, due", "Fenced(6); changed, delivered"),
            ("leased", "Fenced(6); changed, delivered"),
            ("lapsed once", "Fenced(6); changed, delivered"),
            ("lapsed twice", "Fenced(6); changed, delivered"),
            ("lapsed ten times", "Fenced(6); changed, delivered"),
            ("lapsed, cancel requested", "Fenced(6); changed, delivered"),
            ("failed", "Late(6); changed, failed"),
            ("abandoned", "Fenced(6); changed, delivered"),
            ("failed long ago", "Late(6); changed, failed"),
            ("delivered", "Late(6); changed, delivered"),
            ("cancelled", "Late(6); changed, cancelled"),
            ("expired", "Late(6); changed, expired"),
        ],
    );
}

#[test]
fn a_superseded_report_changes_the_lifetime_count_and_nothing_else() {
    let verdicts = [
        Verdict::Delivered,
        Verdict::Retry { after: Duration::from_secs(5) },
        Verdict::Failed { reason: FailureReason::Gone },
    ];
    for (name, state) in states() {
        for verdict in verdicts {
            let mut delivery = in_state(state.clone());
            let recorded = delivery.report(token(9), verdict, None, true, RETENTION, at(0));
            assert_eq!(recorded, Recorded::Late(6), "{name}");
            assert_eq!(delivery, Delivery { attempts: 6, ..in_state(state.clone()) }, "{name}");
        }
    }
}

#[test]
fn a_report_that_comes_twice_writes_nothing() {
    for (name, state) in states() {
        let mut delivery = in_state(state.clone());
        let recorded =
            delivery.report(token(1), Verdict::Delivered, Some(3), false, RETENTION, at(0));
        assert_eq!(recorded, Recorded::Repeated(3), "{name}");
        assert_eq!(delivery, in_state(state), "{name}");
    }
}

#[test]
fn a_fenced_retry_ends_the_claim_and_forgets_the_lapses() {
    let mut delivery = in_state(states()[5].1.clone());
    let verdict = Verdict::Retry { after: Duration::from_secs(5) };
    assert_eq!(report(&mut delivery, token(1), verdict), "Fenced(6)");
    let pending = DeliveryState::Pending { due_at: at(5), lapses: None, claim: None };
    assert_eq!(delivery, Delivery { attempts: 6, cycle_attempts: 3, state: pending });
    assert_eq!(report(&mut delivery, token(1), verdict), "Late(7)", "the claim has ended");
}

#[test]
fn retry_and_failure_become_cancelled_where_the_endpoint_is_deleted_or_somebody_asked() {
    let verdicts = [
        Verdict::Retry { after: Duration::from_secs(5) },
        Verdict::Failed { reason: FailureReason::Gone },
    ];
    for verdict in verdicts {
        let mut delivery = in_state(states()[3].1.clone());
        delivery.report(token(1), verdict, None, true, RETENTION, at(0));
        let reason = CancelReason::EndpointDeleted;
        assert_eq!(delivery.state, DeliveryState::Cancelled { reason });

        let mut delivery = in_state(states()[7].1.clone());
        delivery.report(token(1), verdict, None, false, RETENTION, at(0));
        let reason = CancelReason::Operator;
        assert_eq!(delivery.state, DeliveryState::Cancelled { reason });
    }
}

#[test]
fn only_the_holder_gives_back_and_leaves_no_trace() {
    assert_table(
        |delivery| word(delivery.give_back(token(1), at(-7))),
        &[
            ("due", "refused; unchanged, pending"),
            ("not due", "refused; unchanged, pending"),
            ("parked, due", "(); changed, pending"),
            ("leased", "(); changed, pending"),
            ("lapsed once", "(); changed, pending"),
            ("lapsed twice", "(); changed, pending"),
            ("lapsed ten times", "(); changed, pending"),
            ("lapsed, cancel requested", "(); changed, cancelled"),
            ("failed", "refused; unchanged, failed"),
            ("abandoned", "refused; unchanged, failed"),
            ("failed long ago", "refused; unchanged, failed"),
            ("delivered", "refused; unchanged, delivered"),
            ("cancelled", "refused; unchanged, cancelled"),
            ("expired", "refused; unchanged, expired"),
        ],
    );
    let mut delivery = in_state(states()[3].1.clone());
    delivery.give_back(token(1), at(-7)).unwrap();
    let pending = DeliveryState::Pending { due_at: at(-7), lapses: None, claim: None };
    assert_eq!(delivery, in_state(pending));
}

#[test]
fn only_a_failed_delivery_is_replayed() {
    assert_table(
        |delivery| word(delivery.replay(at(0))),
        &[
            ("due", "refused; unchanged, pending"),
            ("not due", "refused; unchanged, pending"),
            ("parked, due", "refused; unchanged, pending"),
            ("leased", "refused; unchanged, processing"),
            ("lapsed once", "refused; unchanged, processing"),
            ("lapsed twice", "refused; unchanged, processing"),
            ("lapsed ten times", "refused; unchanged, processing"),
            ("lapsed, cancel requested", "refused; unchanged, processing"),
            ("failed", "(); changed, pending"),
            ("abandoned", "(); changed, pending"),
            ("failed long ago", "refused; unchanged, failed"),
            ("delivered", "refused; unchanged, delivered"),
            ("cancelled", "refused; unchanged, cancelled"),
            ("expired", "refused; unchanged, expired"),
        ],
    );
}

#[test]
fn a_replay_starts_a_fresh_cycle_and_ends_an_abandoned_claim() {
    let mut delivery = in_state(states()[9].1.clone());
    delivery.replay(at(0)).unwrap();
    let pending = DeliveryState::Pending { due_at: at(0), lapses: None, claim: None };
    assert_eq!(delivery, Delivery { attempts: 5, cycle_attempts: 0, state: pending });
    assert_eq!(report(&mut delivery, token(1), Verdict::Delivered), "Late(6)");
}

#[test]
fn a_cancellation_settles_what_nobody_holds_and_marks_what_somebody_does() {
    assert_table(
        |delivery| word(delivery.cancel(CancelReason::Operator)),
        &[
            ("due", "(); changed, cancelled"),
            ("not due", "(); changed, cancelled"),
            ("parked, due", "(); changed, cancelled"),
            ("leased", "(); changed, processing"),
            ("lapsed once", "(); changed, processing"),
            ("lapsed twice", "(); changed, processing"),
            ("lapsed ten times", "(); changed, processing"),
            ("lapsed, cancel requested", "(); unchanged, processing"),
            ("failed", "(); changed, cancelled"),
            ("abandoned", "(); changed, cancelled"),
            ("failed long ago", "(); changed, cancelled"),
            ("delivered", "refused; unchanged, delivered"),
            ("cancelled", "refused; unchanged, cancelled"),
            ("expired", "refused; unchanged, expired"),
        ],
    );
}

#[test]
fn only_what_failed_and_is_past_its_time_expires() {
    let expiring = |delivery: &mut Delivery| word(delivery.expire(at(0)));
    for (name, answer) in table(expiring) {
        let expected = if name == "failed long ago" { "(); changed, expired" } else { "refused" };
        assert!(answer.starts_with(expected), "{name}: {answer}");
    }
}

#[test]
fn what_is_called_off_is_settled_once_nobody_holds_it() {
    assert_table(
        |delivery| word(delivery.call_off(CancelReason::EndpointDeleted, at(0))),
        &[
            ("due", "(); changed, cancelled"),
            ("not due", "(); changed, cancelled"),
            ("parked, due", "(); changed, cancelled"),
            ("leased", "refused; unchanged, processing"),
            ("lapsed once", "(); changed, cancelled"),
            ("lapsed twice", "(); changed, cancelled"),
            ("lapsed ten times", "(); changed, cancelled"),
            ("lapsed, cancel requested", "(); changed, cancelled"),
            ("failed", "(); changed, cancelled"),
            ("abandoned", "(); changed, cancelled"),
            ("failed long ago", "(); changed, cancelled"),
            ("delivered", "refused; unchanged, delivered"),
            ("cancelled", "refused; unchanged, cancelled"),
            ("expired", "refused; unchanged, expired"),
        ],
    );
}

#[test]
fn only_what_has_been_due_for_the_whole_retention_time_was_held_too_long() {
    let mut delivery = Delivery::accepted(at(1) - RETENTION);
    assert_eq!(delivery.give_up_held(RETENTION, at(0)), Err(NotApplicable(StateName::Pending)));
    delivery.give_up_held(RETENTION, at(1)).unwrap();
    let reason = FailureReason::HeldTooLong;
    let failed = DeliveryState::Failed { reason, expires_at: at(1) + RETENTION, claim: None };
    assert_eq!(delivery.state, failed);
    for (name, state) in states() {
        let mut delivery = in_state(state);
        let given_up = delivery.give_up_held(RETENTION, at(0));
        assert!(given_up.is_err(), "{name}");
    }
}

#[test]
fn what_lapsed_at_a_closed_endpoint_the_whole_retention_time_ago_was_held_too_long() {
    let lapsed = |cancel_requested| {
        let claim_expires_at = at(0) - RETENTION;
        let claim = token(1);
        in_state(DeliveryState::Processing {
            claim,
            claim_expires_at,
            lapses: None,
            cancel_requested,
        })
    };
    let mut delivery = lapsed(false);
    delivery.give_up_held(RETENTION, at(0)).unwrap();
    let (reason, expires_at) = (FailureReason::HeldTooLong, at(0) + RETENTION);
    let failed = DeliveryState::Failed { reason, expires_at, claim: Some(token(1)) };
    assert_eq!(delivery.state, failed);
    assert_eq!(report(&mut delivery, token(1), Verdict::Delivered), "Fenced(6)");
    assert!(lapsed(false).give_up_held(RETENTION, at(-1)).is_err());
    assert!(lapsed(true).give_up_held(RETENTION, at(0)).is_err(), "it is to be cancelled");
}

#[test]
fn a_delivery_that_kills_its_workers_comes_back_ever_more_rarely_and_is_given_up_after_a_day() {
    let schedule = RetrySchedule::default();
    let mut delivery = Delivery::accepted(at(0));
    let mut now = at(0);
    let mut kinds = Vec::new();
    for claim in 1..40 {
        if let DeliveryState::Pending { due_at, .. } = delivery.state {
            now = now.max(due_at);
        }
        let kind = delivery.claim(token(claim), LEASE, &schedule, RETENTION, now).unwrap();
        kinds.push(kind);
        if kind == ClaimKind::Abandoned {
            break;
        }
        now += LEASE;
    }
    assert_eq!(kinds.last(), Some(&ClaimKind::Abandoned));
    assert_eq!(kinds[..3], [ClaimKind::Fresh, ClaimKind::Reclaimed, ClaimKind::Parked]);
    assert!(now >= at(86_400), "not before a day is over");
    assert_eq!(delivery.attempts, 0, "a lapse is not an attempt");
    assert_eq!(delivery.state.name(), StateName::Failed);
}
