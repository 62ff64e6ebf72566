//! `POST /v1/keys`: makes a key and shows it once.
//!
//! A caller whose key is bound to an application makes keys of that application only: a key cannot
//! make one that may do more than itself.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::id::{ApplicationKey, PublicId};
use domain::label::Label;
use serde::Serialize;
use store::api_key::{NewApiKey, Role};
use utoipa::ToSchema;

use super::{KeyBody, State};
use crate::auth::{self, Caller};
use crate::body;
use crate::fields::{Fault, Fields, refuse_query};
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::Problem;

struct CreateKey {
    name: Label,
    role: Role,
    application_id: Option<PublicId>,
}

#[derive(Serialize, ToSchema)]
struct CreatedKey {
    #[serde(flatten)]
    created: KeyBody,
    /// Shown here and never again.
    key: String,
}

named! {
    /// A key to be made.
    NewKey => schema::closed_object()
        .property("name", schema::label())
        .property("role", schema::KeyRole::schema())
        .property("application_id", schema::PublicId::schema())
        .required("name")
        .required("role");
}

pub(super) fn doc() -> Doc {
    Doc::of("create_key", "Makes a key and shows it once")
        .about("A key that is bound to an application makes keys of that application only.")
        .takes::<NewKey>()
        .answers::<CreatedKey>(201, "The key, shown here and never again")
}

pub(super) async fn create(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let asked = CreateKey::parse(&body)?;
    let application = application_of(&state, &caller, asked.application_id.as_ref()).await?;
    let key = NewApiKey::generate(asked.name.as_str(), asked.role, application)
        .map_err(Problem::internal)?;
    let created = state.store.create_api_key(&key).await?.into();
    tracing::info!(created.id = %key.id, created.by = %caller.key, "a key was created");
    Ok(HttpResponse::Created().json(CreatedKey { created, key: key.reveal().to_owned() }))
}

async fn application_of(
    state: &State,
    caller: &Caller,
    asked: Option<&PublicId>,
) -> Result<Option<ApplicationKey>, Problem> {
    match asked {
        None => Ok(caller.narrowed_to),
        Some(id) => auth::narrow(state, caller.narrowed_to, id).await.map(Some),
    }
}

impl CreateKey {
    fn parse(body: &[u8]) -> Result<Self, Problem> {
        let mut fields = Fields::of_body(body)?;
        let name = fields.required("name", Label::parse);
        let role = fields.required("role", |text| Role::parse(text).ok_or(RoleUnknown));
        let application_id = fields.optional("application_id", PublicId::parse);
        fields.finish(name.zip(role).map(|(name, role)| Self { name, role, application_id }))
    }
}

struct RoleUnknown;

impl Fault for RoleUnknown {
    fn code(&self) -> &'static str {
        "role_unknown"
    }

    fn message(&self) -> String {
        format!("must be one of {}", Role::ALL.map(Role::as_str).join(", "))
    }
}
