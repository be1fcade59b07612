//! One widget in one host: mounted, greeted, given its result, and everything noted that goes wrong.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::Trouble;
use super::deadline::MountDeadline;
use super::pipe::Pipe;
use super::policy::{Host, policy};
use crate::survey::Widget;
use crate::text::shown;

/// Addresses of two sites, so that the browser keeps them apart; neither exists.
const PAGE: &str = "https://host.test/";
const FRAME: &str = "https://widget.test/";
/// The most notes of one kind.
const MAX_NOTES: usize = 20;
/// The most events of one mount that are looked at.
const MAX_EVENTS: usize = 20_000;

/// What happened when a widget was mounted.
#[derive(Debug, Default)]
pub(crate) struct Mount {
    pub uri: String,
    pub host: &'static str,
    pub policy: String,
    /// Whether it was shown what a tool really returned.
    pub has_result: bool,
    /// What the policy blocked. Text that was not run as a script is among it only when nobody caught the error:
    /// libraries such as zod ask in a `try` whether they may.
    pub violations: Vec<String>,
    /// Errors in the console, and those that nobody caught.
    pub errors: Vec<String>,
    /// Other addresses that were asked for.
    pub requests: Vec<String>,
    /// What the host heard: methods, `window.openai` and `loaded`.
    pub heard: Vec<String>,
}

impl Mount {
    pub(crate) fn has_heard(&self, what: &str) -> bool {
        self.heard.iter().any(|heard| heard == what)
    }

    /// Whether it asked for anything of this origin, allowed or not. Lists that are full may have left it out.
    pub(crate) fn has_asked_for(&self, origin: &str) -> bool {
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

    /// Whether what it complains of may be the doing of the check, which calls few tools: it got no result, or
    /// asked for a call that was not made.
    pub(crate) fn lacks_data(&self) -> bool {
        !self.has_result || self.has_heard("tool not called")
    }
}

fn note(list: &mut Vec<String>, text: &str) {
    let text = shown(text, 300);
    if list.len() < MAX_NOTES && !list.contains(&text) {
        list.push(text);
    }
}

/// What is mounted where.
pub(super) struct Play<'a> {
    pub widget: &'a Widget,
    pub html: &'a str,
    pub host: Host,
    /// Answers of tools, by their names.
    pub results: Map<String, Value>,
}

