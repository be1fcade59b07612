//! What was seen of a server into what is wrong with it: one table of rules, a file for each group.
//!
//! To add a rule: an entry in the table of its group, the function that judges, and a broken server for
//! it in the tests, which look at every entry.

mod auth;
mod baseline;
mod lifecycle;
mod limits;
mod measurements;
mod search_fetch;
mod security;
mod tools;
mod transport;
mod widgets;

use serde_json::Value;

pub(crate) use measurements::measured_facts;

use crate::profile::CheckProfile::{
    self, Apps, ChatGpt, Claude, CompanyKnowledge, DeepResearch, Protocol, Submission,
};
use crate::report::Severity::{self, Error, Note, Warning};
use crate::rule::{
    CheckRule, RuleVerdict, RuleViolation, corroborated, official, own_measure, single_report,
};
use crate::survey::{CallPurpose, ServerSurvey, SurveyedCall};
use crate::text::printable;

/// Every rule, group by group.
pub(crate) const GROUPS: &[&[CheckRule]] = &[
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
const EVERYWHERE: &[(CheckProfile, Severity)] = &[
    (Protocol, Error),
    (ChatGpt, Error),
    (DeepResearch, Error),
    (CompanyKnowledge, Error),
    (Claude, Error),
    (Apps, Error),
    (Submission, Error),
];

/// The two uses of ChatGPT that live on `search` and `fetch`.
const RETRIEVAL: &[(CheckProfile, Severity)] = &[(DeepResearch, Error), (CompanyKnowledge, Error)];
const RETRIEVAL_SHOULD: &[(CheckProfile, Severity)] =
    &[(DeepResearch, Warning), (CompanyKnowledge, Warning)];

const MUST: &[(CheckProfile, Severity)] = &[(Protocol, Error)];
const SHOULD: &[(CheckProfile, Severity)] = &[(Protocol, Warning)];

/// Why a rule cannot be held against a server that nobody could talk to; `None` where it can. A failed greeting is one
/// finding, and nothing is said of what follows from it.
pub(crate) fn skip_reason(rule: &CheckRule, seen: &ServerSurvey) -> Option<&'static str> {
    if rule.id == "lifecycle/answers" {
        return None;
    }
    if seen.requires_sign_in {
        let is_sign_in = rule.group() == "auth";
        return match (is_sign_in, seen.has_token) {
            (true, _) => None,
            (false, true) => Some("not checked, because the server refuses the token"),
            (false, false) => Some("the server asks for sign-in; give a token"),
        };
    }
    (!seen.is_connected).then_some("not checked, because the greeting failed")
}

const NOT_HTTP: RuleVerdict = RuleVerdict::Skipped("the server is a program, not an address");
const NO_TOOLS: RuleVerdict = RuleVerdict::Skipped("there are no tools");

/// A tool's name as it may be printed.
fn name(tool: &Value) -> String {
    let name = tool.get("name").and_then(Value::as_str);
    name.map_or_else(|| "(no name)".to_owned(), |name| printable(name, 80))
}

/// A text in a tool's descriptor; empty where there is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A member of a member.
fn at_path<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// What is wrong with each tool by itself.
fn for_each_tool(
    seen: &ServerSurvey,
    judge: impl Fn(&Value) -> Option<RuleViolation>,
) -> RuleVerdict {
    if seen.tools.is_empty() {
        return NO_TOOLS;
    }
    RuleVerdict::Evaluated(seen.tools.iter().filter_map(judge).collect())
}

/// What is wrong with one probe.
fn for_probe(
    seen: &ServerSurvey,
    probe: &str,
    judge: impl Fn(&crate::exchange::RecordedExchange) -> Option<RuleViolation>,
) -> RuleVerdict {
    match seen.probe(probe) {
        Some(exchange) => RuleVerdict::from_option(judge(exchange).map(|fault| {
            if fault.sent.is_empty() {
                fault.with_exchange(exchange)
            } else {
                fault
            }
        })),
        None if !seen.is_http() => NOT_HTTP,
        None => RuleVerdict::Skipped("there was nothing to ask"),
    }
}

/// What is wrong with each call of the pair for these purposes.
fn for_calls(
    seen: &ServerSurvey,
    purposes: &[CallPurpose],
    judge: impl Fn(&SurveyedCall) -> Option<RuleViolation>,
) -> RuleVerdict {
    let asked =
        |call: &&SurveyedCall| purposes.contains(&call.purpose) && !call.exchange.was_not_sent();
    let calls: Vec<&SurveyedCall> = seen.calls.iter().filter(asked).collect();
    if calls.is_empty() {
        return RuleVerdict::Skipped("there was nothing to call");
    }
    let of_call = |call: &SurveyedCall| {
        let fault = judge(call)?;
        Some(if fault.sent.is_empty() && fault.received.is_empty() {
            fault.with_exchange(&call.exchange)
        } else {
            fault
        })
    };
    RuleVerdict::Evaluated(calls.into_iter().filter_map(of_call).collect())
}
