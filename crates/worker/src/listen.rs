//! Keeps the store listening for wake-ups, and says once when none will come.

use std::time::Duration;

use store::wake_up::Listening;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::database::Database;

/// When it is worth trying again where notifications do not arrive.
const SILENT: Duration = Duration::from_mins(10);
/// A connection that lived as long as this was a good one.
const GOOD: Duration = Duration::from_secs(10);

/// Runs until the stop. Polling goes on whatever happens here.
pub(crate) async fn listen(database: Database, stop: CancellationToken) {
    let mut backoff = Backoff::of_a_loop();
    let (mut told_silence, mut told_failure) = (false, false);
    loop {
        let began = Instant::now();
        let Some(ended) = stop.run_until_cancelled(database.store().listen()).await else { return };
        if began.elapsed() > GOOD {
            backoff.reset();
        }
        match ended {
            Ok(Listening::Lost) => tracing::debug!("the connection that listens was lost"),
            Ok(Listening::Silent) => {
                if !std::mem::replace(&mut told_silence, true) {
                    tracing::warn!(
                        "wake-ups do not arrive here, so this worker finds what is due by polling \
                         alone; a transaction pooler lies between it and the database"
                    );
                }
                if stop.run_until_cancelled(tokio::time::sleep(SILENT)).await.is_none() {
                    return;
                }
                continue;
            }
            // The dispatcher says that the database is away.
            Err(error) if error.is_transient() => {}
            Err(error) => {
                if !std::mem::replace(&mut told_failure, true) {
                    let error = error.chain();
                    tracing::warn!(error, "wake-ups cannot be received; polling goes on");
                }
            }
        }
        if stop.run_until_cancelled(backoff.wait()).await.is_none() {
            return;
        }
    }
}
