//! Where the checks meet: a scratch database, stores on it with connections of their own, and what each
//! check arranges.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{CustomHeaders, EndpointSettings, SettingsDraft};
use domain::id::{ClaimToken, DeliveryId, EndpointKey, PublicId};
use domain::rate_limit::{RATE_UNITS_MAX, RATE_WINDOW_MIN, RateLimit};
use domain::signing::SigningSecret;
use domain::submission::{ContentType, IdempotencyKey};
use store::delivery::{ClaimBatch, ClaimRequest, DueQuery};
use store::endpoint::{Endpoint, EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};
use store::submission::{Acceptance, NewSubmission};
use store::{Store, StoreError, StoreOptions};
use tokio::sync::{Mutex, OnceCell};

use crate::connections::{Connection, Connections, Value};
use crate::processes::Environment;

/// Nothing is ever sent there.
pub(crate) const URL: &str = "https://receiver.example.com/hook";
/// Who claims.
pub(crate) const WORKER: &str = "fencepost verify";
/// A process costs a start, and two cores race no more at once.
const PROCESSES_MAX: usize = 4;
/// How long one waits for a free connection: behind a pooler, or where another is just closing.
const ACQUIRE: Duration = Duration::from_secs(30);
/// How often a store is asked again that had too many other writers, each time after up to …
const TRIES: u32 = 60;
/// … so long.
const WAIT_MAX: Duration = Duration::from_millis(40);

/// A scratch database that checks run on, one after the other.
#[derive(Debug)]
pub(crate) struct Ground {
    url: String,
    crowd: Crowd,
    program: PathBuf,
    sealer: Sealer,
    /// The key of the sealer, for processes.
    sealing_key: String,
    arranging: OnceCell<Arc<dyn Store>>,
    /// Opened when they are wanted first, and kept until they are released.
    stores: Mutex<Vec<Arc<dyn Store>>>,
}

/// How many race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// As many as were asked for.
    pub(crate) asked: usize,
    /// As many as can have a store of their own.
    pub(crate) stores: usize,
    /// As many as can have a plain connection of their own, while no stores are open.
    pub(crate) connections: usize,
}

