//! `fencepost keys`: keys of the api.
//!
//! Whoever reaches the database may manage all keys, so these commands need none.

mod list;
mod reseal;
mod revoke;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use domain::id::PublicId;
use domain::label::Label;
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
    /// Makes a key and prints it, once, on standard output.
    Create(Create),
    /// Shows all keys, newest first.
    List(list::Args),
    /// Seals all secrets anew with the first of the sealing keys; then the others are needed no more.
    Reseal(reseal::Args),
    /// Ends a key: the next request with it is refused.
    Revoke(revoke::Args),
}

#[derive(Debug, clap::Args)]
struct Create {
    /// A label for people [default: the role].
    #[arg(long, value_parser = Label::parse)]
    name: Option<Label>,
    /// What it may do: `admin` everything, `publish` submit and read, `read` read all but payloads.
    #[arg(long, default_value = "admin", value_parser = role)]
    role: Role,
    /// Binds the key to the application with this id [default: all applications].
    #[arg(long, value_name = "ID", value_parser = PublicId::parse)]
    application: Option<PublicId>,
    #[command(flatten)]
    database: DatabaseArgs,
}

fn role(text: &str) -> Result<Role, String> {
    let names = Role::ALL.map(Role::as_str).join(", ");
    Role::parse(text).ok_or_else(|| format!("must be one of {names}"))
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Create(args) => create(&args).await,
        Action::List(args) => list::run(&args).await,
        Action::Reseal(args) => reseal::run(args).await,
        Action::Revoke(args) => revoke::run(&args).await,
    }
}

async fn create(args: &Create) -> anyhow::Result<ExitCode> {
    let store = open(&args.database).await?;
    let application = match &args.application {
        None => None,
        Some(id) => {
            let found = store.find_application(id).await?;
            Some(found.with_context(|| format!("no application has the id {id}"))?)
        }
    };
    let name = args.name.as_ref().map_or(args.role.as_str(), Label::as_str);
    let key = NewApiKey::generate(name, args.role, application)?;
    store.create_api_key(&key).await.context("the key was not stored")?;
    println!("{}", key.reveal());
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn open(database: &DatabaseArgs) -> anyhow::Result<Arc<dyn Store>> {
    // No secret is sealed or opened: any sealer does.
    let options = StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new()));
    let store = store::open(&database.database_url, options).await?;
    store.check().await?;
    Ok(store)
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
