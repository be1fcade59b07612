//! Mounts one widget as one host does: serves it under its CSP, completes the handshake, sends a tool result, and
//! records violations, errors and requests.
//!
//! The widget is untrusted, so events, notes and time are bounded, and no request leaves the browser. A record that the
//! deadline cut short is discarded: it would report false violations.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::BrowserError;
use super::csp::{WidgetHost, content_security_policy};
use super::deadline::MountDeadline;
use super::devtools_pipe::DevtoolsPipe;
use crate::survey::SurveyedWidget;
use crate::text::printable;

/// The URLs of host page and widget. They are of different sites, so that the browser isolates them; neither exists.
const PAGE: &str = "https://host.test/";
const FRAME: &str = "https://widget.test/";
/// The most entries of each list of a mount.
const MAX_NOTES: usize = 20;
/// The most browser events that are handled for one mount.
const MAX_EVENTS: usize = 20_000;

/// The record of one mounted widget.
#[derive(Debug, Default)]
pub(crate) struct WidgetMount {
    pub uri: String,
    pub host: &'static str,
    pub policy: String,
    /// Whether the widget received a real tool result.
    pub has_result: bool,
    /// The CSP violations. A blocked `eval` counts only when the error was not caught, since libraries such as zod test
    /// in a `try` whether it is allowed.
    pub violations: Vec<String>,
    /// Console errors and uncaught exceptions.
    pub errors: Vec<String>,
    /// The other URLs that were requested.
    pub requests: Vec<String>,
    /// The messages that the host page received: method names, `window.openai` and `loaded`.
    pub host_messages: Vec<String>,
}

impl WidgetMount {
    pub(crate) fn has_received(&self, what: &str) -> bool {
        self.host_messages.iter().any(|message| message == what)
    }

    /// Whether the widget requested anything from this origin, blocked or not. A full list counts as yes, since it may
    /// have dropped the request.
    pub(crate) fn has_requested(&self, origin: &str) -> bool {
        let is_of = |address: &str| {
            let rest = address
                .find(origin)
                .and_then(|at| address.get(at + origin.len()..));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
        };
        [&self.requests, &self.violations]
            .into_iter()
            .any(|list| list.len() >= MAX_NOTES || list.iter().any(|address| is_of(address)))
    }

    /// Whether its errors may be caused by the check, which calls few tools: the widget got no result, or requested a
    /// tool call for which there is none.
    pub(crate) fn lacks_data(&self) -> bool {
        !self.has_result || self.has_received("tool not called")
    }
}

fn push_note(list: &mut Vec<String>, text: &str) {
    let text = printable(text, 300);
    if list.len() < MAX_NOTES && !list.contains(&text) {
        list.push(text);
    }
}

/// The inputs of one mount: the widget, its HTML, the host, and the tool results.
pub(super) struct MountSession<'a> {
    pub widget: &'a SurveyedWidget,
    pub html: &'a str,
    pub host: WidgetHost,
    pub results: Map<String, Value>,
}