impl Ground {
    /// `program` is what a contestant in a process of its own is started from.
    pub(crate) fn new(url: &str, crowd: Crowd, program: &Path) -> anyhow::Result<Self> {
        let sealing_key = SealingKey::generate()?;
        Ok(Self {
            url: url.to_owned(),
            crowd,
            program: program.to_owned(),
            sealing_key: STANDARD.encode(sealing_key.expose()),
            sealer: Sealer::new(sealing_key, Vec::new()),
            arranging: OnceCell::new(),
            stores: Mutex::default(),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// What an api or worker on this ground is told.
    pub(crate) fn environment(&self) -> Environment {
        Environment::on(&self.url, &self.sealing_key).of(&self.program)
    }

    pub(crate) fn crowd(&self) -> Crowd {
        self.crowd
    }

    /// How many race, each on connections of its own.
    pub(crate) fn contestants(&self) -> usize {
        self.crowd.stores
    }

    /// How many race where each is a process.
    pub(crate) fn processes(&self) -> usize {
        self.contestants().min(PROCESSES_MAX)
    }

    /// A store for each contestant, with connections of its own that are open.
    pub(crate) async fn stores(&self) -> anyhow::Result<Vec<Arc<dyn Store>>> {
        let mut stores = self.stores.lock().await;
        while stores.len() < self.crowd.stores {
            stores.push(self.open().await?);
        }
        Ok(stores.clone())
    }

    /// The store that arranges a round and looks at what it left.
    pub(crate) async fn store(&self) -> anyhow::Result<Arc<dyn Store>> {
        Ok(Arc::clone(self.arranging.get_or_try_init(|| self.open()).await?))
    }

    async fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        let store = store::open(&self.url, options(self.sealer.clone())).await?;
        store.check().await?;
        store.find_due_endpoints(DueQuery { after: None, limit: 1, sweep: false }).await?;
        Ok(store)
    }

    /// Closes the contestants' connections, so that others can have their places.
    pub(crate) async fn release(&self) {
        self.stores.lock().await.clear();
    }

    /// Plain connections, one for each contestant at most.
    pub(crate) fn connections(&self) -> anyhow::Result<Connections> {
        Connections::open(&self.url, self.crowd.connections, ACQUIRE)
    }

    pub(crate) async fn endpoint(&self) -> anyhow::Result<Endpoint> {
        let key = store::new_id::endpoint_key();
        let settings = SettingsDraft {
            in_flight_max: 1_000,
            ingest_rate: RateLimit::new(RATE_UNITS_MAX, RATE_WINDOW_MIN)?,
            ..SettingsDraft::default()
        };
        let new = NewEndpoint {
            key,
            application: DEFAULT_APPLICATION_KEY,
            id: PublicId::of_endpoint(key),
            url: DestinationUrl::parse(URL, &AddressPolicy::default())?,
            name: None,
            event_types: None,
            headers: CustomHeaders::default(),
            enabled: true,
            settings: EndpointSettings::new(settings)?,
            secret: SigningSecret::from_slice(&[0; 24])?,
            ed25519: store::secret::generate_ed25519()?,
        };
        match self.store().await?.create_endpoint(&new).await? {
            EndpointCreation::Created(endpoint) => Ok(endpoint),
            EndpointCreation::IdTaken => bail!("a fresh id was taken"),
        }
    }

    /// Deliveries that are due.
    pub(crate) async fn submit(
        &self,
        endpoint: &Endpoint,
        count: usize,
    ) -> anyhow::Result<Vec<DeliveryId>> {
        let submissions = (0..count)
            .map(|_| submission(endpoint.key, None, b"{}"))
            .collect::<anyhow::Result<Vec<_>>>()?;
        for answer in self.store().await?.accept(&submissions).await? {
            if !matches!(answer, Acceptance::Accepted(_)) {
                bail!("not accepted: {answer:?}");
            }
        }
        Ok(submissions.iter().map(|submission| submission.delivery).collect())
    }
}

/// One connection for claim and record, one for the rest.
pub(crate) fn options(sealer: Sealer) -> StoreOptions {
    let mut options = StoreOptions::new(sealer);
    options.general_connections = 1;
    options.dispatch_connections = 1;
    options.acquire_timeout = ACQUIRE;
    options
}

pub(crate) fn submission(
    endpoint: EndpointKey,
    key: Option<&str>,
    payload: &'static [u8],
) -> anyhow::Result<NewSubmission> {
    let key = key.map(|key| IdempotencyKey::parse(key.as_bytes())).transpose()?;
    let content_type = ContentType::parse(b"application/json")?;
    Ok(NewSubmission::new(endpoint, key, None, content_type, Bytes::from_static(payload)))
}

/// Claims up to so many of an endpoint, also of what was aged.
pub(crate) async fn claim(
    store: &dyn Store,
    endpoint: EndpointKey,
    count: u32,
) -> anyhow::Result<(ClaimToken, ClaimBatch)> {
    let token = store::new_id::claim_token();
    let endpoints = [endpoint];
    let request = ClaimRequest {
        endpoints: &endpoints,
        per_endpoint: count,
        total: count,
        worker: WORKER,
        token,
        sweep: true,
    };
    Ok((token, patiently(|| store.claim_due(&request)).await?))
}

/// Ages the leases of an endpoint, so that they are over.
pub(crate) async fn end_leases(
    connection: &mut Connection,
    endpoint: EndpointKey,
) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::ground::end_leases
            UPDATE {}deliveries SET claim_expires_at = claim_expires_at - {five_minutes}
            WHERE endpoint = $1 AND state = 2",
            &[Value::Uuid(endpoint.as_uuid())],
        )
        .await?;
    Ok(())
}

/// Asks again where the database had too many other writers, as every caller of a store has to.
pub(crate) async fn patiently<T, F>(mut call: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for _ in 1..TRIES {
        match call().await {
            Err(StoreError::Contended { .. }) => {
                tokio::time::sleep(WAIT_MAX.mul_f64(fastrand::f64())).await;
            }
            answer => return answer,
        }
    }
    call().await
}
