//! The application that sells: its tables beside those of Fencepost, and its statements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use domain::id::PublicId;
use sqlx::pool::PoolConnection;
use sqlx::{Acquire as _, Executor as _, PgConnection, PgPool, Postgres};
use store::outbox::{Draft, Limits};

use crate::bench::Context;
use crate::bench::payloads::Payloads;

/// Nothing is sent there: no worker runs.
const URL: &str = "http://127.0.0.1/";
/// The row that all take from …
const WHOLE: i32 = 0;
/// … and into how many others the same stock is split.
pub(super) const POOLS: i32 = 8;
/// More than can be sold while it is measured.
const STOCK: i64 = 1_000_000_000;

/// How a buyer goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// The conditional update alone.
    Bare,
    /// Key, stock, submission.
    AsTheExample,
    /// The same, with a lock of the row before the update.
    BehindALock,
    /// Key, submission, stock.
    RowLast,
    /// As the example, from any of the pools.
    Pools,
}

/// What a transaction spent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    /// Where it locked the row first, how long that took.
    pub(super) lock_wait: Option<Duration>,
    /// From the update of the stock to the end of the commit.
    pub(super) critical: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct Shop {
    pool: PgPool,
    endpoint: Arc<str>,
    payloads: Payloads,
}

impl Shop {
    /// Makes its tables in the schema that goes with the scratch database.
    pub(super) async fn open(context: &Context<'_>, sessions: u32) -> anyhow::Result<Self> {
        let database = context.database.as_ref().context("it needs PostgreSQL")?;
        let endpoints = context.stage.endpoints(1, URL).await?;
        let endpoint = endpoints.first().context("an endpoint")?;
        let endpoint = PublicId::of_endpoint(endpoint.key).as_str().into();
        let pool = database.more_sessions(sessions + 1).await?;
        pool.execute(
            "CREATE TABLE fencepost.bench_stock (
                pool integer PRIMARY KEY, available bigint NOT NULL CHECK (available >= 0));
            CREATE TABLE fencepost.bench_reservations (
                op_key text NOT NULL UNIQUE, quantity bigint NOT NULL)",
        )
        .await?;
        Ok(Self { pool, endpoint, payloads: context.plan.payloads.clone() })
    }

    pub(super) async fn session(&self) -> anyhow::Result<PoolConnection<Postgres>> {
        self.pool.acquire().await.context("one session for each client: raise max_connections")
    }

    /// Nothing is sold yet.
    pub(super) async fn restock(&self) -> anyhow::Result<()> {
        let mut session = self.session().await?;
        session
            .execute(
                "TRUNCATE fencepost.bench_stock, fencepost.bench_reservations,
                    fencepost.submissions, fencepost.deliveries",
            )
            .await?;
        sqlx::query(
            "-- proof::bench::hot_row::shop::restock
            INSERT INTO fencepost.bench_stock SELECT n, $1 FROM generate_series($2, $3) AS n",
        )
        .bind(STOCK)
        .bind(WHOLE)
        .bind(POOLS)
        .execute(&mut *session)
        .await?;
        Ok(())
    }

    /// What was reserved was taken from the stock and submitted, or what was measured is no reservation.
    pub(super) async fn look(&self) -> anyhow::Result<()> {
        let (taken, reserved, submitted): (i64, i64, i64) = sqlx::query_as(
            "-- proof::bench::hot_row::shop::look
            SELECT (SELECT sum($1 - available)::bigint FROM fencepost.bench_stock),
                (SELECT count(*) FROM fencepost.bench_reservations),
                (SELECT count(*) FROM fencepost.deliveries)",
        )
        .bind(STOCK)
        .fetch_one(&self.pool)
        .await?;
        // The update alone reserves nothing.
        ensure!(
            reserved == submitted && (taken == reserved || reserved == 0) && taken > 0,
            "{taken} taken, {reserved} reserved, {submitted} submitted"
        );
        Ok(())
    }

    /// One unit.
    pub(super) async fn buy(
        &self,
        session: &mut PgConnection,
        manner: Manner,
    ) -> anyhow::Result<Spent> {
        if manner == Manner::Bare {
            take(session, WHOLE, 1).await?;
            return Ok(Spent::default());
        }
        let mut tx = session.begin().await?;
        reserve(&mut tx, 1).await?;
        if manner == Manner::RowLast {
            self.submit(&mut tx).await?;
        }
        let lock_wait = match manner {
            Manner::BehindALock => Some(lock(&mut tx).await?),
            _ => None,
        };
        let locks = Instant::now();
        let pool = if manner == Manner::Pools { fastrand::i32(1..=POOLS) } else { WHOLE };
        take(&mut tx, pool, 1).await?;
        if manner != Manner::RowLast {
            self.submit(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(Spent { lock_wait, critical: locks.elapsed() })
    }

    /// One unit for each of so many, in one transaction with as many statements as for one.
    pub(super) async fn buy_together(
        &self,
        session: &mut PgConnection,
        count: usize,
    ) -> anyhow::Result<()> {
        let payloads: Vec<Vec<u8>> = (0..count).map(|_| self.payload().to_vec()).collect();
        let mut tx = session.begin().await?;
        reserve(&mut tx, count).await?;
        take(&mut tx, WHOLE, i64::try_from(count)?).await?;
        sqlx::query(
            "-- proof::bench::hot_row::shop::buy_together
            SELECT fencepost.submit($1, payload, 'application/json')
            FROM unnest($2::bytea[]) AS payload",
        )
        .bind(&*self.endpoint)
        .bind(payloads)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// It needs no idempotency key: the reservation has one.
    async fn submit(&self, connection: &mut PgConnection) -> anyhow::Result<()> {
        let content_type = Some("application/json");
        let draft = Draft { content_type, ..Draft::new(&self.endpoint, self.payload()) };
        store::postgres::accept_in_tx(connection, &draft, &Limits::default()).await?;
        Ok(())
    }

    fn payload(&self) -> Bytes {
        self.payloads.of(fastrand::u64(..))
    }
}

/// So many operations, each with a key of its own.
async fn reserve(connection: &mut PgConnection, count: usize) -> anyhow::Result<()> {
    let keys: Vec<String> = (0..count).map(|_| store::new_id::uuid_now().to_string()).collect();
    let reserved = sqlx::query(
        "-- proof::bench::hot_row::shop::reserve
        INSERT INTO fencepost.bench_reservations (op_key, quantity)
        SELECT op_key, 1 FROM unnest($1::text[]) AS op_key
        ON CONFLICT (op_key) DO NOTHING",
    )
    .bind(keys)
    .execute(connection)
    .await?;
    ensure!(reserved.rows_affected() == u64::try_from(count)?, "a fresh key was taken");
    Ok(())
}

/// How long one waits for the row.
async fn lock(connection: &mut PgConnection) -> anyhow::Result<Duration> {
    let asked = Instant::now();
    sqlx::query(
        "-- proof::bench::hot_row::shop::lock
        SELECT FROM fencepost.bench_stock WHERE pool = $1 FOR NO KEY UPDATE",
    )
    .bind(WHOLE)
    .execute(connection)
    .await?;
    Ok(asked.elapsed())
}

async fn take(connection: &mut PgConnection, pool: i32, quantity: i64) -> anyhow::Result<()> {
    let taken = sqlx::query(
        "-- proof::bench::hot_row::shop::take
        UPDATE fencepost.bench_stock SET available = available - $2
        WHERE pool = $1 AND available >= $2",
    )
    .bind(pool)
    .bind(quantity)
    .execute(connection)
    .await?;
    ensure!(taken.rows_affected() == 1, "the stock is spent");
    Ok(())
}
