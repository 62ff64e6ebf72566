//! Sources: where other people's webhooks come from, and how one proves that it does.
//!
//! Everything is decided on the bytes as they were received: [`InboundRequest`] borrows them, and
//! nothing here re-serializes, re-orders or re-encodes what a signature covers. Time is an argument.
//!
//! | module | decides |
//! | --- | --- |
//! | [`scheme`] | whether a request was made by somebody who holds the source's secret |
//! | [`event_id`] | what the sender calls the event, by which copies are recognised |
//! | [`challenge`] | whether a request only asks if somebody is at home |
//! | [`secret`] | what can be a secret of which scheme |

pub mod challenge;
pub mod event_id;
pub mod refusal;
pub mod request;
pub mod scheme;
pub mod secret;

mod clock;
mod json_pointer;
mod mac;

pub use event_id::{EventId, EventIdLocation};
pub use json_pointer::{JsonPointer, JsonPointerError};
pub use refusal::Refusal;
pub use request::{HeaderName, HeaderNameError, InboundRequest};
pub use scheme::{Scheme, SchemeError, SchemeKind};
pub use secret::{SourceSecret, SourceSecretError};
