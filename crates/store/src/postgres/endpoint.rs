//! Endpoints.

pub(super) mod create;
pub(super) mod disable;
pub(super) mod find;
pub(super) mod list;
pub(super) mod read_targets;
