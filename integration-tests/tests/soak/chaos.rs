//! The service under test, and what is killed of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::retry::RetrySchedule;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{EndpointSettings, SettingsDraft};
use domain::id::PublicId;
use domain::rate_limit::RateLimit;
use domain::signing::SigningSecret;
use integration_tests::postgres::MortalPostgres;
use integration_tests::process::{Api, Settings, Worker};
use integration_tests::receiver::{Receiver, always};
use integration_tests::{api_binary, eventually, worker_binary};
use store::api_key::{NewApiKey, Role};
use store::endpoint::{EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};
use store::{Store, StoreOptions};
use tokio::sync::watch;

use crate::stall;

pub(crate) const ENDPOINTS: usize = 8;
const APIS: usize = 2;
const WORKERS: usize = 3;
/// The key that `Settings::new` gives to the processes, as bytes.
const SEALING_KEY: &[u8; 32] = b"fencepost tests seal with this!!";
/// What is killed next is not killed before so many further requests have come.
const REQUESTS_BETWEEN_KILLS: std::ops::Range<usize> = 20..400;
/// After a kill the rest must go on within this time; a lease is over by then.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Chaos {
    postgres: MortalPostgres,
    receiver: Receiver,
    settings: Settings,
    apis: Vec<Api>,
    /// Where the apis listen now: they come back on other ports.
    addresses: watch::Sender<Vec<String>>,
    workers: Vec<Worker>,
    worker_names: AtomicUsize,
    key: String,
    random: fastrand::Rng,
    in_flight_at_kills: usize,
    kills: BTreeMap<&'static str, usize>,
}

impl Chaos {
    pub(crate) async fn start(seed: u64) -> anyhow::Result<Self> {
        let postgres = MortalPostgres::start().await?;
        store::migrate(postgres.url()).await?;
        let sealer = Sealer::new(SealingKey::from_slice(SEALING_KEY)?, Vec::new());
        let store = store::open(postgres.url(), StoreOptions::new(sealer)).await?;
        let key = NewApiKey::generate("soak", Role::Admin, None)?;
        store.create_api_key(&key).await?;
        let receiver = Receiver::start(always(204))?;
        create_endpoints(&store, &receiver).await?;
        let mut chaos = Self {
            settings: Settings::new(postgres.url()).with("FENCEPOST_SOURCE_RATE", "off"),
            postgres,
            receiver,
            apis: Vec::new(),
            addresses: watch::Sender::new(Vec::new()),
            workers: Vec::new(),
            worker_names: AtomicUsize::new(0),
            key: key.reveal().to_owned(),
            random: fastrand::Rng::with_seed(seed),
            in_flight_at_kills: 0,
            kills: BTreeMap::new(),
        };
        for _ in 0..APIS {
            let api = chaos.start_api().await?;
            chaos.apis.push(api);
        }
        chaos.publish();
        for _ in 0..WORKERS {
            let worker = chaos.start_worker().await?;
            chaos.workers.push(worker);
        }
        Ok(chaos)
    }

    async fn start_api(&self) -> anyhow::Result<Api> {
        Api::start(api_binary!(), &self.settings).await
    }

    async fn start_worker(&self) -> anyhow::Result<Worker> {
        let number = self.worker_names.fetch_add(1, Ordering::SeqCst);
        let name = format!("worker-{number}");
        let settings = self.settings.clone().with("FENCEPOST_WORKER_NAME", &name);
        Worker::start(worker_binary!(), &name, &settings).await
    }

    fn publish(&self) {
        self.addresses.send_replace(self.apis.iter().map(|api| api.url.clone()).collect());
    }

