//! G8, as an application lives by it: no more is sold than there is, and each sale is told.
//!
//! The table has no CHECK: it is the statement alone that is raced.

use std::time::Duration;

use async_trait::async_trait;
use domain::id::PublicId;
use serde_json::{Map, json};
use sqlx::error::DatabaseError;
use store::Backend;
use store::outbox::Draft;
use uuid::Uuid;

use super::check::{Check, Round};
use crate::barrier::{Rendezvous, race};
use crate::connections::{Connection, Connections, Value};
use crate::ground::Ground;
use crate::transaction::Transaction;

/// What each buyer wants.
const EACH: i64 = 2;
/// How long a buyer waits for the others on SQLite, where one writes at a time.
const PATIENCE: Duration = Duration::from_secs(30);
/// A naive buyer keeps a transaction open until all have read: no more than a small pooler has room for.
const NAIVE_BUYERS_MAX: usize = 6;

#[derive(Debug)]
pub(super) struct Reservation;

#[async_trait]
impl Check for Reservation {
    fn name(&self) -> &'static str {
        "reservation"
    }

    fn guarantee(&self) -> &'static str {
        "G8"
    }

    fn tried(&self, ground: &Ground) -> String {
        let buyers = ground.contestants();
        format!(
            "{buyers} buyers at once take {EACH} each from a stock of {} by a conditional update, and \
             submit it in the same transaction",
            stock(buyers)
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let buyers = ground.contestants();
        let endpoint = ground.endpoint().await?;
        let connections = ground.connections()?;
        let sku = restock(&mut connections.get().await?, stock(buyers)).await?;
        drop(connections.get_many(buyers).await?);
        let shared = (connections.clone(), endpoint.id);
        let bought = race(0..buyers, move |_, _| {
            let (connections, endpoint) = shared.clone();
            async move { buy(&connections, &endpoint, sku).await }
        })
        .await?;
        let mut connection = connections.get().await?;
        let sales = Sales {
            sold: bought.iter().filter(|bought| **bought).count(),
            refused: bought.iter().filter(|bought| !**bought).count(),
            left: available(&mut connection, sku).await?,
            told: count_owed(&mut connection, endpoint.key.as_uuid()).await?,
        };
        drop(connection);
        connections.close().await;
        Ok(sales.judge(buyers))
    }

    fn naive(&self) -> &'static str {
        "select what is available, then update it to the difference, in one transaction under READ \
         COMMITTED; on SQLite in two"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let (loose, strict) = match Backend::of_url(ground.url())? {
            Backend::Postgres => (READ_COMMITTED, REPEATABLE_READ),
            Backend::Sqlite => (STATEMENT_BY_STATEMENT, ONE_TRANSACTION),
        };
        let buyers = ground.contestants().min(NAIVE_BUYERS_MAX);
        let connections = ground.connections()?;
        let mut round = buy_naively(&connections, buyers, loose).await?.judge(buyers);
        // Who cannot oversell is refused in its place, and would have to come again.
        let Sales { sold, refused, .. } = buy_naively(&connections, buyers, strict).await?;
        let (observed, refusals) = (&round.observed, strict.refusals.join(" or "));
        let stricter = format!("{} {sold} sold, {refused} refused with {refusals}", strict.name);
        round.observed = format!("{observed}; {stricter}");
        connections.close().await;
        Ok(round)
    }
}

/// Enough for half of the buyers, and one unit more, that nobody can have.
fn stock(buyers: usize) -> i64 {
    i64::try_from(buyers / 2).unwrap_or(i64::MAX).saturating_mul(EACH).saturating_add(1)
}

/// What became of a stock.
#[derive(Debug)]
struct Sales {
    /// Buyers who were told that it is theirs.
    sold: usize,
    refused: usize,
    left: i64,
    /// Submissions that are owed.
    told: usize,
}

impl Sales {
    fn judge(&self, buyers: usize) -> Round {
        let tell = |Self { sold, refused, left, told }: &Self| {
            format!("{sold} sold, {refused} refused, {left} left, {told} told")
        };
        let half = buyers / 2;
        let expected =
            Self { sold: half, refused: buyers - half, left: stock(buyers) % EACH, told: half };
        let mut round = Round::of(tell(&expected), tell(self));
        let oversold = self.sold.saturating_sub(half);
        round.fields = Map::from_iter([("oversold".to_owned(), json!(oversold))]);
        round
    }
}

/// In one transaction: the stock, and what tells of it. Whether it was bought.
async fn buy(connections: &Connections, endpoint: &PublicId, sku: Uuid) -> anyhow::Result<bool> {
    let mut transaction = Transaction::begin(connections, PATIENCE).await?;
    let taken = transaction.run(TAKE, &[Value::Uuid(sku), Value::Integer(EACH)]).await? > 0;
    if taken {
        transaction.submit(&Draft::new(endpoint.as_str(), "{}")).await?;
        transaction.commit().await?;
    } else {
        transaction.rollback().await?;
    }
    Ok(taken)
}

