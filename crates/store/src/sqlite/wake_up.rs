//! Wake-ups: one process serves a file, so its own signal is all there is.

pub(super) mod listen;
pub(super) mod notify_due;
