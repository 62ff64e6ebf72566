//! A store on a database of its own, and a view of its rows that does not go through the store.

mod postgres;
mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{FailureReason, Outcome, Verdict};
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{CustomHeaders, EndpointSettings, SettingsDraft, SigningSchemes};
use domain::id::{ApplicationKey, ClaimToken, DeliveryId, EndpointKey, PublicId};
use domain::signing::SigningSecret;
use domain::submission::{ContentType, IdempotencyKey};
use store::delivery::{
    ClaimBatch, ClaimRequest, ClaimedDelivery, DeliveryDetail, DueQuery, Evidence, HeldClaim,
    Recording, Report,
};
use store::endpoint::{Endpoint, EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};
use store::submission::{Acceptance, Accepted, NewSubmission};
use store::{Store, StoreOptions};
use time::OffsetDateTime;
use uuid::Uuid;

/// A row of `deliveries`, or of `settled_deliveries`, as it stands in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) state: i16,
    pub(crate) reason: Option<i16>,
    pub(crate) attempts: i32,
    pub(crate) cycle_attempts: i32,
    pub(crate) lapses: i32,
    pub(crate) claim_token: Option<ClaimToken>,
    /// Microseconds since 1970.
    pub(crate) due_at: Option<i64>,
    pub(crate) claim_expires_at: Option<i64>,
    pub(crate) settled: bool,
}

/// What only one kind of database can do.
#[derive(Debug)]
enum Database {
    Postgres(postgres::Postgres),
    Sqlite(sqlite::Sqlite),
}

/// Forwards to whichever database it is.
macro_rules! forward {
    ($self:ident.$name:ident($($argument:expr),*)) => {
        match &$self.database {
            Database::Postgres(database) => database.$name($($argument),*).await,
            Database::Sqlite(database) => database.$name($($argument),*).await,
        }
    };
}

#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    database: Database,
}

pub(crate) const WORKER: &str = "test-worker";
pub(crate) const URL: &str = "https://receiver.example.com/hook";

impl Fixture {
    pub(crate) async fn postgres() -> anyhow::Result<Self> {
        let (store, database) = postgres::Postgres::open().await?;
        Ok(Self { store, database: Database::Postgres(database) })
    }

    pub(crate) async fn sqlite() -> anyhow::Result<Self> {
        let (store, database) = sqlite::Sqlite::open().await?;
        Ok(Self { store, database: Database::Sqlite(database) })
    }

    /// A session of the test's own on PostgreSQL.
    pub(crate) async fn session(&self) -> anyhow::Result<sqlx::PgConnection> {
        match &self.database {
            Database::Postgres(database) => database.session().await,
            Database::Sqlite(_) => bail!("this race is between sessions of PostgreSQL"),
        }
    }

    /// The same database opened once more, with connections of its own.
    pub(crate) async fn another_store(&self) -> anyhow::Result<Arc<dyn Store>> {
        let sealer = Sealer::new(SealingKey::generate()?, Vec::new());
        Ok(store::open(self.url(), StoreOptions::new(sealer)).await?)
    }