const TAKE: &str = "-- proof::verify::reservation::buy
    UPDATE {}stock SET available = available - $2 WHERE sku = $1 AND available >= $2";

/// How naive buyers go about it.
#[derive(Debug, Clone, Copy)]
struct Manner {
    /// None is a transaction for each statement.
    begin: Option<&'static str>,
    name: &'static str,
    /// The codes of the errors that a buyer gets who has read what is no longer so.
    refusals: &'static [&'static str],
}

const READ_COMMITTED: Manner = Manner {
    begin: Some("BEGIN ISOLATION LEVEL READ COMMITTED"),
    name: "under READ COMMITTED",
    refusals: &["40001"],
};
const REPEATABLE_READ: Manner = Manner {
    begin: Some("BEGIN ISOLATION LEVEL REPEATABLE READ"),
    name: "under REPEATABLE READ",
    refusals: &["40001"],
};
/// `SQLITE_BUSY` while the first one writes, `SQLITE_BUSY_SNAPSHOT` behind it.
const ONE_TRANSACTION: Manner =
    Manner { begin: Some("BEGIN"), name: "in one transaction", refusals: &["5", "517"] };
const STATEMENT_BY_STATEMENT: Manner = Manner { begin: None, ..ONE_TRANSACTION };

/// All have read before the first one writes. What is sold is taken to be told.
async fn buy_naively(
    connections: &Connections,
    buyers: usize,
    manner: Manner,
) -> anyhow::Result<Sales> {
    let mut contestants = connections.get_many(buyers).await?;
    let mut sku = Uuid::nil();
    if let Some(first) = contestants.first_mut() {
        sku = restock(first, stock(buyers)).await?;
    }
    let all_have_read = Rendezvous::of(buyers);
    let bought = race(contestants, move |_, mut connection| {
        let all_have_read = all_have_read.clone();
        async move {
            if let Some(begin) = manner.begin {
                connection.run(begin, &[]).await?;
            }
            let read = available(&mut connection, sku).await?;
            all_have_read.meet().await?;
            let written = write(&mut connection, sku, read - EACH).await;
            if manner.begin.is_some() {
                connection.run(if written.is_ok() { "COMMIT" } else { "ROLLBACK" }, &[]).await?;
            }
            match written {
                Ok(()) => Ok(true),
                Err(error) if is_refusal(&error, manner) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }
    })
    .await?;
    let sold = bought.iter().filter(|bought| **bought).count();
    let left = available(&mut connections.get().await?, sku).await?;
    Ok(Sales { sold, refused: buyers - sold, left, told: sold })
}

fn is_refusal(error: &sqlx::Error, manner: Manner) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| manner.refusals.contains(&code.as_ref()))
}

/// A new sku, and so much of it.
async fn restock(connection: &mut Connection, available: i64) -> anyhow::Result<Uuid> {
    connection
        .run(
            "-- proof::verify::reservation::restock
            CREATE TABLE IF NOT EXISTS {}stock (sku {uuid} PRIMARY KEY, available bigint NOT NULL)",
            &[],
        )
        .await?;
    let sku = store::new_id::uuid_now();
    connection
        .run(
            "-- proof::verify::reservation::restock
            INSERT INTO {}stock (sku, available) VALUES ($1, $2)",
            &[Value::Uuid(sku), Value::Integer(available)],
        )
        .await?;
    Ok(sku)
}

async fn available(connection: &mut Connection, sku: Uuid) -> anyhow::Result<i64> {
    let row = connection
        .read_one(
            "-- proof::verify::reservation::available
            SELECT available FROM {}stock WHERE sku = $1",
            &[Value::Uuid(sku)],
        )
        .await?;
    Ok(row.integer("available")?)
}

async fn write(connection: &mut Connection, sku: Uuid, available: i64) -> sqlx::Result<()> {
    connection
        .run(
            "-- proof::verify::reservation::write
            UPDATE {}stock SET available = $2 WHERE sku = $1",
            &[Value::Uuid(sku), Value::Integer(available)],
        )
        .await?;
    Ok(())
}

async fn count_owed(connection: &mut Connection, endpoint: Uuid) -> anyhow::Result<usize> {
    let row = connection
        .read_one(
            "-- proof::verify::reservation::count_owed
            SELECT CAST(count(*) AS bigint) AS owed FROM {}deliveries WHERE endpoint = $1",
            &[Value::Uuid(endpoint)],
        )
        .await?;
    Ok(usize::try_from(row.integer("owed")?)?)
}
