//! Which database a process uses.

use std::sync::Arc;

use anyhow::Context;
use store::sealing::Sealer;
use store::{Store, StoreOptions};

/// Arguments of the database.
#[derive(Clone, clap::Args)]
pub struct DatabaseArgs {
    /// Where all state is kept: postgres://… or sqlite:PATH.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: String,
}

impl std::fmt::Debug for DatabaseArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may carry a password.
        f.debug_struct("DatabaseArgs").finish_non_exhaustive()
    }
}

impl DatabaseArgs {
    /// Opens the store with its default options.
    ///
    /// # Errors
    /// The address is not usable, or an SQLite file cannot be opened.
    pub async fn open(&self, sealer: Sealer) -> anyhow::Result<Arc<dyn Store>> {
        store::open(&self.database_url, StoreOptions::new(sealer))
            .await
            .context("the database cannot be opened")
    }
}
