//! Schedules, jitter and `Retry-After`.

use proptest::prelude::*;
use time::macros::datetime;

use super::*;

const NOW: OffsetDateTime = datetime!(2026-07-31 12:00:00 UTC);

fn seconds(value: &str) -> Option<u64> {
    parse_retry_after(value.as_bytes(), NOW).map(|wait| wait.as_secs())
}

#[test]
fn the_default_is_the_schedule_of_standard_webhooks() {
    let schedule = RetrySchedule::default();
    let starts: Vec<u64> = schedule
        .delays()
        .iter()
        .scan(0, |start, delay| {
            *start += delay.as_secs();
            Some(*start)
        })
        .collect();
    // The column "Time since start" of the specification, without its first row.
    let clock = |hours: u64, minutes: u64| hours * 3600 + minutes * 60 + 5;
    assert_eq!(
        starts,
        [
            clock(0, 0),
            clock(0, 5),
            clock(0, 35),
            clock(2, 35),
            clock(7, 35),
            clock(17, 35),
            clock(31, 35),
            clock(51, 35),
            clock(75, 35)
        ]
    );
    assert_eq!(schedule.attempts_max(), 10);
    assert_eq!(RetrySchedule::new(schedule.delays().to_vec()), Ok(schedule));
}

#[test]
fn a_schedule_outside_its_limits_is_refused() {
    let second = Duration::from_secs(1);
    assert_eq!(RetrySchedule::new(vec![]), Err(RetryScheduleError::Empty));
    assert!(RetrySchedule::new(vec![second; 30]).is_ok());
    assert_eq!(
        RetrySchedule::new(vec![second; 31]),
        Err(RetryScheduleError::TooMany { count: 31 })
    );
    assert!(RetrySchedule::new(vec![Duration::ZERO, DELAY_MAX]).is_ok());
    let delay = DELAY_MAX + Duration::from_millis(1);
    let refused = RetrySchedule::new(vec![second, delay]).unwrap_err();
    assert_eq!(refused, RetryScheduleError::DelayTooLong { position: 2, delay });
    assert_eq!(
        refused.to_string(),
        "a retry delay is at most 604800 s long, delay 2 is 604800.001 s"
    );
}

#[test]
fn each_failed_attempt_has_its_delay_until_the_cycle_is_spent() {
    let schedule = RetrySchedule::new([1, 10, 100].map(Duration::from_secs).to_vec()).unwrap();
    let after = |failed| schedule.delay_after(failed).map(|delay| delay.as_secs());
    assert_eq!([0, 1, 2, 3].map(after), [Some(0), Some(1), Some(10), Some(100)]);
    assert_eq!([4, 5, u32::MAX].map(after), [None; 3]);
    assert_eq!(schedule.attempts_max(), 4);
}

#[test]
fn lapses_climb_the_schedule_and_stay_on_its_last_delay() {
    let schedule = RetrySchedule::new([1, 10, 100].map(Duration::from_secs).to_vec()).unwrap();
    let parked = |(lapses, attempts)| schedule.lapse_delay(lapses, attempts).as_secs();
    assert_eq!([(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)].map(parked), [1, 1, 10, 100, 100]);
    assert_eq!([(2, 1), (2, 9), (u32::MAX, u32::MAX)].map(parked), [100, 100, 100]);
}

#[test]
fn jitter_spreads_by_a_fifth_to_either_side() {
    let minute = Duration::from_mins(1);
    for (draw, millis) in [
        (0.0, 48_000),
        (0.25, 54_000),
        (0.5, 60_000),
        (1.0, 72_000),
        (-3.0, 48_000),
        (7.0, 72_000),
        (f64::NAN, 60_000),
        (f64::NEG_INFINITY, 48_000),
        (f64::INFINITY, 72_000),
    ] {
        assert_eq!(jittered(minute, draw), Duration::from_millis(millis), "{draw}");
    }
    assert_eq!(jittered(Duration::ZERO, 0.9), Duration::ZERO);
    assert!(jittered(Duration::MAX, 0.9) <= Duration::MAX);
}

/// Case C022.
#[test]
fn retry_after_is_seconds_or_a_date() {
    for (value, expected) in [
        ("0", Some(0)),
        ("120", Some(120)),
        (" 10 ", Some(10)),
        ("\t10\t", Some(10)),
        ("007", Some(7)),
        ("86400", Some(86_400)),
        ("86401", Some(86_400)),
        ("18446744073709551616", Some(86_400)),
        ("Fri, 31 Jul 2026 12:02:00 GMT", Some(120)),
        (" Fri, 31 Jul 2026 12:02:00 GMT ", Some(120)),
        ("Friday, 31-Jul-26 12:02:00 GMT", Some(120)),
        ("Fri Jul 31 12:02:00 2026", Some(120)),
        ("Sat Aug  1 00:00:00 2026", Some(43_200)),
        ("Thu, 01 Jan 2099 00:00:00 GMT", Some(86_400)),
        ("Fri, 31 Jul 2026 12:00:00 GMT", Some(0)),
        ("Fri, 31 Jul 2026 11:59:59 GMT", Some(0)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(0)),
        ("Sun Nov  6 08:49:37 1994", Some(0)),
        ("soon", None),
        ("", None),
        ("  ", None),
        ("1.5", None),
        ("120, 5", None),
        ("+10", None),
        ("-10", None),
        ("1e3", None),
        ("0x10", None),
        ("10 s", None),
        ("\u{661}\u{662}", None),
        ("\u{a0}10", None),
        ("Fri, 31 Jul 2026 12:02:00", None),
        ("Fri, 31 Jul 2026 12:02:00 UTC", None),
        ("Fri, 31 Jul 2026 12:02:00 +0000", None),
        ("Fri, 31 Jul 2026 25:02:00 GMT", None),
        ("Fri, 31 Feb 2026 12:02:00 GMT", None),
        ("Fri, 1 Jul 2026 12:02:00 GMT", None),
        ("fri, 31 jul 2026 12:02:00 gmt", None),
        ("Fri, 31-Jul-26 12:02:00 GMT", None),
        ("Friday, 31-Jul-26 12:02:00 GMT x", None),
        ("2026-07-31T12:02:00Z", None),
    ] {
        assert_eq!(seconds(value), expected, "{value:?}");
    }
    assert_eq!(seconds(&"9".repeat(8192)), Some(86_400));
    assert_eq!(parse_retry_after(&[0xFF, b'1'], NOW), None);
}

