//! `POST /v1/endpoints`: creates an endpoint and shows its secret once.

use actix_web::http::header::LOCATION;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::EndpointSettings;
use domain::id::{ApplicationKey, PublicId};
use domain::signing::SigningSecret;
use serde::Serialize;
use store::endpoint::{EndpointCreation, NewEndpoint};
use store::life::Life;
use store::secret::{generate_ed25519, generate_secret};
use utoipa::ToSchema;

use super::fields::{EndpointFields, describe, out_of_range};
use super::{EndpointBody, State};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fields, refuse_query};
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, Problem};

struct CreateEndpoint {
    url: DestinationUrl,
    id: Option<PublicId>,
    secret: Option<SigningSecret>,
    fields: EndpointFields,
}

#[derive(Serialize, ToSchema)]
struct CreatedEndpoint {
    #[serde(flatten)]
    endpoint: EndpointBody,
    /// For signatures of `v1a`, whether they are switched on or not.
    public_key: String,
    /// For signatures of `v1`. Shown here and never again.
    secret: String,
}

named! {
    /// An endpoint to be made.
    NewEndpointBody => describe(schema::closed_object())
        .property("id", schema::PublicId::schema())
        .property("secret", schema::secret().description(Some("24 to 64 bytes in base64. One is made if it is not given.")))
        .required("url");
}

pub(super) fn doc() -> Doc {
    Doc::of("create_endpoint", "Creates an endpoint and shows its secret once")
        .takes::<NewEndpointBody>()
        .answers::<CreatedEndpoint>(201, "The endpoint, and its secret, shown here and never again")
        .with_header("Location", "Where it is found.")
        .refuses([Code::EndpointIdTaken])
}

pub(super) async fn create(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let asked = CreateEndpoint::parse(&body, &state.settings.address_policy)?;
    let endpoint = asked.into_endpoint(caller.application)?;
    match state.store.create_endpoint(&endpoint).await? {
        EndpointCreation::IdTaken => Err(Problem::new(Code::EndpointIdTaken)),
        EndpointCreation::Created(created) => {
            tracing::Span::current().record("endpoint.id", created.id.as_str());
            let location = caller.location(&format!("/v1/endpoints/{}", created.id));
            let secret = endpoint.secret.reveal();
            let public_key = endpoint.ed25519.public_key().to_string();
            let disabled_at = created.disabled.map(|_| created.created_at);
            let endpoint = EndpointBody::new(created, Life { disabled_at, ..Life::default() });
            let body = CreatedEndpoint { endpoint, public_key, secret };
            Ok(HttpResponse::Created().insert_header((LOCATION, location)).json(body))
        }
    }
}

impl CreateEndpoint {
    fn parse(body: &[u8], policy: &AddressPolicy) -> Result<Self, Problem> {
        let mut fields = Fields::of_body(body)?;
        let url = fields.required("url", |text| DestinationUrl::parse(text, policy));
        let id = fields.optional("id", PublicId::parse);
        let secret = fields.optional("secret", SigningSecret::parse);
        let given = EndpointFields::take(&mut fields);
        fields.finish(url.map(|url| Self { url, id, secret, fields: given }))
    }

    fn into_endpoint(self, application: ApplicationKey) -> Result<NewEndpoint, Problem> {
        let key = store::new_id::endpoint_key();
        let secret = match self.secret {
            Some(secret) => secret,
            None => generate_secret().map_err(Problem::internal)?,
        };
        let EndpointFields { name, event_types, headers, enabled, settings } = self.fields;
        let settings = settings.apply(&EndpointSettings::default()).map_err(out_of_range)?;
        Ok(NewEndpoint {
            key,
            application,
            id: self.id.unwrap_or_else(|| PublicId::of_endpoint(key)),
            url: self.url,
            name: name.flatten(),
            event_types: event_types.flatten(),
            headers: headers.unwrap_or_default(),
            enabled: enabled.unwrap_or(true),
            settings,
            secret,
            ed25519: generate_ed25519().map_err(Problem::internal)?,
        })
    }
}