    /// The same, whose submissions wait longer for a key than any test takes to see that they do.
    pub(crate) async fn patient_store(&self) -> anyhow::Result<Arc<dyn Store>> {
        let mut options = StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new()));
        options.key_wait = Duration::from_secs(9);
        Ok(store::open(self.url(), options).await?)
    }

    pub(crate) fn url(&self) -> &str {
        match &self.database {
            Database::Postgres(database) => database.url(),
            Database::Sqlite(database) => database.url(),
        }
    }

    // Arranging.

    pub(crate) async fn endpoint(&self) -> anyhow::Result<Endpoint> {
        self.endpoint_with(|_| {}).await
    }

    pub(crate) async fn endpoint_with(
        &self,
        change: impl FnOnce(&mut SettingsDraft),
    ) -> anyhow::Result<Endpoint> {
        let mut draft = SettingsDraft::default();
        change(&mut draft);
        let mut new = new_endpoint()?;
        new.settings = EndpointSettings::new(draft)?;
        match self.store.create_endpoint(&new).await? {
            EndpointCreation::Created(endpoint) => Ok(endpoint),
            EndpointCreation::IdTaken => bail!("a fresh id was taken"),
        }
    }

    pub(crate) async fn submit(&self, endpoint: &Endpoint) -> anyhow::Result<DeliveryId> {
        let accepted = self.accept_one(&submission(endpoint, None, b"{}")?).await?;
        let Acceptance::Accepted(Accepted { deliveries, .. }) = accepted else {
            bail!("not accepted: {accepted:?}")
        };
        deliveries.first().copied().context("no delivery")
    }

    pub(crate) async fn accept_one(
        &self,
        submission: &NewSubmission,
    ) -> anyhow::Result<Acceptance> {
        let mut answers = self.store.accept(std::slice::from_ref(submission)).await?;
        ensure!(answers.len() == 1, "one answer a submission");
        answers.pop().context("an answer")
    }

    pub(crate) async fn claim(
        &self,
        endpoints: &[&Endpoint],
        per_endpoint: u32,
    ) -> anyhow::Result<(ClaimToken, ClaimBatch)> {
        let endpoints: Vec<EndpointKey> = endpoints.iter().map(|e| e.key).collect();
        let token = store::new_id::claim_token();
        let request = ClaimRequest {
            endpoints: &endpoints,
            per_endpoint,
            total: 1_000,
            worker: WORKER,
            token,
            sweep: false,
        };
        Ok((token, self.store.claim_due(&request).await?))
    }

    /// Claims the one delivery that is due, or fails.
    pub(crate) async fn claim_one(&self, endpoint: &Endpoint) -> anyhow::Result<HeldClaim> {
        let (token, batch) = self.claim(&[endpoint], 1).await?;
        let [ClaimedDelivery { delivery, .. }] = batch.claimed.as_slice() else {
            bail!("one was to be claimed: {batch:?}")
        };
        Ok(HeldClaim { endpoint: endpoint.key, delivery: *delivery, token })
    }

    pub(crate) async fn record(&self, report: Report) -> anyhow::Result<Recording> {
        let recordings = self.store.record_attempts(&[report]).await?;
        ensure!(recordings.len() == 1, "one answer a report");
        recordings.first().copied().context("an answer")
    }

    /// Brings a delivery of the endpoint to failed.
    pub(crate) async fn failed(&self, endpoint: &Endpoint) -> anyhow::Result<DeliveryId> {
        let delivery = self.submit(endpoint).await?;
        let claim = self.claim_one(endpoint).await?;
        ensure!(self.record(report(claim, failure())).await? == Recording::Fenced(1));
        Ok(delivery)
    }

    // Looking.

    pub(crate) async fn detail(&self, delivery: DeliveryId) -> anyhow::Result<DeliveryDetail> {
        let found = self.store.find_delivery(DEFAULT_APPLICATION_KEY, delivery).await?;
        found.context("the delivery is not found")
    }

    /// Numbers of the attempts, and whether each was late.
    pub(crate) async fn attempts(&self, delivery: DeliveryId) -> anyhow::Result<Vec<(u32, bool)>> {
        let detail = self.detail(delivery).await?;
        Ok(detail.attempts.iter().map(|attempt| (attempt.number, attempt.late)).collect())
    }

    pub(crate) async fn due_endpoints(&self, sweep: bool) -> anyhow::Result<Vec<EndpointKey>> {
        let query = DueQuery { after: None, limit: 1_000, sweep };
        Ok(self.store.find_due_endpoints(query).await?)
    }

    /// The row itself, from whichever of both tables has it; an error if both or none have it.
    pub(crate) async fn row(&self, delivery: DeliveryId) -> anyhow::Result<Row> {
        let mut rows = forward!(self.rows(delivery))?;
        ensure!(rows.len() == 1, "{} rows of one delivery", rows.len());
        rows.pop().context("a row")
    }

    /// The slots that the schedule row counts, and the deliveries that hold one.
    pub(crate) async fn in_flight(&self, endpoint: &Endpoint) -> anyhow::Result<(i64, i64)> {
        forward!(self.in_flight(endpoint.key))
    }

    pub(crate) async fn count(&self, table: &'static str) -> anyhow::Result<i64> {
        forward!(self.count(table))
    }

    /// Beginning and end of a counter's window, in microseconds since 1970.
    pub(crate) async fn rate_limit_window(&self, subject: &str) -> anyhow::Result<(i64, i64)> {
        forward!(self.rate_limit_window(subject))
    }

    // Aging.

    /// Ends the lease that the delivery is under.
    pub(crate) async fn end_lease(&self, delivery: DeliveryId) -> anyhow::Result<()> {
        forward!(self.shift("claim_expires_at", delivery, Duration::from_mins(5)))
    }

    /// Makes a delivery that waits for its retry due by now.
    pub(crate) async fn make_due(&self, delivery: DeliveryId) -> anyhow::Result<()> {
        forward!(self.shift("due_at", delivery, Duration::from_hours(24 * 40)))
    }

    /// Makes the lapses of a delivery begin a day and more ago.
    pub(crate) async fn age_lapses(&self, delivery: DeliveryId) -> anyhow::Result<()> {
        forward!(self.shift("lapse_since", delivery, Duration::from_hours(25)))
    }

    /// Moves a time of the endpoint's schedule row into the past.
    pub(crate) async fn age_schedule(
        &self,
        column: &'static str,
        endpoint: &Endpoint,
        by: Duration,
    ) -> anyhow::Result<()> {
        forward!(self.age_schedule(column, endpoint.key, by))
    }

    /// Moves the endpoint's rate window two days into the past.
    pub(crate) async fn end_rate_window(&self, endpoint: &Endpoint) -> anyhow::Result<()> {
        forward!(self.end_rate_window(endpoint.key))
    }

    pub(crate) async fn expire_key(&self, key: &str) -> anyhow::Result<()> {
        forward!(self.expire_key(key))
    }

    /// Makes what was noted of a key's last use more than an hour old.
    pub(crate) async fn age_key_use(&self, key: Uuid) -> anyhow::Result<()> {
        forward!(self.age_key_use(key))
    }

    /// Marks an application as deleted.
    pub(crate) async fn delete_application(&self, key: ApplicationKey) -> anyhow::Result<()> {
        forward!(self.delete_application(key))
    }

    /// Sets the schedule's `paused_until` an hour ahead, or clears it.
    pub(crate) async fn pause(&self, endpoint: &Endpoint, paused: bool) -> anyhow::Result<()> {
        forward!(self.pause(endpoint.key, paused))
    }

    /// Shifts every window of the counters of rate limits into the past.
    pub(crate) async fn age_rate_limits(&self, by: Duration) -> anyhow::Result<()> {
        forward!(self.age_rate_limits(by))
    }

    /// Chooses the schemes that the endpoint signs by.
    pub(crate) async fn sign_by(
        &self,
        endpoint: &Endpoint,
        schemes: SigningSchemes,
    ) -> anyhow::Result<()> {
        forward!(self.sign_by(endpoint.key, store::codes::of_signing(schemes)))
    }

    /// Shifts what secrets know of time an hour and a day into the past.
    pub(crate) async fn age_secrets(&self) -> anyhow::Result<()> {
        forward!(self.age_secrets(Duration::from_hours(25)))
    }

    /// Runs a statement on one row, whose id is `$1`. Tables are named `{}table`, for the schema.
    pub(crate) async fn run(&self, text: &'static str, id: uuid::Uuid) -> anyhow::Result<()> {
        forward!(self.run(text, id))
    }

    /// A connection beside those of the store. Only PostgreSQL has sessions that hold locks apart.
    pub(crate) async fn connection(&self) -> anyhow::Result<sqlx::PgConnection> {
        match &self.database {
            Database::Postgres(database) => database.connection().await,
            Database::Sqlite(_) => bail!("this test is about PostgreSQL"),
        }
    }

    /// Marks endpoint and schedule row as deleted, as DELETE will.
    pub(crate) async fn delete(&self, endpoint: &Endpoint) -> anyhow::Result<()> {
        forward!(self.delete(endpoint.key))
    }
}

