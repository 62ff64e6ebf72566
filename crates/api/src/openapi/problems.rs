//! Problems, as the document describes them.

use std::collections::BTreeMap;

use utoipa::ToSchema;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Schema};

use super::schema::{integer, text};
use crate::problem::{Code, FieldError, PROBLEM_JSON};

const PROBLEM: &str = "Problem";
const PROBLEM_CODE: &str = "ProblemCode";

/// The schemas that every response of a problem refers to.
pub(super) fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let lines = Code::ALL.iter().map(|code| {
        format!("- `{}` ({}): {}", code.as_str(), code.status().as_u16(), code.summary())
    });
    let lines: Vec<String> = lines.collect();
    let codes = text()
        .description(Some(format!("What kind of problem it is:\n\n{}", lines.join("\n"))))
        .enum_values(Some(Code::ALL.iter().map(|code| code.as_str())));
    let problem = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("Why a request did not succeed (RFC 9457)."))
        .property("type", text().enum_values(Some(["about:blank"])))
        .property("title", text().description(Some("The status in words.")))
        .property("status", integer(400, 599))
        .property("code", Ref::from_schema_name(PROBLEM_CODE))
        .property("detail", text().description(Some("What is wrong, for people.")))
        .property("errors", <Vec<FieldError> as utoipa::PartialSchema>::schema())
        .property("state", text().description(Some("The state of the delivery that refuses.")))
        .property("line", integer(0, u32::MAX))
        .property("column", integer(0, u32::MAX))
        .property("limit_bytes", integer(1, u32::MAX))
        .property("scope", text().description(Some("Whose budget is spent.")))
        .property("limit", integer(1, u32::MAX))
        .property("window_seconds", integer(1, u32::MAX))
        .required("type")
        .required("title")
        .required("status")
        .required("code")
        .required("detail");
    vec![
        (FieldError::name().into_owned(), <FieldError as utoipa::PartialSchema>::schema()),
        (PROBLEM_CODE.to_owned(), codes.into()),
        (PROBLEM.to_owned(), problem.into()),
    ]
}

/// A response for each status that these codes are answered with, naming them.
pub(super) fn responses<'a>(codes: impl IntoIterator<Item = &'a Code>) -> Vec<(u16, Response)> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status().as_u16()).or_default().push(*code);
    }
    by_status.into_iter().map(|(status, codes)| (status, response(status, &codes))).collect()
}

fn response(status: u16, codes: &[Code]) -> Response {
    let lines = codes.iter().map(|code| format!("- `{}`: {}", code.as_str(), code.summary()));
    let lines: Vec<String> = lines.collect();
    let named = text().enum_values(Some(codes.iter().map(|code| code.as_str())));
    let schema = AllOfBuilder::new()
        .item(Ref::from_schema_name(PROBLEM))
        .item(ObjectBuilder::new().schema_type(Type::Object).property("code", named));
    let content = ContentBuilder::new().schema(Some(Schema::AllOf(schema.build()))).build();
    let response =
        ResponseBuilder::new().description(lines.join("\n")).content(PROBLEM_JSON, content);
    let header = |name: &str, about: &str| {
        let header = HeaderBuilder::new().schema(Some(text())).description(Some(about));
        (name.to_owned(), header.build())
    };
    let header = match status {
        401 => {
            Some(header("WWW-Authenticate", "`Bearer`, or `Basic` of a source that asks for it."))
        }
        429 | 503 => Some(header("Retry-After", "After how many seconds to come back.")),
        409 if codes.contains(&Code::IdempotencyKeyInProgress) => {
            Some(header("Retry-After", "After how many seconds to come back, if that helps."))
        }
        _ => None,
    };
    match header {
        Some((name, header)) => response.header(name, header).build(),
        None => response.build(),
    }
}

/// Whether something must be given.
pub(super) fn required(yes: bool) -> Required {
    if yes { Required::True } else { Required::False }
}
