//! `POST /v1/sources/{source_id}/secrets/rotate`: gives a source a new secret.
//!
//! The old ones go on verifying beside it for the overlap.

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, Responder};
use domain::signing::Overlap;
use domain::source::{SchemeKind, SourceSecret};
use serde::Serialize;
use store::source::{NewSourceSecret, SourceRotation, generate_source_secret};
use utoipa::ToSchema;

use super::fields::described_secret;
use super::{State, endpoint, find};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fields, refuse_query};
use crate::instant::Instant;
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, FieldError, Problem};

#[derive(Serialize, ToSchema)]
struct RotatedSource {
    id: String,
    /// Made here. Shown here and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    secret: Option<String>,
    version: i64,
    /// When the last of the old secrets ends.
    retires_at: Option<Instant>,
}

named! {
    /// A new secret of a source.
    NewSourceSecretBody => schema::closed_object()
        .property("secret", described_secret())
        .property("overlap", schema::WrittenDuration::schema());
}

pub(super) fn doc() -> Doc {
    Doc::of("rotate_source_secret", "Gives a source a new secret")
        .about(
            "The old ones go on verifying beside the new one for `overlap`, 24 h by default and at \
             most `7d`.",
        )
        .takes::<NewSourceSecretBody>()
        .answers::<RotatedSource>(200, "The new secret if it was made, shown here and never again")
        .refuses([Code::TooManyLiveSecrets])
}

pub(super) async fn rotate(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    source_id: Path<String>,
    payload: Payload,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let source = find(&state, caller.application, &source_id).await?;
    let kind = source.scheme.kind();
    let (given, overlap) = parse(&body, kind)?;
    let (secret, made) = match given {
        Some(secret) => (secret, false),
        None if kind.secret_is_the_customers() => {
            (generate_source_secret(kind).map_err(Problem::internal)?, true)
        }
        None => {
            let message = "is required: the sender hands out the secrets of this scheme";
            let error = FieldError::new("secret", "field_missing", message);
            return Err(Problem::of_fields(Code::BodyInvalid, vec![error]));
        }
    };
    let new = NewSourceSecret { source: source.key, secret, overlap };
    match state.store.rotate_source_secret(&new).await? {
        SourceRotation::Missing => Err(Problem::new(Code::SourceNotFound)),
        SourceRotation::TooManyLive => Err(Problem::new(Code::TooManyLiveSecrets)),
        SourceRotation::Rotated { version, retires_at } => Ok(Json(RotatedSource {
            id: source.id.as_str().to_owned(),
            secret: made.then(|| new.secret.expose().to_owned()),
            version,
            retires_at: retires_at.map(Instant),
        })),
    }
}

fn parse(body: &[u8], kind: SchemeKind) -> Result<(Option<SourceSecret>, Overlap), Problem> {
    let mut fields = Fields::of_body(body)?;
    let secret = fields.optional("secret", |text| SourceSecret::parse(kind, text));
    let overlap = fields.optional("overlap", endpoint::rotate::parse_overlap).unwrap_or_default();
    fields.finish(Some((secret, overlap)))
}
