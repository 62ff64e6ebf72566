//! What a contestant does with an inbound event, step by step: it may be killed between two of them.

use anyhow::bail;
use domain::receipt::ReceiptKey;
use serde::{Deserialize, Serialize};
use store::receipt::{NewReceipt, PATIENCE, Receiving};

use super::{Done, Open};
use crate::effects;
use crate::transaction::Transaction;

/// One step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Write the receipt in a transaction, and leave it open: the effect would come next.
    Receive { source: String, event: String, body: String },
    /// Count how often the event had its effect.
    LookFor { event: String },
    /// Note that it was seen, for good.
    Note { event: String },
    /// Its effect.
    Apply { event: String },
}

pub(super) async fn take(open: &mut Open, step: Step) -> anyhow::Result<Done> {
    let connection = &mut open.connection;
    match step {
        Step::Receive { source, event, body } => {
            let receipt = NewReceipt::new(ReceiptKey::new(&source, &event)?, body.as_bytes());
            let mut transaction = Transaction::begin(&open.connections, PATIENCE).await?;
            match transaction.receive_once(&receipt, PATIENCE).await? {
                Receiving::First => open.transaction = Some(transaction),
                other => bail!("a fresh event is not the first: {other:?}"),
            }
            return Ok(Done::Received);
        }
        Step::LookFor { event } => {
            return Ok(Done::Counter(effects::count(connection, &event).await?));
        }
        Step::Note { event } => effects::note(connection, &event).await?,
        Step::Apply { event } => effects::apply(connection, &event).await?,
    }
    Ok(Done::Written)
}
