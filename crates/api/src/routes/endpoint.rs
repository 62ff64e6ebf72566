//! Endpoints.

mod create;
mod delete;
mod enable;
mod fields;
mod get;
mod list;
mod pause;
pub(super) mod rotate;
mod update;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::destination::OnlyNetworks;
use domain::duration;
use domain::endpoint::circuit::Circuit;
use domain::endpoint::{DisabledCause, Failing, REDACTED};
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::rate_limit::RateLimit;
use serde::Serialize;
use store::api_key::Role;
use store::endpoint::Endpoint;
use store::life::Life;

use utoipa::{PartialSchema, ToSchema};

use super::{Access, Call, State};
use crate::fields::Fields;
use crate::instant::Instant;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Rate, Signing, WrittenDuration};
use crate::problem::{Code, Problem};

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get("/v1/endpoints", Access::Key(Role::Read), list::doc(), list::list),
        Call::post("/v1/endpoints", Access::Key(Role::Admin), create::doc(), create::create),
        Call::get("/v1/endpoints/{endpoint_id}", Access::Key(Role::Read), get::doc(), get::get),
        Call::post(
            "/v1/endpoints/{endpoint_id}/secrets/rotate",
            Access::Key(Role::Admin),
            rotate::doc(),
            rotate::rotate,
        ),
        Call::patch(
            "/v1/endpoints/{endpoint_id}",
            Access::Key(Role::Admin),
            update::doc(),
            update::update,
        ),
        Call::delete(
            "/v1/endpoints/{endpoint_id}",
            Access::Key(Role::Admin),
            delete::doc(),
            delete::delete,
        ),
        Call::post(
            "/v1/endpoints/{endpoint_id}/enable",
            Access::Key(Role::Admin),
            enable::doc(),
            enable::enable,
        ),
        Call::post(
            "/v1/endpoints/{endpoint_id}/pause",
            Access::Key(Role::Admin),
            pause::doc(),
            pause::pause,
        ),
    ]
}

/// An endpoint as it is answered, without its secrets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Endpoint)]
struct EndpointBody {
    id: String,
    url: String,
    name: Option<String>,
    event_types: Option<Vec<String>>,
    /// The values are never shown. Null where the headers cannot be unsealed with the keys at hand.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    headers: Option<BTreeMap<String, &'static str>>,
    enabled: bool,
    #[schema(value_type = Option<String>)]
    disabled_cause: Option<&'static str>,
    disabled_at: Option<Instant>,
    /// Its run of failures with no success between. Null where its last result was a success, or a day has
    /// passed without a failure.
    failing: Option<FailingBody>,
    circuit: CircuitBody,
    paused_until: Option<Instant>,
    #[schema(value_type = WrittenDuration)]
    deadline: String,
    #[schema(value_type = WrittenDuration)]
    connect_deadline: String,
    #[schema(value_type = Vec<WrittenDuration>)]
    retry_schedule: Vec<String>,
    #[schema(value_type = WrittenDuration)]
    overload_floor: String,
    final_statuses: Vec<u16>,
    in_flight_max: u16,
    #[schema(value_type = Option<Rate>)]
    delivery_rate: Option<RateBody>,
    #[schema(value_type = Rate)]
    ingest_rate: RateBody,
    #[schema(value_type = Signing)]
    signing: &'static str,
    public_ingest: bool,
    only_networks: Option<Vec<String>>,
    ca_certificates: Option<String>,
    circuit_breaker: bool,
    version: i64,
    created_at: Instant,
    updated_at: Instant,
}

/// A run of failures as it is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Failing)]
struct FailingBody {
    /// Its first failure.
    since: Instant,
    /// Its last failure.
    last_failure_at: Instant,
    /// When the endpoint is disabled, unless a success, an operator or a day without a failure comes
    /// between.
    disables_at: Instant,
}

impl From<Failing> for FailingBody {
    fn from(run: Failing) -> Self {
        Self {
            since: Instant(run.since),
            last_failure_at: Instant(run.last),
            disables_at: Instant(run.disables_at()),
        }
    }
}

/// A circuit as it is answered: whether deliveries are sent, or stopped because too many failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Circuit)]
struct CircuitBody {
    /// `closed`: deliveries are sent. `open`: none is. `half_open`: one is, whose result decides.
    #[schema(value_type = String)]
    state: &'static str,
    /// What opened it: `failures_in_a_row` or `failure_share`.
    #[schema(value_type = Option<String>)]
    cause: Option<&'static str>,
    /// When it opened.
    open_since: Option<Instant>,
    /// When the next delivery is sent to see whether the endpoint is back.
    open_until: Option<Instant>,
}

