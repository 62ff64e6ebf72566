//! What happens around every request: its id, its span, its one line in the log, and the headers that
//! every answer carries.
//!
//! A caller's `traceparent` is said to whoever tells of traces, and is used for nothing else.
//! Logged are the method, the pattern of the path (not the path, which callers choose), the status
//! and ids. Never a header, a query, a body or a key.

use std::time::Instant;

use actix_web::HttpMessage as _;
use actix_web::HttpRequest;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use actix_web::middleware::Next;
use process::{UNLOGGED, metrics};
use tracing::{Instrument, Level, Span};
use uuid::Uuid;

use crate::problem::Problem;

const NO_ROUTE: &str = "(none)";
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, beside it.
#[derive(Clone, Copy)]
struct RequestId(Uuid);

/// The id of a request, a fresh `UUIDv7`. What the request stores is stored under it: so one id leads from
/// the answer through the logs of api and worker to the attempts.
pub(crate) fn id_of(request: &HttpRequest) -> Uuid {
    let given = request.extensions().get::<RequestId>().copied();
    given.map_or_else(store::new_id::uuid_now, |id| id.0)
}

/// Middleware: see the module.
pub(crate) async fn observe<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    let id = store::new_id::uuid_now();
    request.extensions_mut().insert(RequestId(id));
    let span = tracing::info_span!(
        "request",
        request.id = %id,
        request.method = %request.method(),
        request.route = request.match_pattern().as_deref().unwrap_or(NO_ROUTE),
        api_key.id = tracing::field::Empty,
        endpoint.id = tracing::field::Empty,
        submission.id = tracing::field::Empty,
        delivery.id = tracing::field::Empty,
    );
    say_traceparent(&request, &span);
    let route = route_of(&request);
    let began = Instant::now();
    let mut response = next.call(request).instrument(span.clone()).await?;
    let _entered = span.entered();
    count(route, response.status(), began);
    log_end(&response, began);
    let headers = response.headers_mut();
    let text = HeaderValue::try_from(id.to_string());
    headers.insert(X_REQUEST_ID, text.unwrap_or(HeaderValue::from_static("unknown")));
    // Answers hold secrets and states of the moment.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

fn say_traceparent(request: &ServiceRequest, span: &Span) {
    if !tracing::enabled!(target: UNLOGGED, Level::TRACE) {
        return;
    }
    let mut given = request.headers().get_all("traceparent");
    // Two would be of two callers.
    if let (Some(traceparent), None) = (given.next(), given.next())
        && let Ok(traceparent) = traceparent.to_str()
    {
        tracing::trace!(target: UNLOGGED, parent: span, traceparent);
    }
}

/// The pattern, and none for what is not served: a caller chooses no label.
fn route_of(request: &ServiceRequest) -> String {
    request.match_pattern().unwrap_or_else(|| NO_ROUTE.to_owned())
}

fn count(route: String, status: StatusCode, began: Instant) {
    let class = match status.as_u16() {
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    };
    metrics::REQUESTS.add_of_route(&route, class);
    metrics::REQUEST_SECONDS.took_of_route(route, began.elapsed());
}

/// The one place where a fault is logged, with its whole chain.
fn log_end<B>(response: &ServiceResponse<B>, began: Instant) {
    let status = response.status();
    let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let problem = response.response().error().and_then(|error| error.as_error::<Problem>());
    let code = problem.map(|problem| problem.code().as_str());
    let cause = problem.and_then(Problem::cause);
    let response = status.as_u16();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        tracing::warn!(response.status = response, code, cause, elapsed_ms, "unavailable");
    } else if status.is_server_error() {
        tracing::error!(response.status = response, code, cause, elapsed_ms, "faulted");
    } else if status.is_client_error() {
        tracing::info!(response.status = response, code, cause, elapsed_ms, "refused");
    } else {
        tracing::debug!(response.status = response, elapsed_ms, "answered");
    }
}
