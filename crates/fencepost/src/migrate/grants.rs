//! `fencepost migrate grants --role R`: what a role needs to submit or to receive by SQL, and no more.

use std::process::ExitCode;

use anyhow::{Context, bail};
use store::Backend;
use store::postgres::{DatabaseRole, Right, grant, grants};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// The role, as it stands in `pg_roles`.
    #[arg(long, value_name = "ROLE", value_parser = DatabaseRole::parse)]
    role: DatabaseRole,
    /// What the role may do inside its own transactions: `fencepost.submit`, `fencepost.receive`, or both.
    #[arg(long = "for", value_name = "RIGHT", value_delimiter = ',', default_value = "submit")]
    rights: Vec<Asked>,
    /// Grants it in the database, instead of printing the statements.
    #[arg(long)]
    apply: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Asked {
    /// Write submissions.
    Submit,
    /// Write receipts of inbound events.
    Receive,
}

impl Asked {
    fn right(self) -> Right {
        match self {
            Self::Submit => Right::Submit,
            Self::Receive => Right::Receive,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Receive => "receive",
        }
    }
}

pub(super) async fn run(url: &str, args: &Args) -> anyhow::Result<ExitCode> {
    let rights: Vec<Right> = args.rights.iter().map(|asked| asked.right()).collect();
    if !args.apply {
        for statement in grants(&args.role, &rights) {
            println!("{statement}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if Backend::of_url(url)? == Backend::Sqlite {
        bail!("SQLite has no roles: whoever may write the file may do all of it");
    }
    grant(url, &args.role, &rights).await.context("nothing was granted")?;
    let may: Vec<&str> = args.rights.iter().map(|asked| asked.verb()).collect();
    println!("{} may {}, and read nothing", args.role, may.join(" and "));
    Ok(ExitCode::SUCCESS)
}
