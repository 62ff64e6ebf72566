//! A panic in one task is that task's end, not the worker's.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

/// Runs a future to its end or to its panic, and answers the panic's words. What the future held
/// is dropped: its places are free, and its claims end with their leases.
pub(crate) async fn guarded<F: Future>(future: F) -> Result<F::Output, String> {
    // Whatever a panic left half done is dropped with the future; nothing else is shared mutably.
    AssertUnwindSafe(future).catch_unwind().await.map_err(|panic| words_of(&*panic))
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    literal.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        assert_eq!(guarded(async { 1 }).await, Ok(1));
        let number = 7;
        let panicking = async { panic!("fault {number}") };
        assert_eq!(guarded::<_>(panicking).await, Err::<(), _>("fault 7".to_owned()));
    }
}
