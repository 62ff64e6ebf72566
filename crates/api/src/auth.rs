//! Who calls.
//!
//! The key is looked up in the store on every request: a revoked one ends with the next request, and
//! nothing here can be out of date. Only its digest is looked for, so the comparison of secrets is
//! the database's look-up of a digest, which tells nothing by its timing.

use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::{FromRequest, HttpRequest, web};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::ApplicationKey;
use store::api_key::{API_KEY_PREFIX, ApiKeyDigest, Role};
use uuid::Uuid;

use crate::problem::{Code, Problem};
use crate::routes::State;

/// A caller whose key is known. Every route under `/v1` takes one.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of the key, for logs.
    pub(crate) key: Uuid,
    /// What the key may do.
    pub(crate) role: Role,
    /// Whose endpoints, submissions and deliveries the call is about.
    pub(crate) application: ApplicationKey,
}

impl Caller {
    async fn of(state: &State, digest: ApiKeyDigest) -> Result<Self, Problem> {
        let key = state.store.find_api_key(&digest).await?;
        let key = key.ok_or_else(|| Problem::new(Code::KeyUnknown))?;
        let application = key.application.unwrap_or(DEFAULT_APPLICATION_KEY);
        let caller = Self { key: key.id, role: key.role, application };
        tracing::Span::current().record("api_key.id", tracing::field::display(caller.key));
        caller.require(Role::Admin)?;
        Ok(caller)
    }

    fn require(&self, role: Role) -> Result<(), Problem> {
        if self.role == role { Ok(()) } else { Err(Problem::new(Code::RoleInsufficient)) }
    }
}

impl FromRequest for Caller {
    type Error = actix_web::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Self::Error>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let digest = presented_key(request.headers());
        let state = request.app_data::<web::Data<State>>().cloned();
        Box::pin(async move {
            let digest = digest.ok_or_else(|| Problem::new(Code::KeyMissing))?;
            let state = state.ok_or_else(|| Problem::internal("the app has no state"))?;
            Ok(Self::of(&state, digest).await?)
        })
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
