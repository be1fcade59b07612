//! JavaScript scanner: finds calls and imports that load a URL, evaluate text as code, or use what the sandbox forbids.
//!
//! It is a tokenizer, not a parser: it distinguishes code from strings, template literals, regular expressions and
//! comments, and knows just enough of the grammar to tell what a `/` begins, whether a `try` encloses a call, and which
//! function a call belongs to.

mod functions;
mod lexer;
mod scopes;

use functions::{CallGraph, CodeLocation};
use lexer::{JsLexer, JsToken};

use super::{DocumentScan, LoadKind, LoadTrigger, origin};
use crate::text::truncate_chars;

/// Names of the global object.
const GLOBALS: [&str; 4] = ["window", "self", "globalThis", "top"];
/// The most addresses, and the most calls, that are collected of one script, and the longest address in characters.
const MAX_SCRIPT_FINDINGS: usize = 2_000;
const MAX_ADDRESS: usize = 300;

/// A call of something that hosts forbid, such as `eval` or `alert`, with how certain it is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptCall {
    pub name: &'static str,
    /// Whether a `try` encloses it, as in a feature test, or encloses every call of its function.
    pub is_tried: bool,
    /// Whether it runs as soon as the script does. A call in a function may never run.
    pub is_certain: bool,
}

/// When a script begins to run: with the document, or on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptStart {
    Document,
    Event,
}

/// A URL literal in a position where a script loads it.
struct FoundAddress {
    kind: LoadKind,
    trigger: LoadTrigger,
    address: String,
    is_open: bool,
    location: CodeLocation,
}

/// A forbidden call while its script is still being scanned.
struct FoundCall {
    name: &'static str,
    location: CodeLocation,
    /// The bracket depth inside its parentheses; `None` once they are closed.
    depth: Option<usize>,
    /// Whether it turned out to be the definition of a method of that name.
    is_definition: bool,
}

#[derive(Default)]
struct ScriptFindings {
    addresses: Vec<FoundAddress>,
    calls: Vec<FoundCall>,
}

pub(super) fn scan(script: &str, start: ScriptStart, found: &mut DocumentScan) {
    let mut findings = ScriptFindings::default();
    let mut lexer = JsLexer::new(script);
    while let Some(token) = lexer.next_token() {
        findings.take(token, &mut lexer);
    }
    let addresses = findings.addresses.iter().map(|address| address.location);
    let calls = findings.calls.iter().map(|call| call.location);
    let locations: Vec<CodeLocation> = addresses.chain(calls).collect();
    let graph = CallGraph::new(script, lexer.into_functions(), &locations);
    let is_certain = |location| start == ScriptStart::Document && graph.is_certain(location);
    for address in findings.addresses {
        let trigger = match address.trigger {
            LoadTrigger::Call if !is_certain(address.location) => LoadTrigger::Deferred,
            trigger => trigger,
        };
        found.load(address.kind, trigger, &address.address, address.is_open);
    }
    for call in findings.calls.iter().filter(|call| !call.is_definition) {
        found.call(ScriptCall {
            name: call.name,
            is_tried: graph.is_tried(call.location),
            is_certain: is_certain(call.location),
        });
    }
}

impl ScriptFindings {
    /// Examines the token that was just read.
    fn take(&mut self, token: JsToken, lexer: &mut JsLexer) {
        match token {
            JsToken::Text { value, is_open } => self.take_text(value, is_open, lexer),
            JsToken::Mark(b')') => self.end_call(lexer),
            _ => {}
        }
        if let Some(name) = forbidden_call(lexer.before(), token) {
            let depth = (token == JsToken::Mark(b'(')).then(|| lexer.depth());
            self.add_call(name, lexer.location(), depth);
        }
    }

    fn take_text(&mut self, value: &str, is_open: bool, lexer: &mut JsLexer) {
        let is_open = is_open || lexer.is_joined();
        if let Some((kind, trigger)) = load_position(lexer.before()) {
            let address = truncate_chars(value, MAX_ADDRESS).replace("\\/", "/");
            if self.addresses.len() < MAX_SCRIPT_FINDINGS
                && origin(address.trim(), is_open).is_some()
            {
                self.addresses.push(FoundAddress {
                    kind,
                    trigger,
                    address,
                    is_open,
                    location: lexer.location(),
                });
            }
        }
        let name = match lexer.before() {
            [.., JsToken::Word("setTimeout"), JsToken::Mark(b'(')] => "setTimeout(\"",
            [.., JsToken::Word("setInterval"), JsToken::Mark(b'(')] => "setInterval(\"",
            _ => return,
        };
        self.add_call(name, lexer.location(), None);
    }