impl MountSession<'_> {
    /// Mounts the widget and observes it. `None` where the deadline of all mounts, `latest`, cut the observation short:
    /// an incomplete record would report false violations.
    pub(super) fn run(
        &self,
        pipe: &mut DevtoolsPipe,
        latest: Instant,
    ) -> Result<Option<WidgetMount>, BrowserError> {
        let context = pipe.call(None, "Target.createBrowserContext", json!({}))?;
        let context = context.get("browserContextId").cloned().unwrap_or_default();
        let request = json!({"url": "about:blank", "browserContextId": context});
        let target = pipe.call(None, "Target.createTarget", request)?;
        let target = target.get("targetId").cloned().unwrap_or_default();
        let request = json!({"targetId": target, "flatten": true});
        let session = pipe.call(None, "Target.attachToTarget", request)?;
        let session = session.get("sessionId").and_then(Value::as_str);
        let session = session.unwrap_or_default().to_owned();
        let mut mount = WidgetMount {
            uri: self.widget.uri.clone(),
            host: self.host.name(),
            policy: content_security_policy(self.widget, self.host),
            has_result: self.result().is_some(),
            ..WidgetMount::default()
        };
        self.attach(pipe, &session)?;
        pipe.call(
            Some(&session),
            "Runtime.addBinding",
            json!({"name": "docentHeard"}),
        )?;
        pipe.send(Some(&session), "Page.navigate", json!({"url": PAGE}))?;
        let is_cut = self.observe(pipe, &mut mount, latest)?;
        let disposed = json!({"browserContextId": context});
        pipe.call(None, "Target.disposeBrowserContext", disposed)?;
        pipe.forget_events();
        Ok((!is_cut).then_some(mount))
    }

    /// Enables interception and events on a page, frame or worker, and then lets it run.
    fn attach(&self, pipe: &mut DevtoolsPipe, session: &str) -> Result<(), BrowserError> {
        let session = Some(session);
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        pipe.send(session, "Target.setAutoAttach", attach)?;
        pipe.send(
            session,
            "Fetch.enable",
            json!({"patterns": [{"urlPattern": "*"}]}),
        )?;
        for part in ["Runtime", "Log", "Audits", "Page", "Network"] {
            pipe.send(session, &format!("{part}.enable"), json!({}))?;
        }
        if self.host == WidgetHost::ChatGpt {
            let source = include_str!("openai.js").replace("SETTING", &self.script_settings());
            let method = "Page.addScriptToEvaluateOnNewDocument";
            pipe.send(session, method, json!({"source": source}))?;
        }
        pipe.send(session, "Runtime.runIfWaitingForDebugger", json!({}))?;
        Ok(())
    }

    /// Handles events until the widget has completed the handshake and rendered, or until its deadline. Returns whether
    /// the deadline of all mounts cut that short.
    fn observe(
        &self,
        pipe: &mut DevtoolsPipe,
        mount: &mut WidgetMount,
        latest: Instant,
    ) -> Result<bool, BrowserError> {
        let mut deadline = MountDeadline::new(Instant::now(), latest);
        for _ in 0..MAX_EVENTS {
            let Some(event) = pipe.event(deadline.end())? else {
                return Ok(deadline.is_cut());
            };
            let method = event.get("method").and_then(Value::as_str);
            let params = event.get("params").unwrap_or(&Value::Null);
            match method.unwrap_or_default() {
                "Runtime.bindingCalled" => {
                    let message = text(params, "/payload");
                    deadline.advance(message, Instant::now());
                    push_note(&mut mount.host_messages, message);
                }
                "Target.attachedToTarget" => self.attach(pipe, text(params, "/sessionId"))?,
                "Fetch.requestPaused" => {
                    let session = event.get("sessionId").and_then(Value::as_str);
                    self.serve_request(pipe, session, params, mount)?;
                }
                "Network.webSocketCreated" => push_note(&mut mount.requests, text(params, "/url")),
                other => record_issue(mount, other, params),
            }
        }
        Ok(false)
    }

    /// Serves the host page and the widget; every other request is recorded and blocked.
    fn serve_request(
        &self,
        pipe: &mut DevtoolsPipe,
        session: Option<&str>,
        params: &Value,
        mount: &mut WidgetMount,
    ) -> Result<(), BrowserError> {
        let id = params.get("requestId");
        let url = text(params, "/request/url");
        let is_document = text(params, "/resourceType") == "Document";
        let (body, headers) = match url {
            PAGE => (self.page(), json!([])),
            FRAME if is_document => {
                let csp = json!({"name": "Content-Security-Policy", "value": mount.policy});
                (self.html.to_owned(), json!([csp]))
            }
            _ => {
                if !url.starts_with(PAGE) {
                    push_note(&mut mount.requests, url);
                }
                let request = json!({"requestId": id, "errorReason": "BlockedByClient"});
                return pipe.send(session, "Fetch.failRequest", request).map(drop);
            }
        };
        let mut headers = headers;
        if let Some(all) = headers.as_array_mut() {
            all.push(json!({"name": "Content-Type", "value": "text/html; charset=utf-8"}));
        }
        let request = json!({"requestId": id, "responseCode": 200, "responseHeaders": headers, "body": BASE64.encode(body)});
        pipe.send(session, "Fetch.fulfillRequest", request)
            .map(drop)
    }

    /// The HTML of the host page that embeds the widget.
    fn page(&self) -> String {
        let script = include_str!("host.js").replace("SETTING", &self.script_settings());
        format!("<!doctype html><title>host</title><body><script>{script}</script>")
    }

    /// The result of the first of its tools that was called.
    fn result(&self) -> Option<&Value> {
        let mut tools = self.widget.tools.iter();
        tools.find_map(|tool| self.results.get(tool))
    }

    /// The settings of the injected scripts, as JSON that is safe inside a `script` element.
    fn script_settings(&self) -> String {
        let setting = json!({
            "host": self.host.name(), "address": FRAME, "results": self.results, "result": self.result(), "input": {},
            "context": {
                "theme": "light", "locale": "en-US", "displayMode": "inline", "platform": "web",
                "availableDisplayModes": ["inline", "fullscreen"], "containerDimensions": {"width": 640, "maxHeight": 480},
            },
        });
        setting.to_string().replace('<', "\\u003c")
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Records a CSP violation, exception or console error that the browser reports.
fn record_issue(mount: &mut WidgetMount, method: &str, params: &Value) {
    match method {
        "Audits.issueAdded" => {
            let issue = params.pointer("/issue/details/contentSecurityPolicyIssueDetails");
            let Some(issue) = issue else { return };
            let kind = text(issue, "/contentSecurityPolicyViolationType");
            if matches!(kind, "kEvalViolation" | "kWasmEvalViolation") {
                return;
            }
            let blocked = match text(issue, "/blockedURL") {
                "" => kind.trim_start_matches('k'),
                url => url,
            };
            let directive = text(issue, "/violatedDirective");
            push_note(&mut mount.violations, &format!("{directive}: {blocked}"));
        }
        "Runtime.exceptionThrown" => {
            let details = params.get("exceptionDetails").unwrap_or(&Value::Null);
            let description = match text(details, "/exception/description") {
                "" => text(details, "/text"),
                description => description,
            };
            let is_forbidden = description.contains("Content Security Policy");
            let list = if is_forbidden {
                &mut mount.violations
            } else {
                &mut mount.errors
            };
            push_note(list, description);
        }
        "Runtime.consoleAPICalled" if matches!(text(params, "/type"), "error" | "assert") => {
            let one = |arg: &Value| match text(arg, "/description") {
                "" => arg.get("value").map(Value::to_string).unwrap_or_default(),
                description => description.to_owned(),
            };
            let args = params.get("args").and_then(Value::as_array);
            let description: Vec<String> = args.into_iter().flatten().take(10).map(one).collect();
            push_note(&mut mount.errors, &description.join(" "));
        }
        // CSP violations and failed loads are recorded through other events.
        "Log.entryAdded"
            if text(params, "/entry/level") == "error"
                && !matches!(text(params, "/entry/source"), "security" | "network") =>
        {
            push_note(&mut mount.errors, text(params, "/entry/text"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_few_and_never_twice() {
        let mut list = Vec::new();
        for n in 0..=MAX_NOTES {
            push_note(&mut list, &n.to_string());
            push_note(&mut list, &n.to_string());
        }
        assert_eq!(list.len(), MAX_NOTES);
        assert_eq!(list.last().map(String::as_str), Some("19"));
    }

    #[test]
    fn complaints_are_told_apart() {
        let mut mount = WidgetMount::default();
        let issue = json!({"violatedDirective": "script-src-elem", "blockedURL": "https://cdn.example/a.js"});
        let audit = json!({"issue": {"details": {"contentSecurityPolicyIssueDetails": issue}}});
        record_issue(&mut mount, "Audits.issueAdded", &audit);
        let eval = json!({"violatedDirective": "script-src", "contentSecurityPolicyViolationType": "kEvalViolation"});
        let audit = json!({"issue": {"details": {"contentSecurityPolicyIssueDetails": eval}}});
        record_issue(&mut mount, "Audits.issueAdded", &audit);
        let thrown = |description: &str| json!({"exceptionDetails": {"exception": {"description": description}}});
        let forbidden =
            "EvalError: Evaluating a string violates the Content Security Policy directive";
        record_issue(&mut mount, "Runtime.exceptionThrown", &thrown(forbidden));
        record_issue(
            &mut mount,
            "Runtime.exceptionThrown",
            &thrown("TypeError: y"),
        );
        let loud =
            json!({"type": "error", "args": [{"value": "lost"}, {"description": "Error: x"}]});
        record_issue(&mut mount, "Runtime.consoleAPICalled", &loud);
        record_issue(
            &mut mount,
            "Runtime.consoleAPICalled",
            &json!({"type": "log", "args": []}),
        );
        for source in ["security", "network", "javascript"] {
            let entry = json!({"entry": {"level": "error", "source": source, "text": source}});
            record_issue(&mut mount, "Log.entryAdded", &entry);
        }
        assert_eq!(
            mount.violations,
            ["script-src-elem: https://cdn.example/a.js", forbidden]
        );
        assert_eq!(
            mount.errors,
            ["TypeError: y", "\"lost\" Error: x", "javascript"]
        );
    }

    #[test]
    fn requests_and_violations_are_matched_by_origin() {
        let mut mount = WidgetMount {
            requests: vec!["https://a.example/x.js".to_owned()],
            violations: vec!["img-src: https://b.example".to_owned()],
            ..WidgetMount::default()
        };
        assert!(mount.has_requested("https://a.example"));
        assert!(mount.has_requested("https://b.example"));
        assert!(!mount.has_requested("https://a.exam"));
        assert!(!mount.has_requested("https://c.example"));
        mount.requests = vec![String::new(); MAX_NOTES];
        assert!(
            mount.has_requested("https://c.example"),
            "a full list may have dropped it"
        );
    }
}
