//! `fencepost bench` against api and worker that already run.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use integration_tests::postgres::{TestDatabase, TestPostgres};
use integration_tests::process::{Api, Settings, Worker};
use integration_tests::{api_binary, worker_binary};
use proof::bench::{Addresses, Report, Running, Scenario, bench_running};
use store::api_key::{NewApiKey, Role};
use store::sealing::{Sealer, SealingKey};
use store::{Store, StoreOptions};

use crate::scenarios::{MEASURING, plan, tells};

/// Api and worker on a database of their own.
struct Service {
    database: TestDatabase,
    apis: [Api; 2],
    _worker: Worker,
    key: String,
}

impl Service {
    async fn start() -> anyhow::Result<Self> {
        let database = TestPostgres::shared().await?.database().await?;
        let sealer = Sealer::new(SealingKey::generate()?, Vec::new());
        let store: Arc<dyn Store> = store::open(database.url(), StoreOptions::new(sealer)).await?;
        let key = NewApiKey::generate("test", Role::Admin, None)?;
        store.create_api_key(&key).await?;
        let settings = Settings::new(database.url())
            .with("FENCEPOST_SOURCE_RATE", "off")
            .with("FENCEPOST_KEY_RATE", "off");
        let api = || Api::start(api_binary!(), &settings);
        let apis = [api().await?, api().await?];
        let worker = Worker::start(worker_binary!(), "worker", &settings).await?;
        Ok(Self { database, apis, _worker: worker, key: key.reveal().to_owned() })
    }

    fn addresses(&self) -> Addresses {
        Addresses {
            apis: self.apis.iter().map(|api| api.url.clone()).collect(),
            key: self.key.clone(),
            receiver: None,
            database: Some(self.database.url().to_owned()),
        }
    }
}

async fn measured(addresses: &Addresses, scenario: Scenario) -> anyhow::Result<Report> {
    let _alone = MEASURING.lock().await;
    let running = Running::find(addresses).await?;
    bench_running(&running, &plan(&[scenario]), &|_| {}).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_runs_already_is_measured_without_what_cannot_be_seen_and_keeps_no_endpoint()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let addresses = service.addresses();
    let ingest = measured(&addresses, Scenario::Ingest).await?;
    tells(&ingest, &["unique keys: answered", "10 % repeated keys: answered", "unique keys: WAL"])?;
    let steady = measured(&addresses, Scenario::Steady).await?;
    tells(&steady, &["accepted", "delivered", "for each delivered: statements"])?;
    let latency = measured(&addresses, Scenario::Latency).await?;
    tells(&latency, &["100/s: p50", "1000/s: p99.9"])?;
    for report in [&ingest, &steady, &latency] {
        let scenario = report.scenarios.first().context("a scenario")?;
        ensure!(scenario.targets.is_empty(), "no limit was measured: {report}");
        for unseen in ["CPU of api", "CPU of worker", "peak memory", "alone"] {
            let told = scenario.figures.iter().any(|figure| figure.name.contains(unseen));
            ensure!(!told, "{unseen} in {report}");
        }
    }
    let mut session = service.database.connect().await?;
    let kept: i64 =
        sqlx::query_scalar("select count(*) from fencepost.endpoints where deleted_at is null")
            .fetch_one(&mut session)
            .await?;
    assert_eq!(kept, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flag_that_is_wrong_is_named() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let other = TestPostgres::shared().await?.database().await?;
    let right = service.addresses();
    let refused = async |addresses: Addresses| {
        let refused = measured(&addresses, Scenario::Ingest).await.err().context("a refusal")?;
        anyhow::Ok(format!("{refused:#}"))
    };
    let told = refused(Addresses { key: "fp_wrong".to_owned(), ..right.clone() }).await?;
    ensure!(told.contains("--api-key"), "{told}");
    let database = Some(other.url().to_owned());
    let told = refused(Addresses { database, ..right.clone() }).await?;
    ensure!(told.contains("--database-url is not the database of --api-url"), "{told}");
    let apis = vec!["https://127.0.0.1:1".to_owned()];
    let told = refused(Addresses { apis, ..right }).await?;
    ensure!(told.contains("--api-url: it is written http://HOST:PORT"), "{told}");
    Ok(())
}
