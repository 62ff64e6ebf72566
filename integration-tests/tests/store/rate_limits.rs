//! Rate limits (G6).

use std::sync::Arc;
use std::time::Duration;

use domain::rate_limit::RateLimit;
use integration_tests::race::race;
use store::rate_limit::{Limiter, Reservation, Reserved};

use crate::fixture::Fixture;

on_both_stores! {
    racing_reservations_are_granted_exactly_the_limit_and_none_is_lost,
    a_budget_that_one_store_spent_is_spent_for_another,
    each_subject_limiter_and_window_has_a_counter_of_its_own,
    a_counter_stops_before_it_overflows,
    the_window_is_the_databases_and_begins_at_a_multiple_of_its_length,
    counters_of_windows_that_are_over_are_swept_in_batches,
    a_counter_that_somebody_may_still_wait_for_is_not_swept,
}

/// A window that does not end while a test runs, but for one run in a few ten thousands.
const DAY: Duration = Duration::from_hours(24);

#[expect(clippy::expect_used, reason = "the limits of these tests are within their bounds")]
fn of(limiter: Limiter, subject: &str, limit: u32, units: u32) -> Reservation {
    let limit = RateLimit::new(limit, DAY).expect("a limit");
    Reservation { limiter, subject: subject.to_owned(), limit, units }
}

async fn reserve_one(db: &Fixture, reservation: Reservation) -> anyhow::Result<Reserved> {
    let answers = db.store.reserve(&[reservation]).await?;
    anyhow::ensure!(answers.len() == 1, "one answer a reservation");
    Ok(answers[0])
}

/// 16 contestants, who ask for 1 to 16 units each, of two counters in either order: 136 of each,
/// of which 100 and 50 are within the limits.
async fn racing_reservations_are_granted_exactly_the_limit_and_none_is_lost(
    db: Fixture,
) -> anyhow::Result<()> {
    let store = Arc::clone(&db.store);
    let answers = race(1..=16_u32, move |place, units| {
        let store = Arc::clone(&store);
        let (a, b) = (of(Limiter::Source, "a", 100, units), of(Limiter::Endpoint, "b", 50, units));
        async move {
            let turned = place % 2 == 1;
            let asked = if turned { [b, a] } else { [a, b] };
            let mut answers = store.reserve(&asked).await?;
            if turned {
                answers.reverse();
            }
            Ok((units, answers))
        }
    })
    .await?;
    for (counter, limit) in [(0, 100), (1, 50)] {
        let granted: u32 = answers.iter().map(|(_, answers)| answers[counter].granted).sum();
        assert_eq!(granted, limit, "exactly the limit, of counter {counter}");
        let mut spans: Vec<_> =
            answers.iter().map(|(n, answers)| (answers[counter].used - n, *n)).collect();
        spans.sort_unstable();
        let mut expected = 0;
        for (before, units) in spans {
            assert_eq!(before, expected, "each saw the counter of the one before it");
            expected += units;
        }
        assert_eq!(expected, 136);
    }
    let (one, two) = (of(Limiter::Source, "a", 100, 1), of(Limiter::Endpoint, "b", 50, 1));
    let after = db.store.reserve(&[one, two]).await?;
    assert_eq!(after.iter().map(|r| (r.granted, r.used)).collect::<Vec<_>>(), [(0, 137); 2]);
    Ok(())
}

async fn a_budget_that_one_store_spent_is_spent_for_another(db: Fixture) -> anyhow::Result<()> {
    let other = db.another_store().await?;
    let spent = reserve_one(&db, of(Limiter::Source, "a", 10, 9)).await?;
    assert_eq!((spent.granted, spent.used), (9, 9));
    let last = other.reserve(&[of(Limiter::Source, "a", 10, 5)]).await?;
    assert_eq!((last[0].granted, last[0].used), (1, 14), "the first of the five");
    let none = reserve_one(&db, of(Limiter::Source, "a", 10, 1)).await?;
    assert_eq!((none.granted, none.used), (0, 15));
    Ok(())
}

