//! Races between sessions of PostgreSQL, each brought about by hand: one session stops where it would
//! be passed, the other runs into it.

mod accept;
mod circuit;
mod claim;
mod disable_failing;
mod hold;
mod receipts;
pub(crate) mod session;
