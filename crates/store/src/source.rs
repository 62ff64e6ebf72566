//! Sources as they are stored, and what becomes of a request that one of them has sent.

use async_trait::async_trait;
use domain::id::{ApplicationKey, EndpointKey, PublicId, SourceKey, SubmissionId};
use domain::label::Label;
use domain::rate_limit::RateLimit;
use domain::signing::Overlap;
use domain::source::{EventIdLocation, HeaderName, Refusal, Scheme, SchemeKind, SourceSecret};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::receipt::{NewReceipt, Receipt};
use crate::sealing::{SealError, Sealed, Sealer};
use crate::secret::Resealing;
use crate::submission::{Accepted, NewSubmission};
use crate::{Page, StoreError};

/// How many refusals of a source are kept, the newest ones.
pub const REFUSALS_KEPT: usize = 10;

/// The most secrets of a source that may be live at once.
pub const SOURCE_SECRETS_MAX: u32 = 10;

/// A source to be created, with its first secret.
#[derive(Debug, Clone)]
pub struct NewSource {
    /// Its internal identity.
    pub key: SourceKey,
    /// Whose it is.
    pub application: ApplicationKey,
    /// Its name in URLs, unique in its application and never used again.
    pub id: PublicId,
    /// A label for people.
    pub name: Option<Label>,
    /// Where its events go, with that endpoint's name in URLs.
    pub endpoint: (EndpointKey, PublicId),
    /// How its requests are verified.
    pub scheme: Scheme,
    /// Where an event's id stands; none for where the scheme has it.
    pub event_id: Option<EventIdLocation>,
    /// The headers that are kept with a receipt.
    pub headers: Vec<HeaderName>,
    /// What its requests are verified with.
    pub secret: SourceSecret,
}

/// What became of a source's creation.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "made once a call, and almost always the large one")]
pub enum SourceCreation {
    /// It exists.
    Created(Source),
    /// Another source of the application has, or once had, this id.
    IdTaken,
    /// The endpoint is not there any more.
    EndpointMissing,
}

/// A source, without its secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its internal identity.
    pub key: SourceKey,
    /// Whose it is.
    pub application: ApplicationKey,
    /// Its name in URLs.
    pub id: PublicId,
    /// A label for people.
    pub name: Option<String>,
    /// Where its events go: the endpoint's name in URLs.
    pub endpoint_id: String,
    /// How its requests are verified.
    pub scheme: Scheme,
    /// Where an event's id stands; none for where the scheme has it.
    pub event_id: Option<EventIdLocation>,
    /// The headers that are kept with a receipt.
    pub headers: Vec<HeaderName>,
    /// How many requests were refused and noted.
    pub refused: u64,
    /// The newest of them, at most [`REFUSALS_KEPT`].
    pub refusals: Vec<NotedRefusal>,
    /// Rises with every change of its configuration.
    pub version: i64,
    /// When it was created, on the database's clock.
    pub created_at: OffsetDateTime,
    /// When it was changed last, on the database's clock.
    pub updated_at: OffsetDateTime,
}

/// A request that was refused, for the operator of its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedRefusal {
    /// When, in microseconds since 1970 on the database's clock.
    pub at_micros: i64,
    /// The stable name of the reason.
    pub code: String,
    /// The reason in words.
    pub message: String,
}

/// What is to be changed of a source. What is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct SourceChange {
    /// A label for people.
    pub name: Option<Option<Label>>,
    /// Where its events go.
    pub endpoint: Option<EndpointKey>,
    /// The settings of the scheme that it has.
    pub scheme: Option<Scheme>,
    /// Where an event's id stands.
    pub event_id: Option<Option<EventIdLocation>>,
    /// The headers that are kept with a receipt.
    pub headers: Option<Vec<HeaderName>>,
}

/// A new secret for a source.
#[derive(Debug, Clone)]
pub struct NewSourceSecret {
    /// Whose it is.
    pub source: SourceKey,
    /// The secret.
    pub secret: SourceSecret,
    /// For how long the old ones go on beside it.
    pub overlap: Overlap,
}

