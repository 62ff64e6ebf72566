//! The schema: its version, its migrations, its partitions, and scratch databases.

pub(super) mod check;
pub(super) mod grants;
pub(super) mod migrate;
pub(super) mod partitions;
pub(super) mod scratch;
