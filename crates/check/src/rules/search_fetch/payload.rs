//! Rules about the form of what `search` and `fetch` return.
//!
//! The hosts parse these answers by a fixed shape, so a missing member, or a `null` in place of a text, is a violation.
//! A mistake of form usually occurs in every response; it is reported once, not once for each call.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{
    CallPurpose, RuleVerdict, RuleViolation, ServerSurvey, SurveyedCall, for_calls,
};
use crate::report::Severity::Warning;

/// Removes violations with equal messages, since the same mistake usually occurs in every response.
pub(super) fn dedupe_violations(verdict: RuleVerdict) -> RuleVerdict {
    let RuleVerdict::Evaluated(faults) = verdict else {
        return verdict;
    };
    let mut kept: Vec<RuleViolation> = Vec::new();
    for fault in faults {
        if !kept.iter().any(|known| known.message == fault.message) {
            kept.push(fault);
        }
    }
    RuleVerdict::Evaluated(kept)
}

fn texts(result: &Value) -> Vec<&str> {
    let items = result.get("content").and_then(Value::as_array);
    let is_text = |item: &&Value| item.get("type").is_some_and(|kind| kind == "text");
    items
        .into_iter()
        .flatten()
        .filter(is_text)
        .filter_map(|item| item.get("text")?.as_str())
        .collect()
}

pub(super) fn one_text(survey: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(survey, CallPurpose::PAIR, |call| {
        let result = call.success()?;
        let items = result
            .get("content")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        let texts = texts(result);
        let tool = &call.tool;
        match texts.as_slice() {
            [text] if items == 1 => match serde_json::from_str::<Value>(text) {
                Ok(value) if value.is_object() => None,
                Ok(_) => Some(RuleViolation::new(format!(
                    "the text of `{tool}` is JSON, but not an object"
                ))),
                Err(_) => Some(RuleViolation::new(format!(
                    "the text of `{tool}` is not JSON"
                ))),
            },
            _ => Some(RuleViolation::new(format!(
                "`{tool}` returns {items} items of content, not one text"
            ))),
        }
    }))
}

pub(super) fn structured(survey: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(survey, CallPurpose::PAIR, |call| {
        let result = call.success()?;
        let tool = &call.tool;
        let Some(structured) = result.get("structuredContent") else {
            // Older samples of OpenAI return the text alone, and work.
            return Some(
                RuleViolation::new(format!("`{tool}` returns no `structuredContent`"))
                    .at_most(Warning),
            );
        };
        let text = texts(result)
            .first()
            .and_then(|text| serde_json::from_str::<Value>(text).ok())?;
        (text != *structured).then(|| {
            RuleViolation::new(format!(
                "the text of `{tool}` is not its `structuredContent`"
            ))
        })
    }))
}

/// The payload of a successful call; null where it is not JSON.
fn payload(call: &SurveyedCall) -> Option<Value> {
    call.success().map(|_| call.payload().unwrap_or_default())
}

pub(super) fn results_form(survey: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(survey, CallPurpose::SEARCHES, |call| {
        let payload = payload(call)?;
        let Some(results) = payload.get("results").and_then(Value::as_array) else {
            return Some(RuleViolation::new("`search` returns no list `results`"));
        };
        let wrong = |result: &Value| {
            ["id", "title", "url"]
                .into_iter()
                .find(|key| !result.get(key).is_some_and(Value::is_string))
        };
        let key = results.iter().find_map(wrong)?;
        Some(RuleViolation::new(format!(
            "a result of `search` has no text `{key}`"
        )))
    }))
}

pub(super) fn results_alone(survey: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(survey, CallPurpose::SEARCHES, |call| {
        let payload = payload(call)?;
        let members = payload.as_object()?;
        let other = members.keys().find(|key| *key != "results")?;
        members
            .contains_key("results")
            .then(|| RuleViolation::new(format!("`search` returns `{other}` beside `results`")))
    }))
}

pub(super) fn document_form(survey: &ServerSurvey) -> RuleVerdict {
    dedupe_violations(for_calls(survey, &[CallPurpose::Fetch], |call| {
        let document = payload(call)?;
        let missing = ["id", "title", "text", "url"]
            .into_iter()
            .find(|key| !document.get(key).is_some_and(Value::is_string));
        if let Some(key) = missing {
            return Some(RuleViolation::new(format!(
                "`fetch` returns no text `{key}`"
            )));
        }
        let good = match document.get("metadata") {
            None => true,
            Some(Value::Object(metadata)) => metadata.values().all(Value::is_string),
            Some(_) => false,
        };
        (!good).then(|| {
            RuleViolation::new("`metadata` of `fetch` is no object of texts").at_most(Warning)
        })
    }))
}

/// Every URL that was returned, with its call.
fn urls(survey: &ServerSurvey) -> Vec<(&SurveyedCall, String)> {
    let mut urls = Vec::new();
    for call in survey
        .calls
        .iter()
        .filter(|call| CallPurpose::PAIR.contains(&call.purpose))
    {
        urls.extend(
            call.returned_results()
                .into_iter()
                .filter_map(|found| Some((call, found.url?))),
        );
        if call.purpose == CallPurpose::Fetch {
            let url = call
                .payload()
                .and_then(|document| document.get("url")?.as_str().map(str::to_owned));
            urls.extend(url.map(|url| (call, url)));
        }
    }
    urls
}

const NO_RESULTS: RuleVerdict = RuleVerdict::Skipped("`search` returned nothing");

pub(super) fn url_absolute(survey: &ServerSurvey) -> RuleVerdict {
    let urls = urls(survey);
    if urls.is_empty() {
        return NO_RESULTS;
    }
    let good = |url: &str| {
        let rest = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"));
        url.is_empty()
            || rest.is_some_and(|rest| {
                !rest.is_empty() && !rest.starts_with('/') && !url.contains(char::is_whitespace)
            })
    };
    let wrong = urls.iter().find(|(_, url)| !good(url));
    RuleVerdict::from_option(wrong.map(|(call, url)| {
        RuleViolation::new(format!("`{}` returns the url `{url}`", call.tool))
            .with_exchange(&call.exchange)
    }))
}

pub(super) fn url_cites(survey: &ServerSurvey) -> RuleVerdict {
    // Results of odd queries may hold a notice, which is no document, so they do not count. A notice that comes with
    // every response counts once, because results are collected by id.
    let mut urls: BTreeMap<String, (String, &SurveyedCall)> = BTreeMap::new();
    for call in survey
        .calls
        .iter()
        .filter(|call| CallPurpose::ASKED.contains(&call.purpose))
    {
        for found in call.returned_results() {
            if let (Some(id), Some(url)) = (found.id, found.url) {
                urls.entry(id).or_insert((url, call));
            }
        }
    }
    if urls.is_empty() {
        return NO_RESULTS;
    }
    let empty: Vec<&SurveyedCall> = urls
        .values()
        .filter(|(url, _)| url.is_empty())
        .map(|(_, call)| *call)
        .collect();
    let first = empty.first().filter(|_| empty.len() * 2 > urls.len());
    RuleVerdict::from_option(first.map(|call| {
        let what = format!("{} of {} results have no url", empty.len(), urls.len());
        RuleViolation::new(what).with_exchange(&call.exchange)
    }))
}
