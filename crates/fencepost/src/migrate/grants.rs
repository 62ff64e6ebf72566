//! `fencepost migrate grants --role R`: what a role needs to submit by SQL, and no more.

use std::process::ExitCode;

use anyhow::{Context, bail};
use store::Backend;
use store::postgres::{PublisherRole, grant_publisher, publisher_grants};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// The role, as it stands in `pg_roles`.
    #[arg(long, value_name = "ROLE", value_parser = PublisherRole::parse)]
    role: PublisherRole,
    /// Grants it in the database, instead of printing the statements.
    #[arg(long)]
    apply: bool,
}

pub(super) async fn run(url: &str, args: &Args) -> anyhow::Result<ExitCode> {
    if !args.apply {
        for statement in publisher_grants(&args.role) {
            println!("{statement}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if Backend::of_url(url)? == Backend::Sqlite {
        bail!("SQLite has no roles: whoever may write the file may submit");
    }
    grant_publisher(url, &args.role).await.context("nothing was granted")?;
    println!("{} may submit, and read nothing", args.role);
    Ok(ExitCode::SUCCESS)
}
