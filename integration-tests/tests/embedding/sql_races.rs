//! Two transactions with one key, by SQL.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use integration_tests::eventually;
use sqlx::PgConnection;
use tokio::task::JoinHandle;

use crate::sql_function::{Told, call, count, orders, refusal};

const LONG: Duration = Duration::from_secs(60);
const SAME: &str = "'orders', '{}'::json, idempotency_key => 'order-1'";
const OTHER: &str = "'orders', '[]'::json, idempotency_key => 'order-1'";

/// The second asks while the first has the key in an open transaction; then the first ends as told.
async fn contest(
    level: &'static str,
    second: &'static str,
    end: &'static str,
) -> anyhow::Result<(Told, sqlx::Result<Told>, i64)> {
    let (database, mut first) = orders().await?;
    sqlx::raw_sql("begin").execute(&mut first).await?;
    let told = call(&mut first, SAME).await?;
    let mut waiting = database.connect().await?;
    sqlx::raw_sql(level).execute(&mut waiting).await?;
    let answer: JoinHandle<(PgConnection, sqlx::Result<Told>)> = tokio::spawn(async move {
        let answer = call(&mut waiting, second).await;
        (waiting, answer)
    });
    let mut looking = database.connect().await?;
    eventually("the second waits for the first", LONG, async || {
        let waits: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity where datname = current_database()
                and wait_event_type = 'Lock' and query like 'select * from fencepost.submit%'",
        )
        .fetch_one(&mut looking)
        .await?;
        ensure!(waits == 1);
        Ok(())
    })
    .await?;
    sqlx::raw_sql(end).execute(&mut first).await?;
    let (mut waiting, answer) = answer.await?;
    sqlx::raw_sql("commit").execute(&mut waiting).await?;
    Ok((told, answer, count(&mut looking, "submissions").await?))
}

const READ_COMMITTED: &str = "begin isolation level read committed";
const REPEATABLE_READ: &str =
    "begin isolation level repeatable read; select count(*) from pg_class";
const SERIALIZABLE: &str = "begin isolation level serializable; select count(*) from pg_class";

#[tokio::test(flavor = "multi_thread")]
async fn by_sql_the_second_waits_for_the_first_and_gets_its_answer() -> anyhow::Result<()> {
    let (first, second, stored) = contest(READ_COMMITTED, SAME, "commit").await?;
    assert_eq!(second?, Told { replayed: true, ..first });
    assert_eq!(stored, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn by_sql_the_second_with_other_content_is_refused() -> anyhow::Result<()> {
    let (_, second, stored) = contest(READ_COMMITTED, OTHER, "commit").await?;
    let error = second.err().context("it was stored")?;
    assert_eq!(refusal(&error)?.0, "WH008");
    assert_eq!(stored, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn by_sql_the_second_decides_for_itself_when_the_first_rolls_back() -> anyhow::Result<()> {
    let (first, second, stored) = contest(READ_COMMITTED, OTHER, "rollback").await?;
    let second = second?;
    assert!(!second.replayed && second.submission != first.submission);
    assert_eq!(stored, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn by_sql_in_a_stricter_level_the_second_is_told_the_key_and_to_repeat() -> anyhow::Result<()>
{
    for level in [REPEATABLE_READ, SERIALIZABLE] {
        let (_, second, stored) = contest(level, SAME, "commit").await?;
        let error = second.err().context("it was answered")?;
        assert_eq!(refusal(&error)?, ("40001".to_owned(), "idempotency_key".to_owned()));
        assert!(error.to_string().contains("order-1"), "{error}");
        assert_eq!(stored, 1);
    }
    Ok(())
}
