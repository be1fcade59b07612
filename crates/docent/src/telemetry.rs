//! What happens inside a request into spans of OpenTelemetry, for whoever keeps traces. Off unless an endpoint is set.
//!
//! Written here rather than taken from the `opentelemetry` crates: of those an exporter needs six, with prost and an HTTP
//! client of their own, for what is one JSON document (OTLP/HTTP) and a queue. Spans are those of `tracing`, which cost an
//! atomic read where nobody listens.
//!
//! Nothing of a document or a question gets in here: attributes are names of methods and tools that the server has, words
//! for outcomes, and numbers.

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

/// The most attributes of one span; ours have four.
const MAX_ATTRIBUTES: usize = 16;

/// The longest text of an attribute; ours are names.
const MAX_TEXT_BYTES: usize = 128;

/// Where traces go, and under which name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The base address of a collector; traces go to `/v1/traces` below it.
    pub endpoint: Option<Url>,
    /// What the collector calls this server.
    pub service: String,
    /// Headers that it wants to see, such as a key.
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

/// Names and values of headers; the values may be secrets and are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OtlpHeaders(pub Vec<(String, String)>);

impl std::fmt::Debug for OtlpHeaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Headers({})", self.0.len())
    }
}

/// A span that has ended.
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

/// What an attribute holds.
#[derive(Debug, Clone, PartialEq)]
enum AttributeValue {
    Text(String),
    Number(i64),
    Flag(bool),
}

/// A span on its way, kept beside the span itself.
struct OpenSpan {
    span: FinishedSpan,
    since: Instant,
}

/// Hears of every span, and hands on those of requests.
pub(crate) struct SpanExportLayer(Arc<SpanExporter>);

impl SpanExportLayer {
    pub(crate) fn new(exporter: Arc<SpanExporter>) -> Self {
        Self(exporter)
    }

    /// Which spans it wants to hear of.
    pub(crate) fn is_request_span(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == SPANS
    }
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for SpanExportLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut seen = SpanFieldVisitor::default();
        attributes.record(&mut seen);
        let above = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            let open = extensions.get::<OpenSpan>()?;
            Some((open.span.trace, Some(open.span.id)))
        });
        let Some((trace, parent)) = above.or_else(|| seen.root(span.name())) else {
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
                attributes: seen.attributes,
            },
            since: Instant::now(),
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(open) = extensions.get_mut::<OpenSpan>() {
            let mut seen = SpanFieldVisitor {
                attributes: std::mem::take(&mut open.span.attributes),
                ..SpanFieldVisitor::default()
            };
            values.record(&mut seen);
            open.span.attributes = seen.attributes;
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

/// The values of a span, as they are handed over.
#[derive(Default)]
struct SpanFieldVisitor {
    attributes: Vec<(&'static str, AttributeValue)>,
    above: Option<TraceParent>,
}

impl SpanFieldVisitor {
    /// The trace that a span without one above it belongs to: that of the caller, or a new one. Only requests begin
    /// one, and none that the caller does not keep.
    fn root(&self, name: &str) -> Option<(u128, Option<u64>)> {
        if name != docent_mcp::REQUEST_SPAN {
            return None;
        }
        match self.above {
            Some(above) => above
                .sampled
                .then_some((above.trace_id, Some(above.parent_id))),
            None => Some((random_ids().0, None)),
        }
    }

    fn keep(&mut self, field: &Field, said: AttributeValue) {
        if self.attributes.len() < MAX_ATTRIBUTES {
            self.attributes.push((field.name(), said));
        }
    }
}

impl Visit for SpanFieldVisitor {
    fn record_str(&mut self, field: &Field, text: &str) {
        if field.name() == TraceParent::NAME {
            self.above = TraceParent::parse(text);
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

    /// Anything else could hold anything, so it is left out.
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// Ids that nobody else has, and that are not zero.
fn random_ids() -> (u128, u64) {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // A UUID has its version in the upper half; both halves of another one make up for that.
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
        let above = |flags: &str| SpanFieldVisitor {
            above: TraceParent::parse(&format!("00-{:032x}-{:016x}-{flags}", 7, 9)),
            ..SpanFieldVisitor::default()
        };
        assert_eq!(above("01").root("request"), Some((7, Some(9))));
        assert_eq!(above("00").root("request"), None);
        assert_eq!(above("01").root("search"), None);
        assert!(SpanFieldVisitor::default().root("request").is_some());
    }

    #[test]
    fn headers_are_not_shown() {
        let headers = OtlpHeaders(vec![("api-key".to_owned(), "hush".to_owned())]);
        assert_eq!(format!("{headers:?}"), "Headers(1)");
    }
}