impl Play<'_> {
    /// Mounts the widget and watches it. `None` where the time for all mounts, which ends at `latest`, was over before
    /// the widget had its own: nobody knows what it would have done.
    pub(super) fn run(&self, pipe: &mut Pipe, latest: Instant) -> Result<Option<Mount>, Trouble> {
        let context = pipe.call(None, "Target.createBrowserContext", json!({}))?;
        let context = context.get("browserContextId").cloned().unwrap_or_default();
        let asked = json!({"url": "about:blank", "browserContextId": context});
        let target = pipe.call(None, "Target.createTarget", asked)?;
        let target = target.get("targetId").cloned().unwrap_or_default();
        let asked = json!({"targetId": target, "flatten": true});
        let session = pipe.call(None, "Target.attachToTarget", asked)?;
        let session = session.get("sessionId").and_then(Value::as_str);
        let session = session.unwrap_or_default().to_owned();
        let mut mount = Mount {
            uri: self.widget.uri.clone(),
            host: self.host.name(),
            policy: policy(self.widget, self.host),
            has_result: self.result().is_some(),
            ..Mount::default()
        };
        self.enter(pipe, &session)?;
        pipe.call(
            Some(&session),
            "Runtime.addBinding",
            json!({"name": "docentHeard"}),
        )?;
        pipe.send(Some(&session), "Page.navigate", json!({"url": PAGE}))?;
        let is_cut = self.watch(pipe, &mut mount, latest)?;
        let gone = json!({"browserContextId": context});
        pipe.call(None, "Target.disposeBrowserContext", gone)?;
        pipe.forget_events();
        Ok((!is_cut).then_some(mount))
    }

    /// Listens to a page, frame or worker, and lets it go on.
    fn enter(&self, pipe: &mut Pipe, session: &str) -> Result<(), Trouble> {
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
        if self.host == Host::ChatGpt {
            let source = include_str!("openai.js").replace("SETTING", &self.setting());
            let method = "Page.addScriptToEvaluateOnNewDocument";
            pipe.send(session, method, json!({"source": source}))?;
        }
        pipe.send(session, "Runtime.runIfWaitingForDebugger", json!({}))?;
        Ok(())
    }

    /// Looks on until the widget greeted its host and showed something, or until that takes too long. Says whether the
    /// time for all mounts cut that short.
    fn watch(&self, pipe: &mut Pipe, mount: &mut Mount, latest: Instant) -> Result<bool, Trouble> {
        let mut deadline = MountDeadline::new(Instant::now(), latest);
        for _ in 0..MAX_EVENTS {
            let Some(event) = pipe.event(deadline.end())? else {
                return Ok(deadline.is_cut());
            };
            let method = event.get("method").and_then(Value::as_str);
            let params = event.get("params").unwrap_or(&Value::Null);
            match method.unwrap_or_default() {
                "Runtime.bindingCalled" => {
                    let heard = text(params, "/payload");
                    deadline.heard(heard, Instant::now());
                    note(&mut mount.heard, heard);
                }
                "Target.attachedToTarget" => self.enter(pipe, text(params, "/sessionId"))?,
                "Fetch.requestPaused" => {
                    let session = event.get("sessionId").and_then(Value::as_str);
                    self.answer(pipe, session, params, mount)?;
                }
                "Network.webSocketCreated" => note(&mut mount.requests, text(params, "/url")),
                other => complain(mount, other, params),
            }
        }
        Ok(false)
    }

    /// Serves the two documents there are; everything else is noted and refused.
    fn answer(
        &self,
        pipe: &mut Pipe,
        session: Option<&str>,
        params: &Value,
        mount: &mut Mount,
    ) -> Result<(), Trouble> {
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
                    note(&mut mount.requests, url);
                }
                let asked = json!({"requestId": id, "errorReason": "BlockedByClient"});
                return pipe.send(session, "Fetch.failRequest", asked).map(drop);
            }
        };
        let mut headers = headers;
        if let Some(all) = headers.as_array_mut() {
            all.push(json!({"name": "Content-Type", "value": "text/html; charset=utf-8"}));
        }
        let asked = json!({"requestId": id, "responseCode": 200, "responseHeaders": headers, "body": BASE64.encode(body)});
        pipe.send(session, "Fetch.fulfillRequest", asked).map(drop)
    }

    /// The page around the widget.
    fn page(&self) -> String {
        let script = include_str!("host.js").replace("SETTING", &self.setting());
        format!("<!doctype html><title>host</title><body><script>{script}</script>")
    }

    /// What one of its tools returned.
    fn result(&self) -> Option<&Value> {
        let mut tools = self.widget.tools.iter();
        tools.find_map(|tool| self.results.get(tool))
    }

    /// What the scripts are told, as JSON that can stand in a script.
    fn setting(&self) -> String {
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

/// Notes what the browser complains of.
fn complain(mount: &mut Mount, method: &str, params: &Value) {
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
            note(&mut mount.violations, &format!("{directive}: {blocked}"));
        }
        "Runtime.exceptionThrown" => {
            let details = params.get("exceptionDetails").unwrap_or(&Value::Null);
            let said = match text(details, "/exception/description") {
                "" => text(details, "/text"),
                said => said,
            };
            let is_forbidden = said.contains("Content Security Policy");
            let list = if is_forbidden {
                &mut mount.violations
            } else {
                &mut mount.errors
            };
            note(list, said);
        }
        "Runtime.consoleAPICalled" if matches!(text(params, "/type"), "error" | "assert") => {
            let one = |arg: &Value| match text(arg, "/description") {
                "" => arg.get("value").map(Value::to_string).unwrap_or_default(),
                said => said.to_owned(),
            };
            let args = params.get("args").and_then(Value::as_array);
            let said: Vec<String> = args.into_iter().flatten().take(10).map(one).collect();
            note(&mut mount.errors, &said.join(" "));
        }
        // What the policy forbade and what could not be loaded is noted elsewhere.
        "Log.entryAdded"
            if text(params, "/entry/level") == "error"
                && !matches!(text(params, "/entry/source"), "security" | "network") =>
        {
            note(&mut mount.errors, text(params, "/entry/text"));
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
            note(&mut list, &n.to_string());
            note(&mut list, &n.to_string());
        }
        assert_eq!(list.len(), MAX_NOTES);
        assert_eq!(list.last().map(String::as_str), Some("19"));
    }

    #[test]
    fn complaints_are_told_apart() {
        let mut mount = Mount::default();
        let issue = json!({"violatedDirective": "script-src-elem", "blockedURL": "https://cdn.example/a.js"});
        let audit = json!({"issue": {"details": {"contentSecurityPolicyIssueDetails": issue}}});
        complain(&mut mount, "Audits.issueAdded", &audit);
        let eval = json!({"violatedDirective": "script-src", "contentSecurityPolicyViolationType": "kEvalViolation"});
        let audit = json!({"issue": {"details": {"contentSecurityPolicyIssueDetails": eval}}});
        complain(&mut mount, "Audits.issueAdded", &audit);
        let thrown = |said: &str| json!({"exceptionDetails": {"exception": {"description": said}}});
        let forbidden =
            "EvalError: Evaluating a string violates the Content Security Policy directive";
        complain(&mut mount, "Runtime.exceptionThrown", &thrown(forbidden));
        complain(
            &mut mount,
            "Runtime.exceptionThrown",
            &thrown("TypeError: y"),
        );
        let loud =
            json!({"type": "error", "args": [{"value": "lost"}, {"description": "Error: x"}]});
        complain(&mut mount, "Runtime.consoleAPICalled", &loud);
        complain(
            &mut mount,
            "Runtime.consoleAPICalled",
            &json!({"type": "log", "args": []}),
        );
        for source in ["security", "network", "javascript"] {
            let entry = json!({"entry": {"level": "error", "source": source, "text": source}});
            complain(&mut mount, "Log.entryAdded", &entry);
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
    fn what_was_asked_for_is_found_by_its_origin() {
        let mut mount = Mount {
            requests: vec!["https://a.example/x.js".to_owned()],
            violations: vec!["img-src: https://b.example".to_owned()],
            ..Mount::default()
        };
        assert!(mount.has_asked_for("https://a.example"));
        assert!(mount.has_asked_for("https://b.example"));
        assert!(!mount.has_asked_for("https://a.exam"));
        assert!(!mount.has_asked_for("https://c.example"));
        mount.requests = vec![String::new(); MAX_NOTES];
        assert!(mount.has_asked_for("https://c.example"), "nobody knows");
    }
}
