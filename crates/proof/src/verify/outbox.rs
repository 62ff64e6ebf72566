//! G8: what an application submits in its own transaction exists if and only if that transaction commits.

use anyhow::Context as _;
use async_trait::async_trait;
use store::Backend;
use uuid::Uuid;

use super::check::{Check, Round};
use crate::connections::{Connection, Value};
use crate::contestant::{Contestant, End, Orders, Task, Way};
use crate::ground::Ground;

#[derive(Debug)]
pub(super) struct Outbox;

#[async_trait]
impl Check for Outbox {
    fn name(&self) -> &'static str {
        "outbox"
    }

    fn guarantee(&self) -> &'static str {
        "G8"
    }

    fn tried(&self, ground: &Ground) -> String {
        format!(
            "{} processes at once write orders, each with its submission in one transaction; they commit \
             some, roll some back, and die at the last commit: every second one before it, the others \
             after it",
            ground.processes()
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        match Backend::of_url(ground.url())? {
            Backend::Postgres => write_orders(ground, &[Way::ByStore, Way::BySql]).await,
            Backend::Sqlite => write_orders(ground, &[Way::ByStore]).await,
        }
    }

    fn naive(&self) -> &'static str {
        "commit the order, then submit"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        write_orders(ground, &[Way::Apart]).await
    }
}

async fn write_orders(ground: &Ground, ways: &[Way]) -> anyhow::Result<Round> {
    let endpoint = ground.endpoint().await?;
    let mut connection = ground.connections()?.get().await?;
    make_table(&mut connection).await?;
    let mut applications = Vec::new();
    for _ in 0..ground.processes() {
        applications.push(Contestant::start(ground).await?);
    }
    let mut committed = 0;
    for (place, application) in applications.iter_mut().enumerate() {
        let end = if place % 2 == 0 { End::DiesBefore } else { End::DiesAfter };
        let orders = Orders {
            endpoint: endpoint.key.as_uuid(),
            endpoint_id: endpoint.id.to_string(),
            ways: ways.to_vec(),
            last: *ways.iter().cycle().nth(place / 2).context("a way to write an order")?,
            end,
        };
        committed += ways.len() + usize::from(end == End::DiesAfter);
        application.tell(&Task::WriteOrders(orders)).await?;
    }
    for application in applications {
        application.ended().await?;
    }
    let stored = Stored::read(&mut connection, endpoint.key.as_uuid()).await?;
    Ok(stored.judge(i64::try_from(committed)?))
}

/// What the applications left.
#[derive(Debug)]
struct Stored {
    orders: i64,
    /// Deliveries.
    owed: i64,
    /// Orders whose own delivery is owed.
    pairs: i64,
}

impl Stored {
    async fn read(connection: &mut Connection, endpoint: Uuid) -> anyhow::Result<Self> {
        let row = connection
            .read_one(
                "-- proof::verify::outbox::read
                SELECT
                    CAST((SELECT count(*) FROM {}orders WHERE endpoint = $1) AS bigint) AS orders,
                    CAST((SELECT count(*) FROM {}deliveries WHERE endpoint = $1) AS bigint) AS owed,
                    CAST((SELECT count(*) FROM {}orders o
                        JOIN {}idempotency_keys k ON k.scope = o.endpoint AND k.key = o.id
                        JOIN {}deliveries d
                            ON d.endpoint = o.endpoint AND d.submission = k.submission
                        WHERE o.endpoint = $1) AS bigint) AS pairs",
                &[Value::Uuid(endpoint)],
            )
            .await?;
        let (orders, owed) = (row.integer("orders")?, row.integer("owed")?);
        Ok(Self { orders, owed, pairs: row.integer("pairs")? })
    }

    fn judge(&self, committed: i64) -> Round {
        let tell = |Self { orders, owed, pairs }: &Self| {
            format!("{orders} orders, {owed} submissions owed, {pairs} of them for an order")
        };
        let expected = Self { orders: committed, owed: committed, pairs: committed };
        Round::of(tell(&expected), tell(self))
    }
}

async fn make_table(connection: &mut Connection) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::verify::outbox::make_table
            CREATE TABLE IF NOT EXISTS {}orders (endpoint {uuid} NOT NULL, id text NOT NULL)",
            &[],
        )
        .await?;
    Ok(())
}
