//! The service that is demonstrated: the api and the worker that `serve` runs, on a scratch database.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, bail};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::StateName;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::id::PublicId;
use domain::signing::SigningSecret;
use store::delivery::{DeliveryFilter, DeliveryView};
use store::endpoint::{EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};
use store::{Backend, CreatedWindow, Page, Store, StoreOptions, postgres, sqlite};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::keys::create_admin_key;

/// Rows of one page when all deliveries are read.
const PAGE: u16 = 250;

#[derive(Debug)]
pub(super) struct Service {
    scratch: Scratch,
    store: Arc<dyn Store>,
    api: api::RunningApi,
    worker: worker::RunningWorker,
    stop: CancellationToken,
    key: String,
}

#[derive(Debug)]
enum Scratch {
    Folder(TempDir),
    Sqlite(sqlite::ScratchDatabase),
    Postgres(postgres::ScratchDatabase),
}

impl Scratch {
    async fn create(beside: Option<&str>) -> anyhow::Result<Self> {
        let Some(url) = beside else { return Ok(Self::Folder(tempfile::tempdir()?)) };
        Ok(match Backend::of_url(url)? {
            Backend::Sqlite => Self::Sqlite(sqlite::ScratchDatabase::create(url).await?),
            Backend::Postgres => Self::Postgres(
                postgres::ScratchDatabase::create(url)
                    .await
                    .context("no scratch database: the role needs the right CREATEDB")?,
            ),
        })
    }

    fn url(&self) -> String {
        match self {
            Self::Folder(folder) => {
                format!("sqlite:{}", folder.path().join("fencepost.db").display())
            }
            Self::Sqlite(scratch) => scratch.url.clone(),
            Self::Postgres(scratch) => scratch.url.clone(),
        }
    }

    async fn drop(self) -> anyhow::Result<()> {
        match self {
            Self::Folder(folder) => folder.close()?,
            Self::Sqlite(scratch) => sqlite::drop_scratch(&scratch).await?,
            Self::Postgres(scratch) => postgres::drop_scratch(&scratch).await?,
        }
        Ok(())
    }
}

impl Service {
    pub(super) async fn start(beside: Option<&str>) -> anyhow::Result<Self> {
        let scratch = Scratch::create(beside).await?;
        match Self::start_on(&scratch.url()).await {
            Ok((store, api, worker, stop, key)) => {
                Ok(Self { scratch, store, api, worker, stop, key })
            }
            Err(error) => {
                scratch.drop().await?;
                Err(error)
            }
        }
    }

    async fn start_on(
        url: &str,
    ) -> anyhow::Result<(
        Arc<dyn Store>,
        api::RunningApi,
        worker::RunningWorker,
        CancellationToken,
        String,
    )> {
        store::migrate(url).await?;
        let sealer = Sealer::new(SealingKey::generate()?, Vec::new());
        let options = StoreOptions::new(sealer);
        let store = store::open(url, options.clone()).await?;
        let for_api = match Backend::of_url(url)? {
            // One writer a process.
            Backend::Sqlite => Arc::clone(&store),
            // A connection belongs to the runtime that opened it.
            Backend::Postgres => store::open(url, options).await?,
        };
        let key = create_admin_key(&store, "demo").await?.reveal().to_owned();
        let stop = CancellationToken::new();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let settings = api::Settings {
            listen: anywhere,
            private_listen: anywhere,
            // The given file may hold larger payloads than a service would take by default.
            body_limit_bytes: 16 * 1024 * 1024,
            address_policy: loopback(),
            ..api::Settings::default()
        };
        let api = api::start(settings, for_api, stop.clone())?;
        let settings =
            worker::Settings { address_policy: loopback(), ..worker::Settings::default() };
        let worker = worker::start(settings, Arc::clone(&store), stop.clone());
        Ok((store, api, worker, stop, key))
    }

    pub(super) fn backend(&self) -> &'static str {
        match self.scratch {
            Scratch::Folder(_) | Scratch::Sqlite(_) => Backend::Sqlite.as_str(),
            Scratch::Postgres(_) => Backend::Postgres.as_str(),
        }
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}", self.api.address())
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Creates the demonstration's endpoint, whose deadline and schedule the api does not take yet.
    pub(super) async fn create_endpoint(
        &self,
        url: &str,
        secret: SigningSecret,
    ) -> anyhow::Result<PublicId> {
        let id = PublicId::parse("demo")?;
        let new = NewEndpoint {
            key: store::new_id::endpoint_key(),
            application: DEFAULT_APPLICATION_KEY,
            id: id.clone(),
            url: DestinationUrl::parse(url, &loopback())?,
            name: None,
            event_types: None,
            headers: domain::endpoint::CustomHeaders::default(),
            enabled: true,
            settings: super::endpoint_settings()?,
            secret,
            ed25519: store::secret::generate_ed25519()?,
        };
        match self.store.create_endpoint(&new).await? {
            EndpointCreation::Created(_) => Ok(id),
            EndpointCreation::IdTaken => bail!("the scratch database is not empty"),
        }
    }

    /// How many deliveries are in a state, counting no further than one.
    pub(super) async fn count(&self, state: StateName) -> anyhow::Result<usize> {
        Ok(self.list(Some(state), Page { limit: 1, before: None }).await?.len())
    }

    /// Every delivery.
    pub(super) async fn deliveries(&self) -> anyhow::Result<Vec<DeliveryView>> {
        let mut all: Vec<DeliveryView> = Vec::new();
        loop {
            let before = all.last().map(|delivery| delivery.id.as_uuid());
            let part = self.list(None, Page { limit: PAGE, before }).await?;
            if part.is_empty() {
                return Ok(all);
            }
            all.extend(part);
        }
    }

    async fn list(
        &self,
        state: Option<StateName>,
        page: Page,
    ) -> anyhow::Result<Vec<DeliveryView>> {
        let application = DEFAULT_APPLICATION_KEY;
        let filter = DeliveryFilter {
            application,
            endpoint: None,
            state,
            created: CreatedWindow::default(),
            page,
        };
        Ok(self.store.list_deliveries(filter).await?)
    }

    /// Stops api and worker, and drops the scratch database.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let (api, worker) = tokio::join!(self.api.finished(), self.worker.finished());
        drop(self.store);
        self.scratch.drop().await?;
        api?;
        worker
    }
}

/// The receiver is on this machine, which deliveries may otherwise not reach.
fn loopback() -> AddressPolicy {
    AddressPolicy { allow_networks: vec![std::net::IpAddr::from(Ipv4Addr::LOCALHOST).into()] }
}
