//! Explicit transactions, which must end whatever becomes of their caller.

use tracing::Instrument;

use crate::StoreError;

/// Runs the work on a task of its own, which goes on when its caller goes away.
pub(super) async fn undropped<T: Send + 'static>(
    operation: &'static str,
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::spawn(work.in_current_span()).await {
        Ok(answer) => answer,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Nobody aborts the task: the runtime is shutting down.
            Err(ended) => Err(StoreError::Unavailable { operation, source: Box::new(ended) }),
        },
    }
}