/// What became of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceRotation {
    /// The new secret verifies from now on.
    Rotated {
        /// The version of the configuration that the rotation made.
        version: i64,
        /// When the last of the old ones ends; none if no old one was live.
        retires_at: Option<OffsetDateTime>,
    },
    /// With the new one, more than [`SOURCE_SECRETS_MAX`] would be live.
    TooManyLive,
    /// There is no such source.
    Missing,
}

/// What a request that names a source is verified with.
#[derive(Debug)]
pub struct Gateway {
    /// The source's internal identity.
    pub source: SourceKey,
    /// Where its events go.
    pub endpoint: EndpointKey,
    /// How many submissions that endpoint takes.
    pub ingest_rate: RateLimit,
    /// How requests are verified.
    pub scheme: Scheme,
    /// Where an event's id stands.
    pub event_id: EventIdLocation,
    /// The headers that are kept with a receipt.
    pub headers: Vec<HeaderName>,
    /// The live secrets, newest first, or why they cannot be used.
    pub secrets: Result<Vec<SourceSecret>, String>,
}

/// A verified event: its receipt, and the submission that brings it to the endpoint.
#[derive(Debug, Clone)]
pub struct NewReception {
    /// From which source.
    pub source: SourceKey,
    /// Which event it is.
    pub receipt: NewReceipt,
    /// Headers to be kept, names in lower case.
    pub headers: Vec<(String, String)>,
    /// What is owed to the endpoint. It has no idempotency key: the receipt is what makes it one.
    pub submission: NewSubmission,
}

/// What became of a verified event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reception {
    /// It is stored, and its delivery is owed.
    First(Accepted),
    /// A copy of it was stored before.
    Duplicate,
    /// Other content was stored under the same id, and is flagged now. This one is not stored.
    Conflicted,
    /// A concurrent copy is being stored and did not end in time.
    InProgress,
    /// The source or its endpoint is not there any more.
    Missing,
}

/// The operations on sources and on what they send.
#[async_trait]
pub trait Sources {
    /// Creates a source together with its sealed secret.
    async fn create_source(&self, source: &NewSource) -> Result<SourceCreation, StoreError>;

