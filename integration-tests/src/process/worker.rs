use std::path::Path;

use super::child::START_UP;
use super::{ChildProcess, Settings};

/// A running worker that has said that it claims.
#[derive(Debug)]
pub struct Worker {
    pub process: ChildProcess,
    pub name: String,
    /// Readiness and metrics.
    pub private_url: String,
}

impl Worker {
    /// `name` tells the output of several workers apart.
    pub async fn start(
        binary: impl AsRef<Path>,
        name: &str,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let mut process = ChildProcess::start(name, binary, &[], settings)?;
        let ready = |line: &str| line.strip_prefix("worker ready private ").map(str::to_owned);
        let private_url = process.wait_for_line("that it is ready", START_UP, ready).await?;
        Ok(Self { process, name: name.to_owned(), private_url })
    }
}
