//! The span exporter: a bounded queue of finished spans and a background thread that sends them to an OTLP collector.
//!
//! Ending a span never blocks. Spans that do not fit into the queue, and batches that the collector refuses, are
//! dropped and counted; there is no retry.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ureq::Agent;

use super::{FinishedSpan, TelemetrySettings, otlp};
use crate::cli_error::CliError;

/// The queue capacity: the spans of some seconds on a busy server.
const MAX_WAITING: usize = 4_096;

/// The batch size; a full batch is a request of about half a megabyte.
const MAX_BATCH: usize = 512;

/// The flush interval: how long a span waits for a batch to fill.
const FLUSH_INTERVAL: Duration = Duration::from_secs(2);

/// The timeout of one request to the collector.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Counters of exported and dropped spans, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    pub(crate) sent: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// The span queue and the condition variable that wakes the exporter thread.
pub(crate) struct SpanExporter {
    state: Mutex<ExportQueue>,
    changed: Condvar,
    pub(crate) counts: Arc<SpanCounts>,
}

#[derive(Default)]
struct ExportQueue {
    waiting: VecDeque<FinishedSpan>,
    closing: bool,
    ended: bool,
}

/// Sends one batch; the error is the text for the log. Tests replace it by a slow collector.
type SpanSender = dyn FnMut(&[FinishedSpan]) -> Result<(), String> + Send;

impl SpanExporter {
    /// Starts the exporter thread, if the settings name an endpoint.
    pub(crate) fn start(settings: &TelemetrySettings) -> Result<Option<Arc<Self>>, CliError> {
        let Some(endpoint) = &settings.endpoint else {
            return Ok(None);
        };
        let address = format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/'));
        let mut config = Agent::config_builder()
            .timeout_global(Some(REQUEST_TIMEOUT))
            .max_redirects(0)
            .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")));
        // Loopback addresses bypass the configured HTTP proxy.
        let host = endpoint.host_str().unwrap_or_default();
        if matches!(host, "localhost" | "[::1]") || host.starts_with("127.") {
            config = config.proxy(None);
        }
        let agent = config.build().new_agent();
        let settings = settings.clone();
        Self::spawn(Box::new(move |spans| {
            let mut request = agent.post(&address);
            for (name, value) in &settings.headers.0 {
                request = request.header(name, value);
            }
            let body = otlp::write(&settings.service, spans).to_string();
            let sent = request.content_type("application/json").send(body);
            sent.map(drop).map_err(|error| error.to_string())
        }))
        .map(Some)
    }

    fn spawn(send: Box<SpanSender>) -> Result<Arc<Self>, CliError> {
        let exporter = Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            counts: Arc::default(),
        });
        let this = exporter.clone();
        std::thread::Builder::new()
            .name("traces".to_owned())
            .spawn(move || this.run(send))
            .map_err(|error| CliError::failed("cannot start a thread").because(error))?;
        Ok(exporter)
    }

    /// Queues a span, or drops and counts it when the queue is full.
    pub(super) fn put(&self, span: FinishedSpan) {
        let mut state = self.state();
        if state.closing || state.waiting.len() >= MAX_WAITING {
            drop(state);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.waiting.push_back(span);
        if state.waiting.len() == MAX_BATCH {
            self.changed.notify_all();
        }
    }

    /// Flushes the queue and stops the thread. Spans that are still queued at the deadline are dropped.
    pub(crate) fn finish(&self, timeout: Duration) {
        let end = Instant::now() + timeout;
        let mut state = self.state();
        state.closing = true;
        self.changed.notify_all();
        while !state.ended {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let lost = state.waiting.len() as u64;
                self.counts.dropped.fetch_add(lost, Ordering::Relaxed);
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn state(&self) -> MutexGuard<'_, ExportQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut send: Box<SpanSender>) {
        let mut is_healthy = true;
        loop {
            let batch = self.batch();
            if batch.is_empty() {
                break;
            }
            let count = batch.len() as u64;
            match send(&batch) {
                Ok(()) => {
                    self.counts.sent.fetch_add(count, Ordering::Relaxed);
                    if !std::mem::replace(&mut is_healthy, true) {
                        tracing::info!("traces are sent again");
                    }
                }
                Err(error) => {
                    self.counts.dropped.fetch_add(count, Ordering::Relaxed);
                    // One warning for each outage, not one for each batch.
                    if std::mem::replace(&mut is_healthy, false) {
                        tracing::warn!(%error, "traces cannot be sent");
                    }
                }
            }
        }
        self.state().ended = true;
        self.changed.notify_all();
    }

    /// Waits for the next batch: a full one, or whatever is queued after the flush interval. Empty at the end.
    fn batch(&self) -> Vec<FinishedSpan> {
        let mut state = self.state();
        loop {
            let enough = state.waiting.len() >= MAX_BATCH || state.closing;
            if enough {
                break;
            }
            let empty = state.waiting.is_empty();
            let (next, waited) = self
                .changed
                .wait_timeout(state, FLUSH_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() && !empty {
                break;
            }
        }
        let count = state.waiting.len().min(MAX_BATCH);
        state.waiting.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::SystemTime;

    use super::*;

    fn span() -> FinishedSpan {
        FinishedSpan {
            trace: 1,
            id: 1,
            parent: None,
            name: "request",
            start: SystemTime::UNIX_EPOCH,
            took: Duration::ZERO,
            attributes: Vec::new(),
        }
    }

    fn counted(exporter: &SpanExporter) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&exporter.counts.sent), of(&exporter.counts.dropped))
    }

    /// A collector that accepts a request only when the test permits it.
    fn slow() -> (Arc<SpanExporter>, mpsc::Receiver<usize>, mpsc::Sender<()>) {
        let (seen, seeing) = mpsc::channel();
        let (go, waiting) = mpsc::channel();
        let exporter = SpanExporter::spawn(Box::new(move |spans: &[FinishedSpan]| {
            let _ = seen.send(spans.len());
            waiting.recv().map_err(|_| "gone".to_owned())
        }));
        (exporter.unwrap(), seeing, go)
    }

    #[test]
    fn a_full_queue_drops_and_counts_and_never_waits() {
        let (exporter, seeing, go) = slow();
        (0..MAX_BATCH).for_each(|_| exporter.put(span()));
        assert_eq!(seeing.recv(), Ok(MAX_BATCH));
        // The collector is busy from here on.
        (0..MAX_WAITING).for_each(|_| exporter.put(span()));
        assert_eq!(counted(&exporter), (0, 0));
        exporter.put(span());
        assert_eq!(counted(&exporter), (0, 1));
        drop(go);
        exporter.finish(Duration::from_secs(60));
        let lost = (MAX_BATCH + MAX_WAITING + 1) as u64;
        assert_eq!(counted(&exporter), (0, lost));
    }

    #[test]
    fn queued_spans_are_sent_on_shutdown() {
        let (exporter, seeing, go) = slow();
        exporter.put(span());
        exporter.put(span());
        go.send(()).unwrap();
        exporter.finish(Duration::from_secs(60));
        assert_eq!((seeing.recv(), counted(&exporter)), (Ok(2), (2, 0)));
        exporter.put(span());
        assert_eq!(counted(&exporter), (2, 1));
    }

    #[test]
    fn shutdown_respects_its_timeout() {
        let (exporter, seeing, _go) = slow();
        (0..MAX_BATCH).for_each(|_| exporter.put(span()));
        assert_eq!(seeing.recv(), Ok(MAX_BATCH));
        exporter.put(span());
        exporter.finish(Duration::ZERO);
        assert_eq!(counted(&exporter), (0, 1));
    }
}
