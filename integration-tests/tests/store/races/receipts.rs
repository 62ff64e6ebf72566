//! Copies of one inbound event, each in a transaction and on a connection of its own (G9).

use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::receipt::ReceiptKey;
use integration_tests::race::race;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{PgPool, Postgres, Sqlite, SqlitePool, Transaction};
use store::receipt::{NewReceipt, Receiving};
use store::{Backend, StoreError};

use super::session::{LONG, run, until_it_waits};
use crate::fixture::Fixture;

on_both_stores! {
    of_concurrent_copies_of_an_event_one_is_the_first_and_the_others_are_duplicates,
    the_same_id_with_other_content_is_conflicted_and_another_source_is_another_event,
    an_event_whose_processing_was_rolled_back_can_come_again,
    a_copy_that_waits_too_long_is_told_to_come_again,
}

/// Short beside a test, and long enough to be waited for.
const SHORT: Duration = Duration::from_millis(50);

/// One who processes events: an application with a pool of its own.
#[derive(Debug, Clone)]
enum Application {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

enum Open {
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

impl Application {
    fn of(db: &Fixture) -> anyhow::Result<Self> {
        let url = db.url();
        Ok(match Backend::of_url(url)? {
            Backend::Postgres => {
                Self::Postgres(PgPoolOptions::new().max_connections(1).connect_lazy(url)?)
            }
            Backend::Sqlite => {
                let file = SqliteConnectOptions::new()
                    .filename(store::sqlite::path_of_url(url)?)
                    .busy_timeout(Duration::ZERO);
                Self::Sqlite(SqlitePoolOptions::new().max_connections(1).connect_lazy_with(file))
            }
        })
    }

    async fn begin(&self, patience: Duration) -> Result<Open, StoreError> {
        match self {
            Self::Postgres(pool) => pool.begin().await.map(Open::Postgres).map_err(|error| {
                StoreError::Unavailable { operation: "begin", source: Box::new(error) }
            }),
            Self::Sqlite(pool) => store::sqlite::begin(pool, patience).await.map(Open::Sqlite),
        }
    }

    /// Processes an event, which has no other effect than its receipt.
    async fn process(&self, receipt: &NewReceipt, patience: Duration) -> anyhow::Result<Receiving> {
        let mut open = self.begin(patience).await?;
        let told = open.receive(receipt, patience).await?;
        open.commit().await?;
        Ok(told)
    }
}

impl Open {
    async fn receive(
        &mut self,
        receipt: &NewReceipt,
        patience: Duration,
    ) -> Result<Receiving, StoreError> {
        match self {
            Self::Postgres(open) => {
                store::postgres::receive_once_in_tx(open, receipt, patience).await
            }
            Self::Sqlite(open) => store::sqlite::receive_once_in_tx(open, receipt).await,
        }
    }

    async fn commit(self) -> sqlx::Result<()> {
        match self {
            Self::Postgres(open) => open.commit().await,
            Self::Sqlite(open) => open.commit().await,
        }
    }

