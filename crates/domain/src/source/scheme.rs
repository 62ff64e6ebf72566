//! The schemes by which senders sign, one module each, and the choice between them.

mod api_key;
mod basic_auth;
mod github;
mod hmac;
mod meta;
mod paddle;
mod shopify;
mod slack;
mod standard_webhooks;
mod stripe;
mod svix;
mod twilio;

use serde::{Deserialize, Serialize};

pub use api_key::ApiKey;
pub use basic_auth::BasicAuth;
pub use github::Github;
pub use hmac::{Hmac, SIGNED_BYTES_MAX, SignedText, SignedTextError};
pub use meta::{Meta, VerifyToken};
pub use paddle::Paddle;
pub use shopify::Shopify;
pub use slack::Slack;
pub use standard_webhooks::StandardWebhooks;
pub use stripe::Stripe;
pub use svix::Svix;
pub use twilio::{PublicBase, PublicBaseError, Twilio};

pub use super::clock::{TOLERANCE_MAX, Tolerance, ToleranceError};
pub use super::mac::{Algorithm, Encoding, SIGNATURES_MAX};
use super::{EventIdLocation, InboundRequest, Refusal, SourceSecret};

/// The most bytes of a scheme's settings as JSON.
pub const SETTINGS_BYTES_MAX: usize = 4_096;

/// How a source's requests are verified, with the settings of that scheme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Scheme {
    /// Standard Webhooks 1.0.0, `v1` and `v1a`.
    StandardWebhooks(StandardWebhooks),
    /// The same signature under the header names of Svix.
    Svix(Svix),
    /// GitHub.
    Github(Github),
    /// Stripe.
    Stripe(Stripe),
    /// Slack.
    Slack(Slack),
    /// Shopify.
    Shopify(Shopify),
    /// Twilio.
    Twilio(Twilio),
    /// Paddle Billing.
    Paddle(Paddle),
    /// Meta: Facebook, Instagram and `WhatsApp`.
    Meta(Meta),
    /// An HMAC whose parts its owner names.
    Hmac(Hmac),
    /// A shared key in a header. It proves who sent, not what.
    ApiKey(ApiKey),
    /// User and password. They prove who sent, not what.
    BasicAuth(BasicAuth),
}

/// Which scheme, without its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemeKind {
    /// [`StandardWebhooks`].
    StandardWebhooks,
    /// [`Svix`].
    Svix,
    /// [`Github`].
    Github,
    /// [`Stripe`].
    Stripe,
    /// [`Slack`].
    Slack,
    /// [`Shopify`].
    Shopify,
    /// [`Twilio`].
    Twilio,
    /// [`Paddle`].
    Paddle,
    /// [`Meta`].
    Meta,
    /// [`Hmac`].
    Hmac,
    /// [`ApiKey`].
    ApiKey,
    /// [`BasicAuth`].
    BasicAuth,
}

/// The settings are none of a scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemeError(String);

impl Scheme {
    /// Reads the settings from JSON: `{"type": "github"}`, and what else that scheme has.
    ///
    /// # Errors
    /// [`SchemeError`], which names the setting or the limit.
    pub fn from_json(json: &str) -> Result<Self, SchemeError> {
        if json.len() > SETTINGS_BYTES_MAX {
            let message = format!("has at most {SETTINGS_BYTES_MAX} bytes");
            return Err(SchemeError(message));
        }
        let scheme: Self = serde_json::from_str(json).map_err(|error| {
            let text = error.to_string();
            // The position is one of the settings alone, and misleads in a longer document.
            let message = text.split(" at line ").next().unwrap_or_default();
            SchemeError(message.to_owned())
        })?;
        match &scheme {
            Self::Hmac(hmac) => hmac.check().map_err(|error| SchemeError(error.to_string()))?,
            Self::StandardWebhooks(_)
            | Self::Svix(_)
            | Self::Github(_)
            | Self::Stripe(_)
            | Self::Slack(_)
            | Self::Shopify(_)
            | Self::Twilio(_)
            | Self::Paddle(_)
            | Self::Meta(_)
            | Self::ApiKey(_)
            | Self::BasicAuth(_) => {}
        }
        Ok(scheme)
    }

    /// The settings as JSON. [`from_json`](Self::from_json) reads them back.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Texts, numbers and no maps: always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Which scheme it is.
    #[must_use]
    pub fn kind(&self) -> SchemeKind {
        match self {
            Self::StandardWebhooks(_) => SchemeKind::StandardWebhooks,
            Self::Svix(_) => SchemeKind::Svix,
            Self::Github(_) => SchemeKind::Github,
            Self::Stripe(_) => SchemeKind::Stripe,
            Self::Slack(_) => SchemeKind::Slack,
            Self::Shopify(_) => SchemeKind::Shopify,
            Self::Twilio(_) => SchemeKind::Twilio,
            Self::Paddle(_) => SchemeKind::Paddle,
            Self::Meta(_) => SchemeKind::Meta,
            Self::Hmac(_) => SchemeKind::Hmac,
            Self::ApiKey(_) => SchemeKind::ApiKey,
            Self::BasicAuth(_) => SchemeKind::BasicAuth,
        }
    }

