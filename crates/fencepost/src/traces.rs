//! Traces: what requests and deliveries took, told to an OpenTelemetry collector (OTLP over HTTP, as JSON).
//!
//! Part of the binary with the feature `otlp`, and at work where `OTEL_EXPORTER_OTLP_ENDPOINT` names a
//! collector. The id of a submission's trace is the submission's own, which is the id of the request that
//! stored it: so that request and every attempt are one trace, and nothing is stored or sent for it. A request whose
//! caller names a span of its own (`traceparent`) is told in the caller's trace, and what it stores is linked with it.

mod caller;
mod client;
mod spans;

use std::sync::Arc;

use anyhow::Context as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanProcessor as _};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::client::Client;
use self::spans::Spans;

/// Names the collector, as OpenTelemetry has it.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// Traces that are told. What is left is told when it is dropped.
#[derive(Debug)]
pub(crate) struct Traces(Arc<BatchSpanProcessor>);

impl Traces {
    /// Begins to tell the traces of a service, beside its log, if a collector is named.
    pub(crate) fn begin(service: &'static str) -> anyhow::Result<Option<Self>> {
        let named = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !ENDPOINTS.into_iter().any(named) {
            return Ok(None);
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpJson)
            .with_http_client(Client::start()?)
            .build()
            .context("traces cannot be told")?;
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&Resource::builder().with_service_name(service).build());
        let processor = Arc::new(processor);
        tracing_subscriber::registry()
            .with(process::log_layer())
            .with(Spans::new(Arc::clone(&processor)))
            .try_init()?;
        Ok(Some(Self(processor)))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last traces were not told");
        }
    }
}
