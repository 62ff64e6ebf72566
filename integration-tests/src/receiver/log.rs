use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;

use super::Request;

/// Everything that was received, and the signal that more was.
#[derive(Debug, Default)]
pub(super) struct Log {
    recorded: Mutex<Recorded>,
    counts: watch::Sender<Counts>,
}

#[derive(Debug, Default)]
struct Recorded {
    requests: Vec<Arc<Request>>,
    by_webhook_id: BTreeMap<String, Vec<Arc<Request>>>,
    without_webhook_id: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: usize,
    pub(super) webhook_ids: usize,
}

impl Log {
    /// How many requests of its `webhook-id` (or without one) there are now.
    pub(super) fn record(&self, request: Arc<Request>) -> usize {
        let mut recorded = self.lock();
        let nth = if let Some(id) = request.header("webhook-id") {
            let same = recorded.by_webhook_id.entry(id.to_owned()).or_default();
            same.push(Arc::clone(&request));
            same.len()
        } else {
            recorded.without_webhook_id += 1;
            recorded.without_webhook_id
        };
        recorded.requests.push(request);
        // Sent under the lock, so that counts never go back.
        self.counts.send_replace(Counts {
            requests: recorded.requests.len(),
            webhook_ids: recorded.by_webhook_id.len(),
        });
        nth
    }

    pub(super) fn requests(&self) -> Vec<Arc<Request>> {
        self.lock().requests.clone()
    }

    pub(super) fn requests_of(&self, webhook_id: &str) -> Vec<Arc<Request>> {
        self.lock().by_webhook_id.get(webhook_id).cloned().unwrap_or_default()
    }

    pub(super) fn webhook_ids(&self) -> Vec<String> {
        self.lock().by_webhook_id.keys().cloned().collect()
    }

    pub(super) async fn wait(
        &self,
        what: &str,
        count: usize,
        timeout: Duration,
        which: impl Fn(&Counts) -> usize,
    ) -> anyhow::Result<()> {
        let mut counts = self.counts.subscribe();
        let reached = counts.wait_for(|counts| which(counts) >= count);
        let in_time = tokio::time::timeout(timeout, reached).await.map(drop);
        in_time.with_context(|| {
            let so_far = which(&self.counts.borrow());
            format!("{so_far} of {count} {what} were received within {timeout:?}")
        })
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
