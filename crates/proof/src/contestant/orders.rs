//! An application that writes orders and submits each, until it dies at the commit of the last one.

use domain::id::EndpointKey;
use serde::{Deserialize, Serialize};
use store::outbox::Draft;
use uuid::Uuid;

use super::{Done, Open, PATIENCE};
use crate::connections::Value;
use crate::ground::{patiently, submission};
use crate::transaction::Transaction;

/// The exit code of a process that died as it was told.
pub(super) const DIED: i32 = 23;

const PAYLOAD: &str = "{}";

/// What is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) endpoint: Uuid,
    pub(crate) endpoint_id: String,
    /// In each of these ways one order is committed and one is rolled back.
    pub(crate) ways: Vec<Way>,
    /// How the last one is written …
    pub(crate) last: Way,
    /// … and how it ends, with the process.
    pub(crate) end: End,
}

/// How an order is stored with its submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Way {
    /// In one transaction, through the store.
    ByStore,
    /// In one transaction, by the SQL function.
    BySql,
    /// In two transactions, the order first.
    Apart,
}

/// How an order ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Committed,
    RolledBack,
    /// The process dies before the last commit.
    DiesBefore,
    /// The process dies after the last commit.
    DiesAfter,
}

impl Orders {
    /// Answers only if it fails.
    pub(super) async fn write(&self, open: &Open) -> anyhow::Result<Done> {
        for way in &self.ways {
            self.write_one(open, *way, End::Committed).await?;
            self.write_one(open, *way, End::RolledBack).await?;
        }
        self.write_one(open, self.last, self.end).await?;
        Ok(Done::Written)
    }

    async fn write_one(&self, open: &Open, way: Way, end: End) -> anyhow::Result<()> {
        // What the order is called is also the key of its submission: so they are found together.
        let order = store::new_id::uuid_now().to_string();
        let mut transaction = Transaction::begin(&open.connections, PATIENCE).await?;
        let values = [Value::Uuid(self.endpoint), Value::Text(&order)];
        transaction.run(ORDER, &values).await?;
        match way {
            Way::ByStore => {
                let draft = Draft::new(&self.endpoint_id, PAYLOAD);
                transaction.submit(&Draft { idempotency_key: Some(&order), ..draft }).await?;
            }
            Way::BySql => {
                let values = [&self.endpoint_id, PAYLOAD, &order].map(Value::Text);
                transaction.run(SUBMIT, &values).await?;
            }
            Way::Apart => {}
        }
        if end == End::RolledBack {
            return Ok(transaction.rollback().await?);
        }
        if way == Way::Apart {
            transaction.commit().await?;
            if end == End::DiesBefore {
                die();
            }
            let endpoint = EndpointKey::from_uuid(self.endpoint);
            let submission = [submission(endpoint, Some(&order), PAYLOAD.as_bytes())?];
            patiently(|| open.store.accept(&submission)).await?;
        } else {
            if end == End::DiesBefore {
                die();
            }
            transaction.commit().await?;
        }
        if end == End::DiesAfter {
            die();
        }
        Ok(())
    }
}

const ORDER: &str = "-- proof::contestant::orders::write_one
    INSERT INTO {}orders (endpoint, id) VALUES ($1, $2)";

const SUBMIT: &str = "-- proof::contestant::orders::write_one
    SELECT * FROM {}submit($1, CAST($2 AS json), idempotency_key => $3)";

/// As a crash does: nothing is closed and nothing is rolled back but by the database.
fn die() -> ! {
    std::process::exit(DIED)
}