    async fn rollback(self) -> sqlx::Result<()> {
        match self {
            Self::Postgres(open) => open.rollback().await,
            Self::Sqlite(open) => open.rollback().await,
        }
    }
}

fn receipt(source: &str, body: &[u8]) -> anyhow::Result<NewReceipt> {
    Ok(NewReceipt::new(ReceiptKey::new(source, "evt_1")?, body))
}

async fn of_concurrent_copies_of_an_event_one_is_the_first_and_the_others_are_duplicates(
    db: Fixture,
) -> anyhow::Result<()> {
    let applications = (0..8).map(|_| Application::of(&db)).collect::<anyhow::Result<Vec<_>>>()?;
    for one in &applications {
        one.begin(LONG).await?.rollback().await?;
    }
    let told = race(applications, |_, application| async move {
        application.process(&receipt("github", b"{}")?, LONG).await
    })
    .await?;
    let first = told.iter().filter(|told| **told == Receiving::First).count();
    let mut duplicates = told.iter().filter_map(|told| match told {
        Receiving::Duplicate { processed_at } => Some(*processed_at),
        _ => None,
    });
    let processed_at = duplicates.next().context("a duplicate")?;
    assert_eq!((first, duplicates.filter(|at| *at == processed_at).count()), (1, 6), "{told:?}");
    assert_eq!(db.count("receipts").await?, 1);
    Ok(())
}

async fn the_same_id_with_other_content_is_conflicted_and_another_source_is_another_event(
    db: Fixture,
) -> anyhow::Result<()> {
    let application = Application::of(&db)?;
    let first = application.process(&receipt("github", b"{}")?, LONG).await?;
    assert_eq!(first, Receiving::First);
    let other = application.process(&receipt("github", b"{ }")?, LONG).await?;
    assert_eq!(other, Receiving::Conflicted);
    let elsewhere = application.process(&receipt("stripe", b"{}")?, LONG).await?;
    assert_eq!(elsewhere, Receiving::First);
    assert_eq!(db.count("receipts").await?, 2);
    Ok(())
}

/// As after a crash before the commit.
async fn an_event_whose_processing_was_rolled_back_can_come_again(
    db: Fixture,
) -> anyhow::Result<()> {
    let application = Application::of(&db)?;
    let mut open = application.begin(LONG).await?;
    assert_eq!(open.receive(&receipt("github", b"{}")?, LONG).await?, Receiving::First);
    open.rollback().await?;
    assert_eq!(db.count("receipts").await?, 0);
    let again = application.process(&receipt("github", b"{}")?, LONG).await?;
    assert_eq!(again, Receiving::First);
    Ok(())
}

async fn a_copy_that_waits_too_long_is_told_to_come_again(db: Fixture) -> anyhow::Result<()> {
    let (one, other) = (Application::of(&db)?, Application::of(&db)?);
    let event = receipt("github", b"{}")?;
    let mut held = one.begin(LONG).await?;
    assert_eq!(held.receive(&event, LONG).await?, Receiving::First);
    match other.begin(SHORT).await {
        // There the transaction itself waits.
        Err(StoreError::Contended { .. }) => {}
        Ok(mut open) => {
            assert_eq!(open.receive(&event, SHORT).await?, Receiving::InProgress);
            open.rollback().await?;
        }
        Err(error) => bail!(error),
    }
    held.commit().await?;
    let told = other.process(&event, LONG).await?;
    assert!(matches!(told, Receiving::Duplicate { .. }), "{told:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_waited_for_a_rollback_is_the_first_and_for_a_commit_a_duplicate()
-> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    for committed in [false, true] {
        let mut session = db.session().await?;
        run(&mut session, "delete from fencepost.receipts; begin").await?;
        let event = receipt("github", b"{}")?;
        let told = store::postgres::receive_once_in_tx(&mut session, &event, LONG).await?;
        assert_eq!(told, Receiving::First);
        let waiting = Application::of(&db)?;
        let copy = tokio::spawn(async move { waiting.process(&event, LONG).await });
        until_it_waits(&mut db.session().await?, "postgres::receipt::receive_once").await?;
        run(&mut session, if committed { "commit" } else { "rollback" }).await?;
        let told = copy.await??;
        let expected = match told {
            Receiving::Duplicate { .. } => committed,
            Receiving::First => !committed,
            _ => false,
        };
        assert!(expected, "{told:?} after a commit: {committed}");
    }
    Ok(())
}

#[tokio::test]
async fn the_lock_timeout_of_the_callers_transaction_stays_as_it_was() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let mut session = db.session().await?;
    run(&mut session, "begin; set local lock_timeout = '1234ms'").await?;
    let event = receipt("github", b"{}")?;
    for first in [true, false] {
        let told = store::postgres::receive_once_in_tx(&mut session, &event, SHORT).await?;
        assert_eq!(told == Receiving::First, first, "{told:?}");
        let after: String = sqlx::query_scalar("show lock_timeout").fetch_one(&mut session).await?;
        assert_eq!(after, "1234ms");
    }
    Ok(())
}
