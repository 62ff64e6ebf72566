//! API keys.

pub(super) mod create;
pub(super) mod find;
pub(super) mod has_any;
