//! Submissions that an application writes in its own transaction: both are committed, or neither (G8).
//!
//! [`postgres::accept_in_tx`](crate::postgres::accept_in_tx) and
//! [`sqlite::accept_in_tx`](crate::sqlite::accept_in_tx) take the application's open connection. They
//! check what a request over HTTP is checked for, spend from no rate limit, and wake no worker: the
//! next poll finds what was committed.

use std::time::Duration;

use bytes::Bytes;
use domain::id::{EndpointKey, PublicId};
use domain::submission::content::declared_json_parses;
use domain::submission::{ContentType, EventType, IdempotencyKey};

use crate::StoreError;
use crate::error::Cause;
use crate::submission::{Accepted, NewSubmission};

/// The application that exists from the start.
pub const DEFAULT_APPLICATION_ID: &str = "default";

/// What an application submits. Each text is taken as the header or path of a request would be.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    /// The application that owns the endpoint.
    pub application_id: &'a str,
    /// To which endpoint it goes.
    pub endpoint_id: &'a str,
    /// Under which it is accepted once.
    pub idempotency_key: Option<&'a str>,
    /// What happened.
    pub event_type: Option<&'a str>,
    /// The type of the payload; `application/octet-stream` if nobody says.
    pub content_type: Option<&'a str>,
    /// The bytes that are signed and sent.
    pub payload: Bytes,
}

impl<'a> Draft<'a> {
    /// Bytes of no declared type to an endpoint of the default application.
    #[must_use]
    pub fn new(endpoint_id: &'a str, payload: impl Into<Bytes>) -> Self {
        Self {
            application_id: DEFAULT_APPLICATION_ID,
            endpoint_id,
            idempotency_key: None,
            event_type: None,
            content_type: None,
            payload: payload.into(),
        }
    }
}

/// Limits of submissions. They are to be those of the api beside it.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most bytes of a payload, `--body-limit` of the api. 256 KiB by default.
    pub payload_bytes_max: usize,
    /// How long an idempotency key is remembered. 30 days by default.
    pub idempotency_window: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { payload_bytes_max: 256 * 1024, idempotency_window: Duration::from_hours(30 * 24) }
    }
}

/// The answer to a submission. It counts once the transaction has committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// Its ids, or those of the first one under the same key.
    pub accepted: Accepted,
    /// Whether the same submission was accepted before under this key.
    pub replayed: bool,
}

/// Why nothing was submitted. The transaction is to be rolled back: on PostgreSQL a database error has
/// ended it, and an application that commits without its submission has not done what it wanted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// A field is not acceptable.
    #[error("{field}: {message}")]
    Invalid {
        /// The field of [`Draft`].
        field: &'static str,
        /// The stable code, as in answers of the api.
        code: &'static str,
        /// What is wrong, with the limit.
        message: String,
    },
    /// There is no such application.
    #[error("application_id: no application has the id {application_id:?}")]
    ApplicationMissing {
        /// What was looked for.
        application_id: String,
    },
    /// The application has no such endpoint, or it is deleted.
    #[error("endpoint_id: application {application_id:?} has no endpoint {endpoint_id:?}")]
    EndpointMissing {
        /// Whose endpoint.
        application_id: String,
        /// What was looked for.
        endpoint_id: String,
    },
    /// The key stands for other content. Nothing of that is told.
    #[error("idempotency_key: {key:?} was used for other content")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// Another transaction has or had the key, and this one cannot see what became of it: under
    /// REPEATABLE READ and SERIALIZABLE the loser of a key, else one that waited for longer than its
    /// `lock_timeout`. The whole transaction is to be rolled back and repeated.
    #[error("idempotency_key: {key:?} is or was held by a concurrent transaction, repeat this one")]
    KeyContended {
        /// The key.
        key: String,
        /// What the driver said.
        #[source]
        source: Cause,
    },
    /// The day has no partition. `fencepost migrate` makes those of two weeks, and workers keep them
    /// ahead; none is ever made in an application's transaction.
    #[error("no partition for today's submissions: run `fencepost migrate`, or a worker")]
    PartitionMissing,
    /// The database gave no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SubmitError {
    /// Whether the whole transaction may well succeed when it is repeated.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::KeyContended { .. } => true,
            Self::Store(error) => error.is_transient(),
            _ => false,
        }
    }
}

/// The first checks, in the order of a request: size, then the names of application and endpoint.
pub(crate) struct Addressed<'d> {
    draft: &'d Draft<'d>,
    pub(crate) application_id: PublicId,
    pub(crate) endpoint_id: PublicId,
}

impl<'d> Addressed<'d> {
    pub(crate) fn new(draft: &'d Draft<'d>, limits: &Limits) -> Result<Self, SubmitError> {
        let (bytes, limit) = (draft.payload.len(), limits.payload_bytes_max);
        if bytes > limit {
            let message = format!("a payload has at most {limit} bytes, this one {bytes}");
            return Err(SubmitError::Invalid { field: "payload", code: "body_too_large", message });
        }
        // What is no id names nothing.
        let application_id = PublicId::parse(draft.application_id)
            .map_err(|_| application_missing(draft.application_id))?;
        let endpoint_id =
            PublicId::parse(draft.endpoint_id).map_err(|_| endpoint_missing(draft))?;
        Ok(Self { draft, application_id, endpoint_id })
    }

    pub(crate) fn application_missing(&self) -> SubmitError {
        application_missing(self.draft.application_id)
    }

    pub(crate) fn endpoint_missing(&self) -> SubmitError {
        endpoint_missing(self.draft)
    }

    /// The other checks, once the endpoint is known.
    pub(crate) fn parse(&self, endpoint: EndpointKey) -> Result<NewSubmission, SubmitError> {
        let draft = self.draft;
        let invalid = |field, code, message| SubmitError::Invalid { field, code, message };
        let key = draft.idempotency_key.map(|key| IdempotencyKey::parse(key.as_bytes()));
        let key = key
            .transpose()
            .map_err(|error| invalid("idempotency_key", error.code(), error.to_string()))?;
        let event_type = draft.event_type.map(EventType::parse);
        let event_type = event_type
            .transpose()
            .map_err(|error| invalid("event_type", error.code(), error.to_string()))?;
        let content_type = draft.content_type.map(|text| ContentType::parse(text.as_bytes()));
        let content_type = content_type
            .transpose()
            .map_err(|error| invalid("content_type", error.code(), error.to_string()))?
            .unwrap_or_default();
        declared_json_parses(&content_type, &draft.payload)
            .map_err(|error| invalid("payload", "json_malformed", error.to_string()))?;
        Ok(NewSubmission::new(endpoint, key, event_type, content_type, draft.payload.clone()))
    }
}

fn application_missing(id: &str) -> SubmitError {
    SubmitError::ApplicationMissing { application_id: id.to_owned() }
}

fn endpoint_missing(draft: &Draft<'_>) -> SubmitError {
    SubmitError::EndpointMissing {
        application_id: draft.application_id.to_owned(),
        endpoint_id: draft.endpoint_id.to_owned(),
    }
}
