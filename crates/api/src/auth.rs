//! Who calls, and which application the call is about.
//!
//! The key is looked up in the store for every request, by a statement that begins after it came: a revoked one ends with the next request, and
//! nothing here can be out of date. Only its digest is looked for, so the comparison of secrets is
//! the database's look-up of a digest, which tells nothing by its timing.
//!
//! The application is the one that the key is bound to, or the one that the query parameter
//! `application_id` names, or the default one. A key that is bound finds no other.

use std::sync::Arc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, PublicId};
use store::Store;
use store::api_key::{API_KEY_PREFIX, ApiKey, ApiKeyDigest, Role};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::fields;
use crate::problem::{Code, Problem};
use crate::routes::State;

/// A caller whose key is known and whose role allows the call. A handler takes it from the request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of the key, for logs and limits.
    pub(crate) key: Uuid,
    /// Whose endpoints, submissions and deliveries the call is about.
    pub(crate) application: ApplicationKey,
    /// The same, unless it is the default one only because neither key nor query names any.
    pub(crate) narrowed_to: Option<ApplicationKey>,
    /// Whether the key is bound to that application.
    pub(crate) bound: bool,
    /// What the query named.
    asked: Option<PublicId>,
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
    pub(crate) async fn of(request: &HttpRequest, least: Role) -> Result<Self, Problem> {
        let digest = presented_key(request.headers())?;
        let state = request.app_data::<Data<State>>();
        let state = state.ok_or_else(|| Problem::internal("the app has no state"))?;
        let key = state.keys.ask(digest).await?;
        let key = key.ok_or_else(|| Problem::new(Code::KeyUnknown))?;
        note_use(state, &key);
        if !key.role.covers(least) {
            return Err(Problem::new(Code::RoleInsufficient));
        }
        let asked = fields::application_id(request)?;
        let narrowed_to = match &asked {
            None => key.application,
            Some(id) => Some(narrow(state, key.application, id).await?),
        };
        Ok(Self {
            key: key.id,
            application: narrowed_to.unwrap_or(DEFAULT_APPLICATION_KEY),
            narrowed_to,
            bound: key.application.is_some(),
            asked,
        })
    }

    /// Where this caller finds what has this path: about the application that this call is about.
    pub(crate) fn location(&self, path: &str) -> String {
        match &self.asked {
            None => path.to_owned(),
            Some(id) => format!("{path}?{}={id}", fields::APPLICATION_ID),
        }
    }
}

/// Names the key in the log, and in the store that it is used.
pub(crate) fn note_use(state: &State, key: &ApiKey) {
    tracing::Span::current().record("api_key.id", tracing::field::display(key.id));
    if key.use_due {
        state.uses.note(Arc::clone(&state.store), key.id);
    }
}

/// The application with this id, for whom only `within` exists if that is one.
pub(crate) async fn narrow(
    state: &State,
    within: Option<ApplicationKey>,
    id: &PublicId,
) -> Result<ApplicationKey, Problem> {
    let found = state.store.find_application(id).await?;
    let found = found.filter(|found| within.is_none_or(|within| within == *found));
    found.ok_or_else(|| Problem::new(Code::ApplicationNotFound))
}

/// Notes when keys are used, at most once an hour for each.
///
/// The look-up says whether it is time; the write goes on beside the request, which neither waits
/// for it nor fails with it. One write at a time: a request that comes meanwhile leaves it to the
/// next, so that a slow database is not asked for more and more.
#[derive(Debug)]
pub(crate) struct Uses(Arc<Semaphore>);

impl Default for Uses {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Uses {
    fn note(&self, store: Arc<dyn Store>, key: Uuid) {
        let Ok(turn) = Arc::clone(&self.0).try_acquire_owned() else { return };
        tokio::spawn(async move {
            if let Err(error) = store.note_api_key_use(key).await {
                let cause = error.chain();
                tracing::debug!(api_key.id = %key, cause, "a use of a key was not noted");
            }
            drop(turn);
        });
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

/// The digest of the one key that the headers present.
pub(crate) fn presented_key(headers: &HeaderMap) -> Result<ApiKeyDigest, Problem> {
    formed_key(headers).ok_or_else(|| Problem::new(Code::KeyMissing))
}

/// It, if there is one and it has the form of a key.
fn formed_key(headers: &HeaderMap) -> Option<ApiKeyDigest> {
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
        formed_key(&headers)
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
