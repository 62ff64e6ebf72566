//! A fresh store with endpoints and submissions, and a worker on it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::delivery::StateName;
use domain::delivery::retry::RetrySchedule;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{EndpointSettings, SettingsDraft};
use domain::id::{ApplicationKey, DeliveryId, EndpointKey, PublicId};
use domain::signing::SigningSecret;
use domain::submission::ContentType;
use store::delivery::DeliveryDetail;
use store::endpoint::{Endpoint, EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};
use store::submission::{Acceptance, NewSubmission};
use store::{Store, StoreOptions};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use worker::{RunningWorker, Settings};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    _folder: TempDir,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) application: ApplicationKey,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("fencepost.db").display());
        store::migrate(&url).await.unwrap();
        let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
        let store = store::open(&url, StoreOptions::new(sealer)).await.unwrap();
        let default = PublicId::parse("default").unwrap();
        let application = store.find_application(&default).await.unwrap().unwrap();
        Self { _folder: folder, store, application }
    }

    /// An endpoint that tries three times, 1 ms apart.
    pub(crate) async fn endpoint(&self, id: &str, url: &str) -> EndpointKey {
        let ms = Duration::from_millis;
        let draft = SettingsDraft {
            deadline: Duration::from_secs(10),
            connect_deadline: Duration::from_secs(5),
            retry_schedule: RetrySchedule::new(vec![ms(1), ms(1)]).unwrap(),
            overload_floor: Duration::ZERO,
            in_flight_max: 4,
            ..SettingsDraft::default()
        };
        let endpoint = NewEndpoint {
            key: store::new_id::endpoint_key(),
            application: self.application,
            id: PublicId::parse(id).unwrap(),
            url: DestinationUrl::parse(url, &loopback()).unwrap(),
            name: None,
            event_types: None,
            headers: domain::endpoint::CustomHeaders::default(),
            enabled: true,
            settings: EndpointSettings::new(draft).unwrap(),
            secret: SigningSecret::from_bytes(vec![9; 32]).unwrap(),
            ed25519: store::secret::generate_ed25519().unwrap(),
        };
        let created = self.store.create_endpoint(&endpoint).await.unwrap();
        assert!(matches!(created, EndpointCreation::Created(_)));
        endpoint.key
    }

    pub(crate) async fn submit(&self, endpoint: EndpointKey, payload: Vec<u8>) -> DeliveryId {
        let content_type = ContentType::parse(b"application/octet-stream").unwrap();
        let payload = Bytes::from(payload);
        let submission = NewSubmission::new(endpoint, None, None, content_type, payload);
        let accepted = self.store.accept(std::slice::from_ref(&submission)).await.unwrap();
        assert!(matches!(accepted[0], Acceptance::Accepted(_)), "{accepted:?}");
        submission.delivery
    }

    pub(crate) async fn delivery(&self, id: DeliveryId) -> DeliveryDetail {
        self.store.find_delivery(self.application, id).await.unwrap().unwrap()
    }

    pub(crate) async fn find_endpoint(&self, id: &str) -> Endpoint {
        let id = PublicId::parse(id).unwrap();
        self.store.find_endpoint(self.application, &id).await.unwrap().unwrap()
    }

    /// Waits until all these deliveries are in that state.
    pub(crate) async fn until(&self, deliveries: &[DeliveryId], state: StateName) {
        eventually(state.as_str(), async || {
            for id in deliveries {
                if self.delivery(*id).await.delivery.state != state {
                    return false;
                }
            }
            true
        })
        .await;
    }
}

/// Waits until the condition holds.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let polling = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        while !condition().await {
            ticks.tick().await;
        }
    };
    let within = tokio::time::timeout(PATIENCE, polling).await;
    assert!(within.is_ok(), "not within {PATIENCE:?}: {what}");
}

pub(crate) fn loopback() -> AddressPolicy {
    AddressPolicy { allow_networks: vec!["127.0.0.0/8".parse().unwrap()] }
}

/// A worker that is stopped by the test.
pub(crate) struct Started {
    pub(crate) running: RunningWorker,
    pub(crate) stop: CancellationToken,
}

impl Started {
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.finished().await
    }

    pub(crate) async fn finished(self) -> anyhow::Result<()> {
        let finished = tokio::time::timeout(PATIENCE, self.running.finished()).await;
        finished.expect("the worker did not end")
    }
}

pub(crate) fn start(store: Arc<dyn Store>, change: impl FnOnce(&mut Settings)) -> Started {
    let mut settings = Settings {
        name: "tested".to_owned(),
        poll_interval: Duration::from_millis(10),
        address_policy: loopback(),
        ..Settings::default()
    };
    change(&mut settings);
    let stop = CancellationToken::new();
    Started { running: worker::start(settings, store, stop.clone()), stop }
}
