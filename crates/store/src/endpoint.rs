//! Endpoints as they are stored.

use domain::destination::DestinationUrl;
use domain::endpoint::{DisabledCause, EndpointName, EndpointSettings};
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::signing::SigningSecret;
use time::OffsetDateTime;
use uuid::Uuid;

/// An endpoint to be created, with its first secret.
#[derive(Debug, Clone)]
pub struct NewEndpoint {
    /// Its internal identity.
    pub key: EndpointKey,
    /// Whose it is.
    pub application: ApplicationKey,
    /// Its name in URLs, unique in its application and never used again.
    pub id: PublicId,
    /// Where deliveries go.
    pub url: DestinationUrl,
    /// A label for people.
    pub name: Option<EndpointName>,
    /// Its limits.
    pub settings: EndpointSettings,
    /// What its deliveries are signed with.
    pub secret: SigningSecret,
}

/// What became of an endpoint's creation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "made once a call, and almost always the large one")]
pub enum EndpointCreation {
    /// It exists.
    Created(Endpoint),
    /// Another endpoint of the application has, or once had, this id.
    IdTaken,
}

/// An endpoint, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its internal identity.
    pub key: EndpointKey,
    /// Whose it is.
    pub application: ApplicationKey,
    /// Its name in URLs.
    pub id: PublicId,
    /// Where deliveries go, in canonical spelling.
    pub url: String,
    /// A label for people.
    pub name: Option<String>,
    /// Why it takes no deliveries; none while it is enabled.
    pub disabled: Option<DisabledCause>,
    /// Its limits.
    pub settings: EndpointSettings,
    /// Rises with every change of its configuration.
    pub version: i64,
    /// When it was created, on the database's clock.
    pub created_at: OffsetDateTime,
}

/// What a worker needs to send to an endpoint, read after the claim.
#[derive(Debug, Clone)]
pub struct Target {
    /// Which endpoint.
    pub endpoint: EndpointKey,
    /// Its name in URLs, for logs.
    pub id: PublicId,
    /// Where deliveries go, as it was stored.
    pub url: String,
    /// Its limits.
    pub settings: EndpointSettings,
    /// The configuration that this is: a 410 disables only this version.
    pub version: i64,
    /// The live secrets, newest first, or why one of them cannot be used.
    pub secrets: Result<Vec<SigningSecret>, String>,
}

/// What a sealed secret is bound to: the endpoint's UUID and the secret's, 16 bytes each.
#[must_use]
pub fn secret_row(endpoint: EndpointKey, secret: Uuid) -> [u8; 32] {
    let mut row = [0; 32];
    let (first, second) = row.split_at_mut(16);
    first.copy_from_slice(endpoint.as_uuid().as_bytes());
    second.copy_from_slice(secret.as_bytes());
    row
}
