//! A database with the checkout's tables, and its commands as processes of the operating system.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use integration_tests::eventually;
use integration_tests::postgres::{TestDatabase, TestPostgres};
use integration_tests::process::{Settings, Worker};
use serde_json::Value;
use sqlx::PgConnection;
use tokio::process::{Child, Command};

/// Long beside anything that is waited for.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// The key that `Settings::new` gives to the worker.
const SEALING_KEY: &str = "ZmVuY2Vwb3N0IHRlc3RzIHNlYWwgd2l0aCB0aGlzISE=";

#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) database: TestDatabase,
}

/// What a process said last, and how it ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) result: String,
    pub(crate) answer: Value,
}

impl Shop {
    /// Three units in stock, and an endpoint at `url`.
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        let shop = Self { database: TestPostgres::shared().await?.database().await? };
        let made = shop.run(&["init", "--url", url]).await?;
        ensure!(made.result == "initialized", "{made:?}");
        Ok(shop)
    }

    /// With a receiver that nobody asks.
    pub(crate) async fn without_receiver() -> anyhow::Result<Self> {
        Self::open("http://127.0.0.1:9999/").await
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        Command::new(env!("CARGO_BIN_EXE_test-checkout"))
            .args(arguments)
            .env_clear()
            .env("DATABASE_URL", self.database.url())
            .env("FENCEPOST_SEALING_KEY", SEALING_KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("starting a checkout")
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        ended(self.start(arguments)?).await
    }

    pub(crate) async fn worker(&self) -> anyhow::Result<Worker> {
        let settings = Settings::new(self.database.url());
        Worker::start(integration_tests::worker_binary!(), "worker", &settings).await
    }

    /// Units in stock, reservations, submissions, deliveries.
    pub(crate) async fn counts(&self) -> anyhow::Result<(i64, i64, i64, i64)> {
        Ok(sqlx::query_as(
            "select (select sum(available)::bigint from stock), (select count(*) from reservations),
                (select count(*) from fencepost.submissions),
                (select count(*) from fencepost.deliveries)
                    + (select count(*) from fencepost.settled_deliveries)",
        )
        .fetch_one(&mut self.database.connect().await?)
        .await?)
    }

    /// A session with an open transaction that has run `lock`: processes stop where they need the same,
    /// and go on at the same instant when it ends.
    pub(crate) async fn barrier(&self, lock: &'static str) -> anyhow::Result<PgConnection> {
        let mut session = self.database.connect().await?;
        sqlx::raw_sql("begin").execute(&mut session).await?;
        sqlx::raw_sql(lock).execute(&mut session).await?;
        Ok(session)
    }

    /// Waits until that many processes wait for a lock in that statement.
    pub(crate) async fn until_waiting(&self, statement: &str, count: i64) -> anyhow::Result<()> {
        let mut session = self.database.connect().await?;
        eventually("the processes wait for a lock", LONG, async || {
            let waiting: i64 = sqlx::query_scalar(
                "select count(*) from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock'
                    and state = 'active' and query like '-- checkout::reserve::' || $1 || '%'",
            )
            .bind(statement)
            .fetch_one(&mut session)
            .await?;
            ensure!(waiting == count, "{waiting} of {count} wait in {statement}");
            Ok(())
        })
        .await
    }
}

/// Opens the barrier.
pub(crate) async fn release(mut barrier: PgConnection) -> anyhow::Result<()> {
    sqlx::raw_sql("commit").execute(&mut barrier).await?;
    Ok(())
}

pub(crate) async fn ended(child: Child) -> anyhow::Result<Ended> {
    let output = tokio::time::timeout(LONG, child.wait_with_output())
        .await
        .context("the process does not end")??;
    let errors = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().with_context(|| format!("killed: {errors}"))?;
    let text = String::from_utf8(output.stdout)?;
    let answer: Value = if text.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&text).with_context(|| format!("{text} {errors}"))?
    };
    let result = answer.get("result").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Ended { code, result, answer })
}

/// How all of them ended, sorted.
pub(crate) async fn all_ended(children: Vec<Child>) -> anyhow::Result<Vec<(i32, String)>> {
    let mut all = Vec::new();
    for child in children {
        let Ended { code, result, answer } = ended(child).await?;
        ensure!(code != 1, "{answer}");
        all.push((code, result));
    }
    all.sort();
    Ok(all)
}
