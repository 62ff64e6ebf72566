//! What is written the same way in many places, with its limits.

use std::borrow::Cow;

use domain::cursor::CURSOR_CHARACTERS;
use domain::delivery::{Failure, Outcome, StateName};
use domain::endpoint::{EVENT_PATTERNS_MAX, NAME_CHARACTERS_MAX, SigningSchemes};
use domain::id::PUBLIC_ID_CHARACTERS_MAX;
use domain::label::LABEL_CHARACTERS_MAX;
use domain::rate_limit::RATE_UNITS_MAX;
use store::api_key::Role;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::instant::Instant;

/// A type that stands for a schema by name. It has no values.
macro_rules! named {
    ($($(#[$doc:meta])* $name:ident => $schema:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) enum $name {}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $schema.into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(stringify!($name))
            }
        }
    )*};
}
pub(crate) use named;

named! {
    /// The id that an owner chooses.
    PublicId => text()
        .min_length(Some(1))
        .max_length(Some(PUBLIC_ID_CHARACTERS_MAX))
        .pattern(Some("^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$"))
        .examples(["orders"]);
    /// A body that asks for nothing in it.
    NoFields => closed_object();
    /// A duration.
    WrittenDuration => duration("A whole number and a unit: `ms`, `s`, `m`, `h` or `d`.");
    /// A number of units in a window.
    Rate => closed_object()
        .description(Some("At most so many in each window of `1s` to `1d`, in whole seconds."))
        .property("limit", integer(1, RATE_UNITS_MAX))
        .property("window", WrittenDuration::schema())
        .required("limit")
        .required("window");
    /// Where a delivery stands.
    DeliveryState => text().enum_values(Some(StateName::ALL.map(StateName::as_str)));
    /// What a try yielded.
    AttemptOutcome => {
        let answered = Outcome::Answered { status: 200, retry_after: None };
        let failures = Failure::ALL.iter().map(|failure| failure.as_str());
        text().enum_values(Some([answered.as_str()].into_iter().chain(failures)))
    };
    /// Which signatures deliveries carry.
    Signing => text().enum_values(Some(SigningSchemes::ALL.map(SigningSchemes::as_str)));
    /// What a key may.
    KeyRole => text().enum_values(Some(Role::ALL.map(Role::as_str)));
}

impl PartialSchema for Instant {
    fn schema() -> RefOr<Schema> {
        date_time().into()
    }
}

impl ToSchema for Instant {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Instant")
    }
}

/// An instant as a caller may write it.
pub(crate) fn date_time() -> ObjectBuilder {
    text()
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .examples(["2026-12-01T06:00:00.000000Z"])
}

/// A duration within limits, which a pattern cannot say.
pub(crate) fn duration(limits: &str) -> ObjectBuilder {
    text().description(Some(limits)).pattern(Some("^[0-9]{1,15}(ms|s|m|h|d)$")).examples(["15s"])
}

/// A string.
pub(crate) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// A UUID with hyphens.
pub(crate) fn uuid() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
}

/// Bytes of any kind.
pub(crate) fn binary() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
}

/// Whatever the content type says.
pub(crate) fn anything() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue)
}

/// A secret for `v1`: 24 to 64 bytes in base64, written in the one way that there is.
pub(crate) fn secret() -> ObjectBuilder {
    let (four, three, two) =
        ("[A-Za-z0-9+/]{4}", "[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=", "[A-Za-z0-9+/][AQgw]==");
    let pattern = format!("^whsec_({four}){{8,20}}({four}|{three}|{two}|{four}{two})?$");
    text().pattern(Some(pattern)).write_only(true)
}

/// A whole number within limits.
pub(crate) fn integer(least: u32, most: u32) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least)).maximum(Some(most))
}

/// `true` or `false`.
pub(crate) fn boolean() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean)
}

/// An object whose members are all named.
pub(crate) fn closed_object() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
}

/// That, or null.
pub(crate) fn nullable(kind: Type) -> SchemaType {
    SchemaType::Array(vec![kind, Type::Null])
}

/// A cursor, in base64 without padding.
pub(crate) fn cursor() -> ObjectBuilder {
    text()
        .min_length(Some(CURSOR_CHARACTERS))
        .max_length(Some(CURSOR_CHARACTERS))
        .pattern(Some("^[A-Za-z0-9_-]+$"))
}

/// A label for people, without control characters.
pub(crate) fn label() -> ObjectBuilder {
    text().min_length(Some(1)).max_length(Some(LABEL_CHARACTERS_MAX)).pattern(Some(NO_CONTROLS))
}

/// The name of an endpoint.
pub(crate) fn endpoint_name() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(nullable(Type::String))
        .max_length(Some(NAME_CHARACTERS_MAX))
        .pattern(Some(NO_CONTROLS))
}

/// An event type.
pub(crate) fn event_type() -> ObjectBuilder {
    text()
        .min_length(Some(1))
        .max_length(Some(domain::submission::content::EVENT_TYPE_BYTES_MAX))
        .pattern(Some(r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"))
        .examples(["order.paid"])
}

/// Event types, or all below one.
pub(crate) fn event_patterns() -> ArrayBuilder {
    let pattern = text()
        .max_length(Some(domain::submission::content::EVENT_TYPE_BYTES_MAX + 2))
        .pattern(Some(r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?$"))
        .examples(["order.*"]);
    ArrayBuilder::new()
        .schema_type(nullable(Type::Array))
        .items(pattern)
        .unique_items(true)
        .min_items(Some(1))
        .max_items(Some(EVENT_PATTERNS_MAX))
}

const NO_CONTROLS: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
