use std::io::{self, PipeWriter};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::{Child, Command};

use super::Settings;
use super::output::{Output, Stream};

pub(super) const START_UP: Duration = Duration::from_secs(30);

/// How long the kernel may take to end what was killed.
const KILLED: Duration = Duration::from_secs(10);

/// What a process of ours may see of the environment of the tests.
const INHERITED: [&str; 4] = ["PATH", "HOME", "RUST_LOG", "RUST_BACKTRACE"];

/// A process that does not outlive its test: dropping kills it.
#[derive(Debug)]
pub struct ChildProcess {
    name: String,
    child: Child,
    output: Arc<Output>,
    readers: Vec<JoinHandle<()>>,
    /// Its end tells the process that the test is gone ([`end_with_the_test`](super::end_with_the_test)).
    _stdin: PipeWriter,
}

impl ChildProcess {
    /// Needs a runtime, whose end is the end of the process too. `name` stands before its lines.
    pub fn start(
        name: &str,
        binary: impl AsRef<Path>,
        arguments: &[&str],
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let (stdin, stdin_writer) = io::pipe()?;
        let (stdout_reader, stdout) = io::pipe()?;
        let (stderr_reader, stderr) = io::pipe()?;
        let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        // The command holds this process's copies of the pipes' far ends: it is dropped at once.
        let child = Command::new(binary.as_ref())
            .args(arguments)
            .env_clear()
            .envs(inherited)
            .envs(settings.variables().iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr))
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {name}: {}", binary.as_ref().display()))?;
        let output = Output::new(name);
        let readers = vec![
            output.read(Stream::Stdout, stdout_reader)?,
            output.read(Stream::Stderr, stderr_reader)?,
        ];
        Ok(Self { name: name.to_owned(), child, output, readers, _stdin: stdin_writer })
    }

    /// Waits for a line of the standard output that `pick` takes. That the process ends first is an error.
    pub async fn wait_for_line<T>(
        &mut self,
        what: &str,
        timeout: Duration,
        pick: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let failure = match tokio::time::timeout(timeout, self.output.line(pick)).await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => format!("before it ended: {}", self.wait_exit(timeout).await?),
            Err(_) => format!("within {timeout:?}"),
        };
        self.stop_now();
        let lines = self.output.lines().join("\n");
        anyhow::bail!("{} did not print {what} {failure}\n{lines}", self.name)
    }

    /// SIGKILL: no warning, nothing flushed. Returns when the process is gone.
    pub async fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        self.child.start_kill().with_context(|| format!("killing {}", self.name))?;
        self.wait_exit(KILLED).await
    }

    /// SIGTERM: asks the process to end in order. [`wait_exit`](Self::wait_exit) tells when it has.
    pub async fn terminate(&self) -> anyhow::Result<()> {
        let id = self.id()?.to_string();
        // The shell's own `kill`: the one of the standard library knows SIGKILL only.
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &id]).status().await?;
        anyhow::ensure!(sent.success(), "{} could not be signalled", self.name);
        Ok(())
    }

    /// Its number, while it runs. Not yet waited for, so the number is not another process's by now.
    pub fn id(&self) -> anyhow::Result<u32> {
        self.child.id().with_context(|| format!("{} has ended", self.name))
    }

    /// Waits until the process has ended and all that it printed is read.
    pub async fn wait_exit(&mut self, timeout: Duration) -> anyhow::Result<ExitStatus> {
        let (child, output) = (&mut self.child, &self.output);
        let ended = async { tokio::join!(child.wait(), output.ended()).0 };
        let status = tokio::time::timeout(timeout, ended).await;
        Ok(status.with_context(|| format!("{} did not end within {timeout:?}", self.name))??)
    }

    /// The last lines of both outputs.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.output.lines()
    }

    /// Kills, and reads what was printed to its end.
    fn stop_now(&mut self) {
        // An error says that it has ended already.
        let _ = self.child.start_kill();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.stop_now();
        self.output.print();
    }
}
