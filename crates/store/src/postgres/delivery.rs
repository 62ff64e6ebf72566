//! Deliveries.
//!
//! Waiting locks are taken in one order everywhere: deliveries by id, schedule rows by endpoint,
//! settled deliveries by id. A claim may hold schedule rows first, because it never waits for a
//! delivery.

pub(super) mod cancel;
pub(super) mod claim_due;
pub(super) mod find;
pub(super) mod find_due_endpoints;
pub(super) mod give_back;
pub(super) mod list;
pub(super) mod list_attempts;
pub(super) mod read_backlog;
pub(super) mod record_attempts;
pub(super) mod replay_failed;
