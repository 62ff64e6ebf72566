//! Inbound events.

mod receive_once;

pub use receive_once::receive_once_in_tx;
