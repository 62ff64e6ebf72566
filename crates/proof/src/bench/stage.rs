//! What all scenarios stand on: a scratch database with endpoints and a key, and plain connections to
//! look at it with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{CustomHeaders, EndpointSettings, SettingsDraft};
use domain::id::{EndpointKey, PublicId};
use domain::rate_limit::{RATE_UNITS_MAX, RATE_WINDOW_MIN, RateLimit};
use store::api_key::{NewApiKey, Role};
use store::endpoint::{EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};
use store::{Backend, Store, StoreOptions};

use super::processes::Environment;
use crate::Scratch;

/// Where the receiver is.
const LOOPBACK: &str = "127.0.0.0/8";

/// A scratch database that scenarios run on, one after the other.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) url: String,
    pub(super) store: Arc<dyn Store>,
    /// The value of the header that the api wants.
    pub(super) authorization: String,
    sealing_key: String,
    program: Option<PathBuf>,
}

/// An endpoint, and the path that its submissions go to.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) key: EndpointKey,
    pub(super) path: String,
}

impl Stage {
    /// `program` is what api and worker are started from, where that is not this process's own binary.
    pub(super) async fn set(scratch: &Scratch, program: Option<&Path>) -> anyhow::Result<Self> {
        let sealing_key = SealingKey::generate()?;
        let exposed = STANDARD.encode(sealing_key.expose());
        let options = StoreOptions::new(Sealer::new(sealing_key, Vec::new()));
        let store = store::open(scratch.url(), options).await?;
        let key = NewApiKey::generate("bench", Role::Publish, None)?;
        store.create_api_key(&key).await?;
        Ok(Self {
            url: scratch.url().to_owned(),
            store,
            authorization: format!("Bearer {}", key.reveal()),
            sealing_key: exposed,
            program: program.map(Path::to_owned),
        })
    }

    pub(super) fn backend(&self) -> anyhow::Result<Backend> {
        Ok(Backend::of_url(&self.url)?)
    }

    /// A store that claims and records on one session of its own.
    pub(super) async fn lone_store(&self) -> anyhow::Result<Arc<dyn Store>> {
        let key = STANDARD.decode(&self.sealing_key)?;
        let sealer = Sealer::new(SealingKey::from_slice(&key)?, Vec::new());
        let mut options = StoreOptions::new(sealer);
        options.general_connections = 1;
        options.dispatch_connections = 1;
        Ok(store::open(&self.url, options).await?)
    }

    /// What a process on this stage is told.
    pub(super) fn environment(&self) -> Environment {
        let environment = Environment::on(&self.url, &self.sealing_key)
            .with("FENCEPOST_ALLOW_NETWORKS", LOOPBACK);
        match &self.program {
            Some(program) => environment.of(program),
            None => environment,
        }
    }

    /// Endpoints that lead there, each with the settings of any other but for its limit of submissions.
    pub(super) async fn endpoints(&self, count: usize, url: &str) -> anyhow::Result<Vec<Endpoint>> {
        self.endpoints_with(count, url, SettingsDraft::default()).await
    }

    pub(super) async fn endpoints_with(
        &self,
        count: usize,
        url: &str,
        settings: SettingsDraft,
    ) -> anyhow::Result<Vec<Endpoint>> {
        let policy = AddressPolicy { allow_networks: vec![LOOPBACK.parse()?] };
        let url = DestinationUrl::parse(url, &policy)?;
        let ingest_rate = RateLimit::new(RATE_UNITS_MAX, RATE_WINDOW_MIN)?;
        let settings = EndpointSettings::new(SettingsDraft { ingest_rate, ..settings })?;
        let mut endpoints = Vec::with_capacity(count);
        for _ in 0..count {
            let key = store::new_id::endpoint_key();
            let id = PublicId::of_endpoint(key);
            let path = format!("/v1/endpoints/{id}/submissions");
            let new = NewEndpoint {
                key,
                application: DEFAULT_APPLICATION_KEY,
                id,
                url: url.clone(),
                name: None,
                event_types: None,
                headers: CustomHeaders::default(),
                enabled: true,
                settings: settings.clone(),
                secret: store::secret::generate_secret()?,
                ed25519: store::secret::generate_ed25519()?,
            };
            match self.store.create_endpoint(&new).await.context("an endpoint of the bench")? {
                EndpointCreation::Created(_) => endpoints.push(Endpoint { key, path }),
                EndpointCreation::IdTaken => bail!("a fresh id was taken"),
            }
        }
        Ok(endpoints)
    }
}