#[test]
fn a_date_counts_from_the_fraction_of_the_current_second() {
    let now = NOW + time::Duration::milliseconds(250);
    assert_eq!(
        parse_retry_after(b"Fri, 31 Jul 2026 12:00:01 GMT", now),
        Some(Duration::from_millis(750))
    );
}

#[test]
fn a_two_digit_year_is_at_most_fifty_years_ahead() {
    let year = |text: &str, now| parse_rfc_850(text, now).map(PrimitiveDateTime::year);
    assert_eq!(year("Friday, 01-Jan-26 00:00:00 GMT", NOW), Some(2026));
    assert_eq!(year("Friday, 01-Jan-76 00:00:00 GMT", NOW), Some(2076));
    assert_eq!(year("Friday, 01-Jan-77 00:00:00 GMT", NOW), Some(1977));
    assert_eq!(year("Friday, 01-Jan-99 00:00:00 GMT", NOW), Some(1999));
    let end_of_century = datetime!(2099-12-31 23:59:00 UTC);
    assert_eq!(year("Friday, 01-Jan-00 00:01:00 GMT", end_of_century), Some(2100));
    assert_eq!(
        parse_retry_after(b"Friday, 01-Jan-00 00:01:00 GMT", end_of_century),
        Some(Duration::from_mins(2))
    );
    // 2000 has this day, 1900 and 2100 have not.
    assert_eq!(year("Tuesday, 29-Feb-00 00:00:00 GMT", NOW), Some(2000));
    assert_eq!(year("Tuesday, 29-Feb-00 00:00:00 GMT", end_of_century), None);
}

#[test]
fn only_a_single_line_counts() {
    let pick = |lines: &[&'static [u8]]| pick_retry_after(lines.iter().copied(), NOW);
    assert_eq!(pick(&[b"120"]), Some(Duration::from_mins(2)));
    assert_eq!(pick(&[]), None);
    assert_eq!(pick(&[b"120", b"120"]), None);
    assert_eq!(pick(&[b"120", b"soon"]), None);
}

proptest! {
    #[test]
    fn a_jittered_delay_stays_within_a_fifth(millis in 0..=604_800_000_u64, draw in any::<f64>()) {
        let delay = Duration::from_millis(millis);
        let spread = jittered(delay, draw);
        let slack = Duration::from_millis(1);
        prop_assert!(spread + slack >= delay * 4 / 5, "{spread:?}");
        prop_assert!(spread <= delay * 6 / 5 + slack, "{spread:?}");
        prop_assert_eq!(spread.subsec_nanos() % 1_000_000, 0);
    }

    #[test]
    fn a_schedule_has_as_many_waits_as_it_says(
        millis in proptest::collection::vec(0..=604_800_000_u64, 1..=30),
        lapses in any::<u32>(),
        attempts in any::<u32>(),
    ) {
        let delays: Vec<_> = millis.into_iter().map(Duration::from_millis).collect();
        let schedule = RetrySchedule::new(delays.clone()).unwrap();
        let waits: Vec<_> = (1..).map_while(|failed| schedule.delay_after(failed)).collect();
        prop_assert_eq!(waits.len() + 1, schedule.attempts_max() as usize);
        prop_assert_eq!(waits, delays.clone());
        prop_assert!(delays.contains(&schedule.lapse_delay(lapses, attempts)));
    }

    #[test]
    fn any_retry_after_is_answered_within_the_cap(value in proptest::collection::vec(any::<u8>(), 0..60)) {
        prop_assert!(parse_retry_after(&value, NOW).is_none_or(|wait| wait <= RETRY_AFTER_MAX));
    }

    #[test]
    fn every_form_of_a_date_means_the_same(offset in 0..86_400_i64) {
        let at = NOW + time::Duration::seconds(offset);
        let rfc_850 = at.format(RFC_850).unwrap();
        for text in [at.format(IMF_FIXDATE).unwrap(), rfc_850, at.format(ASCTIME).unwrap()] {
            prop_assert_eq!(seconds(&text), u64::try_from(offset).ok(), "{}", text);
        }
    }
}
