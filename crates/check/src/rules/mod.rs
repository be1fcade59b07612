//! What was seen of a server into what is wrong with it: one table of rules, a file for each group.
//!
//! To add a rule: an entry in the table of its group, the function that judges, and a broken server for
//! it in the tests, which look at every entry.

mod auth;
mod baseline;
mod lifecycle;
mod limits;
mod measured;
mod search_fetch;
mod security;
mod tools;
mod transport;
mod widgets;

use serde_json::Value;

pub(crate) use measured::facts;

use crate::profile::Profile::{
    self, Apps, ChatGpt, Claude, CompanyKnowledge, DeepResearch, Protocol, Submission,
};
use crate::report::Severity::{self, Error, Note, Warning};
use crate::rule::{Fault, Rule, Verdict, ours, owner, report, several};
use crate::survey::{Call, Purpose, Seen};
use crate::text::shown;

/// Every rule, group by group.
pub(crate) const GROUPS: &[&[Rule]] = &[
    lifecycle::RULES,
    transport::RULES,
    tools::RULES,
    search_fetch::RULES,
    limits::RULES,
    auth::RULES,
    widgets::RULES,
    security::RULES,
    baseline::RULES,
];

/// The protocol, and every host: a fault matters the same to all of them.
const EVERYWHERE: &[(Profile, Severity)] = &[
    (Protocol, Error),
    (ChatGpt, Error),
    (DeepResearch, Error),
    (CompanyKnowledge, Error),
    (Claude, Error),
    (Apps, Error),
    (Submission, Error),
];

/// The two uses of ChatGPT that live on `search` and `fetch`.
const RETRIEVAL: &[(Profile, Severity)] = &[(DeepResearch, Error), (CompanyKnowledge, Error)];
const RETRIEVAL_SHOULD: &[(Profile, Severity)] =
    &[(DeepResearch, Warning), (CompanyKnowledge, Warning)];

const MUST: &[(Profile, Severity)] = &[(Protocol, Error)];
const SHOULD: &[(Profile, Severity)] = &[(Protocol, Warning)];

/// Why a rule cannot be held against a server that nobody could talk to; `None` where it can. A failed greeting is one
/// finding, and nothing is said of what follows from it.
pub(crate) fn unheld(rule: &Rule, seen: &Seen) -> Option<&'static str> {
    if rule.id == "lifecycle/answers" {
        return None;
    }
    if seen.is_locked {
        let is_sign_in = rule.group() == "auth";
        return match (is_sign_in, seen.has_token) {
            (true, _) => None,
            (false, true) => Some("not checked, because the server refuses the token"),
            (false, false) => Some("the server asks for sign-in; give a token"),
        };
    }
    (!seen.is_open).then_some("not checked, because the greeting failed")
}

const NOT_HTTP: Verdict = Verdict::Skipped("the server is a program, not an address");
const NO_TOOLS: Verdict = Verdict::Skipped("there are no tools");

/// A tool's name as it may be printed.
fn name(tool: &Value) -> String {
    let name = tool.get("name").and_then(Value::as_str);
    name.map_or_else(|| "(no name)".to_owned(), |name| shown(name, 80))
}

/// A text in a tool's descriptor; empty where there is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A member of a member.
fn within<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// What is wrong with each tool by itself.
fn of_tools(seen: &Seen, judge: impl Fn(&Value) -> Option<Fault>) -> Verdict {
    if seen.tools.is_empty() {
        return NO_TOOLS;
    }
    Verdict::Judged(seen.tools.iter().filter_map(judge).collect())
}

/// What is wrong with one probe.
fn of_probe(
    seen: &Seen,
    probe: &str,
    judge: impl Fn(&crate::exchange::Exchange) -> Option<Fault>,
) -> Verdict {
    match seen.probe(probe) {
        Some(exchange) => Verdict::one(judge(exchange).map(|fault| {
            if fault.sent.is_empty() {
                fault.from(exchange)
            } else {
                fault
            }
        })),
        None if !seen.is_http() => NOT_HTTP,
        None => Verdict::Skipped("there was nothing to ask"),
    }
}

/// What is wrong with each call of the pair for these purposes.
fn of_calls(seen: &Seen, purposes: &[Purpose], judge: impl Fn(&Call) -> Option<Fault>) -> Verdict {
    let asked = |call: &&Call| purposes.contains(&call.purpose) && !call.exchange.is_unsent();
    let calls: Vec<&Call> = seen.calls.iter().filter(asked).collect();
    if calls.is_empty() {
        return Verdict::Skipped("there was nothing to call");
    }
    let of_call = |call: &Call| {
        let fault = judge(call)?;
        Some(if fault.sent.is_empty() && fault.received.is_empty() {
            fault.from(&call.exchange)
        } else {
            fault
        })
    };
    Verdict::Judged(calls.into_iter().filter_map(of_call).collect())
}