async fn each_subject_limiter_and_window_has_a_counter_of_its_own(
    db: Fixture,
) -> anyhow::Result<()> {
    let asked = [
        of(Limiter::Source, "a", 5, 1),
        of(Limiter::Source, "b", 5, 2),
        of(Limiter::Endpoint, "a", 5, 3),
        of(Limiter::Key, "a", 5, 4),
        // The same counter again in one call.
        of(Limiter::Source, "a", 5, 5),
        of(Limiter::Source, "a", 5, 1),
    ];
    let answers = db.store.reserve(&asked).await?;
    let told: Vec<_> = answers.iter().map(|r| (r.granted, r.used)).collect();
    assert_eq!(told, [(1, 1), (2, 2), (3, 3), (4, 4), (4, 6), (0, 7)]);
    assert_eq!(db.count("rate_limit_counters").await?, 4);
    db.age_rate_limits(DAY).await?;
    let fresh = reserve_one(&db, of(Limiter::Source, "a", 5, 5)).await?;
    assert_eq!((fresh.granted, fresh.used), (5, 5), "the window of yesterday counts no more");
    assert_eq!(db.store.reserve(&[]).await?, []);
    Ok(())
}

async fn a_counter_stops_before_it_overflows(db: Fixture) -> anyhow::Result<()> {
    let most = i32::MAX.unsigned_abs();
    for _ in 0..3 {
        let answer = reserve_one(&db, of(Limiter::Source, "a", 1_000_000, most)).await?;
        assert_eq!(answer.used, most);
    }
    let answer = reserve_one(&db, of(Limiter::Source, "a", 1_000_000, 1_000)).await?;
    assert_eq!((answer.granted, answer.used), (0, most));
    Ok(())
}

async fn the_window_is_the_databases_and_begins_at_a_multiple_of_its_length(
    db: Fixture,
) -> anyhow::Result<()> {
    for seconds in [1, 7, 60, 3_600, 86_400] {
        let window = Duration::from_secs(seconds);
        let subject = format!("window of {seconds} s");
        let limit = RateLimit::new(5, window)?;
        let asked = Reservation { limiter: Limiter::Key, subject, limit, units: 1 };
        let answer = reserve_one(&db, asked.clone()).await?;
        assert!(answer.window_ends_in <= window && !answer.window_ends_in.is_zero());
        let (start, end) = db.rate_limit_window(&asked.subject).await?;
        let length = i64::try_from(window.as_micros())?;
        assert_eq!((start % length, end - start), (0, length), "{seconds} s");
    }
    Ok(())
}

async fn counters_of_windows_that_are_over_are_swept_in_batches(db: Fixture) -> anyhow::Result<()> {
    let old: Vec<_> = (0..5).map(|n| of(Limiter::Source, &format!("old {n}"), 5, 1)).collect();
    db.store.reserve(&old).await?;
    db.age_rate_limits(DAY * 2).await?;
    reserve_one(&db, of(Limiter::Source, "live", 5, 4)).await?;
    let mut swept = Vec::new();
    for _ in 0..4 {
        swept.push(db.store.sweep_rate_limits(2).await?);
    }
    assert_eq!(swept, [2, 2, 1, 0]);
    assert_eq!(db.count("rate_limit_counters").await?, 1);
    let live = reserve_one(&db, of(Limiter::Source, "live", 5, 2)).await?;
    assert_eq!((live.granted, live.used), (1, 6), "the live window goes on");
    Ok(())
}

async fn a_counter_that_somebody_may_still_wait_for_is_not_swept(
    db: Fixture,
) -> anyhow::Result<()> {
    let answer = reserve_one(&db, of(Limiter::Source, "a", 5, 1)).await?;
    // The window ended half a minute ago, by its row.
    db.age_rate_limits(answer.window_ends_in + Duration::from_secs(30)).await?;
    assert_eq!(db.store.sweep_rate_limits(10).await?, 0);
    db.age_rate_limits(Duration::from_secs(31)).await?;
    assert_eq!(db.store.sweep_rate_limits(10).await?, 1);
    Ok(())
}
