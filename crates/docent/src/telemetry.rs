//! Distributed tracing: exports the spans of each request to an OpenTelemetry collector (OTLP over HTTP). Off unless an
//! endpoint is set.
//!
//! Written here rather than taken from the `opentelemetry` crates: an exporter needs six of them, with prost and an
//! HTTP client of their own, for what is one JSON document and a queue. The spans are those of `tracing`, which cost an
//! atomic read while nothing subscribes to them.
//!
//! Traces contain no text of documents or queries: attributes are method names, tool names, outcomes and numbers.

mod otlp;
mod span_exporter;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use docent_mcp::{SPANS, TraceParent};
use docent_unicode::truncate_bytes;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use url::Url;
use uuid::Uuid;

pub(crate) use span_exporter::{SpanCounts, SpanExporter};

/// The attribute limit of a span; ours have four.
const MAX_ATTRIBUTES: usize = 16;

/// The length limit of a text attribute; ours are names.
const MAX_TEXT_BYTES: usize = 128;

/// The `[telemetry]` settings: where traces are sent, and under which service name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The base address of a collector; traces go to `/v1/traces` below it.
    pub endpoint: Option<Url>,
    /// The OpenTelemetry `service.name` of this server.
    pub service: String,
    /// HTTP headers for the collector, such as an API key.
    pub headers: OtlpHeaders,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            service: "docent".to_owned(),
            headers: OtlpHeaders::default(),
        }
    }
}

/// HTTP headers as names and values. The values may be secrets, so `Debug` prints only their number.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OtlpHeaders(pub Vec<(String, String)>);

impl std::fmt::Debug for OtlpHeaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Headers({})", self.0.len())
    }
}

/// A span that has ended, ready for export.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinishedSpan {
    trace: u128,
    id: u64,
    parent: Option<u64>,
    name: &'static str,
    start: SystemTime,
    took: Duration,
    attributes: Vec<(&'static str, AttributeValue)>,
}

#[derive(Debug, Clone, PartialEq)]
enum AttributeValue {
    Text(String),
    Number(i64),
    Flag(bool),
}

/// A running span, stored in the extensions of the `tracing` span.
struct OpenSpan {
    span: FinishedSpan,
    since: Instant,
}

/// A `tracing` layer that passes finished request spans to the exporter.
pub(crate) struct SpanExportLayer(Arc<SpanExporter>);

impl SpanExportLayer {
    pub(crate) fn new(exporter: Arc<SpanExporter>) -> Self {
        Self(exporter)
    }

    /// The filter of this layer: only spans of the request target are recorded.
    pub(crate) fn is_request_span(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == SPANS
    }
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for SpanExportLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut visitor = SpanFieldVisitor::default();
        attributes.record(&mut visitor);
        let inherited = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            let open = extensions.get::<OpenSpan>()?;
            Some((open.span.trace, Some(open.span.id)))
        });
        let Some((trace, parent)) = inherited.or_else(|| visitor.root(span.name())) else {
            return;
        };
        span.extensions_mut().insert(OpenSpan {
            span: FinishedSpan {
                trace,
                id: random_ids().1,
                parent,
                name: span.name(),
                start: SystemTime::now(),
                took: Duration::ZERO,
                attributes: visitor.attributes,
            },
            since: Instant::now(),
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(open) = extensions.get_mut::<OpenSpan>() {
            let mut visitor = SpanFieldVisitor {
                attributes: std::mem::take(&mut open.span.attributes),
                ..SpanFieldVisitor::default()
            };
            values.record(&mut visitor);
            open.span.attributes = visitor.attributes;
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else {
            return;
        };
        let open = span.extensions_mut().remove::<OpenSpan>();
        if let Some(mut open) = open {
            open.span.took = open.since.elapsed();
            self.0.put(open.span);
        }
    }
}

/// Collects the fields of a span as attributes, and the `traceparent` header of the caller.
#[derive(Default)]
struct SpanFieldVisitor {
    attributes: Vec<(&'static str, AttributeValue)>,
    remote_parent: Option<TraceParent>,
}

impl SpanFieldVisitor {
    /// The trace id and parent of a root span: from the caller's `traceparent`, or a new trace. Only request spans may
    /// be roots, and none if the caller did not sample the trace.
    fn root(&self, name: &str) -> Option<(u128, Option<u64>)> {
        if name != docent_mcp::REQUEST_SPAN {
            return None;
        }
        match self.remote_parent {
            Some(remote) => remote
                .sampled
                .then_some((remote.trace_id, Some(remote.parent_id))),
            None => Some((random_ids().0, None)),
        }
    }

    fn keep(&mut self, field: &Field, value: AttributeValue) {
        if self.attributes.len() < MAX_ATTRIBUTES {
            self.attributes.push((field.name(), value));
        }
    }
}

impl Visit for SpanFieldVisitor {
    fn record_str(&mut self, field: &Field, text: &str) {
        if field.name() == TraceParent::NAME {
            self.remote_parent = TraceParent::parse(text);
            return;
        }
        let text = truncate_bytes(text, MAX_TEXT_BYTES);
        self.keep(field, AttributeValue::Text(text.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, flag: bool) {
        self.keep(field, AttributeValue::Flag(flag));
    }

    fn record_i64(&mut self, field: &Field, number: i64) {
        self.keep(field, AttributeValue::Number(number));
    }

    fn record_u64(&mut self, field: &Field, number: u64) {
        self.keep(
            field,
            AttributeValue::Number(i64::try_from(number).unwrap_or(i64::MAX)),
        );
    }

    /// Drops every other type: a debug representation could contain text of a document.
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// A random trace id and a random span id. Zero is an invalid id in OpenTelemetry, so neither is zero.
fn random_ids() -> (u128, u64) {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // The version and variant bits of a UUID are constant. The span id combines three halves by XOR, of which no two
    // are constant in the same bit, so all of its 64 bits are random.
    let (other, _) = Uuid::new_v4().as_u64_pair();
    let id = high ^ other.rotate_left(32) ^ low;
    (
        ((u128::from(high ^ other) << 64) | u128::from(low)).max(1),
        id.max(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_new_every_time() {
        let mut ids: Vec<_> = (0..1_000).map(|_| random_ids()).collect();
        ids.sort_unstable();
        ids.dedup_by_key(|ids| ids.1);
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|(trace, id)| *trace != 0 && *id != 0));
    }

    #[test]
    fn only_requests_begin_a_trace_and_only_where_the_caller_keeps_it() {
        let remote = |flags: &str| SpanFieldVisitor {
            remote_parent: TraceParent::parse(&format!("00-{:032x}-{:016x}-{flags}", 7, 9)),
            ..SpanFieldVisitor::default()
        };
        assert_eq!(remote("01").root("request"), Some((7, Some(9))));
        assert_eq!(remote("00").root("request"), None);
        assert_eq!(remote("01").root("search"), None);
        assert!(SpanFieldVisitor::default().root("request").is_some());
    }

    #[test]
    fn headers_are_not_shown() {
        let headers = OtlpHeaders(vec![("api-key".to_owned(), "hush".to_owned())]);
        assert_eq!(format!("{headers:?}"), "Headers(1)");
    }
}
