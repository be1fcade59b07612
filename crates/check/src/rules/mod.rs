//! The rule table: one file for each group, and the helpers that evaluate a rule for every tool, call or probe.
//!
//! To add a rule, add an entry to the table of its group, write its `evaluate` function, add a server that breaks it to
//! `tests/contract/broken/*.rs`, and write `docs/rules.md` again with `docent check --list-rules --format markdown`.
//! Tests fail for a rule without such a server, and for a page that is out of date.

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

/// All rules, in groups, in the order of the report.
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

/// An error in every profile, because no host works with such a server.
const EVERYWHERE: &[(CheckProfile, Severity)] = &[
    (Protocol, Error),
    (ChatGpt, Error),
    (DeepResearch, Error),
    (CompanyKnowledge, Error),
    (Claude, Error),
    (Apps, Error),
    (Submission, Error),
];

/// The two features of ChatGPT that depend on `search` and `fetch`.
const RETRIEVAL: &[(CheckProfile, Severity)] = &[(DeepResearch, Error), (CompanyKnowledge, Error)];
const RETRIEVAL_SHOULD: &[(CheckProfile, Severity)] =
    &[(DeepResearch, Warning), (CompanyKnowledge, Warning)];

const MUST: &[(CheckProfile, Severity)] = &[(Protocol, Error)];
const SHOULD: &[(CheckProfile, Severity)] = &[(Protocol, Warning)];

/// Why a rule cannot be evaluated, because the handshake failed or the server requires sign-in; `None` where it can be.
/// A failed handshake is one finding, and its consequences are not reported.
pub(crate) fn skip_reason(rule: &CheckRule, survey: &ServerSurvey) -> Option<&'static str> {
    if rule.id == "lifecycle/answers" {
        return None;
    }
    if survey.requires_sign_in {
        let is_sign_in = rule.group() == "auth";
        return match (is_sign_in, survey.has_token) {
            (true, _) => None,
            (false, true) => Some("not checked, because the server refuses the token"),
            (false, false) => Some("the server asks for sign-in; give a token"),
        };
    }
    (!survey.is_connected).then_some("not checked, because the handshake failed")
}

const NOT_HTTP: RuleVerdict =
    RuleVerdict::Skipped("the server is a stdio program, not an HTTP endpoint");
const NO_TOOLS: RuleVerdict = RuleVerdict::Skipped("there are no tools");

/// The name of a tool, safe to print.
fn name(tool: &Value) -> String {
    let name = tool.get("name").and_then(Value::as_str);
    name.map_or_else(|| "(no name)".to_owned(), |name| printable(name, 80))
}

/// A string member of an object; empty where there is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a path of member names.
fn at_path<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// Evaluates a rule for each tool.
fn for_each_tool(
    survey: &ServerSurvey,
    judge: impl Fn(&Value) -> Option<RuleViolation>,
) -> RuleVerdict {
    if survey.tools.is_empty() {
        return NO_TOOLS;
    }
    RuleVerdict::Evaluated(survey.tools.iter().filter_map(judge).collect())
}

/// Evaluates a rule for one probe, and adds its exchange as evidence.
fn for_probe(
    survey: &ServerSurvey,
    probe: &str,
    judge: impl Fn(&crate::exchange::RecordedExchange) -> Option<RuleViolation>,
) -> RuleVerdict {
    match survey.probe(probe) {
        Some(exchange) => RuleVerdict::from_option(judge(exchange).map(|fault| {
            if fault.sent.is_empty() {
                fault.with_exchange(exchange)
            } else {
                fault
            }
        })),
        None if !survey.is_http() => NOT_HTTP,
        None => RuleVerdict::Skipped("the probe was not sent"),
    }
}

/// Evaluates a rule for each tool call with one of these purposes, and adds its exchange as evidence.
fn for_calls(
    survey: &ServerSurvey,
    purposes: &[CallPurpose],
    judge: impl Fn(&SurveyedCall) -> Option<RuleViolation>,
) -> RuleVerdict {
    let is_selected =
        |call: &&SurveyedCall| purposes.contains(&call.purpose) && !call.exchange.was_not_sent();
    let calls: Vec<&SurveyedCall> = survey.calls.iter().filter(is_selected).collect();
    if calls.is_empty() {
        return RuleVerdict::Skipped("no such call was made");
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
