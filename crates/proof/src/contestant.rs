//! A contestant in a process of its own: this program, started again.
//!
//! It is told what to do line by line on its standard input, and answers each line by one. The end of its
//! input is its own. The first line carries the database's address, which may hold a password and so
//! stands neither among its arguments nor in its environment.

mod inbox;
mod orders;

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use domain::rate_limit::RateLimit;
use serde::{Deserialize, Serialize};
use store::Store;
use store::rate_limit::{Limiter, Reservation};
use store::sealing::{Sealer, SealingKey};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::connections::{Connection, Connections, Value};
use crate::ground::{Ground, options, patiently};
use crate::transaction::Transaction;

pub(crate) use self::inbox::Step;
pub(crate) use self::orders::{End, Orders, Way};

/// What starts the program as a contestant.
pub const ARGUMENT: &str = "contestant";

/// How long an answer may take: a start, or a few dozen statements.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a contestant is told to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Open the database, with connections of its own.
    Open { url: String },
    /// Reserve single units of an endpoint's budget, one after the other.
    Reserve { subject: String, limit: u32, window_seconds: u64, requests: u32 },
    /// Read a counter.
    ReadCounter { subject: String },
    /// Write a counter.
    WriteCounter { subject: String, used: i64 },
    /// Do something with an inbound event.
    Inbox(inbox::Step),
    /// Write orders with their submissions. It does not outlive the last one.
    WriteOrders(Orders),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Done {
    Opened,
    /// How many were granted, the highest count that it saw, and when its window ended at the first and
    /// at the last of them, in milliseconds.
    Reserved {
        granted: u32,
        used: u32,
        ends_in_ms: (u64, u64),
    },
    Counter(i64),
    Written,
    /// A receipt was written in a transaction that is still open.
    Received,
    Failed(String),
}

/// A process that races.
#[derive(Debug)]
pub(crate) struct Contestant {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Killed when it is dropped.
    child: Child,
}

impl Contestant {
    /// Starts one that has opened the scratch database.
    pub(crate) async fn start(ground: &Ground) -> anyhow::Result<Self> {
        let mut child = Command::new(ground.program())
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("a contestant's process was not started")?;
        let input = child.stdin.take().context("its input")?;
        let output = BufReader::new(child.stdout.take().context("its output")?).lines();
        let mut started = Self { input, output, child };
        started.tell(&Task::Open { url: ground.url().to_owned() }).await?;
        match started.hear().await? {
            Done::Opened => Ok(started),
            other => bail!("a contestant did not open the database: {other:?}"),
        }
    }

    /// Ends it at once, as a crash would.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        timeout(PATIENCE, self.child.wait()).await.context("a contestant lives")??;
        Ok(())
    }

    pub(crate) async fn tell(&mut self, task: &Task) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(task)?;
        line.push('\n');
        self.input.write_all(line.as_bytes()).await?;
        Ok(self.input.flush().await?)
    }

    pub(crate) async fn hear(&mut self) -> anyhow::Result<Done> {
        let line = timeout(PATIENCE, self.output.next_line())
            .await
            .context("a contestant did not answer")??
            .context("a contestant's process ended")?;
        match serde_json::from_str(&line)? {
            Done::Failed(why) => bail!("a contestant failed: {why}"),
            done => Ok(done),
        }
    }

    /// Waits for the end of one that was told what it does not outlive.
    pub(crate) async fn ended(mut self) -> anyhow::Result<()> {
        let line = timeout(PATIENCE, self.output.next_line())
            .await
            .context("a contestant did not end")??;
        if let Some(line) = line {
            bail!("a contestant lives: {line}");
        }
        let status = self.child.wait().await?;
        ensure!(status.code() == Some(orders::DIED), "a contestant ended otherwise: {status}");
        Ok(())
    }

    /// Tells all of them the same, and hears them all.
    pub(crate) async fn all(them: &mut [Self], task: &Task) -> anyhow::Result<Vec<Done>> {
        for one in &mut *them {
            one.tell(task).await?;
        }
        let mut done = Vec::with_capacity(them.len());
        for one in them {
            done.push(one.hear().await?);
        }
        Ok(done)
    }
}

