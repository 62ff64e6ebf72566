//! Sources: where other people's webhooks come from.

mod create;
mod delete;
mod fields;
mod get;
mod list;
mod rotate;
mod update;

use domain::id::{ApplicationKey, PublicId};
use domain::source::{Scheme, SchemeKind};
use serde::Serialize;
use serde_json::{Value, json};
use store::api_key::Role;
use store::source::{NotedRefusal, Source};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{Access, Call, State, endpoint};
use crate::instant::Instant;
use crate::problem::{Code, Problem};

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get("/v1/sources", Access::Key(Role::Read), list::doc(), list::list),
        Call::post("/v1/sources", Access::Key(Role::Admin), create::doc(), create::create),
        Call::get("/v1/sources/{source_id}", Access::Key(Role::Read), get::doc(), get::get),
        Call::patch(
            "/v1/sources/{source_id}",
            Access::Key(Role::Admin),
            update::doc(),
            update::update,
        ),
        Call::delete(
            "/v1/sources/{source_id}",
            Access::Key(Role::Admin),
            delete::doc(),
            delete::delete,
        ),
        Call::post(
            "/v1/sources/{source_id}/secrets/rotate",
            Access::Key(Role::Admin),
            rotate::doc(),
            rotate::rotate,
        ),
    ]
}

/// A source as it is answered, without its secrets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Source)]
struct SourceBody {
    id: String,
    name: Option<String>,
    /// Where its events go.
    endpoint_id: String,
    /// How its requests are verified. What is secret in it is never shown.
    #[schema(value_type = Object)]
    scheme: Value,
    /// Where the id of an event stands: a header, a place in the body, or `digest`.
    #[schema(value_type = fields::EventIdPlace)]
    event_id: Value,
    /// The headers that are kept with each receipt.
    headers: Vec<String>,
    /// How many requests were refused and noted.
    refused: u64,
    /// The newest of them, at most ten.
    refusals: Vec<RefusalBody>,
    version: i64,
    created_at: Instant,
    updated_at: Instant,
}

/// A request that could not be verified.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Refusal)]
struct RefusalBody {
    at: Instant,
    /// Which rule it broke: stable.
    code: String,
    /// The reason in words.
    message: String,
}

impl From<Source> for SourceBody {
    fn from(source: Source) -> Self {
        let location = source.event_id.unwrap_or_else(|| source.scheme.event_id_location());
        Self {
            id: source.id.as_str().to_owned(),
            name: source.name,
            endpoint_id: source.endpoint_id,
            scheme: shown_scheme(&source.scheme),
            event_id: json!(location),
            headers: source.headers.iter().map(|name| name.as_str().to_owned()).collect(),
            refused: source.refused,
            refusals: source.refusals.into_iter().map(RefusalBody::from).collect(),
            version: source.version,
            created_at: Instant(source.created_at),
            updated_at: Instant(source.updated_at),
        }
    }
}

impl From<NotedRefusal> for RefusalBody {
    fn from(noted: NotedRefusal) -> Self {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(noted.at_micros) * 1_000);
        let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
        Self { at: Instant(at), code: noted.code, message: noted.message }
    }
}

fn shown_scheme(scheme: &Scheme) -> Value {
    let mut shown = json!(scheme);
    if scheme.kind() == SchemeKind::Meta {
        shown["verify_token"] = json!(domain::endpoint::REDACTED);
    }
    shown
}

/// The source of an application that a text names.
async fn find(state: &State, application: ApplicationKey, id: &str) -> Result<Source, Problem> {
    let missing = || Problem::new(Code::SourceNotFound);
    let id = PublicId::parse(id).map_err(|_| missing())?;
    state.store.find_source(application, &id).await?.ok_or_else(missing)
}
