//! Inbound events: the record that one was processed, written in the transaction of its effect.
//!
//! `postgres::receive_once_in_tx` and `sqlite::receive_once_in_tx` write it on the caller's open
//! transaction. Whoever is told [`Receiving::First`] does what the event asks for and commits: receipt and
//! effect are there together or not at all, so an event whose processing failed can be sent again.

use std::time::Duration;

use domain::id::SubmissionId;
use domain::label::Label;
use domain::receipt::ReceiptKey;
use domain::submission::Fingerprint;
use time::OffsetDateTime;

use crate::StoreError;

/// How long to wait for a concurrent copy, where nothing asks for another time: the sender is waiting too.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// An inbound event that is about to be processed.
#[derive(Debug, Clone)]
pub struct NewReceipt {
    /// Which event it is.
    pub key: ReceiptKey,
    /// Tells a copy from other content under the same id: [`Fingerprint::of_received`].
    pub fingerprint: Fingerprint,
    /// What it is about, for people.
    pub resource_id: Option<Label>,
    /// What happened to that, for people.
    pub action: Option<Label>,
    /// The sender's own timestamp.
    pub sent_at: Option<OffsetDateTime>,
}

impl NewReceipt {
    /// The receipt of a body as it was received.
    #[must_use]
    pub fn new(key: ReceiptKey, body: &[u8]) -> Self {
        let fingerprint = Fingerprint::of_received(body);
        Self { key, fingerprint, resource_id: None, action: None, sent_at: None }
    }
}

/// What a copy of an event is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiving {
    /// Nobody has processed it: the caller does, and commits.
    First,
    /// It was processed. The caller does nothing, and answers as if it had.
    Duplicate {
        /// When, on the database's clock.
        processed_at: OffsetDateTime,
    },
    /// Other content was processed under the same id.
    Conflicted,
    /// A concurrent copy is being processed and did not end in time. The transaction is of no use any
    /// more: the caller rolls it back, and asks the sender to come again.
    InProgress,
}

/// What is kept of an event that a source brought and that became a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The public id of its source, which may be deleted by now.
    pub source_id: String,
    /// What its sender calls it, or a digest of that or of its body.
    pub event_id: String,
    /// What happened, as the sender names it.
    pub action: Option<String>,
    /// The sender's own timestamp, where it is signed.
    pub sent_at: Option<OffsetDateTime>,
    /// Names and values of the headers that its source keeps, in the order of the request. None are left
    /// once the payload is erased.
    pub headers: Vec<(String, String)>,
    /// Whether other content came under its id, which was not stored.
    pub conflicted: bool,
}

/// What the column of kept headers says; none where it is empty.
pub(crate) fn kept_headers(
    json: Option<&str>,
    submission: SubmissionId,
) -> Result<Vec<(String, String)>, StoreError> {
    let headers = json.map_or(Ok(Vec::new()), serde_json::from_str);
    headers.map_err(|_| StoreError::Corrupt {
        table: "receipts",
        column: "headers",
        row: submission.to_string(),
    })
}

/// What a copy is told of the one that was processed.
pub(crate) fn told_of(
    mine: &Fingerprint,
    processed: &[u8],
    processed_at: OffsetDateTime,
) -> Receiving {
    if mine.as_bytes() == processed {
        Receiving::Duplicate { processed_at }
    } else {
        Receiving::Conflicted
    }
}
