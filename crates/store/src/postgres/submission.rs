//! Submissions.

pub(super) mod accept;
pub(super) mod accept_in_tx;
pub(super) mod erase;
pub(super) mod find;
pub(super) mod list;
pub(super) mod read_payloads;
pub(super) mod resend;