    /// Whether the request was made by somebody who holds one of `secrets`, the live ones.
    ///
    /// Only the bytes of `request` are read. Without secrets nothing is accepted.
    ///
    /// # Errors
    /// [`Refusal`], the first reason met. A signed time is judged before the signature.
    pub fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
        now_unix_seconds: i64,
    ) -> Result<(), Refusal> {
        match self {
            Self::StandardWebhooks(it) => it.verify(secrets, request, now_unix_seconds),
            Self::Svix(it) => it.verify(secrets, request, now_unix_seconds),
            Self::Github(it) => it.verify(secrets, request),
            Self::Stripe(it) => it.verify(secrets, request, now_unix_seconds),
            Self::Slack(it) => it.verify(secrets, request, now_unix_seconds),
            Self::Shopify(it) => it.verify(secrets, request),
            Self::Twilio(it) => it.verify(secrets, request),
            Self::Paddle(it) => it.verify(secrets, request, now_unix_seconds),
            Self::Meta(it) => it.verify(secrets, request),
            Self::Hmac(it) => it.verify(secrets, request, now_unix_seconds),
            Self::ApiKey(it) => it.verify(secrets, request),
            Self::BasicAuth(it) => it.verify(secrets, request),
        }
    }

    /// The header that holds the secret itself, if one does: whoever sees it can send as the sender.
    #[must_use]
    pub fn secret_header(&self) -> Option<&str> {
        match self {
            Self::ApiKey(it) => Some(it.header.as_str()),
            Self::BasicAuth(_) => Some("authorization"),
            Self::StandardWebhooks(_)
            | Self::Svix(_)
            | Self::Github(_)
            | Self::Stripe(_)
            | Self::Slack(_)
            | Self::Shopify(_)
            | Self::Twilio(_)
            | Self::Paddle(_)
            | Self::Meta(_)
            | Self::Hmac(_) => None,
        }
    }

    /// Where the event's id stands if the source says nothing else.
    #[must_use]
    pub fn event_id_location(&self) -> EventIdLocation {
        match self {
            Self::StandardWebhooks(_) => EventIdLocation::header("webhook-id"),
            Self::Svix(_) => EventIdLocation::header("svix-id"),
            Self::Github(_) => EventIdLocation::header("x-github-delivery"),
            Self::Stripe(_) => EventIdLocation::pointer("/id"),
            Self::Slack(_) | Self::Paddle(_) => EventIdLocation::pointer("/event_id"),
            Self::Shopify(_) => EventIdLocation::header("x-shopify-webhook-id"),
            Self::Twilio(_) => EventIdLocation::header("i-twilio-idempotency-token"),
            Self::Meta(_) | Self::Hmac(_) | Self::ApiKey(_) | Self::BasicAuth(_) => {
                EventIdLocation::Digest
            }
        }
    }

    /// The header or place in the body that names the type of event.
    #[must_use]
    pub fn event_type(&self, request: &InboundRequest<'_>) -> Option<String> {
        let header = |name| request.optional_header(name).ok().flatten().map(str::to_owned);
        match self {
            Self::Github(_) => header("x-github-event"),
            Self::Shopify(_) => header("x-shopify-topic"),
            Self::StandardWebhooks(_) | Self::Svix(_) | Self::Stripe(_) => {
                EventIdLocation::pointer("/type").read(request)
            }
            Self::Slack(_) => EventIdLocation::pointer("/event/type").read(request),
            Self::Paddle(_) => EventIdLocation::pointer("/event_type").read(request),
            Self::Meta(_) => EventIdLocation::pointer("/object").read(request),
            Self::Twilio(_) | Self::Hmac(_) | Self::ApiKey(_) | Self::BasicAuth(_) => None,
        }
    }
}

impl Scheme {
    /// The time that a verified request was signed at, in seconds since the Unix epoch.
    #[must_use]
    pub fn signed_at(&self, request: &InboundRequest<'_>) -> Option<i64> {
        let header = |name: &str| request.optional_header(name).ok().flatten();
        let listed = |name, separator, key: &str| {
            let mut entries = header(name)?.split(separator);
            entries.find_map(|entry| entry.split_once('=').filter(|(name, _)| name.trim() == key))
        };
        let text = match self {
            Self::StandardWebhooks(_) => header("webhook-timestamp"),
            Self::Svix(_) => header("svix-timestamp"),
            Self::Slack(_) => header("x-slack-request-timestamp"),
            Self::Stripe(_) => listed("stripe-signature", ',', "t").map(|(_, text)| text),
            Self::Paddle(_) => listed("paddle-signature", ';', "ts").map(|(_, text)| text),
            Self::Hmac(hmac) => hmac.timestamp_header.as_ref().and_then(|it| header(it.as_str())),
            Self::Github(_)
            | Self::Shopify(_)
            | Self::Twilio(_)
            | Self::Meta(_)
            | Self::ApiKey(_)
            | Self::BasicAuth(_) => None,
        };
        text?.trim().parse().ok()
    }
}

impl SchemeKind {
    /// Every scheme.
    pub const ALL: [Self; 12] = [
        Self::StandardWebhooks,
        Self::Svix,
        Self::Github,
        Self::Stripe,
        Self::Slack,
        Self::Shopify,
        Self::Twilio,
        Self::Paddle,
        Self::Meta,
        Self::Hmac,
        Self::ApiKey,
        Self::BasicAuth,
    ];

    /// The name in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StandardWebhooks => "standard_webhooks",
            Self::Svix => "svix",
            Self::Github => "github",
            Self::Stripe => "stripe",
            Self::Slack => "slack",
            Self::Shopify => "shopify",
            Self::Twilio => "twilio",
            Self::Paddle => "paddle",
            Self::Meta => "meta",
            Self::Hmac => "hmac",
            Self::ApiKey => "api_key",
            Self::BasicAuth => "basic_auth",
        }
    }

    /// Whether the customer chooses the secret, so that one can be made here; the others hand theirs
    /// out.
    #[must_use]
    pub fn secret_is_the_customers(self) -> bool {
        matches!(self, Self::StandardWebhooks | Self::Github | Self::Hmac | Self::ApiKey)
    }
}

#[cfg(test)]
mod tests;