    fn add_call(&mut self, name: &'static str, location: CodeLocation, depth: Option<usize>) {
        if self.calls.len() < MAX_SCRIPT_FINDINGS {
            self.calls.push(FoundCall {
                name,
                location,
                depth,
                is_definition: false,
            });
        }
    }

    /// Handles a closing parenthesis. Where a body follows, this was a method definition and no call, as in
    /// `class { prompt(x) {} }`.
    fn end_call(&mut self, lexer: &mut JsLexer) {
        let is_ended =
            |call: &&mut FoundCall| call.depth.is_some_and(|depth| depth > lexer.depth());
        let Some(call) = self.calls.last_mut().filter(is_ended) else {
            return;
        };
        call.depth = None;
        call.is_definition = lexer.rest().starts_with('{');
    }
}

/// The kind and trigger of a string literal that is loaded, judged by the tokens before it.
fn load_position(before: &[JsToken]) -> Option<(LoadKind, LoadTrigger)> {
    use JsToken::{Mark, Text, Word};
    let call = |kind| Some((kind, LoadTrigger::Call));
    match before {
        [.., Word("import" | "from")] if !is_member(before, 1) => {
            Some((LoadKind::Code, LoadTrigger::Document))
        }
        [.., Word("fetch"), Mark(b'(')] if is_global(before, 2) => call(LoadKind::Connection),
        [.., Word("import"), Mark(b'(')] if !is_member(before, 2) => call(LoadKind::Code),
        [.., Word("importScripts"), Mark(b'(')] if is_global(before, 2) => call(LoadKind::Code),
        [.., Mark(b'.'), Word("sendBeacon"), Mark(b'(')] => call(LoadKind::Connection),
        [.., Word("WebSocket" | "EventSource"), Mark(b'(')] if is_constructed(before) => {
            call(LoadKind::Connection)
        }
        [.., Word("Worker" | "SharedWorker"), Mark(b'(')] if is_constructed(before) => {
            call(LoadKind::Code)
        }
        [
            ..,
            Mark(b'.'),
            Word("open"),
            Mark(b'('),
            Text { value, .. },
            Mark(b','),
        ] if is_http_method(value) => call(LoadKind::Connection),
        [.., Mark(b'.'), Word("src"), Mark(b'=')] => {
            Some((LoadKind::Media, LoadTrigger::Assignment))
        }
        [
            ..,
            Word("setAttribute"),
            Mark(b'('),
            Text { value: "src", .. },
            Mark(b','),
        ] => Some((LoadKind::Media, LoadTrigger::Assignment)),
        _ => None,
    }
}

fn is_http_method(text: &str) -> bool {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.iter().any(|method| text.eq_ignore_ascii_case(method))
}

/// The token at a distance from the end of the list: `back` 0 is the last one.
fn earlier<'a>(before: &[JsToken<'a>], back: usize) -> Option<JsToken<'a>> {
    let at = before.len().checked_sub(back + 1)?;
    before.get(at).copied()
}

/// Whether a `.` stands `back` tokens before the end, so that the word after it is a member.
fn is_member(before: &[JsToken], back: usize) -> bool {
    earlier(before, back) == Some(JsToken::Mark(b'.'))
}

/// Whether that word is a global: on its own, or as a member of the global object. A name after `function` is a
/// declaration.
fn is_global(before: &[JsToken], back: usize) -> bool {
    if is_member(before, back) {
        let owner = earlier(before, back + 1);
        return matches!(owner, Some(JsToken::Word(owner)) if GLOBALS.contains(&owner))
            && !is_member(before, back + 2);
    }
    earlier(before, back) != Some(JsToken::Word("function"))
}

/// Whether the last parenthesis belongs to a constructor call with `new`.
fn is_constructed(before: &[JsToken]) -> bool {
    let back = if is_member(before, 2) { 4 } else { 2 };
    is_global(before, 2) && earlier(before, back) == Some(JsToken::Word("new"))
}

/// The name of the forbidden call or access that this token completes.
fn forbidden_call(before: &[JsToken], token: JsToken) -> Option<&'static str> {
    let Some(JsToken::Word(word)) = before.last().copied() else {
        return None;
    };
    match (word, token) {
        ("eval", JsToken::Mark(b'(')) if is_global(before, 1) => Some("eval("),
        ("Function", JsToken::Mark(b'(')) if earlier(before, 1) == Some(JsToken::Word("new")) => {
            Some("new Function(")
        }
        ("alert", JsToken::Mark(b'(')) if is_global(before, 1) => Some("alert("),
        ("confirm", JsToken::Mark(b'(')) if is_global(before, 1) => Some("confirm("),
        ("prompt", JsToken::Mark(b'(')) if is_global(before, 1) => Some("prompt("),
        ("localStorage", JsToken::Mark(b'.' | b'[')) if is_global(before, 1) => {
            Some("localStorage.")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