impl From<Life> for CircuitBody {
    fn from(life: Life) -> Self {
        match life.circuit {
            Circuit::Closed(_) => {
                Self { state: "closed", cause: None, open_since: None, open_until: None }
            }
            Circuit::Open(opening) => Self {
                state: if life.half_open { "half_open" } else { "open" },
                cause: Some(opening.cause.as_str()),
                open_since: Some(Instant(opening.since)),
                open_until: Some(Instant(opening.until)),
            },
        }
    }
}

/// A rate as it is answered.
#[derive(Debug, Serialize)]
struct RateBody {
    limit: u32,
    window: String,
}

impl From<RateLimit> for RateBody {
    fn from(rate: RateLimit) -> Self {
        Self { limit: rate.units(), window: duration::render(rate.window()) }
    }
}

impl EndpointBody {
    /// With how the endpoint does by now.
    async fn read(state: &State, endpoint: Endpoint) -> Result<Self, Problem> {
        let lives = state.store.read_lives(&[endpoint.key]).await?;
        Ok(Self::new(endpoint, lives.first().copied().unwrap_or_default()))
    }

    fn new(endpoint: Endpoint, life: Life) -> Self {
        let settings = endpoint.settings;
        let headers = endpoint.headers.inspect_err(|why| {
            tracing::warn!(endpoint.id = endpoint.id.as_str(), why, "headers cannot be shown");
        });
        let redacted = |names: Vec<String>| names.into_iter().map(|it| (it, REDACTED)).collect();
        Self {
            id: endpoint.id.as_str().to_owned(),
            url: endpoint.url,
            name: endpoint.name,
            event_types: endpoint.event_types,
            headers: headers.ok().map(redacted),
            enabled: endpoint.disabled.is_none(),
            disabled_cause: endpoint.disabled.map(DisabledCause::as_str),
            disabled_at: life.disabled_at.filter(|_| endpoint.disabled.is_some()).map(Instant),
            failing: life.failing.map(FailingBody::from),
            circuit: life.into(),
            paused_until: endpoint.paused_until.map(Instant),
            deadline: duration::render(settings.deadline()),
            connect_deadline: duration::render(settings.connect_deadline()),
            retry_schedule: settings
                .retry_schedule()
                .delays()
                .iter()
                .copied()
                .map(duration::render)
                .collect(),
            overload_floor: duration::render(settings.overload_floor()),
            final_statuses: settings.final_statuses().to_vec(),
            in_flight_max: settings.in_flight_max(),
            delivery_rate: settings.delivery_rate().map(RateBody::from),
            ingest_rate: settings.ingest_rate().into(),
            signing: settings.signing().as_str(),
            public_ingest: settings.public_ingest(),
            only_networks: settings.only_networks().map(OnlyNetworks::to_texts),
            ca_certificates: settings.ca_certificates().map(|it| it.as_pem().to_owned()),
            circuit_breaker: settings.circuit_breaker(),
            version: endpoint.version,
            created_at: Instant(endpoint.created_at),
            updated_at: Instant(endpoint.updated_at),
        }
    }
}

/// The endpoint of an application that a text names.
pub(super) async fn find(
    state: &State,
    application: ApplicationKey,
    id: &str,
) -> Result<Endpoint, Problem> {
    let missing = || Problem::new(Code::EndpointNotFound);
    let id = PublicId::parse(id).map_err(|_| missing())?;
    let found = state.endpoints.ask((application, id)).await?;
    found.map(Arc::unwrap_or_clone).ok_or_else(missing)
}

/// Takes `endpoint_id` from the query of a list.
pub(super) fn take_filter(fields: &mut Fields) -> Option<PublicId> {
    fields.optional("endpoint_id", PublicId::parse)
}

/// It as it stands in the description of a list.
pub(super) fn describe_filter(doc: Doc) -> Doc {
    doc.query("endpoint_id", "Only those of this endpoint.", schema::PublicId::schema())
        .refuses([Code::EndpointNotFound])
}

/// The endpoint that a list is narrowed to, if any.
pub(super) async fn find_filtered(
    state: &State,
    application: ApplicationKey,
    id: Option<PublicId>,
) -> Result<Option<EndpointKey>, Problem> {
    let Some(id) = id else { return Ok(None) };
    let endpoint = state.store.find_endpoint(application, &id).await?;
    let endpoint = endpoint.ok_or_else(|| Problem::new(Code::EndpointNotFound))?;
    Ok(Some(endpoint.key))
}
