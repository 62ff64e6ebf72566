//! API keys.

pub(super) mod create;
pub(super) mod find;
pub(super) mod has_any;
pub(super) mod list;
pub(super) mod note_use;
pub(super) mod revoke;
mod row;
