//! Real payloads arrive byte for byte, signed so that the reference implementation verifies them.

use std::collections::HashMap;

use integration_tests::receiver::{Answer, Receiver};
use integration_tests::samples;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use standardwebhooks::Webhook;

use crate::history::{assert_consistent, wait_until_nothing_is_owed};
use crate::service::{LONG, SECRET, Service, submit};

/// Every third message is answered with a 500 first, so that a retry is part of what is compared.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_payload_arrives_byte_for_byte_and_verifies_on_every_attempt() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(|request, nth| {
        let spoilt = request.body.len() % 3 == 0;
        if spoilt && nth == 1 { Answer::status(500) } else { Answer::status(204) }
    })?;
    let schedule = domain::delivery::retry::RetrySchedule::new(vec![std::time::Duration::ZERO; 3])?;
    let url = receiver.url("/hook");
    service.endpoint("payloads", &url, |settings| settings.retry_schedule = schedule).await?;
    let (_api, client) = service.api().await?;
    let _worker = service.worker("worker").await?;

    let mut sent = HashMap::new();
    for (number, sample) in samples::payloads()?.into_iter().enumerate() {
        let payload = sample.payload.clone();
        let accepted = submit(&client, "payloads", &format!("key-{number}"), payload).await?;
        sent.insert(accepted.submission_id, sample.payload);
    }
    wait_until_nothing_is_owed(&service.database, LONG).await?;

    let reference = Webhook::from_bytes(SECRET.to_vec())?;
    assert_eq!(receiver.webhook_ids().len(), sent.len());
    for (id, payload) in &sent {
        let attempts = receiver.requests_of(id);
        let expected = if payload.len() % 3 == 0 { 2 } else { 1 };
        assert_eq!(attempts.len(), expected, "{id}");
        for request in attempts {
            assert_eq!(request.body, payload, "{id}");
            let mut headers = HeaderMap::new();
            for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
                let value = request.header(name).unwrap_or_default();
                headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
            }
            reference.verify(&request.body, &headers)?;
            assert_eq!(request.header("content-type"), Some("application/json"));
        }
    }
    assert_consistent(&service.database).await
}
