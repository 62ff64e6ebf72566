//! The fields of an endpoint that its owner sets, as they are written in JSON.
//!
//! | what | form |
//! | --- | --- |
//! | a duration | a text, a whole number and a unit: `"100ms"`, `"15s"`, `"5m"`, `"2h"`, `"7d"` |
//! | a rate | an object, `{"limit": 600, "window": "60s"}` |
//! | headers | an object of names and values; answers show `"***"` for each value |
//!
//! `null` takes away what can be absent: `name`, `event_types`, `headers`, `delivery_rate`,
//! `only_networks`, `ca_certificates`. Elsewhere it is refused. A field that is left out stays as it is, or has its default in a new endpoint.

use std::time::Duration;

use domain::delivery::retry::{DELAYS_MAX, RetrySchedule};
use domain::destination::{ONLY_NETWORKS_MAX, OnlyNetworks, URL_BYTES_MAX};
use domain::endpoint::{
    CA_BUNDLE_BYTES_MAX, CaCertificates, CustomHeaders, EndpointName, EventPatterns,
    HEADER_NAME_BYTES_MAX, HEADER_VALUE_BYTES_MAX, HEADERS_MAX, IN_FLIGHT_MAX, SettingsChange,
    SettingsError, SigningSchemes,
};
use domain::rate_limit::RateLimit;
use serde_json::Value;
use utoipa::PartialSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};

use crate::fields::{Fault, Fields, Refusal};
use crate::openapi::schema;
use crate::problem::{Code, FieldError, Problem};

/// A token (RFC 9110, section 5.6.2).
const TOKEN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/// What a caller gives of an endpoint, whether it is new or not.
#[expect(clippy::option_option, reason = "absent, null and given are three things")]
pub(super) struct EndpointFields {
    pub(super) name: Option<Option<EndpointName>>,
    pub(super) event_types: Option<Option<EventPatterns>>,
    pub(super) headers: Option<CustomHeaders>,
    pub(super) enabled: Option<bool>,
    pub(super) settings: SettingsChange,
}

impl EndpointFields {
    pub(super) fn take(fields: &mut Fields) -> Self {
        Self {
            name: fields.nullable("name", |value| text(value, EndpointName::parse)),
            event_types: fields.nullable("event_types", event_types),
            headers: fields.nullable("headers", headers).map(Option::unwrap_or_default),
            enabled: fields.value("enabled", yes_or_no),
            settings: SettingsChange {
                deadline: fields.value("deadline", duration),
                connect_deadline: fields.value("connect_deadline", duration),
                retry_schedule: fields.value("retry_schedule", retry_schedule),
                overload_floor: fields.value("overload_floor", duration),
                final_statuses: fields.value("final_statuses", statuses),
                in_flight_max: fields.value("in_flight_max", in_flight_max),
                delivery_rate: fields.nullable("delivery_rate", rate),
                ingest_rate: fields.value("ingest_rate", rate),
                signing: fields.value("signing", signing),
                public_ingest: fields.value("public_ingest", yes_or_no),
                only_networks: fields.nullable("only_networks", only_networks),
                ca_certificates: fields.nullable("ca_certificates", ca_certificates),
                circuit_breaker: fields.value("circuit_breaker", yes_or_no),
            },
        }
    }
}

/// The same, as the document describes them.
pub(super) fn describe(object: ObjectBuilder) -> ObjectBuilder {
    let list = |items: RefOr<Schema>| ArrayBuilder::new().items(items);
    object
        .property("url", url())
        .property("name", schema::endpoint_name())
        .property("event_types", schema::event_patterns())
        .property("headers", described_headers())
        .property("enabled", schema::boolean())
        .property("deadline", schema::duration("`100ms` to `30s`: the whole call."))
        .property(
            "connect_deadline",
            schema::duration("`100ms` to the deadline: DNS, connect and TLS."),
        )
        .property(
            "retry_schedule",
            list(schema::duration("Up to `7d`.").into())
                .min_items(Some(1))
                .max_items(Some(DELAYS_MAX)),
        )
        .property(
            "overload_floor",
            schema::duration(
                "Up to `1d`: the shortest wait after an answer that says \"overloaded\".",
            ),
        )
        .property("final_statuses", list(schema::integer(300, 599).into()))
        .property("in_flight_max", schema::integer(1, IN_FLIGHT_MAX.into()))
        .property(
            "delivery_rate",
            OneOfBuilder::new().item(no_value()).item(schema::Rate::schema()),
        )
        .property("ingest_rate", schema::Rate::schema())
        .property("signing", schema::Signing::schema())
        .property("public_ingest", schema::boolean())
        .property("only_networks", described_networks())
        .property("ca_certificates", described_certificates())
        .property("circuit_breaker", schema::boolean())
}

fn no_value() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Null)
}

fn url() -> ObjectBuilder {
    schema::text()
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .max_length(Some(URL_BYTES_MAX))
        .pattern(Some("^[Hh][Tt][Tt][Pp][Ss]?:"))
        .examples(["https://example.com/hook"])
}

fn described_networks() -> ArrayBuilder {
    ArrayBuilder::new()
        .schema_type(schema::nullable(Type::Array))
        .description(Some(
            "Nothing is sent to an address outside of these. They narrow what the deployment allows.",
        ))
        .items(schema::text().examples(["203.0.113.0/24"]))
        .min_items(Some(1))
        .max_items(Some(ONLY_NETWORKS_MAX))
}

