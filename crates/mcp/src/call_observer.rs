//! A finished call into a note for whoever watches calls, such as an audit log or a meter. What tools do is
//! none of its business: they say themselves what their answers are about.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::app::App;
use crate::auth::Caller;
use crate::call::CallerContext;
use crate::request_context::RequestMeta;
use crate::trace::TraceParent;

/// The most things that an answer says to be about; a list of results has at most a hundred.
pub const MAX_TOUCHED: usize = 256;

/// The most bytes of what a client says about itself that are passed on.
const MAX_SAID_BYTES: usize = 256;

/// Where a modern client says what it is.
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// Somebody who hears of every call to a tool and of every resource that is read, once, when that has ended.
pub trait CallObserver: Send + Sync + 'static {
    /// Takes note of a call. It is waited for, so it must not wait for anything itself.
    fn on_call(&self, call: &CallRecord<'_>);
}

/// Two who both hear of every call.
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

/// What was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A tool.
    Tool,
    /// A resource, which was read.
    Resource,
    /// A page, of whose visits a program tells its observer by itself.
    Page,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// With an answer.
    Done,
    /// With an answer that says what is wrong about the call.
    Mistaken,
    /// With a failure of ours.
    Failed,
    /// Before it began, since its caller may not make it.
    Forbidden,
    /// Before it began, since its caller had made too many.
    TooSoon,
    /// Nobody waited for its end.
    Abandoned,
}

/// A call that has ended.
#[derive(Debug)]
pub struct CallRecord<'c> {
    /// What was called.
    pub what: CallKind,
    /// The name of the tool, as it was called; for anything else what it is called in the protocol.
    pub tool: &'c str,
    /// What was sent to it, as JSON.
    pub arguments: &'c str,
    /// Who called.
    pub caller: &'c Caller,
    /// The program through which they did, as it says itself or as the issuer knows it.
    pub client: Option<&'c str>,
    /// The `traceparent` that came with the call, if it is one: in its `_meta`, or else as a header.
    pub trace: Option<TraceParent>,
    /// How it ended.
    pub outcome: CallStatus,
    /// What the answer is about, as [the tool said](crate::Answer::touched).
    pub touched: &'c [String],
    /// How long it took.
    pub took: Duration,
}

/// A call on its way. It is told when this is dropped, so that none is missed.
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
    /// Begins to watch a call with these arguments and this `_meta`, where somebody wants to hear of it.
    pub(crate) fn new(
        app: &App,
        (what, name): (CallKind, &str),
        (arguments, meta): (Option<Box<RawValue>>, Option<Box<RawValue>>),
        asker: &CallerContext,
    ) -> Option<Self> {
        Some(Self {
            observer: app.inner().observer.clone()?,
            what,
            tool: name.to_owned(),
            arguments,
            caller: asker.caller.clone(),
            meta: RequestMeta::new(meta),
            trace: asker.trace,
            start: Instant::now(),
            outcome: CallStatus::Abandoned,
            touched: Vec::new(),
        })
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

/// As much of a text as is passed on.
fn bounded_prefix(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_SAID_BYTES);
    text.get(..end).unwrap_or_default()
}

impl fmt::Debug for CallRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({})", self.tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_ends_at_its_bound() {
        for (bytes, kept) in [(0, 0), (255, 254), (256, 256), (257, 256), (900, 256)] {
            let text = "é".repeat(bytes / 2);
            assert_eq!(bounded_prefix(&text).len(), kept.min(text.len()), "{bytes}");
        }
    }
}
