//! `fencepost keys reseal`: seals all secrets with the first of the sealing keys.
//!
//! It may be run beside the service, be stopped at any point and be run again. When it ends well, the
//! other sealing keys are needed no more.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use process::SealingArgs;
use store::sealing::Sealer;
use store::secret::Resealing;
use store::sqlite::path_of_url;
use store::{Backend, Store, StoreError, StoreOptions};
use uuid::Uuid;

use crate::command_line::DatabaseArgs;
use crate::serve::key_file_beside;

/// How many are read and written at once.
const BATCH: u16 = 100;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    sealing: SealingArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let url = &args.database.database_url;
    let sealer = sealer(&args.sealing, url)?;
    let key = sealer.current_id().to_owned();
    let store = store::open(url, StoreOptions::new(sealer)).await?;
    store.check().await?;

    // Until a pass finds nothing: a service that still seals with an older key may go on meanwhile.
    let mut resealed = 0_u32;
    let left = loop {
        let pass = pass(&store).await.context("stopped half-way; run it again")?;
        resealed = resealed.saturating_add(pass.resealed);
        if pass.resealed == 0 && pass.overtaken == 0 {
            break pass.unopened;
        }
    };
    println!("sealed anew: {resealed}, with key {key}");
    for it in &left {
        let what = it.secret.map_or_else(|| "headers".to_owned(), |id| format!("secret {id}"));
        eprintln!("left as it was: {what} of {}: {}", it.owner, it.why);
    }
    if left.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!("{} could not be opened with the keys that were given", left.len())
}

/// Everything once, from the first to the last.
async fn pass(store: &Arc<dyn Store>) -> Result<Resealing, StoreError> {
    let mut total = Resealing::default();
    all_batches(&mut total, |after| store.reseal_secrets(after, BATCH)).await?;
    all_batches(&mut total, |after| store.reseal_source_secrets(after, BATCH)).await?;
    all_batches(&mut total, |after| store.reseal_headers(after, BATCH)).await?;
    Ok(total)
}

/// Each batch goes on behind the last row of the one before, until one has no row.
async fn all_batches<F>(
    total: &mut Resealing,
    next: impl Fn(Option<Uuid>) -> F,
) -> Result<(), StoreError>
where
    F: Future<Output = Result<Resealing, StoreError>>,
{
    let mut after = None;
    loop {
        let batch = next(after).await?;
        after = batch.last;
        total.add(batch);
        if after.is_none() {
            return Ok(());
        }
    }
}

/// The sealer that the arguments ask for; else, on SQLite, that of the key file beside the database.
fn sealer(sealing: &SealingArgs, url: &str) -> anyhow::Result<Sealer> {
    if let Some(sealer) = sealing.sealer()? {
        return Ok(sealer);
    }
    if Backend::of_url(url)? == Backend::Sqlite {
        let file = key_file_beside(Path::new(&path_of_url(url)?));
        if file.exists() {
            return process::load_or_create_key_file(&file);
        }
    }
    sealing.required()
}
