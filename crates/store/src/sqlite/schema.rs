//! The schema: its version, its migrations, and scratch databases.

pub(super) mod check;
pub(super) mod migrate;
pub(super) mod scratch;
