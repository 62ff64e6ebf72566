//! What a process took, and how that is told.

use std::num::ParseIntError;
use std::time::Duration;

use anyhow::Context as _;
use integration_tests::process::ChildProcess;

/// How many peers there are at once: as many as each process takes by default.
pub(crate) const PEERS: usize = 1_024;

/// What all of them may make a process hold: docs/SECURITY.md states half a MiB for each.
const BOUND: u64 = PEERS as u64 * 512 * 1_024;

/// One that has work without end is not waited for longer.
const RESTS_WITHIN_SECONDS: usize = 60;

const MIB: u64 = 1_024 * 1_024;

/// One kind of peer.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) kind: &'static str,
    /// How many there were at once.
    pub(crate) peers: usize,
    /// Before the first came, in bytes.
    pub(crate) before: u64,
    /// The most until the last had gone.
    pub(crate) peak: u64,
}

/// Whether somebody asked: it takes minutes, and more open files than a shell may have.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os("FENCEPOST_HOSTILE_PEERS").is_some()
}

/// The most memory that a process has had resident, in bytes.
pub(crate) fn peak_of(process: &ChildProcess) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()?))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")).context("no VmHWM")?;
    Ok(kibibytes.trim().parse::<u64>()? * 1_024)
}

/// Waits until a process has nothing to do any more: what it was sent, it has looked at.
pub(crate) async fn rests(process: &ChildProcess) -> anyhow::Result<()> {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut taken = None;
    for _ in 0..RESTS_WITHIN_SECONDS {
        seconds.tick().await;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id()?))?;
        // Processor time in user and in system mode, in hundredths of a second: behind the name, which may
        // hold spaces.
        let fields = stat.rsplit_once(") ").context("no name")?.1.split(' ').skip(11).take(2);
        let now = fields.map(str::parse::<u64>).sum::<Result<u64, ParseIntError>>()?;
        if taken.replace(now).is_some_and(|before| now - before < 5) {
            return Ok(());
        }
    }
    Ok(())
}

impl Measured {
    fn more(&self) -> u64 {
        self.peak - self.before
    }

    /// Prints its line of the table.
    #[expect(clippy::print_stdout, reason = "what was measured")]
    pub(crate) fn told(self) -> Self {
        let Self { kind, peers, before, peak } = &self;
        let [before, peak, more, bound] =
            [*before, *peak, self.more(), BOUND].map(|bytes| bytes / MIB);
        println!("| {kind} | {peers} | {before} | {peak} | {more} | {bound} |");
        self
    }
}

/// Prints the head of the table.
#[expect(clippy::print_stdout, reason = "what was measured")]
pub(crate) fn begin(process: &str) {
    println!("| {process}: peers | at once | before, MiB | peak, MiB | more, MiB | bound, MiB |");
    println!("| --- | --- | --- | --- | --- | --- |");
}

/// Fails where the bound was passed.
pub(crate) fn judge(all: &[Measured]) -> anyhow::Result<()> {
    let past: Vec<_> = all.iter().filter(|it| it.more() > BOUND).collect();
    anyhow::ensure!(past.is_empty(), "past the bound: {past:#?}");
    Ok(())
}
