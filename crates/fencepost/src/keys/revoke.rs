//! `fencepost keys revoke ID`: the next request with that key is refused.

use std::process::ExitCode;

use anyhow::bail;
use store::api_key::Revocation;
use uuid::Uuid;

use crate::command_line::DatabaseArgs;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The key's id, as `fencepost keys list` shows it.
    id: Uuid,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = super::open(&args.database).await?;
    match store.revoke_api_key(None, args.id).await? {
        Revocation::Revoked => println!("revoked"),
        Revocation::WasRevoked => println!("it was revoked before"),
        Revocation::LastAdmin => {
            bail!("it is the last admin key of all applications: run `fencepost keys create` first")
        }
        Revocation::Missing => bail!("no key has this id, see `fencepost keys list`"),
    }
    Ok(ExitCode::SUCCESS)
}
