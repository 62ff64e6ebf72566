//! A scripted HTTP receiver on loopback: it records every request and answers as it is told.
//!
//! It speaks HTTP/1.1 over its own sockets, because half of what it is for (an answer that never comes,
//! a head that trickles, a reset) is what an HTTP server library exists to prevent. It runs on a thread of
//! its own, so that neither a busy test nor a blocked one changes when it answers.

mod answer;
mod connection;
mod hold;
mod log;
mod request;
mod script;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

pub use self::answer::Answer;
use self::connection::Service;
pub use self::hold::Hold;
use self::log::Log;
pub use self::request::Request;
pub use self::script::{always, sequence};

/// Answers until it is dropped; then its port refuses connections and the open ones are cut.
pub struct Receiver {
    address: SocketAddr,
    log: Arc<Log>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Listens on a free port of 127.0.0.1. The script is asked once for each request, with how many
    /// requests of its `webhook-id` there have been, this one included.
    ///
    /// ```no_run
    /// # fn example() -> anyhow::Result<()> {
    /// use integration_tests::receiver::{Answer, Receiver, always, sequence};
    /// let healthy = Receiver::start(always(200))?;
    /// let recovering = Receiver::start(sequence([Answer::reset(), Answer::status(204)]))?;
    /// let picky = Receiver::start(|request, nth| match request.path() {
    ///     "/gone" => Answer::status(410),
    ///     _ if nth < 3 => Answer::status(503).header("retry-after", "1"),
    ///     _ => Answer::status(200),
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(
        script: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("a port for the receiver")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;

        let log = Arc::new(Log::default());
        let stop = CancellationToken::new();
        let service = Arc::new(Service { script: Box::new(script), log: Arc::clone(&log) });
        let stopped = stop.clone().cancelled_owned();
        let thread = std::thread::Builder::new()
            .name(format!("receiver {}", address.port()))
            .spawn(move || runtime.block_on(connection::accept(listener, service, stopped)))?;
        Ok(Self { address, log, stop, thread: Some(thread) })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `path` begins with a slash.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far, in the order in which they were completely read. Each is recorded before it
    /// is answered.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.log.requests()
    }

    /// Those that carried this `webhook-id`.
    #[must_use]
    pub fn requests_of(&self, webhook_id: &str) -> Vec<Arc<Request>> {
        self.log.requests_of(webhook_id)
    }

    /// The different `webhook-id`s, sorted.
    #[must_use]
    pub fn webhook_ids(&self) -> Vec<String> {
        self.log.webhook_ids()
    }

    /// Waits until at least `count` requests were recorded, and answers with all that are.
    pub async fn wait_for_requests(
        &self,
        count: usize,
        timeout: Duration,
    ) -> anyhow::Result<Vec<Arc<Request>>> {
        self.log.wait("requests", count, timeout, |counts| counts.requests).await?;
        Ok(self.requests())
    }

    /// Waits until requests with at least `count` different `webhook-id`s were recorded.
    pub async fn wait_for_webhook_ids(
        &self,
        count: usize,
        timeout: Duration,
    ) -> anyhow::Result<Vec<String>> {
        self.log.wait("different webhook ids", count, timeout, |counts| counts.webhook_ids).await?;
        Ok(self.webhook_ids())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // It ends at its next await; only a script that hangs could hold it.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("address", &self.address).finish_non_exhaustive()
    }
}
