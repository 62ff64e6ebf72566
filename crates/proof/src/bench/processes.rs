//! Api and worker as processes of their own: the same binary, started under the names that the
//! separate binaries have.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::usage;

/// How long a process may take to say that it is ready.
const START_UP: Duration = Duration::from_secs(30);
/// How long it may take to end when it is told to.
const STOP: Duration = Duration::from_secs(40);
/// What it may see of this process's environment.
const INHERITED: [&str; 3] = ["PATH", "HOME", "RUST_BACKTRACE"];

/// The name under which the binary is the api.
pub const API: &str = "fencepost-api";
/// The name under which the binary is the worker.
pub const WORKER: &str = "fencepost-worker";
/// The name under which the binary serves one trivial call with the api's server.
pub const TRIVIAL: &str = "fencepost-trivial";

/// The command that runs both in one process.
const SERVE: &str = "serve";

/// What a process is told by variables.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment(Vec<(String, String)>);

impl Environment {
    /// A later value of one name wins.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A process of ours, killed when it is dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    id: u32,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// The api, and where it is served.
    pub(super) async fn api(environment: &Environment) -> anyhow::Result<(Self, SocketAddr)> {
        let mut process = Self::start(API, environment)?;
        let address = process.line("listening http://").await?;
        let address = address.split(' ').next().unwrap_or_default().parse()?;
        Ok((process, address))
    }

    /// Api and worker in one process, and where the api is served.
    pub(super) async fn serve(environment: &Environment) -> anyhow::Result<(Self, SocketAddr)> {
        let mut process = Self::start(SERVE, environment)?;
        let address = process.line("listening http://").await?;
        let address = address.split(' ').next().unwrap_or_default().parse()?;
        Ok((process, address))
    }

    /// The api's server with one call that does nothing, and where it is served.
    pub(super) async fn trivial(environment: &Environment) -> anyhow::Result<(Self, SocketAddr)> {
        let mut process = Self::start(TRIVIAL, environment)?;
        let address = process.line("listening http://").await?.parse()?;
        Ok((process, address))
    }

    /// A worker that claims.
    pub(super) async fn worker(environment: &Environment) -> anyhow::Result<Self> {
        let mut process = Self::start(WORKER, environment)?;
        process.line("worker ready").await?;
        Ok(process)
    }

    fn start(name: &'static str, environment: &Environment) -> anyhow::Result<Self> {
        let binary = std::env::current_exe().context("where this binary lies is not known")?;
        let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut command = Command::new(binary);
        if name == SERVE {
            command.arg(SERVE);
        } else {
            command.arg0(name);
        }
        let mut child = command
            .env_clear()
            .envs(inherited)
            .envs(environment.0.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name} was not started"))?;
        let id = child.id().with_context(|| format!("{name} has ended"))?;
        let output = child.stdout.take().context("it has no output")?;
        Ok(Self { name, child, id, lines: BufReader::new(output).lines() })
    }

    /// Waits for a line that begins so, and answers what follows there.
    async fn line(&mut self, start: &str) -> anyhow::Result<String> {
        let name = self.name;
        let found = timeout(START_UP, async {
            while let Some(line) = self.lines.next_line().await? {
                if let Some(rest) = line.strip_prefix(start) {
                    return Ok(rest.to_owned());
                }
            }
            bail!("{name} ended before it was ready")
        });
        found.await.with_context(|| format!("{name} was not ready within {START_UP:?}"))?
    }

    /// Processor time that it has taken.
    pub(super) fn used(&self) -> Option<Duration> {
        usage::of_process(self.id)
    }

    /// The most memory that it has had, in bytes.
    pub(super) fn peak_memory(&self) -> Option<u64> {
        usage::peak_memory(self.id)
    }

    /// Ends it at once, as a crash would. Its sessions end with it.
    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        timeout(STOP, self.child.wait())
            .await
            .with_context(|| format!("{} lives", self.name))??;
        Ok(())
    }
}
