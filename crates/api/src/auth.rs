//! Who calls.
//!
//! The key is looked up in the store on every request: a revoked one ends with the next request, and
//! nothing here can be out of date. Only its digest is looked for, so the comparison of secrets is
//! the database's look-up of a digest, which tells nothing by its timing.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::ApplicationKey;
use store::api_key::{API_KEY_PREFIX, ApiKeyDigest, Role};
use uuid::Uuid;

use crate::problem::{Code, Problem};
use crate::routes::State;

/// A caller whose key is known and whose role allows the call. A handler takes it from the request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of the key, for logs.
    pub(crate) key: Uuid,
    /// Whose endpoints, submissions and deliveries the call is about.
    pub(crate) application: ApplicationKey,
}

/// Middleware of every call that needs a key: nobody else comes as far as its handler.
pub(crate) async fn admit<B: MessageBody + 'static>(
    least: Role,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    match Caller::of(request.request(), least).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            Ok(next.call(request).await?.map_into_left_body())
        }
        Err(problem) => Ok(request.error_response(problem).map_into_right_body()),
    }
}

impl Caller {
    async fn of(request: &HttpRequest, least: Role) -> Result<Self, Problem> {
        let digest = presented_key(request.headers());
        let digest = digest.ok_or_else(|| Problem::new(Code::KeyMissing))?;
        let state = request.app_data::<Data<State>>();
        let state = state.ok_or_else(|| Problem::internal("the app has no state"))?;
        let key = state.store.find_api_key(&digest).await?;
        let key = key.ok_or_else(|| Problem::new(Code::KeyUnknown))?;
        let application = key.application.unwrap_or(DEFAULT_APPLICATION_KEY);
        let caller = Self { key: key.id, application };
        tracing::Span::current().record("api_key.id", tracing::field::display(caller.key));
        if key.role.covers(least) { Ok(caller) } else { Err(Problem::new(Code::RoleInsufficient)) }
    }
}

impl FromRequest for Caller {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let caller = request.extensions().get::<Self>().cloned();
        // Only a call that anyone may make has none: its handler must not ask for one.
        std::future::ready(caller.ok_or_else(|| Problem::internal("the call needs no key")))
    }
}

/// The digest of the one key that the headers present, if it has the form of a key.
fn presented_key(headers: &HeaderMap) -> Option<ApiKeyDigest> {
    let mut values = headers.get_all(AUTHORIZATION);
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
    let key = key.trim_start_matches(' ');
    let formed = scheme.eq_ignore_ascii_case("Bearer") && key.starts_with(API_KEY_PREFIX);
    formed.then(|| ApiKeyDigest::of(key))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn presented(values: &[&'static str]) -> Option<ApiKeyDigest> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        presented_key(&headers)
    }

    #[test]
    fn one_bearer_key_is_taken_and_nothing_else() {
        let digest = Some(ApiKeyDigest::of("fp_live_abc"));
        assert_eq!(presented(&["Bearer fp_live_abc"]), digest);
        assert_eq!(presented(&["bearer  fp_live_abc"]), digest);
        for bad in ["", "Bearer", "Bearer ", "Bearer abc", "Basic fp_live_abc", "fp_live_abc"] {
            assert_eq!(presented(&[bad]), None, "{bad}");
        }
        assert_eq!(presented(&[]), None);
        assert_eq!(presented(&["Bearer fp_live_abc", "Bearer fp_live_abc"]), None);
    }
}
