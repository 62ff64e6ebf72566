//! Threads with names, so that their processor time can be told apart.

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// Threads of this name, at most 15 characters, as many as there are processors.
pub(super) fn runtime(name: &str) -> anyhow::Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name(name)
        .enable_all()
        .build()
        .with_context(|| format!("no threads {name}"))
}
