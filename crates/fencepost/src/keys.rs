//! `fencepost keys`: keys of the api.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use store::api_key::{NewApiKey, Role};
use store::sealing::{Sealer, SealingKey};
use store::{Store, StoreOptions};

use crate::command_line::DatabaseArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Makes an admin key and prints it, once, on standard output.
    Create(Create),
}

#[derive(Debug, clap::Args)]
struct Create {
    /// A label for people.
    #[arg(long, default_value = "admin", value_parser = name)]
    name: String,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// At most 200 characters, none of them a control character.
fn name(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    if length == 0 || length > 200 || text.chars().any(char::is_control) {
        return Err("has 1 to 200 characters, none of them a control character".to_owned());
    }
    Ok(text.to_owned())
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Action::Create(create) = args.action;
    // No secret is sealed or opened: any sealer does.
    let options = StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new()));
    let store = store::open(&create.database.database_url, options).await?;
    store.check().await?;
    println!("{}", create_admin_key(&store, &create.name).await?.reveal());
    Ok(ExitCode::SUCCESS)
}

/// Makes an admin key. Only its digest is stored.
pub(crate) async fn create_admin_key(
    store: &Arc<dyn Store>,
    name: &str,
) -> anyhow::Result<NewApiKey> {
    let key = NewApiKey::generate(name, Role::Admin, None)?;
    store.create_api_key(&key).await.context("the key was not stored")?;
    Ok(key)
}
