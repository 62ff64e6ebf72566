//! The producer: submits over HTTP, as any other would.

use std::time::Instant;

use anyhow::Context;
use bytes::Bytes;
use domain::id::PublicId;
use futures_util::stream::{self, StreamExt};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;

use super::samples::Sample;
use super::service::Service;

/// How many submissions are under way at once.
const CONNECTIONS: usize = 16;
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A submission that the api accepted.
#[derive(Debug)]
pub(super) struct AcceptedSample {
    /// The submission's id, which is also its `webhook-id`.
    pub(super) id: String,
    pub(super) payload: Bytes,
    /// When its first byte was sent.
    pub(super) sent_at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Submitted {
    pub(super) accepted: Vec<AcceptedSample>,
    /// How many the api refused.
    pub(super) refused: usize,
}

type HttpClient = Client<HttpConnector, Full<Bytes>>;

#[derive(Deserialize)]
struct Answer {
    submission_id: String,
}

pub(super) async fn submit_all(
    service: &Service,
    endpoint: &PublicId,
    samples: Vec<Sample>,
) -> anyhow::Result<Submitted> {
    let client: HttpClient = Client::builder(TokioExecutor::new()).build_http();
    let url = format!("{}/v1/endpoints/{endpoint}/submissions", service.base_url());
    let mut answers = stream::iter(samples.into_iter().enumerate())
        .map(|(index, sample)| submit(&client, &url, service.key(), index, sample))
        .buffer_unordered(CONNECTIONS);
    let mut submitted = Submitted::default();
    while let Some(answer) = answers.next().await {
        match answer? {
            Some(accepted) => submitted.accepted.push(accepted),
            None => submitted.refused += 1,
        }
    }
    Ok(submitted)
}

/// Answers none if the api refused it.
async fn submit(
    client: &HttpClient,
    url: &str,
    key: &str,
    index: usize,
    sample: Sample,
) -> anyhow::Result<Option<AcceptedSample>> {
    let request = Request::post(url)
        .header(header::AUTHORIZATION, format!("Bearer {key}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", format!("demo-{index}"))
        .header("fencepost-event-type", &sample.event_type)
        .body(Full::new(sample.payload.clone()))?;
    let sent_at = Instant::now();
    let response = client.request(request).await.context("the api did not answer")?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("the api's answer broke off: {error}"))?;
    let body = body.to_bytes();
    if status != StatusCode::ACCEPTED {
        let body = String::from_utf8_lossy(&body);
        tracing::warn!(event_type = sample.event_type, %status, %body, "refused");
        return Ok(None);
    }
    let answer: Answer = serde_json::from_slice(&body).context("the api's answer")?;
    Ok(Some(AcceptedSample { id: answer.submission_id, payload: sample.payload, sent_at }))
}
