//! Applications.

pub(super) mod find;
