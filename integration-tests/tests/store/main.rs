//! The store suite: the same tests, one winner and one loser a statement, against both stores.
//!
//! A test is a function over a [`fixture::Fixture`]; [`on_both_stores`] runs it on PostgreSQL and on
//! SQLite, each time in a database of its own. Nothing waits for time to pass: rows are aged.

mod fixture;

/// Declares each test once for each store.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() -> anyhow::Result<()> {
                super::$name(crate::fixture::Fixture::postgres().await?).await
            })+
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() -> anyhow::Result<()> {
                super::$name(crate::fixture::Fixture::sqlite().await?).await
            })+
        }
    };
}

mod accept;
mod admission;
mod another_url;
mod cancel;
mod circuit;
mod claim;
mod claimed_payloads;
mod connections;
mod contention;
mod delivery_rate;
mod doctor;
mod endpoint_changes;
mod endpoints;
mod erase;
mod fence;
mod hold;
mod keys;
mod lapses;
mod late_rows;
mod leader;
mod life;
mod maintenance;
mod operational;
mod operations;
mod outbox;
mod partitions;
mod plans;
mod races;
mod rate_limits;
mod reading;
mod replay;
mod resend;
mod schema;
mod secrets;
mod sources;