fn described_certificates() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(schema::nullable(Type::String))
        .description(Some(
            "1 to 8 certificates in PEM that may vouch for the receiver, beside the roots of the \
             platform.",
        ))
        .max_length(Some(CA_BUNDLE_BYTES_MAX))
}

fn described_headers() -> ObjectBuilder {
    let name = schema::text().max_length(Some(HEADER_NAME_BYTES_MAX)).pattern(Some(TOKEN));
    let value = schema::text()
        .min_length(Some(1))
        .max_length(Some(HEADER_VALUE_BYTES_MAX))
        .pattern(Some(r"^[!-~]([\t -~]*[!-~])?$"));
    ObjectBuilder::new()
        .schema_type(schema::nullable(Type::Object))
        .max_properties(Some(HEADERS_MAX))
        .property_names(Some(name))
        .additional_properties(Some(value))
}

/// The problem of settings that break a limit together.
pub(super) fn out_of_range(error: SettingsError) -> Problem {
    let error = FieldError::new(error.field, "setting_out_of_range", error.message);
    Problem::of_fields(Code::BodyInvalid, vec![error])
}

pub(super) fn text<T, F: Fault>(
    value: &Value,
    parse: impl FnOnce(&str) -> Result<T, F>,
) -> Result<T, Refusal> {
    match value {
        Value::String(text) => parse(text).map_err(|fault| Refusal::of(&fault)),
        _ => Err(Refusal::new("field_not_text", "must be a string")),
    }
}

fn yes_or_no(value: &Value) -> Result<bool, Refusal> {
    value.as_bool().ok_or(Refusal::new("field_not_boolean", "must be true or false"))
}

pub(super) fn duration(value: &Value) -> Result<Duration, Refusal> {
    let malformed = |message: String| Refusal::new("duration_malformed", message);
    let Value::String(text) = value else {
        return Err(malformed("must be a string such as \"15s\"".to_owned()));
    };
    domain::duration::parse(text).map_err(|error| malformed(error.to_string()))
}

fn list(value: &Value) -> Result<&Vec<Value>, Refusal> {
    value.as_array().ok_or(Refusal::new("field_not_list", "must be a list"))
}

fn texts(value: &Value) -> Result<Vec<String>, Refusal> {
    let texts = list(value)?.iter().map(|item| match item {
        Value::String(text) => Ok(text.clone()),
        _ => Err(Refusal::new("field_not_text", "must be a list of strings")),
    });
    texts.collect()
}

fn event_types(value: &Value) -> Result<EventPatterns, Refusal> {
    EventPatterns::parse(texts(value)?)
        .map_err(|error| Refusal::new(error.code(), error.to_string()))
}

fn only_networks(value: &Value) -> Result<OnlyNetworks, Refusal> {
    OnlyNetworks::parse(&texts(value)?)
        .map_err(|error| Refusal::new(error.code(), error.to_string()))
}

fn ca_certificates(value: &Value) -> Result<CaCertificates, Refusal> {
    text(value, CaCertificates::parse)
}

fn headers(value: &Value) -> Result<CustomHeaders, Refusal> {
    let Value::Object(members) = value else {
        return Err(Refusal::new("field_not_object", "must be an object of names and values"));
    };
    let pairs = members.iter().map(|(name, value)| match value {
        Value::String(value) => Ok((name.clone(), value.as_str().into())),
        _ => Err(Refusal::new("field_not_text", "must have strings as values")),
    });
    let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    CustomHeaders::parse(pairs).map_err(|error| Refusal::new(error.code(), error.to_string()))
}

fn retry_schedule(value: &Value) -> Result<RetrySchedule, Refusal> {
    let delays = list(value)?.iter().map(duration).collect::<Result<Vec<_>, _>>()?;
    RetrySchedule::new(delays)
        .map_err(|error| Refusal::new("setting_out_of_range", error.to_string()))
}

fn statuses(value: &Value) -> Result<Vec<u16>, Refusal> {
    let refused = || Refusal::new("setting_out_of_range", "may only list statuses from 300 to 599");
    let number = |item: &Value| item.as_u64().and_then(|it| it.try_into().ok()).ok_or_else(refused);
    list(value)?.iter().map(number).collect()
}

fn in_flight_max(value: &Value) -> Result<u16, Refusal> {
    let refused = || Refusal::new("setting_out_of_range", "must be a whole number from 1 to 1,000");
    value.as_u64().and_then(|number| number.try_into().ok()).ok_or_else(refused)
}

fn rate(value: &Value) -> Result<RateLimit, Refusal> {
    let refused = || {
        let form = "must be an object with a whole number `limit` and a duration `window`";
        Refusal::new("rate_malformed", form)
    };
    let members = value.as_object().filter(|members| members.len() == 2).ok_or_else(refused)?;
    let limit = members.get("limit").and_then(Value::as_u64).ok_or_else(refused)?;
    let window = duration(members.get("window").ok_or_else(refused)?)?;
    RateLimit::new(u32::try_from(limit).unwrap_or(u32::MAX), window)
        .map_err(|error| Refusal::new("setting_out_of_range", error.to_string()))
}

fn signing(value: &Value) -> Result<SigningSchemes, Refusal> {
    let refused = || Refusal::new("signing_unknown", "must be \"v1\", \"v1a\" or \"both\"");
    value.as_str().and_then(SigningSchemes::parse).ok_or_else(refused)
}
