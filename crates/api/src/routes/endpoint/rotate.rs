//! `POST /v1/endpoints/{endpoint_id}/secrets/rotate`: gives an endpoint new secrets.
//!
//! A secret for `v1` is shown here and never again. A key for `v1a` stays here: the receiver needs
//! its public half alone, which can be read at any time.

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, Responder};
use domain::duration::{self, DurationError};
use domain::id::EndpointKey;
use domain::signing::{EndpointSecret, Overlap, OverlapError, RotationRefused};
use serde::Serialize;
use store::secret::{NewRotation, Rotation, generate_ed25519, generate_secret};
use utoipa::ToSchema;

use super::{State, find};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fault, Fields, refuse_query};
use crate::instant::Instant;
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, Problem};

#[derive(Serialize, ToSchema)]
struct RotatedEndpoint {
    id: String,
    #[schema(value_type = schema::Signing)]
    signing: &'static str,
    /// Shown here and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    public_key: Option<String>,
    /// When the last of the old secrets ends.
    retires_at: Option<Instant>,
}

named! {
    /// A new secret.
    NewSecret => schema::closed_object()
        .property("secret", schema::text().pattern(Some("^(whsec|whsk)_[A-Za-z0-9+/]+={0,2}$"))
            .description(Some("One is made if it is not given."))
            .write_only(true))
        .property("overlap", schema::duration("`0s` to `7d`, `24h` if it is not given."));
}

pub(super) fn doc() -> Doc {
    Doc::of("rotate_secrets", "Gives an endpoint new secrets")
        .about(
            "The old ones go on signing beside the new one for `overlap`, 24 h by default and at \
                most `7d`.",
        )
        .takes::<NewSecret>()
        .answers::<RotatedEndpoint>(200, "The new secret, shown here and never again")
        .refuses([Code::TooManyLiveSecrets, Code::SecretSchemeUnused])
}

pub(super) async fn rotate(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
    payload: Payload,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let endpoint = find(&state, caller.application, &endpoint_id).await?;
    let new = parse(&body, endpoint.key)?;
    match state.store.rotate_secrets(&new).await? {
        Rotation::Missing => Err(Problem::new(Code::EndpointNotFound)),
        Rotation::Refused(RotationRefused::TooManyLive) => {
            Err(Problem::new(Code::TooManyLiveSecrets))
        }
        Rotation::Refused(RotationRefused::SchemeUnused) => {
            Err(Problem::new(Code::SecretSchemeUnused))
        }
        Rotation::Rotated(rotated) => {
            let schemes = rotated.schemes;
            Ok(Json(RotatedEndpoint {
                id: endpoint.id.as_str().to_owned(),
                signing: schemes.as_str(),
                secret: schemes.has_v1().then(|| new.secret.reveal()),
                public_key: schemes.has_v1a().then(|| new.ed25519.public_key().to_string()),
                retires_at: rotated.retires_at.map(Instant),
            }))
        }
    }
}

fn parse(body: &[u8], endpoint: EndpointKey) -> Result<NewRotation, Problem> {
    let mut fields = Fields::of_body(body)?;
    let given = fields.optional("secret", EndpointSecret::parse);
    let overlap = fields.optional("overlap", parse_overlap).unwrap_or_default();
    let given = fields.finish(Some(given))?;
    let mut new = NewRotation {
        endpoint,
        secret: generate_secret().map_err(Problem::internal)?,
        ed25519: generate_ed25519().map_err(Problem::internal)?,
        given: given.as_ref().map(EndpointSecret::scheme),
        overlap,
    };
    match given {
        Some(EndpointSecret::V1(secret)) => new.secret = secret,
        Some(EndpointSecret::V1a(key)) => new.ed25519 = key,
        None => {}
    }
    Ok(new)
}

/// Why an overlap is refused.
pub(in crate::routes) enum OverlapFault {
    Written(DurationError),
    OutOfRange(OverlapError),
}

impl Fault for OverlapFault {
    fn code(&self) -> &'static str {
        match self {
            Self::Written(_) => "duration_malformed",
            Self::OutOfRange(_) => "setting_out_of_range",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Written(error) => error.to_string(),
            Self::OutOfRange(error) => error.to_string(),
        }
    }
}

pub(in crate::routes) fn parse_overlap(text: &str) -> Result<Overlap, OverlapFault> {
    let duration = duration::parse(text).map_err(OverlapFault::Written)?;
    Overlap::new(duration).map_err(OverlapFault::OutOfRange)
}
