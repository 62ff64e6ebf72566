//! What the figures are made of. Pure.

use std::time::Duration;

/// The middle one, or the mean of the two in the middle. None of nothing.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = half.checked_sub(1).and_then(|below| sorted.get(below)).copied()?;
    Some(f64::midpoint(lower, upper))
}

/// How many a second go through parts that share the same processors, when each alone does so many:
/// the times add up.
pub(super) fn serial_limit(alone: &[f64]) -> f64 {
    let seconds: f64 = alone.iter().map(|rate| 1.0 / rate).sum();
    1.0 / seconds
}

/// How many a second get through a section that one has at a time, for so many milliseconds. None of a
/// section that takes no time or less: it was not measured.
pub(super) fn nominal_ceiling(critical_ms: f64) -> Option<f64> {
    (critical_ms > 0.0).then(|| 1_000.0 / critical_ms)
}

/// The value below which this share of the sorted values lies, by nearest rank. None of nothing.
pub(super) fn percentile(sorted: &[Duration], share: f64) -> Option<Duration> {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let rank = (share * sorted.len() as f64).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is from nothing to the length"
    )]
    let place = (rank as usize).saturating_sub(1).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied()
}

/// The mean. None of nothing.
pub(super) fn mean(values: &[Duration]) -> Option<Duration> {
    values.iter().sum::<Duration>().checked_div(u32::try_from(values.len()).ok()?)
}

/// So many in that time, a second.
pub(super) fn per_second(count: u64, elapsed: Duration) -> f64 {
    of_count(count) / elapsed.as_secs_f64()
}

/// A total for each of so many; nothing for none.
pub(super) fn each(total: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { total / of_count(count) }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn of_count(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn a_median_is_the_middle_in_order_and_of_an_even_number_the_mean_of_two() {
        assert_eq!(median(&[]), None);
        assert!(near(median(&[7.0]).unwrap(), 7.0));
        assert!(near(median(&[9.0, 1.0, 2.0]).unwrap(), 2.0));
        assert!(near(median(&[4.0, 1.0, 2.0, 100.0]).unwrap(), 3.0));
    }

    #[test]
    fn parts_in_a_row_are_slower_than_the_slowest_of_them() {
        assert!(near(serial_limit(&[1_000.0]), 1_000.0));
        assert!(near(serial_limit(&[1_000.0, 1_000.0]), 500.0));
        assert!(near(serial_limit(&[3_000.0, 6_000.0]), 2_000.0));
        assert!(serial_limit(&[10_000.0, 100.0]) < 100.0);
    }

    #[test]
    fn a_section_of_two_milliseconds_lets_five_hundred_a_second_through_and_none_is_refused() {
        assert!(near(nominal_ceiling(2.0).unwrap(), 500.0));
        assert!(near(nominal_ceiling(4.0).unwrap(), 250.0));
        for nothing in [0.0, -0.0, -2.0, f64::NAN] {
            assert_eq!(nominal_ceiling(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_percentile_is_a_value_that_was_seen() {
        let millis: Vec<_> = (1..=1_000).map(Duration::from_millis).collect();
        assert_eq!(percentile(&millis, 0.5), Some(Duration::from_millis(500)));
        assert_eq!(percentile(&millis, 0.99), Some(Duration::from_millis(990)));
        assert_eq!(percentile(&millis, 0.999), Some(Duration::from_millis(999)));
        assert_eq!(percentile(&millis, 1.0), Some(Duration::from_secs(1)));
        assert_eq!(percentile(&millis[..1], 0.999), Some(Duration::from_millis(1)));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_mean_is_the_total_by_the_count_and_there_is_none_of_nothing() {
        let values = [1, 2, 6].map(Duration::from_millis);
        assert_eq!(mean(&values), Some(Duration::from_millis(3)));
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn a_cost_of_nothing_is_nothing() {
        assert!(near(each(300.0, 3), 100.0));
        assert!(near(each(300.0, 0), 0.0));
        assert!(near(per_second(500, Duration::from_millis(250)), 2_000.0));
    }
}
