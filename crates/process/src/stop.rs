//! SIGTERM and SIGINT.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by the first SIGTERM or SIGINT. A second one ends the process at once.
///
/// # Errors
/// The process may not install signal handlers.
pub fn stop_on_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let cancelled = stop.clone();
    tokio::spawn(async move {
        for again in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if again {
                // 128 + SIGTERM, as a shell reports a process that a signal ended.
                std::process::exit(143);
            }
            tracing::info!("stopping; a second signal ends the process at once");
            cancelled.cancel();
        }
    });
    Ok(stop)
}
