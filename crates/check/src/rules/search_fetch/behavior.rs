//! Rules about the behavior of `search` and `fetch` in real calls.
//!
//! A declaration can be perfect while the tool finds nothing, so these rules judge what came back: results, ids that
//! can be fetched, and answers to hostile queries. An error with a message is an answer; a query that breaks the server
//! is the worst case.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{
    CallPurpose, RuleVerdict, RuleViolation, ServerSurvey, SurveyedCall, for_calls,
};
use super::payload::dedupe_violations;
use crate::report::Severity::Warning;
use crate::survey::MAX_TITLE_CHARS;
use crate::text::truncate_chars;

fn calls_for(survey: &ServerSurvey, purpose: CallPurpose) -> impl Iterator<Item = &SurveyedCall> {
    survey
        .calls
        .iter()
        .filter(move |call| call.purpose == purpose && !call.exchange.was_not_sent())
}

const NO_SEARCH: RuleVerdict = RuleVerdict::Skipped("`search` could not be called");
const NO_RESULTS: RuleVerdict = RuleVerdict::Skipped("`search` returned nothing");

pub(super) fn finds(survey: &ServerSurvey) -> RuleVerdict {
    let tried: Vec<&SurveyedCall> = calls_for(survey, CallPurpose::Explore).collect();
    let Some(last) = tried.last() else {
        return NO_SEARCH;
    };
    let lists = |call: &&SurveyedCall| {
        call.payload()
            .is_some_and(|payload| payload.get("results").is_some_and(Value::is_array))
    };
    if !tried.iter().any(lists) {
        return RuleVerdict::Skipped("`search` returned no list of results");
    }
    let nothing = tried.iter().all(|call| call.returned_results().is_empty());
    let queries: Vec<&str> = tried
        .iter()
        .filter_map(|call| call.arguments.get("query")?.as_str())
        .collect();
    RuleVerdict::from_option(nothing.then(|| {
        RuleViolation::new(format!(
            "`search` finds nothing for any of `{}`",
            queries.join("`, `")
        ))
        .with_exchange(&last.exchange)
    }))
}

pub(super) fn url_opens(survey: &ServerSurvey) -> RuleVerdict {
    let opened: Vec<_> = ["url-1", "url-2", "url-3"]
        .into_iter()
        .filter_map(|name| survey.probe(name))
        .collect();
    if opened.is_empty() {
        return RuleVerdict::Skipped("addresses are opened only with `--open-urls`");
    }
    let closed = opened
        .into_iter()
        .filter(|exchange| exchange.status().is_none_or(|status| status >= 400));
    RuleVerdict::Evaluated(
        closed
            .map(|exchange| {
                RuleViolation::new(format!("`{}` does not open", exchange.sent.url))
                    .with_exchange(exchange)
            })
            .collect(),
    )
}

pub(super) fn ids_round_trip(survey: &ServerSurvey) -> RuleVerdict {
    let found = survey
        .calls
        .iter()
        .any(|call| !call.returned_results().is_empty());
    if !found {
        return NO_RESULTS;
    }
    for_calls(survey, &[CallPurpose::Fetch], |call| {
        let requested = call.arguments.get("id")?.as_str()?;
        let Some(document) = call.payload() else {
            return Some(RuleViolation::new(format!(
                "`fetch` does not return `{requested}`, which `search` found"
            )));
        };
        let returned = document.get("id").and_then(Value::as_str)?;
        (returned != requested).then(|| {
            RuleViolation::new(format!(
                "`fetch` of `{requested}` returns the id `{returned}`"
            ))
        })
    })
}

pub(super) fn ids_unique(survey: &ServerSurvey) -> RuleVerdict {
    let searches: Vec<&SurveyedCall> = survey
        .calls
        .iter()
        .filter(|call| call.returned_results().len() > 1)
        .collect();
    if searches.is_empty() {
        return NO_RESULTS;
    }
    let fault = |call: &SurveyedCall| {
        let mut known = BTreeSet::new();
        let ids = call
            .returned_results()
            .into_iter()
            .filter_map(|found| found.id);
        let twice = ids.into_iter().find(|id| !known.insert(id.clone()))?;
        Some(
            RuleViolation::new(format!(
                "the id `{twice}` stands twice in one answer of `search`"
            ))
            .with_exchange(&call.exchange),
        )
    };
    RuleVerdict::from_option(searches.into_iter().find_map(fault))
}

