//! The description of the API, OpenAPI 3.1, made from the table of calls.
//!
//! A call cannot be registered without saying what it takes and answers ([`Doc`]), so nothing is
//! served that is not described, and nothing described that is not served. What follows from the
//! table is not said again: the parameters of the path, who may, and the problems that come with a
//! key, a body or a list. Which problems a call answers is held by its tests: `tests/api/harness.rs`
//! looks each answer up here.

mod doc;
mod problems;
pub(crate) mod schema;

use std::collections::BTreeMap;

use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::schema::ComponentsBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    Info, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem, PathsBuilder, RefOr, Schema,
};

pub(crate) use self::doc::Doc;

/// The name of the scheme by which keys are sent.
const API_KEY: &str = "api_key";

const ABOUT: &str = "Fencepost takes submissions and delivers each as a signed request (Standard \
    Webhooks), at least once.\n\n\
    Problems are `application/problem+json` (RFC 9457). Programs tell them apart by `code`, which \
    never changes; `detail` is for people and may. A path that does not exist answers `not_found`, \
    another method than those of a path `method_not_allowed` with `Allow`. Unknown query parameters \
    and unknown members of a body are refused, each by name, in `errors`.\n\n\
    Every answer has an `X-Request-Id`, which stands in the log too. Instants are UTC. A member that \
    an answer may lack is marked as not required; all others are there, some of them `null`. Answers \
    may get more members: a reader passes over those that it does not know.";

/// A call of the table, as far as its description needs it.
pub(crate) struct Described<'a> {
    pub(crate) method: HttpMethod,
    pub(crate) path: &'static str,
    /// The name of the least role that may.
    pub(crate) least_role: Option<&'static str>,
    pub(crate) doc: &'a Doc,
}

/// The document of these calls.
pub(crate) fn document<'a>(calls: impl IntoIterator<Item = Described<'a>>) -> OpenApi {
    let mut schemas: BTreeMap<String, RefOr<Schema>> = problems::schemas().into_iter().collect();
    let mut items: BTreeMap<&'static str, PathItem> = BTreeMap::new();
    for Described { method, path, least_role, doc } in calls {
        schemas.extend(doc.schemas().iter().cloned());
        let operation: Operation = doc.operation(path, least_role);
        items.entry(path).or_default().merge_operations(PathItem::new(method, operation));
    }
    let mut paths = PathsBuilder::new();
    for (path, item) in items {
        paths = paths.path(path, item);
    }
    let key = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("fp_live_…")
        .description(Some(
            "An API key. The role that a call asks for stands beside the scheme: \
             `admin` covers `publish`, and that covers `read`.",
        ))
        .build();
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(API_KEY, SecurityScheme::Http(key))
        .build();
    let mut info = Info::new("Fencepost", env!("CARGO_PKG_VERSION"));
    info.description = Some(ABOUT.to_owned());
    let license = LicenseBuilder::new()
        .name("Apache-2.0 OR MIT")
        .identifier(Some(env!("CARGO_PKG_LICENSE")))
        .build();
    info.license = Some(license);
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components)).build()
}
