//! What a submission is made of: its content type, its event type, and the syntax of its payload.
//!
//! Nothing here changes a payload. One that is declared to be JSON is read once, to tell whether it
//! is. The bytes are stored, signed and sent as they came.

mod content_type;
mod event_type;
mod form;
mod json;

pub use content_type::{CONTENT_TYPE_BYTES_MAX, ContentType, ContentTypeError};
pub use event_type::{EVENT_TYPE_BYTES_MAX, EventType, EventTypeError};
pub(crate) use form::decoded;
pub use form::{Form, FormError, FormLimits};
pub use json::{JSON_NESTING_MAX, JsonError, declared_json_parses};
