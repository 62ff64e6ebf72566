//! The calls, and the paths that lead to them.
//!
//! An id in a path that is malformed gets the answer of one that does not exist: it names nothing,
//! and a caller has one case to handle instead of two.

mod delivery;
mod endpoint;
mod livez;
mod readyz;
mod submission;

use std::sync::Arc;

use actix_web::guard::{Any, Get, Head};
use actix_web::http::Method;
use actix_web::http::header::{ALLOW, HeaderMap, HeaderValue};
use actix_web::web::{self, ServiceConfig};
use actix_web::{Resource, Route};
use store::Store;

use crate::Settings;
use crate::body::BodyLimit;
use crate::problem::{Code, Problem};

/// What every route works with.
#[derive(Debug)]
pub(crate) struct State {
    /// All state there is.
    pub(crate) store: Arc<dyn Store>,
    /// The limits.
    pub(crate) settings: Settings,
}

impl State {
    /// What the body of a submission may be.
    fn payload_limit(&self) -> BodyLimit {
        let Settings { body_limit_bytes, body_deadline, .. } = self.settings;
        BodyLimit { bytes: body_limit_bytes, deadline: body_deadline }
    }

    /// What any other body may be.
    fn management_limit(&self) -> BodyLimit {
        let Settings { management_body_limit_bytes, body_deadline, .. } = self.settings;
        BodyLimit { bytes: management_body_limit_bytes, deadline: body_deadline }
    }
}

/// The routes for callers.
pub(crate) fn public(config: &mut ServiceConfig) {
    config
        .service(resource("/livez", [get(livez::live)]))
        .configure(endpoint::configure)
        .configure(submission::configure)
        .configure(delivery::configure)
        .default_service(web::to(not_found));
}

/// The routes for operators.
pub(crate) fn private(config: &mut ServiceConfig) {
    config
        .service(resource("/livez", [get(livez::live)]))
        .service(resource("/readyz", [get(readyz::ready)]))
        .default_service(web::to(not_found));
}

/// A method of a path, and its handler.
type Call = (Method, Route);

/// `GET`, and `HEAD` with it (RFC 9110, section 9.1).
fn get<F, Args>(handler: F) -> Call
where
    F: actix_web::Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: actix_web::Responder + 'static,
{
    (Method::GET, web::route().guard(Any(Get()).or(Head())).to(handler))
}

/// `POST`.
fn post<F, Args>(handler: F) -> Call
where
    F: actix_web::Handler<Args>,
    Args: actix_web::FromRequest + 'static,
    F::Output: actix_web::Responder + 'static,
{
    (Method::POST, web::post().to(handler))
}

/// A path with its calls. Every other method answers 405 and names them.
fn resource<const N: usize>(path: &str, calls: [Call; N]) -> Resource {
    let mut resource = web::resource(path);
    let mut allowed = Vec::new();
    for (method, route) in calls {
        if method == Method::GET {
            allowed.push("HEAD".to_owned());
        }
        allowed.push(method.to_string());
        resource = resource.route(route);
    }
    let allow = allowed.join(", ");
    resource.default_service(web::to(move || {
        let problem = method_not_allowed(&allow);
        async move { Err::<&str, _>(problem) }
    }))
}

fn method_not_allowed(allow: &str) -> Problem {
    let problem = Problem::new(Code::MethodNotAllowed);
    match HeaderValue::from_str(allow) {
        Ok(value) => problem.header(ALLOW, value),
        Err(_) => problem,
    }
}

async fn not_found() -> Result<&'static str, Problem> {
    Err(Problem::new(Code::NotFound))
}

/// A header that may be given once. `Err` if it is given more often.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, Repeated> {
    let mut values = headers.get_all(name);
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Repeated),
    }
}

/// A header that may be given once is given more often.
#[derive(Debug, PartialEq, Eq)]
struct Repeated;
