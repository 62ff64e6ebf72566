//! `DELETE /v1/keys/{key_id}`: the next request with that key is refused.
//!
//! Of a key that was revoked before the answer is the same. A key may revoke itself. The last admin
//! key of all applications stays: whoever wants to be rid of it makes another first.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use store::api_key::Revocation;
use uuid::Uuid;

use super::State;
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("revoke_key", "Revokes a key: the next request with it is refused")
        .about("A key may revoke itself. Of a key that was revoked before the answer is the same.")
        .answers_nothing(204, "It is revoked")
        .refuses([Code::KeyLastAdmin])
}

pub(super) async fn revoke(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    key_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let id = parse_id(&key_id)?;
    match state.store.revoke_api_key(caller.narrowed_to, id).await? {
        Revocation::Revoked => {
            tracing::info!(revoked.id = %id, revoked.by = %caller.key, "a key was revoked");
            Ok(HttpResponse::NoContent().finish())
        }
        Revocation::WasRevoked => Ok(HttpResponse::NoContent().finish()),
        Revocation::LastAdmin => Err(Problem::new(Code::KeyLastAdmin)),
        Revocation::Missing => Err(Problem::new(Code::KeyNotFound)),
    }
}

/// The key that a text names, in the one spelling that answers have.
fn parse_id(text: &str) -> Result<Uuid, Problem> {
    let id = Uuid::try_parse(text).ok().filter(|id| id.hyphenated().to_string() == text);
    id.ok_or_else(|| Problem::new(Code::KeyNotFound))
}
