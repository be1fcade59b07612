//! What `search` and `fetch` do when they are really called.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{
    CallPurpose, RuleVerdict, RuleViolation, ServerSurvey, SurveyedCall, for_calls,
};
use super::payload::dedupe_violations;
use crate::report::Severity::Warning;

fn calls_for(seen: &ServerSurvey, purpose: CallPurpose) -> impl Iterator<Item = &SurveyedCall> {
    seen.calls
        .iter()
        .filter(move |call| call.purpose == purpose && !call.exchange.was_not_sent())
}

const NO_SEARCH: RuleVerdict = RuleVerdict::Skipped("`search` could not be called");
const NO_RESULTS: RuleVerdict = RuleVerdict::Skipped("`search` returned nothing");

pub(super) fn finds(seen: &ServerSurvey) -> RuleVerdict {
    let tried: Vec<&SurveyedCall> = calls_for(seen, CallPurpose::Explore).collect();
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

pub(super) fn url_opens(seen: &ServerSurvey) -> RuleVerdict {
    let opened: Vec<_> = ["url-1", "url-2", "url-3"]
        .into_iter()
        .filter_map(|name| seen.probe(name))
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

pub(super) fn ids_round_trip(seen: &ServerSurvey) -> RuleVerdict {
    let found = seen
        .calls
        .iter()
        .any(|call| !call.returned_results().is_empty());
    if !found {
        return NO_RESULTS;
    }
    for_calls(seen, &[CallPurpose::Fetch], |call| {
        let asked = call.arguments.get("id")?.as_str()?;
        let Some(document) = call.payload() else {
            return Some(RuleViolation::new(format!(
                "`fetch` does not return `{asked}`, which `search` found"
            )));
        };
        let returned = document.get("id").and_then(Value::as_str)?;
        (returned != asked).then(|| {
            RuleViolation::new(format!("`fetch` of `{asked}` returns the id `{returned}`"))
        })
    })
}

pub(super) fn ids_unique(seen: &ServerSurvey) -> RuleVerdict {
    let searches: Vec<&SurveyedCall> = seen
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

pub(super) fn text_full(seen: &ServerSurvey) -> RuleVerdict {
    for_calls(seen, &[CallPurpose::Fetch], |call| {
        let document = call.payload()?;
        let text = document.get("text")?.as_str()?;
        text.trim()
            .is_empty()
            .then(|| RuleViolation::new("`fetch` returns a document without text"))
    })
}

pub(super) fn finds_title(seen: &ServerSurvey) -> RuleVerdict {
    let titled: Vec<&SurveyedCall> = calls_for(seen, CallPurpose::Title).collect();
    if titled.is_empty() {
        return NO_RESULTS;
    }
    let fault = |call: &&SurveyedCall| {
        let wanted = call.arguments.get("query")?.as_str()?;
        call.success()?;
        let same = |title: &str| title.chars().take(200).collect::<String>() == wanted;
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

pub(super) fn same_twice(seen: &ServerSurvey) -> RuleVerdict {
    let again: Vec<&SurveyedCall> = calls_for(seen, CallPurpose::Again).collect();
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
        let first = calls_for(seen, CallPurpose::Title)
            .find(|first| first.arguments == second.arguments)?;
        let both = first.success().is_some() && second.success().is_some();
        (both && ids(first) != ids(second)).then(|| {
            RuleViolation::new("the same question gets other results the second time")
                .with_exchange(&second.exchange)
        })
    };
    RuleVerdict::Evaluated(again.iter().filter_map(fault).collect())
}

/// Whether a call was answered: with a result or an error of the tool, or refused as a bad argument.
fn is_answered(call: &SurveyedCall) -> bool {
    call.result().is_some() || call.exchange.error_code() == Some(-32602)
}

pub(super) fn empty_query(seen: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(seen, &[CallPurpose::Empty], |call| {
        (!is_answered(call)).then(|| {
            RuleViolation::new("an empty query is neither answered nor refused with a message")
        })
    }))
}

pub(super) fn odd_queries(seen: &ServerSurvey) -> RuleVerdict {
    for_calls(seen, &[CallPurpose::Odd], |call| {
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
        // Refused at the door or by the protocol, the server stands all the same.
        Some(if call.exchange.has_server_failed() {
            fault
        } else {
            fault.at_most(Warning)
        })
    })
}

pub(super) fn missing_argument(seen: &ServerSurvey) -> RuleVerdict {
    for_calls(seen, &[CallPurpose::NoArgument], |call| {
        let refused = call.is_error()
            || call
                .exchange
                .error_code()
                .is_some_and(|code| code != -32603);
        (!refused)
            .then(|| RuleViolation::new("`search` without a query is not refused with a message"))
    })
}

pub(super) fn unknown_id(seen: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(seen, &[CallPurpose::UnknownId], |call| {
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
