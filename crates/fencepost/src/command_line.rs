//! What can be asked of the binary.

use clap::{Parser, Subcommand};

use crate::{demo, keys, migrate, serve};

/// Webhooks out, with every race settled by the database.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Api and worker in one process.
    Serve(Box<serve::Args>),
    /// The whole path on sample payloads: submitted, signed, delivered, verified.
    Demo(demo::Args),
    /// Brings a database's schema to this build's version.
    Migrate(migrate::Args),
    /// Keys of the api.
    Keys(keys::Args),
}

/// Where all state is kept when nothing else is said.
pub(crate) const DEFAULT_DATABASE_URL: &str = "sqlite:./fencepost.db";

/// The database that a command works on.
#[derive(Clone, clap::Args)]
pub(crate) struct DatabaseArgs {
    /// Where all state is kept: postgres://… or sqlite:PATH.
    #[arg(
        long,
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL",
        default_value = DEFAULT_DATABASE_URL
    )]
    pub(crate) database_url: String,
}

impl std::fmt::Debug for DatabaseArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may carry a password.
        f.debug_struct("DatabaseArgs").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
