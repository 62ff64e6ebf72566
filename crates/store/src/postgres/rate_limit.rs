//! Statements over `rate_limit_counters`.

pub(super) mod reserve;
pub(super) mod sweep;
