//! The spans of requests and of deliveries, as a collector knows them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use uuid::Uuid;

/// Hears of every span of this process, and tells of those two kinds.
#[derive(Debug)]
pub(super) struct Spans {
    processor: Arc<BatchSpanProcessor>,
    scope: InstrumentationScope,
}

impl Spans {
    pub(super) fn new(processor: Arc<BatchSpanProcessor>) -> Self {
        Self { processor, scope: InstrumentationScope::builder("fencepost").build() }
    }
}

/// What kind of span of ours it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Request,
    Delivery,
}

impl Kind {
    fn of(metadata: &Metadata<'_>) -> Option<Self> {
        match (metadata.target().split(':').next(), metadata.name()) {
            (Some("api"), "request") => Some(Self::Request),
            (Some("worker"), "delivery") => Some(Self::Delivery),
            _ => None,
        }
    }
}

/// A span that is open.
struct Open {
    kind: Kind,
    began: SystemTime,
    fields: Fields,
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Fields {
    fn id(&self, name: &str) -> Option<Uuid> {
        self.0.get(name)?.parse().ok()
    }
}

impl<S> Layer<S> for Spans
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (Some(kind), Some(span)) = (Kind::of(attributes.metadata()), context.span(id)) else {
            return;
        };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(Open { kind, began: SystemTime::now(), fields });
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            record.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let open = context.span(&id).and_then(|span| span.extensions_mut().remove::<Open>());
        if let Some(data) = open.and_then(|open| self.data_of(open)) {
            self.processor.on_end(data);
        }
    }
}

impl Spans {
    fn data_of(&self, open: Open) -> Option<SpanData> {
        let (trace, id, parent, kind) = match open.kind {
            Kind::Request => {
                let id = open.fields.id("request.id")?;
                (id, half(id), SpanId::INVALID, SpanKind::Server)
            }
            Kind::Delivery => {
                let submission = open.fields.id("submission.id")?;
                let (delivery, claim) =
                    (open.fields.id("delivery.id")?, open.fields.id("claim.token")?);
                // A claim may be of many deliveries, and a delivery may be claimed many times.
                let id = Uuid::from_u128(delivery.as_u128() ^ claim.as_u128());
                (submission, half(id), half(submission), SpanKind::Client)
            }
        };
        let attributes = open.fields.0.into_iter().map(|(name, value)| KeyValue::new(name, value));
        Some(SpanData {
            span_context: SpanContext::new(
                TraceId::from(trace.as_u128()),
                id,
                TraceFlags::SAMPLED,
                false,
                TraceState::NONE,
            ),
            parent_span_id: parent,
            parent_span_is_remote: open.kind == Kind::Delivery,
            span_kind: kind,
            name: match open.kind {
                Kind::Request => "request".into(),
                Kind::Delivery => "delivery".into(),
            },
            start_time: open.began,
            end_time: SystemTime::now(),
            attributes: attributes.collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        })
    }
}

/// The random half of an id.
fn half(id: Uuid) -> SpanId {
    SpanId::from(id.as_u64_pair().1)
}
