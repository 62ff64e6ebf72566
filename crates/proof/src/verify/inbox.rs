//! G9: of any number of concurrent copies of one inbound event one is processed.
//!
//! Three checks: through the library, with every copy on a connection of its own; with the process that
//! is the first killed between its receipt and its effect; and, on PostgreSQL, through the gateways of
//! several api processes.

mod gateway;
mod killed;
mod library;

use domain::label::Label;
use domain::receipt::ReceiptKey;
use serde_json::{Value as Json, json};
use store::Backend;
use store::receipt::NewReceipt;
use time::OffsetDateTime;

use super::check::Check;

const SOURCE: &str = "shop";
const RESOURCE: &str = "order-4711";
const ACTION: &str = "paid";

pub(super) fn checks(backend: Backend) -> Vec<Box<dyn Check>> {
    let mut checks: Vec<Box<dyn Check>> =
        vec![Box::new(library::Library), Box::new(killed::Killed)];
    // One SQLite file has one server.
    if backend == Backend::Postgres {
        checks.push(Box::new(gateway::Gateway::default()));
    }
    checks
}

/// What comes in several copies.
#[derive(Debug, Clone)]
struct Event {
    id: String,
    sent_at: OffsetDateTime,
}

impl Event {
    fn new() -> Self {
        let id = format!("evt_{}", store::new_id::uuid_now().simple());
        Self { id, sent_at: OffsetDateTime::now_utc() }
    }

    fn told(&self) -> Json {
        json!({
            "event_id": self.id,
            "resource_id": RESOURCE,
            "action": ACTION,
            "timestamp": self.sent_at.unix_timestamp(),
        })
    }

    fn body(&self) -> String {
        self.told().to_string()
    }

    fn receipt(&self) -> anyhow::Result<NewReceipt> {
        let key = ReceiptKey::new(SOURCE, &self.id)?;
        let mut receipt = NewReceipt::new(key, self.body().as_bytes());
        receipt.resource_id = Some(Label::parse(RESOURCE)?);
        receipt.action = Some(Label::parse(ACTION)?);
        receipt.sent_at = Some(self.sent_at);
        Ok(receipt)
    }
}
