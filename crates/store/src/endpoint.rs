//! Endpoints as they are stored.

use std::time::Duration;

use domain::destination::DestinationUrl;
use domain::endpoint::{
    CustomHeaders, DisabledCause, EndpointName, EndpointSettings, EventPatterns, SettingsChange,
    SettingsError,
};
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::signing::{Ed25519SecretKey, EndpointSecret, SigningSecret};
use time::OffsetDateTime;
use time::macros::datetime;
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
    /// Which event types it asks for; none for all.
    pub event_types: Option<EventPatterns>,
    /// What its owner adds to each request.
    pub headers: CustomHeaders,
    /// Whether it takes deliveries from the start.
    pub enabled: bool,
    /// Its limits.
    pub settings: EndpointSettings,
    /// What its deliveries are signed with by `v1`.
    pub secret: SigningSecret,
    /// What its deliveries are signed with by `v1a`. Made in any case, so that the public key can be
    /// handed out before the scheme is switched on.
    pub ed25519: Ed25519SecretKey,
}

impl NewEndpoint {
    /// Why it takes no deliveries; none if it does.
    pub(crate) fn disabled(&self) -> Option<DisabledCause> {
        (!self.enabled).then_some(DisabledCause::Operator)
    }
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
    /// Which event types it asks for; none for all.
    pub event_types: Option<Vec<String>>,
    /// The names of the headers that its owner adds, or why they cannot be read.
    pub headers: Result<Vec<String>, String>,
    /// Why it takes no deliveries; none while it is enabled.
    pub disabled: Option<DisabledCause>,
    /// Until when nothing is claimed; none if it is not paused. [`PAUSED_FOR_GOOD`] is until it is
    /// enabled.
    pub paused_until: Option<OffsetDateTime>,
    /// Its limits.
    pub settings: EndpointSettings,
    /// Rises with every change of its configuration.
    pub version: i64,
    /// When it was created, on the database's clock.
    pub created_at: OffsetDateTime,
    /// When it was changed last, on the database's clock.
    pub updated_at: OffsetDateTime,
}

/// What is to be changed of an endpoint. What is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct EndpointChange {
    /// Where deliveries go. Another URL than the one it has mints a secret.
    pub url: Option<NewUrl>,
    /// A label for people; the inner `None` takes it away.
    pub name: Option<Option<EndpointName>>,
    /// Which event types it asks for; the inner `None` asks for all.
    pub event_types: Option<Option<EventPatterns>>,
    /// All headers that its owner adds; an empty list takes them away.
    pub headers: Option<CustomHeaders>,
    /// Whether it takes deliveries.
    pub enabled: Option<bool>,
    /// Its limits.
    pub settings: SettingsChange,
}

/// A URL that an endpoint is to have.
#[derive(Debug, Clone)]
pub struct NewUrl {
    /// Where deliveries go.
    pub url: DestinationUrl,
    /// What they are signed with by `v1`, if this is another URL than before: whoever received there
    /// has learnt nothing that could forge what arrives here. Of an Ed25519 key nobody learns more than
    /// its public half, so it stays.
    pub secret: SigningSecret,
}

impl EndpointChange {
    /// Whether nothing is to be changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { url, name, event_types, headers, enabled, settings } = self;
        url.is_none()
            && name.is_none()
            && event_types.is_none()
            && headers.is_none()
            && enabled.is_none()
            && *settings == SettingsChange::default()
    }

    /// What the endpoint is to be after the change.
    pub(crate) fn apply(&self, old: &Endpoint) -> Result<Changed, SettingsError> {
        let minted = self.url.as_ref().filter(|new| new.url.as_str() != old.url);
        let name = self.name.as_ref().map(|name| name.as_ref().map(|it| it.as_str().to_owned()));
        let event_types = self.event_types.as_ref();
        let event_types = event_types.map(|it| it.as_ref().map(|it| it.as_slice().to_vec()));
        let disabled = match self.enabled {
            // It was the old URL that said so.
            None if minted.is_some() && old.disabled == Some(DisabledCause::Gone) => None,
            None => old.disabled,
            Some(true) => None,
            Some(false) => Some(old.disabled.unwrap_or(DisabledCause::Operator)),
        };
        let begins_anew = minted.is_some() || old.disabled.is_some() && disabled.is_none();
        let newly_disabled = old.disabled.is_none() && disabled.is_some();
        Ok(Changed {
            url: minted.map_or_else(|| old.url.clone(), |new| new.url.as_str().to_owned()),
            minted: minted.map(|new| new.secret.clone()),
            name: name.unwrap_or_else(|| old.name.clone()),
            event_types: event_types.unwrap_or_else(|| old.event_types.clone()),
            disabled,
            begins_anew,
            newly_disabled,
            settings: self.settings.clone().apply(&old.settings)?,
        })
    }
}

/// What is written of a changed endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub(crate) url: String,
    /// The secret of another URL, which ends all older ones.
    pub(crate) minted: Option<SigningSecret>,
    pub(crate) name: Option<String>,
    pub(crate) event_types: Option<Vec<String>>,
    pub(crate) disabled: Option<DisabledCause>,
    /// Results so far say nothing of what it is now: it has another URL, or is enabled again.
    pub(crate) begins_anew: bool,
    /// It took deliveries before.
    pub(crate) newly_disabled: bool,
    pub(crate) settings: EndpointSettings,
}

/// What became of an endpoint's change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "made once a call, and almost always the large one")]
pub enum EndpointUpdate {
    /// It is stored, and this is what was stored.
    Updated {
        /// The endpoint after the change.
        endpoint: Endpoint,
        /// Whether the secret of the change is the endpoint's now, and its only one.
        minted: bool,
    },
    /// Together with what stays, the settings break a limit. Nothing was changed.
    Invalid(SettingsError),
    /// The application has no such endpoint.
    Missing,
}

/// How long nothing is to be claimed of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Until it is enabled.
    ForGood,
    /// From now on, on the database's clock.
    For(Duration),
    /// Until an instant of the database's clock. One that is over ends a pause.
    Until(OffsetDateTime),
}

/// The end of a pause without an end.
pub const PAUSED_FOR_GOOD: OffsetDateTime = datetime!(9999-12-31 23:59:59 UTC);

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
    /// The live secrets of the schemes that it signs by, newest first, or why one of them cannot be
    /// used.
    pub secrets: Result<Vec<EndpointSecret>, String>,
    /// What its owner adds to each request, or why it cannot be read.
    pub headers: Result<CustomHeaders, String>,
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
