//! Applications.

pub(super) mod create;
pub(super) mod find;
pub(super) mod list;
mod row;
