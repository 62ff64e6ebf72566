//! A database, a store on it for what the api does not offer yet, and the processes of a test.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{EndpointSettings, SettingsDraft};
use domain::id::PublicId;
use domain::signing::SigningSecret;
use integration_tests::http::ApiClient;
use integration_tests::postgres::{TestDatabase, TestPostgres};
use integration_tests::process::{Api, Settings, Worker};
use integration_tests::{api_binary, worker_binary};
use serde::Deserialize;
use store::api_key::{NewApiKey, Role};
use store::endpoint::{Endpoint, EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};
use store::{Store, StoreOptions};

/// Long beside anything that is waited for: a test that gets here has failed.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// The key that `Settings::new` gives to the processes, as bytes.
const SEALING_KEY: &[u8; 32] = b"fencepost tests seal with this!!";

/// What every endpoint of these tests signs with.
pub(crate) const SECRET: [u8; 32] = [42; 32];

#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) database: TestDatabase,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    key: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Accepted {
    pub(crate) submission_id: String,
    pub(crate) delivery_ids: Vec<String>,
}

impl Service {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let database = TestPostgres::shared().await?.database().await?;
        let sealer = Sealer::new(SealingKey::from_slice(SEALING_KEY)?, Vec::new());
        let store = store::open(database.url(), StoreOptions::new(sealer)).await?;
        let key = NewApiKey::generate("test", Role::Admin, None)?;
        store.create_api_key(&key).await?;
        let settings = Settings::new(database.url());
        Ok(Self { database, store, settings, key: key.reveal().to_owned() })
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) async fn api(&self) -> anyhow::Result<(Api, ApiClient)> {
        let api = Api::start(api_binary!(), &self.settings).await?;
        let client = api.client(&self.key)?;
        Ok((api, client))
    }

    /// A worker whose name stands in what it claims.
    pub(crate) async fn worker(&self, name: &str) -> anyhow::Result<Worker> {
        let settings = self.settings.clone().with("FENCEPOST_WORKER_NAME", name);
        Worker::start(worker_binary!(), name, &settings).await
    }

    pub(crate) async fn endpoint(
        &self,
        id: &str,
        url: &str,
        change: impl FnOnce(&mut SettingsDraft),
    ) -> anyhow::Result<Endpoint> {
        let mut draft = SettingsDraft::default();
        change(&mut draft);
        let policy = AddressPolicy { allow_networks: vec!["127.0.0.0/8".parse()?] };
        let new = NewEndpoint {
            key: store::new_id::endpoint_key(),
            application: DEFAULT_APPLICATION_KEY,
            id: PublicId::parse(id)?,
            url: DestinationUrl::parse(url, &policy)?,
            name: None,
            event_types: None,
            headers: domain::endpoint::CustomHeaders::default(),
            enabled: true,
            settings: EndpointSettings::new(draft)?,
            secret: SigningSecret::from_slice(&SECRET)?,
            ed25519: store::secret::generate_ed25519()?,
        };
        match self.store.create_endpoint(&new).await? {
            EndpointCreation::Created(endpoint) => Ok(endpoint),
            EndpointCreation::IdTaken => bail!("{id} is taken"),
        }
    }
}

pub(crate) async fn submit(
    client: &ApiClient,
    endpoint: &str,
    key: &str,
    payload: impl Into<bytes::Bytes>,
) -> anyhow::Result<Accepted> {
    use reqwest::header::{CONTENT_TYPE, HeaderName};
    let path = format!("/v1/endpoints/{endpoint}/submissions");
    let headers =
        [(CONTENT_TYPE, "application/json"), (HeaderName::from_static("idempotency-key"), key)];
    let reply = client.post(&path, &headers, payload).await?;
    reply.expect_status(reqwest::StatusCode::ACCEPTED)?.json().context("the api's answer")
}
