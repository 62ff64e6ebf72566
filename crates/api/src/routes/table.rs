//! The one table of calls: method, path, who may, description, handler. Nothing is served that is not
//! in it, and all of it stands in the OpenAPI document.
//!
//! To add a call, write one line in `calls()` of the module that its path belongs to:
//!
//! ```text
//! Call::post("/v1/endpoints/{endpoint_id}/pause", Access::Key(Role::Admin), pause::doc(), pause::pause),
//! ```
//!
//! Who may is checked before the handler runs and before anything of the body is read, so a handler
//! cannot forget it. It takes the [`Caller`](crate::auth::Caller) for the application that the call is
//! about. `tests/api/access.rs` walks the table and makes each call without a key, with too low a role
//! and with another tenant's key. A path parameter, or a body without which a call does not come as
//! far as its look-up, is named there. Where someone without a key may call, it is listed there too.

use std::collections::BTreeMap;

use actix_web::guard::{Any, Get, Head, Method as Matching};
use actix_web::http::Method;
use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{FromRequest, Handler, Resource, Responder, Route};
use store::admission::SUBMITTING_ROLE;
use store::api_key::Role;
use utoipa::openapi::HttpMethod;

use crate::openapi::{Described, Doc};
use crate::problem::{Code, Problem};
use crate::{admission, auth};

/// Who may make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anyone, without a key.
    Anyone,
    /// Whoever has a key of this role or of one that covers it.
    Key(Role),
    /// Whoever may submit to the endpoint in the path, while the budgets last.
    Submission,
}

/// A method of a path, who may call it, what is told of it, and its handler.
pub(super) struct Call {
    method: Method,
    path: &'static str,
    access: Access,
    doc: Doc,
    route: Route,
}

/// A call as it stands in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedCall {
    /// The method. `HEAD` comes with `GET`.
    pub method: String,
    /// The path, its parameters in braces.
    pub path: &'static str,
    /// The least role that may. None: anyone, without a key.
    pub least_role: Option<Role>,
}

impl Call {
    /// `GET`, and `HEAD` with it (RFC 9110, section 9.1).
    pub(super) fn get<F, Args>(path: &'static str, access: Access, doc: Doc, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let route = web::route().guard(Any(Get()).or(Head()));
        Self::of(Method::GET, path, access, doc, route, handler)
    }

    /// `POST`.
    pub(super) fn post<F, Args>(path: &'static str, access: Access, doc: Doc, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self::only(Method::POST, path, access, doc, handler)
    }

    /// `PUT`.
    pub(super) fn put<F, Args>(path: &'static str, access: Access, doc: Doc, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self::only(Method::PUT, path, access, doc, handler)
    }

    /// `PATCH`.
    pub(super) fn patch<F, Args>(path: &'static str, access: Access, doc: Doc, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self::only(Method::PATCH, path, access, doc, handler)
    }

    /// `DELETE`.
    pub(super) fn delete<F, Args>(path: &'static str, access: Access, doc: Doc, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Self::only(Method::DELETE, path, access, doc, handler)
    }

    fn only<F, Args>(
        method: Method,
        path: &'static str,
        access: Access,
        doc: Doc,
        handler: F,
    ) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let route = web::route().guard(Matching(method.clone()));
        Self::of(method, path, access, doc, route, handler)
    }

    fn of<F, Args>(
        method: Method,
        path: &'static str,
        access: Access,
        doc: Doc,
        route: Route,
        handler: F,
    ) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let route = route.to(handler);
        let route = match access {
            Access::Anyone => route,
            Access::Key(least) => {
                route.wrap(from_fn(move |request, next| auth::admit(least, request, next)))
            }
            Access::Submission => route.wrap(from_fn(admission::admit)),
        };
        Self { method, path, access, doc, route }
    }

    /// Among the calls of this name.
    pub(super) fn tagged(self, tag: &'static str) -> Self {
        Self { doc: self.doc.tag(tag), ..self }
    }

    /// The call as it stands in the table.
    pub(super) fn describe(&self) -> DescribedCall {
        let least_role = self.least_role();
        DescribedCall { method: self.method.to_string(), path: self.path, least_role }
    }

    /// The call as the document needs it.
    pub(super) fn documented(&self) -> Described<'_> {
        let method = match self.method {
            Method::POST => HttpMethod::Post,
            Method::PUT => HttpMethod::Put,
            Method::PATCH => HttpMethod::Patch,
            Method::DELETE => HttpMethod::Delete,
            // The table has no others.
            _ => HttpMethod::Get,
        };
        let least_role = self.least_role().map(Role::as_str);
        Described { method, path: self.path, least_role, doc: &self.doc }
    }

    fn least_role(&self) -> Option<Role> {
        match self.access {
            Access::Anyone => None,
            Access::Key(role) => Some(role),
            Access::Submission => Some(SUBMITTING_ROLE),
        }
    }
}

/// Paths are tried one after the other, each by a regular expression: behind others, finding this one was
/// 7 % of what a submission cost the api.
const BUSIEST: &str = "/v1/endpoints/{endpoint_id}/submissions";

/// Serves these calls and nothing else.
pub(super) fn serve(config: &mut ServiceConfig, calls: Vec<Call>) {
    let mut paths: BTreeMap<&'static str, Vec<Call>> = BTreeMap::new();
    for call in calls {
        paths.entry(call.path).or_default().push(call);
    }
    let busiest = paths.remove_entry(BUSIEST);
    for (path, calls) in busiest.into_iter().chain(paths) {
        config.service(resource(path, calls));
    }
    config.default_service(web::to(not_found));
}

/// A path with its calls. Every other method answers 405 and names them.
fn resource(path: &str, calls: Vec<Call>) -> Resource {
    let mut resource = web::resource(path);
    let mut allowed = Vec::new();
    for Call { method, route, .. } in calls {
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
