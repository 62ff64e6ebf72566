//! The spans of requests and of deliveries, as a collector knows them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use uuid::Uuid;

use super::caller;

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
    /// The caller's span, if it names one.
    caller: Option<SpanContext>,
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
        span.extensions_mut().insert(Open { kind, began: SystemTime::now(), fields, caller: None });
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            record.record(&mut open.fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if event.metadata().target() != process::UNLOGGED {
            return;
        }
        let Some(span) = context.event_span(event) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            let mut fields = Fields::default();
            event.record(&mut fields);
            open.caller = fields.0.get("traceparent").and_then(|text| caller::parse(text));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let open = context.span(&id).and_then(|span| span.extensions_mut().remove::<Open>());
        let spans = open.and_then(|open| self.data_of(&open));
        for data in spans.into_iter().flatten() {
            self.processor.on_end(data);
        }
    }
}

impl Spans {
    /// One span of a delivery. One of a request, in its caller's trace if it names one; what it stored is another
    /// then, in the trace that its deliveries will be in.
    fn data_of(&self, open: &Open) -> Option<Vec<SpanData>> {
        if open.kind == Kind::Delivery {
            let submission = open.fields.id("submission.id")?;
            let (delivery, claim) =
                (open.fields.id("delivery.id")?, open.fields.id("claim.token")?);
            // A claim may be of many deliveries, and a delivery may be claimed many times.
            let id = Uuid::from_u128(delivery.as_u128() ^ claim.as_u128());
            let context = context(trace_of(submission), half(id));
            let parent = context_of(submission);
            let told = self.told(open, "delivery", SpanKind::Client, context, Some(&parent));
            return Some(vec![told]);
        }
        let request = open.fields.id("request.id")?;
        let own = context_of(request);
        let Some(caller) = &open.caller else {
            return Some(vec![self.told(open, "request", SpanKind::Server, own, None)]);
        };
        let callers = context(caller.trace_id(), own.span_id());
        let mut told =
            vec![self.told(open, "request", SpanKind::Server, callers.clone(), Some(caller))];
        if open.fields.id("submission.id") == Some(request) {
            let mut stored = self.told(open, "submission", SpanKind::Producer, own.clone(), None);
            stored.links.links.push(Link::with_context(callers));
            told[0].links.links.push(Link::with_context(own));
            told.push(stored);
        }
        Some(told)
    }

    fn told(
        &self,
        open: &Open,
        name: &'static str,
        span_kind: SpanKind,
        span_context: SpanContext,
        parent: Option<&SpanContext>,
    ) -> SpanData {
        let attributes = open.fields.0.iter();
        let attributes = attributes.map(|(name, value)| KeyValue::new(*name, value.clone()));
        SpanData {
            span_context,
            parent_span_id: parent.map_or(SpanId::INVALID, SpanContext::span_id),
            parent_span_is_remote: parent.is_some(),
            span_kind,
            name: name.into(),
            start_time: open.began,
            end_time: SystemTime::now(),
            attributes: attributes.collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        }
    }
}

/// The span under which a request or a submission is told in the trace of its own.
fn context_of(id: Uuid) -> SpanContext {
    context(trace_of(id), half(id))
}

fn context(trace: TraceId, span: SpanId) -> SpanContext {
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
}

fn trace_of(id: Uuid) -> TraceId {
    TraceId::from(id.as_u128())
}

/// The random half of an id.
fn half(id: Uuid) -> SpanId {
    SpanId::from(id.as_u64_pair().1)
}
