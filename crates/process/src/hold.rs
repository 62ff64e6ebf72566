//! Setting the hold before anything is claimed.

use anyhow::Context;
use store::Store;

/// Arguments of the hold.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct HoldArgs {
    /// Set the hold before the first claim: nothing is claimed until `fencepost hold off`.
    #[arg(long, env = "FENCEPOST_HOLD", value_name = "true|false", default_value_t = false)]
    #[arg(action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub hold: bool,
}

impl HoldArgs {
    /// Sets the hold if that is asked for. It is set when this returns: for every process, not for this
    /// one alone.
    ///
    /// # Errors
    /// The database did not answer. Whoever asked for a hold must not go on without it.
    pub async fn set(self, store: &dyn Store) -> anyhow::Result<()> {
        if !self.hold {
            return Ok(());
        }
        store.set_hold(true, Some("--hold")).await.context("the hold was not set")?;
        tracing::warn!("the hold is on: nothing is claimed until `fencepost hold off`");
        Ok(())
    }
}