pub(super) fn text_full(survey: &ServerSurvey) -> RuleVerdict {
    for_calls(survey, &[CallPurpose::Fetch], |call| {
        let document = call.payload()?;
        let text = document.get("text")?.as_str()?;
        text.trim()
            .is_empty()
            .then(|| RuleViolation::new("`fetch` returns a document without text"))
    })
}

pub(super) fn finds_title(survey: &ServerSurvey) -> RuleVerdict {
    let titled: Vec<&SurveyedCall> = calls_for(survey, CallPurpose::Title).collect();
    if titled.is_empty() {
        return NO_RESULTS;
    }
    let fault = |call: &&SurveyedCall| {
        let wanted = call.arguments.get("query")?.as_str()?;
        call.success()?;
        let same = |title: &str| truncate_chars(title, MAX_TITLE_CHARS) == wanted;
        let hit = call
            .returned_results()
            .iter()
            .any(|found| found.title.as_deref().is_some_and(same));
        (!hit).then(|| {
            RuleViolation::new(format!(
                "searching for the title `{wanted}` does not find it"
            ))
            .with_exchange(&call.exchange)
        })
    };
    RuleVerdict::Evaluated(titled.iter().filter_map(fault).collect())
}

pub(super) fn same_twice(survey: &ServerSurvey) -> RuleVerdict {
    let again: Vec<&SurveyedCall> = calls_for(survey, CallPurpose::Again).collect();
    if again.is_empty() {
        return NO_RESULTS;
    }
    let ids = |call: &SurveyedCall| {
        call.returned_results()
            .into_iter()
            .map(|found| found.id)
            .collect::<Vec<_>>()
    };
    let fault = |second: &&SurveyedCall| {
        let first = calls_for(survey, CallPurpose::Title)
            .find(|first| first.arguments == second.arguments)?;
        let both = first.success().is_some() && second.success().is_some();
        (both && ids(first) != ids(second)).then(|| {
            RuleViolation::new("the same query returns different results the second time")
                .with_exchange(&second.exchange)
        })
    };
    RuleVerdict::Evaluated(again.iter().filter_map(fault).collect())
}

/// Whether a call got a result, an error of the tool, or the error -32602 for invalid parameters.
fn is_answered(call: &SurveyedCall) -> bool {
    call.result().is_some() || call.exchange.error_code() == Some(-32602)
}

pub(super) fn empty_query(survey: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(survey, &[CallPurpose::Empty], |call| {
        (!is_answered(call)).then(|| {
            RuleViolation::new("an empty query is neither answered nor refused with a message")
        })
    }))
}

pub(super) fn odd_queries(survey: &ServerSurvey) -> RuleVerdict {
    for_calls(survey, &[CallPurpose::Odd], |call| {
        if is_answered(call) {
            return None;
        }
        let query: String = call
            .arguments
            .get("query")?
            .as_str()?
            .chars()
            .take(40)
            .collect();
        let fault = RuleViolation::new(format!("the query `{query}` is not answered"));
        // The server refused the request and is still running.
        Some(if call.exchange.has_server_failed() {
            fault
        } else {
            fault.at_most(Warning)
        })
    })
}

pub(super) fn missing_argument(survey: &ServerSurvey) -> RuleVerdict {
    for_calls(survey, &[CallPurpose::NoArgument], |call| {
        let refused = call.is_error()
            || call
                .exchange
                .error_code()
                .is_some_and(|code| code != -32603);
        (!refused)
            .then(|| RuleViolation::new("`search` without a query is not refused with a message"))
    })
}

pub(super) fn unknown_id(survey: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(survey, &[CallPurpose::UnknownId], |call| {
        let id = call.arguments.get("id")?.as_str()?;
        if id.is_empty() || call.is_error() || call.exchange.error_code() == Some(-32602) {
            return None;
        }
        let what = if call.success().is_some() {
            "returns a result"
        } else {
            "is not answered with `isError`"
        };
        Some(RuleViolation::new(format!(
            "`fetch` of an id that does not exist {what}"
        )))
    }))
}
