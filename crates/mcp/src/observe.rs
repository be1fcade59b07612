//! A finished call into a note for whoever watches calls, such as an audit log or a meter. What tools do is
//! none of its business: they say themselves what their answers are about.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::auth::Caller;
use crate::request::Meta;

/// The most things that an answer says to be about; a list of results has at most a hundred.
pub const MAX_TOUCHED: usize = 256;

/// The most bytes of what a client says about itself that are passed on.
const MAX_SAID_BYTES: usize = 256;

/// Where a modern client says what it is, and where any may say which trace its request belongs to.
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const TRACE: &str = "traceparent";

/// Somebody who hears of every call to a tool, once, when it has ended.
pub trait Observer: Send + Sync + 'static {
    /// Takes note of a call. It is waited for, so it must not wait for anything itself.
    fn called(&self, call: &Called<'_>);
}

/// Two who both hear of every call.
pub(crate) struct Both(pub(crate) Arc<dyn Observer>, pub(crate) Arc<dyn Observer>);

impl Observer for Both {
    fn called(&self, call: &Called<'_>) {
        self.0.called(call);
        self.1.called(call);
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
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
pub struct Called<'c> {
    /// The name of the tool, as it was called.
    pub tool: &'c str,
    /// What was sent to it, as JSON.
    pub arguments: &'c str,
    /// Who called.
    pub caller: &'c Caller,
    /// The program through which they did, as it says itself or as the issuer knows it.
    pub client: Option<&'c str>,
    /// The `traceparent` that came with the call.
    pub trace: Option<&'c str>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the answer is about, as [the tool said](crate::Answer::touched).
    pub touched: &'c [String],
    /// How long it took.
    pub took: Duration,
}

/// A call on its way. It is told when this is dropped, so that none is missed.
pub(crate) struct Watch {
    observer: Arc<dyn Observer>,
    tool: String,
    arguments: Option<Box<RawValue>>,
    caller: Caller,
    meta: Meta,
    start: Instant,
    pub(crate) outcome: Outcome,
    pub(crate) touched: Vec<String>,
}

impl Watch {
    pub(crate) fn new(
        observer: Arc<dyn Observer>,
        tool: &str,
        (arguments, meta): (Option<&RawValue>, Option<&RawValue>),
        caller: &Caller,
    ) -> Self {
        Self {
            observer,
            tool: tool.to_owned(),
            arguments: arguments.map(ToOwned::to_owned),
            caller: caller.clone(),
            meta: Meta::new(meta.map(ToOwned::to_owned)),
            start: Instant::now(),
            outcome: Outcome::Abandoned,
            touched: Vec::new(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let client = self.meta.get(CLIENT).and_then(|client| client.get("name"));
        self.observer.called(&Called {
            tool: start(&self.tool),
            arguments: self.arguments.as_deref().map_or("{}", RawValue::get),
            caller: &self.caller,
            client: said(client).or_else(|| self.caller.client().map(start)),
            trace: said(self.meta.get(TRACE)),
            outcome: self.outcome,
            touched: &self.touched,
            took: self.start.elapsed(),
        });
    }
}

fn said(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).map(start)
}

/// As much of a text as is passed on.
fn start(text: &str) -> &str {
    let mut end = text.len().min(MAX_SAID_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

impl fmt::Debug for Watch {
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
            assert_eq!(start(&text).len(), kept.min(text.len()), "{bytes}");
        }
    }
}
