use std::sync::Arc;

use tokio::sync::Semaphore;

/// Keeps answers back until the test lets them go, so that a test orders what happens instead of
/// guessing how long it takes.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example() -> anyhow::Result<()> {
/// use integration_tests::receiver::{Answer, Hold, Receiver, always};
/// let hold = Hold::new();
/// let receiver = Receiver::start(always(Answer::status(200).hold(&hold)))?;
/// // … submit …
/// receiver.wait_for_requests(1, Duration::from_secs(10)).await?;
/// // The request has arrived and is unanswered: whatever must happen in between, happens here.
/// hold.release(1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Hold {
    passes: Arc<Semaphore>,
}

impl Hold {
    #[must_use]
    pub fn new() -> Self {
        Self { passes: Arc::new(Semaphore::new(0)) }
    }

    /// Lets that many answers go, first come first served, also some that are not held yet.
    pub fn release(&self, answers: usize) {
        self.passes.add_permits(answers);
    }

    /// Lets all go, and from now on holds nothing.
    pub fn release_all(&self) {
        self.passes.close();
    }

    pub(super) async fn released(&self) {
        // A closed semaphore is the release of all.
        if let Ok(pass) = self.passes.acquire().await {
            pass.forget();
        }
    }
}

impl Default for Hold {
    fn default() -> Self {
        Self::new()
    }
}
