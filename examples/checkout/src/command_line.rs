//! What can be asked of the checkout.

use clap::{Parser, Subcommand};

use crate::{init, reserve, restock};

/// Sells from a stock, and tells of it by webhook.
#[derive(Parser)]
#[command(name = "checkout", version)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The PostgreSQL database of the application: postgres://…
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    #[arg(default_value = "postgres://localhost/checkout")]
    pub(crate) database_url: String,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Makes the tables, a stock, and the endpoint that is told of reservations.
    Init(init::Args),
    /// Takes a quantity from the stock, once for each operation key.
    Reserve(reserve::Args),
    /// Puts a quantity into the stock.
    Restock(restock::Args),
    /// Shows stock and reservations.
    Show,
}

/// What is sold if nobody says.
pub(crate) const DEFAULT_SKU: &str = "widget";
