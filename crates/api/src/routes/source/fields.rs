//! The members of a source that are set when it is created and changed later.

use std::collections::BTreeSet;

use domain::label::{Label, LabelError};
use domain::source::request::HEADER_NAME_MAX;
use domain::source::secret::SOURCE_SECRET_BYTES_MAX;
use domain::source::{
    EventIdLocation, HeaderName, JsonPointer, Scheme, SchemeError, SchemeKind, SourceSecretError,
};
use serde_json::Value;
use utoipa::PartialSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type};

use crate::fields::{Fault, Fields, Refusal};
use crate::openapi::schema::{closed_object, label, named, nullable, text};

/// The most headers that are kept with a receipt.
const HEADERS_MAX: usize = 20;

named! {
    /// Where the id of an event stands.
    EventIdPlace => OneOfBuilder::new()
        .description(Some("A header, a place in a JSON body (RFC 6901), or the body itself."))
        .item(closed_object().property("header", header_name()).required("header"))
        .item(closed_object().property("pointer", text().pattern(Some("^/"))).required("pointer"))
        .item(text().enum_values(Some(["digest"])));
    /// How requests are verified.
    SchemeSettings => ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(
            "The scheme by its `type`, and what that one has to be told: see docs/INBOX.md.",
        ))
        .property("type", text().enum_values(Some(SchemeKind::ALL.map(SchemeKind::as_str))))
        .required("type")
        .additional_properties(Some(ObjectBuilder::new().schema_type(SchemaType::AnyValue)))
        .examples([serde_json::json!({"type": "github"})]);
}

fn header_name() -> ObjectBuilder {
    text()
        .min_length(Some(1))
        .max_length(Some(HEADER_NAME_MAX))
        .pattern(Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"))
}

/// They as the document describes them.
pub(super) fn describe(object: ObjectBuilder) -> ObjectBuilder {
    object
        .property("name", label().schema_type(nullable(Type::String)))
        .property("scheme", SchemeSettings::schema())
        .property("event_id", EventIdPlace::schema())
        .property("headers", ArrayBuilder::new().items(header_name()).max_items(Some(HEADERS_MAX)))
}

/// The secret of a source as the document describes it.
pub(super) fn described_secret() -> ObjectBuilder {
    text()
        .min_length(Some(1))
        .max_length(Some(SOURCE_SECRET_BYTES_MAX))
        .description(Some(
            "The secret that the sender gave out. Where the customer chooses it, one is made if it is \
             not given.",
        ))
        .write_only(true)
}

/// What is given of a source. What is `None` was not.
#[expect(clippy::option_option, reason = "absent, null and given are three things")]
pub(super) struct SourceFields {
    pub(super) name: Option<Option<Label>>,
    pub(super) scheme: Option<Scheme>,
    pub(super) event_id: Option<Option<EventIdLocation>>,
    pub(super) headers: Option<Vec<HeaderName>>,
}

impl SourceFields {
    pub(super) fn take(fields: &mut Fields) -> Self {
        Self {
            name: fields.nullable("name", |value| {
                let text = as_text(value)?;
                Label::parse(text).map_err(|error: LabelError| Refusal::of(&error))
            }),
            scheme: fields.value("scheme", |value| {
                Scheme::from_json(&value.to_string()).map_err(|error| Refusal::of(&error))
            }),
            event_id: fields.nullable("event_id", location),
            headers: fields.value("headers", header_names),
        }
    }
}

fn as_text(value: &Value) -> Result<&str, Refusal> {
    value.as_str().ok_or_else(|| Refusal::new("field_not_text", "must be a string"))
}

fn location(value: &Value) -> Result<EventIdLocation, Refusal> {
    let refuse = || {
        let message = "must be {\"header\": \"name\"}, {\"pointer\": \"/path\"} or \"digest\"";
        Refusal::new("event_id_malformed", message)
    };
    if value == "digest" {
        return Ok(EventIdLocation::Digest);
    }
    let members = value.as_object().filter(|members| members.len() == 1).ok_or_else(refuse)?;
    let member = |name: &str| members.get(name).and_then(Value::as_str);
    let invalid =
        |error: &dyn std::fmt::Display| Refusal::new("event_id_malformed", error.to_string());
    if let Some(name) = member("header") {
        return HeaderName::parse(name).map(EventIdLocation::Header).map_err(|e| invalid(&e));
    }
    let pointer = member("pointer").ok_or_else(refuse)?;
    JsonPointer::parse(pointer).map(EventIdLocation::Pointer).map_err(|e| invalid(&e))
}

fn header_names(value: &Value) -> Result<Vec<HeaderName>, Refusal> {
    let refuse = |message: String| Refusal::new("header_names_malformed", message);
    let names = value.as_array().filter(|names| names.len() <= HEADERS_MAX);
    let names = names.ok_or_else(|| {
        refuse(format!("must be a list of at most {HEADERS_MAX} names of headers"))
    })?;
    let mut parsed = BTreeSet::new();
    for name in names {
        let name = HeaderName::parse(name.as_str().unwrap_or_default());
        parsed.insert(name.map_err(|error| refuse(error.to_string()))?);
    }
    // What proves who sent must not lie around where payloads are read.
    for secret in ["authorization", "cookie", "proxy-authorization"] {
        if parsed.iter().any(|name| name.as_str() == secret) {
            return Err(refuse(format!(
                "`{secret}` is not kept: it would be a secret in the clear"
            )));
        }
    }
    Ok(parsed.into_iter().collect())
}

impl Fault for SchemeError {
    fn code(&self) -> &'static str {
        "scheme_malformed"
    }

    fn message(&self) -> String {
        self.to_string()
    }
}

impl Fault for SourceSecretError {
    fn code(&self) -> &'static str {
        "secret_malformed"
    }

    fn message(&self) -> String {
        self.to_string()
    }
}
