//! Endpoints.

pub(super) mod create;
pub(super) mod delete;
pub(super) mod disable;
pub(super) mod enable;
pub(super) mod find;
pub(super) mod list;
pub(super) mod pause;
pub(super) mod read_public_key;
pub(super) mod read_targets;
pub(super) mod reseal_headers;
pub(super) mod reseal_secrets;
pub(super) mod rotate_secrets;
pub(super) mod update;
