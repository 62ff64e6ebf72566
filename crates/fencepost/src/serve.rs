//! `fencepost serve`: api and worker in one process.
//!
//! On SQLite, the default, everything that is needed is made on the first start: the database, the
//! file of the sealing key, and an admin key, which is printed once. On PostgreSQL nothing is made
//! unasked: a schema that does not fit is refused with the command that mends it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use process::{ConfigArgs, HoldArgs, SealingArgs, StoreArgs};
use store::api_key::NewApiKey;
use store::sealing::Sealer;
use store::sqlite::{self, ServerLock, SqliteStore};
use store::{Backend, Store};

use crate::command_line::DatabaseArgs;
use crate::keys::create_admin_key;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    _config: ConfigArgs,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    sealing: SealingArgs,
    #[command(flatten)]
    hold: HoldArgs,
    #[command(flatten)]
    api: api::Args,
    #[command(flatten)]
    worker: worker::Args,
}

/// What the two halves of the process work on.
struct Opened {
    sealer: Sealer,
    for_api: Arc<dyn Store>,
    for_worker: Arc<dyn Store>,
    /// Held until the process ends.
    _lock: Option<ServerLock>,
    notes: Vec<String>,
    /// The key that was made because there was none.
    first_key: Option<NewApiKey>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = process::stop_on_signal().context("signals cannot be received")?;
    let opened = match Backend::of_url(&args.database.database_url)? {
        Backend::Sqlite => open_sqlite(&args).await?,
        Backend::Postgres => open_postgres(&args).await?,
    };
    args.hold.set(opened.for_worker.as_ref()).await?;
    let policy = args.api.address_policy.policy();
    let api = api::start(args.api.settings(&opened.sealer), opened.for_api, stop.clone())?;
    let worker = worker::start(args.worker.settings(policy), opened.for_worker, stop.clone());
    let told = args.worker.serve_private(worker.health(), stop.clone()).await;
    if told.is_err() {
        stop.cancel();
    }
    println!("listening http://{} private http://{}", api.address(), api.private_address());
    for note in opened.notes {
        println!("{note}");
    }
    if let Some(key) = opened.first_key {
        println!("admin key, shown once: {}", key.reveal());
        println!("{}", what_to_try(api.address(), key.reveal()));
    }
    let (api, worker) = tokio::join!(
        // Should one half end on its own, the other ends with it.
        async { api.finished().await.inspect(|()| stop.cancel()).inspect_err(|_| stop.cancel()) },
        async {
            worker.finished().await.inspect(|()| stop.cancel()).inspect_err(|_| stop.cancel())
        },
    );
    told?;
    api?;
    worker?;
    Ok(ExitCode::SUCCESS)
}

async fn open_sqlite(args: &Args) -> anyhow::Result<Opened> {
    let url = &args.database.database_url;
    let path = sqlite::path_of_url(url)?;
    let lock = SqliteStore::lock_for_server(&path)?;
    let (sealer, key_file) = if let Some(sealer) = args.sealing.sealer()? {
        (sealer, None)
    } else {
        let file = key_file_beside(&path);
        (process::load_or_create_key_file(&file)?, Some(file))
    };
    store::migrate(url).await.context("the schema was not migrated")?;
    let store = store::open(url, args.store.options(sealer.clone())?).await?;
    let mut notes = vec![format!("database {}", path.display())];
    if let Some(file) = key_file {
        let file = file.display();
        notes.push(format!("secrets are sealed with the key in {file}: keep a copy of it"));
    }
    let first_key = if store.has_api_keys().await? {
        None
    } else {
        Some(create_admin_key(&store, "first").await?)
    };
    let for_api = Arc::clone(&store);
    Ok(Opened { sealer, for_api, for_worker: store, _lock: Some(lock), notes, first_key })
}

/// `fencepost.db` has its key in `fencepost.key`.
pub(crate) fn key_file_beside(database: &Path) -> PathBuf {
    database.with_extension("key")
}

fn what_to_try(address: SocketAddr, key: &str) -> String {
    format!(
        "try:\n  curl -sS http://{address}/v1/endpoints -H 'Authorization: Bearer {key}' \\\n    \
         -H 'Content-Type: application/json' -d '{{\"id\":\"orders\",\"url\":\"https://example.com/hook\"}}'"
    )
}

async fn open_postgres(args: &Args) -> anyhow::Result<Opened> {
    let sealer = args.sealing.required()?;
    // The api's threads and the worker's run on different runtimes, and a connection belongs to the
    // one that opened it: each half has its own pools.
    let options = args.store.options(sealer.clone())?;
    let url = &args.database.database_url;
    let for_api = store::open(url, options.clone()).await?;
    let for_worker = store::open(url, options).await?;
    let mut notes = Vec::new();
    match for_worker.check().await {
        Ok(()) if !for_worker.has_api_keys().await? => {
            notes.push("there is no key of the api yet: run `fencepost keys create`".to_owned());
        }
        Ok(()) => {}
        Err(error) if error.is_transient() => {
            let cause = error.chain();
            tracing::warn!(cause, "the database is away; requests get 503 until it is back");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Opened { sealer, for_api, for_worker, _lock: None, notes, first_key: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_file_lies_beside_the_database() {
        let beside = |path| key_file_beside(Path::new(path));
        assert_eq!(beside("./fencepost.db"), Path::new("./fencepost.key"));
        assert_eq!(beside("/var/lib/x"), Path::new("/var/lib/x.key"));
    }
}
