//! `fencepost migrate`: brings a database's schema to this build's version.

mod grants;

use std::process::ExitCode;

use anyhow::Context;
use store::sealing::{Sealer, SealingKey};
use store::{SCHEMA_VERSION, StoreError, StoreOptions};

use crate::command_line::DatabaseArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum Action {
    /// Says whether the schema fits this build, and changes nothing.
    Status,
    /// Prints, or grants, what a role needs to submit or to receive by SQL.
    Grants(grants::Args),
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let url = &args.database.database_url;
    match args.action {
        None => {
            store::migrate(url).await.context("the schema was not migrated")?;
            println!("the schema is at version {SCHEMA_VERSION}");
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Grants(args)) => grants::run(url, &args).await,
        Some(Action::Status) => {
            // No secret is read: any sealer does.
            let sealer = Sealer::new(SealingKey::generate()?, Vec::new());
            let checked = match store::open(url, StoreOptions::new(sealer)).await {
                Ok(store) => store.check().await,
                Err(error) => Err(error),
            };
            match checked {
                Ok(()) => {
                    println!("the schema fits this build (version {SCHEMA_VERSION})");
                    Ok(ExitCode::SUCCESS)
                }
                Err(
                    error @ (StoreError::SchemaOutdated { .. } | StoreError::SchemaTooNew { .. }),
                ) => {
                    println!("{error}");
                    Ok(ExitCode::FAILURE)
                }
                Err(error) => Err(error.into()),
            }
        }
    }
}