/// What the process does that was started with [`ARGUMENT`].
///
/// # Errors
/// Its input is no task, or its output is gone.
pub async fn run() -> anyhow::Result<()> {
    let mut open = None;
    while let Some(line) = tokio::task::spawn_blocking(next_line).await?? {
        let done = do_task(&mut open, serde_json::from_str(&line)?).await;
        let done = done.unwrap_or_else(|error| Done::Failed(format!("{error:#}")));
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&done)?)?;
    }
    Ok(())
}

/// None at the end of the input.
fn next_line() -> std::io::Result<Option<String>> {
    let mut line = String::new();
    Ok((std::io::stdin().read_line(&mut line)? > 0).then_some(line))
}

/// What a contestant works with.
struct Open {
    store: std::sync::Arc<dyn Store>,
    connections: Connections,
    connection: Connection,
    /// What is open.
    transaction: Option<Transaction>,
}

async fn do_task(open: &mut Option<Open>, task: Task) -> anyhow::Result<Done> {
    if let Task::Open { url } = task {
        let sealer = Sealer::new(SealingKey::generate()?, Vec::new());
        let store = store::open(&url, options(sealer)).await?;
        store.check().await?;
        let connections = Connections::open(&url, 2, PATIENCE)?;
        let connection = connections.get().await?;
        *open = Some(Open { store, connections, connection, transaction: None });
        return Ok(Done::Opened);
    }
    let open = open.as_mut().context("no database was opened")?;
    match task {
        Task::Open { .. } => Ok(Done::Opened),
        Task::Reserve { subject, limit, window_seconds, requests } => {
            let limit = RateLimit::new(limit, Duration::from_secs(window_seconds))?;
            reserve(open.store.as_ref(), subject, limit, requests).await
        }
        Task::ReadCounter { subject } => read(&mut open.connection, &subject).await,
        Task::WriteCounter { subject, used } => write(&mut open.connection, &subject, used).await,
        Task::Inbox(step) => inbox::take(open, step).await,
        Task::WriteOrders(orders) => orders.write(open).await,
    }
}

async fn reserve(
    store: &dyn Store,
    subject: String,
    limit: RateLimit,
    requests: u32,
) -> anyhow::Result<Done> {
    let unit = [Reservation { limiter: Limiter::Endpoint, subject, limit, units: 1 }];
    let (mut granted, mut used, mut ends_in_ms) = (0, 0, None);
    for _ in 0..requests {
        let told = patiently(|| store.reserve(&unit)).await?;
        let told = told.first().context("no answer to a reservation")?;
        granted += told.granted;
        used = used.max(told.used);
        let end = u64::try_from(told.window_ends_in.as_millis())?;
        ends_in_ms = Some((ends_in_ms.map_or(end, |(first, _)| first), end));
    }
    Ok(Done::Reserved { granted, used, ends_in_ms: ends_in_ms.unwrap_or_default() })
}

async fn read(connection: &mut Connection, subject: &str) -> anyhow::Result<Done> {
    let counter = connection
        .read_one(
            "-- proof::contestant::read
            SELECT CAST(used AS bigint) AS used FROM {}naive_counters WHERE subject = $1",
            &[Value::Text(subject)],
        )
        .await?;
    Ok(Done::Counter(counter.integer("used")?))
}

async fn write(connection: &mut Connection, subject: &str, used: i64) -> anyhow::Result<Done> {
    connection
        .run(
            "-- proof::contestant::write
            UPDATE {}naive_counters SET used = $2 WHERE subject = $1",
            &[Value::Text(subject), Value::Integer(used)],
        )
        .await?;
    Ok(Done::Written)
}