    /// Kills something, starts it again, and waits for the service to go on, until the time is over.
    pub(crate) async fn kill_for(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let more = self.random.usize(REQUESTS_BETWEEN_KILLS);
            let wanted = self.receiver.requests().len() + more;
            if let Err(stalled) = self.receiver.wait_for_requests(wanted, PATIENCE).await {
                return Err(stalled.context(format!("after a kill\n{}", self.explain().await)));
            }
            match self.random.u8(..10) {
                0..3 => self.kill_api().await.context("killing an api")?,
                3..8 => self.kill_worker().await.context("killing a worker")?,
                _ => self.kill_postgres().await.context("killing PostgreSQL")?,
            }
        }
        Ok(())
    }

    async fn explain(&self) -> String {
        let addresses = self.addresses.borrow().clone();
        stall::explain(self.postgres.connect().await, &addresses, &self.key).await
    }

    async fn kill_api(&mut self) -> anyhow::Result<()> {
        let place = self.random.usize(..APIS);
        self.apis[place].process.kill().await?;
        *self.kills.entry("an api").or_default() += 1;
        self.apis[place] = self.start_api().await?;
        self.publish();
        Ok(())
    }

    async fn kill_worker(&mut self) -> anyhow::Result<()> {
        let place = self.random.usize(..WORKERS);
        let name = self.workers[place].name.clone();
        self.workers[place].process.kill().await?;
        *self.kills.entry("a worker").or_default() += 1;
        // What a dead worker holds stays so until its lease ends: it can be counted afterwards.
        let held: i64 = sqlx::query_scalar(
            "select count(*) from fencepost.deliveries where state = 2 and claimed_by = $1",
        )
        .bind(&name)
        .fetch_one(&mut self.postgres.connect().await?)
        .await?;
        self.in_flight_at_kills += usize::try_from(held)?;
        self.workers[place] = self.start_worker().await?;
        Ok(())
    }

    async fn kill_postgres(&mut self) -> anyhow::Result<()> {
        self.postgres.kill().await?;
        *self.kills.entry("PostgreSQL").or_default() += 1;
        self.postgres.start_again().await
    }

    pub(crate) async fn wait_until_nothing_is_owed(&self) -> anyhow::Result<()> {
        eventually("nothing is owed any more", PATIENCE * 2, async || {
            let owed: i64 = sqlx::query_scalar(
                "select count(*) from fencepost.deliveries where state in (1, 2)",
            )
            .fetch_one(&mut self.postgres.connect().await?)
            .await?;
            ensure!(owed == 0, "{owed} deliveries are owed");
            Ok(())
        })
        .await
    }

    /// All that still runs ends in order.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        for worker in &mut self.workers {
            worker.process.terminate().await?;
            let status = worker.process.wait_exit(PATIENCE).await?;
            ensure!(status.success(), "{status}");
        }
        Ok(())
    }

    pub(crate) fn postgres(&self) -> &MortalPostgres {
        &self.postgres
    }

    pub(crate) fn addresses(&self) -> watch::Receiver<Vec<String>> {
        self.addresses.subscribe()
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn in_flight_at_kills(&self) -> usize {
        self.in_flight_at_kills
    }

    pub(crate) fn kills(&self) -> BTreeMap<&'static str, usize> {
        self.kills.clone()
    }

    pub(crate) fn received(&self) -> BTreeMap<String, usize> {
        let mut received = BTreeMap::new();
        for request in self.receiver.requests() {
            let id = request.header("webhook-id").unwrap_or_default().to_owned();
            *received.entry(id).or_default() += 1;
        }
        received
    }
}

/// With a short deadline, so that a lease is over soon after its worker.
async fn create_endpoints(store: &Arc<dyn Store>, receiver: &Receiver) -> anyhow::Result<()> {
    let policy = AddressPolicy { allow_networks: vec!["127.0.0.0/8".parse()?] };
    for number in 0..ENDPOINTS {
        let settings = SettingsDraft {
            deadline: Duration::from_secs(1),
            connect_deadline: Duration::from_millis(500),
            retry_schedule: RetrySchedule::new(vec![Duration::from_millis(200); 30])?,
            overload_floor: Duration::ZERO,
            // Not what is tested here: a spent budget would be a pause of all producers.
            ingest_rate: RateLimit::new(1_000_000, Duration::from_secs(60))?,
            ..SettingsDraft::default()
        };
        let new = NewEndpoint {
            key: store::new_id::endpoint_key(),
            application: DEFAULT_APPLICATION_KEY,
            id: PublicId::parse(&format!("endpoint-{number}"))?,
            url: DestinationUrl::parse(&receiver.url(&format!("/{number}")), &policy)?,
            name: None,
            event_types: None,
            headers: domain::endpoint::CustomHeaders::default(),
            enabled: true,
            settings: EndpointSettings::new(settings)?,
            secret: SigningSecret::from_slice(&[3; 32])?,
            ed25519: store::secret::generate_ed25519()?,
        };
        match store.create_endpoint(&new).await? {
            EndpointCreation::Created(_) => {}
            EndpointCreation::IdTaken => bail!("an empty database has an endpoint"),
        }
    }
    Ok(())
}
