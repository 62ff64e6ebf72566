//! What a submission needs before it is looked at: a key that may, a body within its limit, an endpoint, and
//! budgets that are not spent.
//!
//! One statement settles key, endpoint and budgets, for the requests that came meanwhile. A body whose
//! length is declared is known to be within its limit by then, and is read afterwards. Of one that is not
//! the key is looked up first, since nothing is read for strangers and nothing charged for a body that is
//! refused.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload as DevPayload, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use domain::id::{EndpointKey, PublicId};
use store::admission::{Admission, AdmissionRequest, SUBMITTING_ROLE};

use crate::auth::{self, Caller};
use crate::body;
use crate::fields;
use crate::problem::{Code, Problem};
use crate::rate_limit::source;
use crate::routes::State;

/// The path parameter that names the endpoint.
const ENDPOINT_ID: &str = "endpoint_id";

/// A submission that was let in. A handler takes it from the request.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    /// Where it goes.
    pub(crate) endpoint: EndpointKey,
    /// Its bytes, as they came.
    pub(crate) payload: Bytes,
}

/// Middleware of submissions: none comes as far as its handler that is not admitted.
pub(crate) async fn admit<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let payload = request.extract::<Payload>().await?;
    match admitted(request.request(), payload).await {
        Ok(admitted) => {
            request.extensions_mut().insert(admitted);
            Ok(next.call(request).await?.map_into_left_body())
        }
        Err(problem) => Ok(request.error_response(problem).map_into_right_body()),
    }
}

async fn admitted(request: &HttpRequest, payload: Payload) -> Result<Admitted, Problem> {
    let state = request.app_data::<Data<State>>();
    let state = state.ok_or_else(|| Problem::internal("the app has no state"))?;
    let limit = state.payload_limit();
    let wanted = match wanted(request, state) {
        Ok(wanted) => wanted,
        // What is wrong with a request is told to those only who may make it.
        Err(problem) => {
            return Err(Caller::of(request, SUBMITTING_ROLE).await.err().unwrap_or(problem));
        }
    };
    if body::declared_length(request).is_some() {
        let endpoint = settle(state, wanted).await?;
        return Ok(Admitted { endpoint, payload: body::read(request, payload, limit).await? });
    }
    Caller::of(request, SUBMITTING_ROLE).await?;
    let payload = body::read(request, payload, limit).await?;
    Ok(Admitted { endpoint: settle(state, wanted).await?, payload })
}

/// What the head asks for, if nothing of it is wrong.
fn wanted(request: &HttpRequest, state: &State) -> Result<AdmissionRequest, Problem> {
    let digest = auth::presented_key(request.headers())?;
    fields::refuse_query(request)?;
    let application = fields::application_id(request)?;
    body::check_head(request, state.payload_limit())?;
    let source = state.settings.source_limit.as_ref();
    Ok(AdmissionRequest {
        digest,
        application,
        endpoint: PublicId::parse(request.match_info().query(ENDPOINT_ID)).ok(),
        source: source.map(|source| source::subject(request, source)),
    })
}

async fn settle(state: &State, wanted: AdmissionRequest) -> Result<EndpointKey, Problem> {
    let admission = state.admissions.ask(wanted).await?;
    if let Some(key) = admission.key() {
        auth::note_use(state, key);
    }
    match admission {
        Admission::Admitted { endpoint, .. } => Ok(endpoint),
        Admission::KeyUnknown => Err(Problem::new(Code::KeyUnknown)),
        Admission::RoleInsufficient(_) => Err(Problem::new(Code::RoleInsufficient)),
        Admission::ApplicationNotFound(_) => Err(Problem::new(Code::ApplicationNotFound)),
        Admission::EndpointNotFound(_) => Err(Problem::new(Code::EndpointNotFound)),
        Admission::Denied { limiter, limit, window_ends_in, .. } => {
            Err(Problem::rate_limited(limiter, limit, window_ends_in))
        }
    }
}

impl FromRequest for Admitted {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut DevPayload) -> Self::Future {
        let admitted = request.extensions_mut().remove::<Self>();
        // Only a call that is no submission has none: its handler must not ask for one.
        std::future::ready(admitted.ok_or_else(|| Problem::internal("the call was not admitted")))
    }
}