pub(crate) fn new_endpoint() -> anyhow::Result<NewEndpoint> {
    let key = store::new_id::endpoint_key();
    Ok(NewEndpoint {
        key,
        application: DEFAULT_APPLICATION_KEY,
        id: PublicId::of_endpoint(key),
        url: DestinationUrl::parse(URL, &AddressPolicy::default())?,
        name: None,
        event_types: None,
        headers: CustomHeaders::default(),
        enabled: true,
        settings: EndpointSettings::default(),
        secret: SigningSecret::from_slice(&[7; 24])?,
        ed25519: store::secret::generate_ed25519()?,
    })
}

pub(crate) fn submission(
    endpoint: &Endpoint,
    key: Option<&str>,
    payload: &[u8],
) -> anyhow::Result<NewSubmission> {
    Ok(NewSubmission::new(
        endpoint.key,
        key.map(|key| IdempotencyKey::parse(key.as_bytes())).transpose()?,
        None,
        ContentType::parse(b"application/json")?,
        Bytes::copy_from_slice(payload),
    ))
}

pub(crate) fn report(claim: HeldClaim, verdict: Verdict) -> Report {
    let status = if verdict == Verdict::Delivered { 204 } else { 500 };
    Report {
        endpoint: claim.endpoint,
        delivery: claim.delivery,
        token: claim.token,
        version: 1,
        worker: WORKER.to_owned(),
        started_at: OffsetDateTime::UNIX_EPOCH + Duration::from_hours(480_000),
        duration: Duration::from_millis(12),
        outcome: Outcome::Answered { status, retry_after: None },
        verdict,
        evidence: Evidence { url: URL.to_owned(), ..Evidence::default() },
    }
}

pub(crate) fn failure() -> Verdict {
    Verdict::Failed { reason: FailureReason::AttemptsExhausted }
}

pub(crate) fn retry(after: Duration) -> Verdict {
    Verdict::Retry { after }
}
