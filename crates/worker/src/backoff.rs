//! How long to wait before the database is asked again.

use std::time::Duration;

use domain::delivery::retry::jittered;

const FIRST_RECORD: Duration = Duration::from_millis(50);
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Waits that double from the first to 5 s, each spread by 20 %.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    next: Duration,
}

impl Backoff {
    /// For loops that look for work: from 100 ms.
    pub(crate) fn of_a_loop() -> Self {
        Self { first: FIRST, next: FIRST }
    }

    /// For results that wait to be recorded: from 50 ms.
    pub(crate) fn of_a_record() -> Self {
        Self { first: FIRST_RECORD, next: FIRST_RECORD }
    }

    /// The next wait. `draw` is a random number from `[0, 1)`.
    pub(crate) fn next(&mut self, draw: f64) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(LONGEST);
        jittered(wait, draw)
    }

    /// What was asked for came: the next wait is the first again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// Waits.
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.next(fastrand::f64())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_seconds_and_start_again() {
        let mut backoff = Backoff::of_a_loop();
        let waits: Vec<u128> = (0..8).map(|_| backoff.next(0.5).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        backoff.reset();
        assert_eq!(backoff.next(0.5), FIRST);
        assert_eq!(Backoff::of_a_record().next(0.0), Duration::from_millis(40));
    }
}
