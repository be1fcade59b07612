//! Call observation: one [`CallRecord`] per finished call, for an audit log or a metric.
//!
//! The recorder knows nothing about tools. A tool reports what its answer is about itself, with
//! [`Answer::touched`](crate::Answer::touched).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docent_unicode::truncate_bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::auth::Caller;
use crate::request_meta::RequestMeta;
use crate::trace::TraceParent;

/// Maximum length of a tool or client name that is passed on; the client controls both.
const MAX_CLIENT_TEXT_BYTES: usize = 256;

/// The `_meta` key under which clients of 2026-07-28 name themselves.
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// Observer of calls. It is notified once for every tool call and every resource that was read, after the call has
/// ended.
///
/// ```rust
/// use std::sync::Arc;
///
/// use docent_mcp::{App, CallObserver, CallRecord};
///
/// struct LogCalls;
///
/// impl CallObserver for LogCalls {
///     fn on_call(&self, call: &CallRecord<'_>) {
///         println!("{} {:?} after {:?}", call.tool, call.outcome, call.took);
///     }
/// }
///
/// let app = App::builder("tides", "1.0.0").observer(Arc::new(LogCalls)).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
pub trait CallObserver: Send + Sync + 'static {
    /// Receives one finished call. The call waits for this method, so it must not block.
    fn on_call(&self, call: &CallRecord<'_>);
}

/// Combines two observers, so that an app can have any number of them.
pub(crate) struct ObserverPair(
    pub(crate) Arc<dyn CallObserver>,
    pub(crate) Arc<dyn CallObserver>,
);

impl CallObserver for ObserverPair {
    fn on_call(&self, call: &CallRecord<'_>) {
        self.0.on_call(call);
        self.1.on_call(call);
    }
}

/// The kind of request that a [`CallRecord`] describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A call of a tool (`tools/call`).
    Tool,
    /// A resource that was read (`resources/read`).
    Resource,
    /// An HTTP page. The kit does not record these; a program that serves pages reports visits to its observer
    /// itself.
    Page,
}

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// The call succeeded and was answered.
    Done,
    /// The caller made a mistake, and the answer explains it.
    Mistaken,
    /// The call failed with an internal error.
    Failed,
    /// The call was refused because the caller lacks permission.
    Forbidden,
    /// The call was refused by the rate limit.
    TooSoon,
    /// The client disconnected or cancelled before the call ended.
    Abandoned,
}

/// A finished call, as a [`CallObserver`] receives it.
#[derive(Debug)]
pub struct CallRecord<'c> {
    /// The kind of request.
    pub what: CallKind,
    /// The name of the tool as the client sent it, or the protocol method of any other request.
    pub tool: &'c str,
    /// The arguments of the call, as JSON.
    pub arguments: &'c str,
    /// The verified caller.
    pub caller: &'c Caller,
    /// The client program, as it names itself in `_meta` or as the issuer of the token knows it.
    pub client: Option<&'c str>,
    /// The `traceparent` of the call, if it is valid. The one in `_meta` takes precedence over the HTTP header.
    pub trace: Option<TraceParent>,
    /// The result of the call.
    pub outcome: CallStatus,
    /// The subjects of the answer, such as document ids, as [the tool reported them](crate::Answer::touched).
    pub touched: &'c [String],
    /// The duration of the call.
    pub took: Duration,
}

/// A call as the client sent it.
pub(crate) struct ObservedCall<'a> {
    pub(crate) kind: CallKind,
    /// The name of the tool, or the protocol method of any other request.
    pub(crate) name: &'a str,
    pub(crate) arguments: Option<Box<RawValue>>,
    pub(crate) meta: Option<Box<RawValue>>,
}

/// A call in progress. The observer is notified when this is dropped, so that cancelled and panicking calls are
/// recorded too.
pub(crate) struct CallRecorder {
    observer: Arc<dyn CallObserver>,
    what: CallKind,
    tool: String,
    arguments: Option<Box<RawValue>>,
    caller: Caller,
    meta: RequestMeta,
    trace: Option<TraceParent>,
    start: Instant,
    pub(crate) outcome: CallStatus,
    pub(crate) touched: Vec<String>,
}

impl CallRecorder {
    /// Starts to record a call for an observer. `trace` is the trace context of the HTTP request.
    pub(crate) fn new(
        observer: Arc<dyn CallObserver>,
        call: ObservedCall<'_>,
        caller: &Caller,
        trace: Option<TraceParent>,
    ) -> Self {
        Self {
            observer,
            what: call.kind,
            tool: call.name.to_owned(),
            arguments: call.arguments,
            caller: caller.clone(),
            meta: RequestMeta::new(call.meta),
            trace,
            start: Instant::now(),
            outcome: CallStatus::Abandoned,
            touched: Vec::new(),
        }
    }
}

impl Drop for CallRecorder {
    fn drop(&mut self) {
        let client = self.meta.get(CLIENT).and_then(|client| client.get("name"));
        let named = self.meta.get(TraceParent::NAME).and_then(Value::as_str);
        let trace = named.and_then(TraceParent::parse).or(self.trace);
        self.observer.on_call(&CallRecord {
            what: self.what,
            tool: bounded_prefix(&self.tool),
            arguments: self.arguments.as_deref().map_or("{}", RawValue::get),
            caller: &self.caller,
            client: bounded_text(client).or_else(|| self.caller.client().map(bounded_prefix)),
            trace,
            outcome: self.outcome,
            touched: &self.touched,
            took: self.start.elapsed(),
        });
    }
}

fn bounded_text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).map(bounded_prefix)
}

fn bounded_prefix(text: &str) -> &str {
    truncate_bytes(text, MAX_CLIENT_TEXT_BYTES)
}

impl fmt::Debug for CallRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallRecorder({})", self.tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observed_texts_are_truncated() {
        for (bytes, kept) in [(0, 0), (255, 254), (256, 256), (257, 256), (900, 256)] {
            let text = "é".repeat(bytes / 2);
            assert_eq!(bounded_prefix(&text).len(), kept.min(text.len()), "{bytes}");
        }
    }
}
