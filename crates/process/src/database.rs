//! Which database a process uses.

use std::sync::Arc;

use anyhow::Context;
use store::Store;
use store::sealing::Sealer;

use crate::StoreArgs;

/// Arguments of the database.
#[derive(Clone, clap::Args)]
pub struct DatabaseArgs {
    /// Where all state is kept: postgres://… or sqlite:PATH.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: String,
    /// What else is told of it.
    #[command(flatten)]
    pub store: StoreArgs,
}

impl std::fmt::Debug for DatabaseArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may carry a password.
        f.debug_struct("DatabaseArgs").field("store", &self.store).finish_non_exhaustive()
    }
}

impl DatabaseArgs {
    /// Opens the store.
    ///
    /// # Errors
    /// The address is not usable, an SQLite file cannot be opened, or two settings do not fit.
    pub async fn open(&self, sealer: Sealer) -> anyhow::Result<Arc<dyn Store>> {
        store::open(&self.database_url, self.store.options(sealer)?)
            .await
            .context("the database cannot be opened")
    }
}
