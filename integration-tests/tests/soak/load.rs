//! Producers that try the same key again until they have an answer, as the api asks of them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures_util::future::try_join_all;
use integration_tests::eventually;
use integration_tests::http::ApiClient;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderName};
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::chaos::ENDPOINTS;

const PRODUCERS: usize = 8;
/// Longer than anything stays away.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug, Deserialize)]
struct Accepted {
    submission_id: String,
    delivery_ids: Vec<String>,
}

/// Submits until it is told to stop, lets every producer end with an answer, and gives all that was
/// accepted.
pub(crate) async fn run(
    addresses: watch::Receiver<Vec<String>>,
    key: String,
    stop: CancellationToken,
) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let producers = (0..PRODUCERS).map(|place| {
        let (addresses, key) = (addresses.clone(), key.clone());
        let mut producer = Producer { addresses, clients: HashMap::new(), key, place };
        let stop = stop.clone();
        async move {
            let mut accepted = Vec::new();
            while !stop.is_cancelled() {
                accepted.push(producer.submit(accepted.len()).await?);
            }
            anyhow::Ok(accepted)
        }
    });
    let mut all = BTreeMap::new();
    let mut answers = 0;
    for accepted in try_join_all(producers).await?.into_iter().flatten() {
        answers += 1;
        all.insert(accepted.submission_id, accepted.delivery_ids);
    }
    ensure!(answers == all.len(), "{answers} keys got {} different submissions", all.len());
    Ok(all)
}

/// One producer's connections, by the address that they lead to.
struct Producer {
    addresses: watch::Receiver<Vec<String>>,
    clients: HashMap<String, ApiClient>,
    key: String,
    place: usize,
}

impl Producer {
    fn client(&mut self, number: usize) -> anyhow::Result<ApiClient> {
        let address = {
            let addresses = self.addresses.borrow();
            addresses[number % addresses.len()].clone()
        };
        if let Some(client) = self.clients.get(&address) {
            return Ok(client.clone());
        }
        let client = ApiClient::new(&address, &self.key)?;
        self.clients.insert(address, client.clone());
        Ok(client)
    }

    /// Tries until it is accepted: no answer is no evidence of failure.
    async fn submit(&mut self, number: usize) -> anyhow::Result<Accepted> {
        let place = self.place;
        let path = format!("/v1/endpoints/endpoint-{}/submissions", (place + number) % ENDPOINTS);
        let idempotency_key = format!("{place}-{number}");
        let headers = [
            (CONTENT_TYPE, "application/json"),
            (HeaderName::from_static("idempotency-key"), idempotency_key.as_str()),
        ];
        let body = format!("{{\"producer\":{place},\"number\":{number}}}");
        let mut tried = 0;
        eventually("the submission is accepted", PATIENCE, async || {
            tried += 1;
            let client = self.client(place + number + tried)?;
            let reply = client.post(&path, &headers, body.clone()).await?;
            // 503 while the database is away, 409 while a try of ours is still under way.
            reply.expect_status(StatusCode::ACCEPTED)?.json().context("a 202")
        })
        .await
    }
}
