//! An application's own transaction, as one that embeds the store has it.

use std::time::Duration;

use sqlx::{Postgres, Sqlite};
use store::outbox::{Draft, Limits, SubmitError};
use store::receipt::{NewReceipt, Receiving};
use store::{StoreError, postgres, sqlite};

use crate::connections::{Connections, Value, run_on_postgres, run_on_sqlite};

/// Rolled back when it is dropped.
pub(crate) enum Transaction {
    Postgres(sqlx::Transaction<'static, Postgres>),
    Sqlite(sqlx::Transaction<'static, Sqlite>),
}

impl Transaction {
    /// On SQLite it waits so long for the transactions of others.
    pub(crate) async fn begin(
        connections: &Connections,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        match connections {
            Connections::Postgres(pool) => {
                postgres::begin(pool).await.map(Self::Postgres).map_err(|error| {
                    StoreError::Unavailable { operation: "begin", source: Box::new(error) }
                })
            }
            Connections::Sqlite(pool) => sqlite::begin(pool, patience).await.map(Self::Sqlite),
        }
    }

    pub(crate) async fn receive_once(
        &mut self,
        receipt: &NewReceipt,
        patience: Duration,
    ) -> Result<Receiving, StoreError> {
        match self {
            Self::Postgres(open) => postgres::receive_once_in_tx(open, receipt, patience).await,
            Self::Sqlite(open) => sqlite::receive_once_in_tx(open, receipt).await,
        }
    }

    /// Submits in this transaction.
    pub(crate) async fn submit(&mut self, draft: &Draft<'_>) -> Result<(), SubmitError> {
        let limits = Limits::default();
        match self {
            Self::Postgres(open) => postgres::accept_in_tx(open, draft, &limits).await.map(drop),
            Self::Sqlite(open) => sqlite::accept_in_tx(open, draft, &limits).await.map(drop),
        }
    }

    /// Runs a statement, written as those of a plain connection.
    pub(crate) async fn run(&mut self, text: &str, values: &[Value<'_>]) -> sqlx::Result<u64> {
        match self {
            Self::Postgres(open) => run_on_postgres(open, text, values).await,
            Self::Sqlite(open) => run_on_sqlite(open, text, values).await,
        }
    }

    pub(crate) async fn commit(self) -> sqlx::Result<()> {
        match self {
            Self::Postgres(open) => open.commit().await,
            Self::Sqlite(open) => open.commit().await,
        }
    }

    pub(crate) async fn rollback(self) -> sqlx::Result<()> {
        match self {
            Self::Postgres(open) => open.rollback().await,
            Self::Sqlite(open) => open.rollback().await,
        }
    }
}
