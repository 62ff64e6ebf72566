//! Api and worker as processes of their own: one binary, started under the names that the separate
//! binaries have.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::rate_limit::RATE_UNITS_MAX;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::bench::usage;

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

/// What a process is started from, and what it is told by variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// The binary of this process, where nothing else is said.
    program: Option<PathBuf>,
    variables: Vec<(String, String)>,
}

impl Environment {
    /// What a process on a scratch database is told. All else is its default; only the limit of how much
    /// may come in from one address is as high as it goes, and still counted.
    pub(crate) fn on(url: &str, sealing_key: &str) -> Self {
        Self::default()
            .with("DATABASE_URL", url)
            .with("FENCEPOST_SEALING_KEY", sealing_key)
            .with("RUST_LOG", "warn")
            .with("FENCEPOST_LISTEN", "127.0.0.1:0")
            .with("FENCEPOST_PRIVATE_LISTEN", "127.0.0.1:0")
            .with("FENCEPOST_WORKER_PRIVATE_LISTEN", "127.0.0.1:0")
            .with("FENCEPOST_SOURCE_RATE", &format!("{RATE_UNITS_MAX}/1s"))
    }

    /// Another binary than that of this process.
    pub(crate) fn of(mut self, program: &Path) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    /// A later value of one name wins.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A process of ours, killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    id: u32,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// The api, and where it is served.
    pub(crate) async fn api(environment: &Environment) -> anyhow::Result<(Self, SocketAddr)> {
        let mut process = Self::start(API, environment)?;
        let address = process.line("listening http://").await?;
        let address = address.split(' ').next().unwrap_or_default().parse()?;
        Ok((process, address))
    }

    /// Api and worker in one process, and where the api is served.
    pub(crate) async fn serve(environment: &Environment) -> anyhow::Result<(Self, SocketAddr)> {
        let mut process = Self::start(SERVE, environment)?;
        let address = process.line("listening http://").await?;
        let address = address.split(' ').next().unwrap_or_default().parse()?;
        Ok((process, address))
    }

    /// The api's server with one call that does nothing, and where it is served.
    pub(crate) async fn trivial(environment: &Environment) -> anyhow::Result<(Self, SocketAddr)> {
        let mut process = Self::start(TRIVIAL, environment)?;
        let address = process.line("listening http://").await?.parse()?;
        Ok((process, address))
    }

    /// A worker that claims.
    pub(crate) async fn worker(environment: &Environment) -> anyhow::Result<Self> {
        let mut process = Self::start(WORKER, environment)?;
        process.line("worker ready").await?;
        Ok(process)
    }

    fn start(name: &'static str, environment: &Environment) -> anyhow::Result<Self> {
        let binary = match &environment.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("where this binary lies is not known")?,
        };
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
            .envs(environment.variables.iter().map(|(name, value)| (name, value)))
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
    pub(crate) fn used(&self) -> Option<Duration> {
        usage::of_process(self.id)
    }

    /// The most memory that it has had, in bytes.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        usage::peak_memory(self.id)
    }

    /// Ends it at once, as a crash would. Its sessions end with it.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        timeout(STOP, self.child.wait())
            .await
            .with_context(|| format!("{} lives", self.name))??;
        Ok(())
    }
}
