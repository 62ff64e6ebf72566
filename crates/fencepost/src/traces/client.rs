//! How batches of spans reach the collector: plain HTTP, since it stands on this machine or beside it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How long one batch may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Runs on a thread of its own: the one that exports has no reactor, and those of the service may be busy.
#[derive(Debug)]
pub(super) struct Client {
    runtime: Arc<Runtime>,
    client: HyperClient<HttpConnector, Full<Bytes>>,
}

impl Client {
    pub(super) fn start() -> anyhow::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("traces").enable_all().build();
        let client = HyperClient::builder(TokioExecutor::new()).build_http();
        Ok(Self { runtime: Arc::new(runtime.context("no runtime for traces")?), client })
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let exchange = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        self.runtime.spawn(async move { timeout(DEADLINE, exchange).await? }).await?
    }
}