    /// The live source of that application with this id.
    async fn find_source(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<Option<Source>, StoreError>;

    /// The live sources of an application, newest first.
    async fn list_sources(
        &self,
        application: ApplicationKey,
        page: Page,
    ) -> Result<Vec<Source>, StoreError>;

    /// Changes what the change names of the live source with this id, and leaves the rest. Changes of
    /// one source happen one after another, and the last one stays.
    async fn update_source(
        &self,
        application: ApplicationKey,
        id: &PublicId,
        change: &SourceChange,
    ) -> Result<Option<Source>, StoreError>;

    /// Marks the live source with this id as deleted. Answers whether there was one.
    async fn delete_source(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<bool, StoreError>;

    /// Gives a source a new secret, and lets the old ones end.
    async fn rotate_source_secret(
        &self,
        new: &NewSourceSecret,
    ) -> Result<SourceRotation, StoreError>;

    /// Seals secrets of sources with the current key that other keys have sealed: at most `limit` of
    /// those whose id is above `after`.
    async fn reseal_source_secrets(
        &self,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Resealing, StoreError>;

    /// What a request to the live source with this id is verified with.
    async fn read_gateway(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<Option<Gateway>, StoreError>;

    /// Counts a refused request and keeps its reason, for the operator.
    async fn note_refusal(&self, source: SourceKey, refusal: &Refusal) -> Result<(), StoreError>;

    /// Stores the receipt of an event together with its submission and delivery, or says why not: all
    /// three or none. Calling it again with the same ids is safe.
    async fn receive(&self, reception: &NewReception) -> Result<Reception, StoreError>;

    /// The receipt of the event that a submission of that application brings; none of another's.
    async fn find_receipt(
        &self,
        application: ApplicationKey,
        submission: SubmissionId,
    ) -> Result<Option<Receipt>, StoreError>;
}

/// What a sealed secret of a source is bound to: the source's UUID, the secret's, and a word that no
/// other row has.
#[must_use]
pub fn source_secret_row(source: SourceKey, secret: Uuid) -> [u8; 38] {
    let mut row = [0; 38];
    let (first, rest) = row.split_at_mut(16);
    let (second, third) = rest.split_at_mut(16);
    first.copy_from_slice(source.as_uuid().as_bytes());
    second.copy_from_slice(secret.as_bytes());
    third.copy_from_slice(b"source");
    row
}

/// Seals a secret under an id of its own.
pub(crate) fn seal_secret(
    sealer: &Sealer,
    source: SourceKey,
    secret: &SourceSecret,
) -> Result<(Uuid, Sealed), StoreError> {
    let id = crate::new_id::uuid_now();
    let sealed = sealer.seal(secret.expose().as_bytes(), &source_secret_row(source, id));
    sealed.map(|sealed| (id, sealed)).map_err(|cause: SealError| StoreError::Sealed {
        secret: id.to_string(),
        endpoint: source.to_string(),
        source: cause,
    })
}

/// Opens a stored secret, or says why it cannot be used.
pub(crate) fn open_secret(
    sealer: &Sealer,
    source: SourceKey,
    scheme: SchemeKind,
    id: Uuid,
    sealed: &Sealed,
) -> Result<SourceSecret, String> {
    let bytes = sealer
        .open(sealed, &source_secret_row(source, id))
        .map_err(|error| format!("secret {id} cannot be unsealed: {error}"))?;
    let text = str::from_utf8(&bytes).map_err(|_| format!("secret {id} is no text"))?;
    SourceSecret::parse(scheme, text)
        .map_err(|error| format!("secret {id} cannot be used: {error}"))
}

/// The columns of `sources` that are kept as texts.
#[derive(Debug)]
pub(crate) struct SourceTexts<'a> {
    pub(crate) key: Uuid,
    pub(crate) id: &'a str,
    pub(crate) scheme: &'a str,
    pub(crate) event_id: Option<&'a str>,
    pub(crate) headers: Vec<String>,
}

/// What these texts say.
pub(crate) type SourceSettings = (PublicId, Scheme, Option<EventIdLocation>, Vec<HeaderName>);

impl SourceTexts<'_> {
    pub(crate) fn parse(self) -> Result<SourceSettings, StoreError> {
        let bad =
            |column| StoreError::Corrupt { table: "sources", column, row: self.key.to_string() };
        let event_id = self.event_id.map(serde_json::from_str).transpose();
        let headers: Result<Vec<HeaderName>, _> =
            self.headers.iter().map(|name| HeaderName::parse(name)).collect();
        Ok((
            PublicId::parse(self.id).map_err(|_| bad("id"))?,
            Scheme::from_json(self.scheme).map_err(|_| bad("scheme"))?,
            event_id.map_err(|_| bad("event_id"))?,
            headers.map_err(|_| bad("headers"))?,
        ))
    }
}

/// The JSON of a location.
pub(crate) fn location_json(location: &EventIdLocation) -> String {
    // A text in an object: always JSON.
    serde_json::to_string(location).unwrap_or_default()
}

/// The refusals of a column; none that cannot be read.
pub(crate) fn refusals(json: &str) -> Vec<NotedRefusal> {
    serde_json::from_str(json).unwrap_or_default()
}

/// The kept headers as a JSON array of names and values.
pub(crate) fn headers_json(headers: &[(String, String)]) -> String {
    serde_json::to_string(headers).unwrap_or_default()
}

/// Length of a secret that is made here.
const SECRET_BYTES: usize = 32;

/// Makes a secret from the operating system's randomness, in the form of the scheme.
pub fn generate_source_secret(scheme: SchemeKind) -> Result<SourceSecret, SealError> {
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    getrandom::fill(bytes.as_mut_slice()).map_err(|_| SealError::NoRandomness)?;
    let text = match scheme {
        SchemeKind::StandardWebhooks | SchemeKind::Svix => {
            domain::signing::SigningSecret::from_slice(bytes.as_slice())
                .map(|secret| secret.reveal())
                .map_err(|_| SealError::NoRandomness)?
        }
        _ => crate::hex::encode(bytes.iter()),
    };
    SourceSecret::parse(scheme, &text).map_err(|_| SealError::NoRandomness)
}
