//! Rules about the texts of tools and instructions: hidden characters, steering of the model, prompt injection.
//!
//! The model reads these texts and the user rarely does, which makes them the place of tool poisoning. The phrases are
//! fixed lists that ordinary descriptions do not contain. Depth and number of texts are bounded.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, for_each_tool, name, text};
use crate::text::is_hidden;

/// Collects every string of a value, and the keys of its objects.
fn collect_texts<'a>(value: &'a Value, found: &mut Vec<&'a str>, depth: usize) {
    if depth > 32 || found.len() > 10_000 {
        return;
    }
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_texts(item, found, depth + 1)),
        Value::Object(members) => {
            for (key, member) in members {
                found.push(key);
                collect_texts(member, found, depth + 1);
            }
        }
        _ => {}
    }
}

pub(super) fn hidden(survey: &ServerSurvey) -> RuleVerdict {
    let instructions = Value::from(text(&survey.initialize_result, "instructions"));
    let named = survey
        .tools
        .iter()
        .map(|tool| (format!("the tool `{}`", name(tool)), tool));
    let all = named.chain([("`instructions`".to_owned(), &instructions)]);
    let faults = all.filter_map(|(where_, value)| {
        let mut found = Vec::new();
        collect_texts(value, &mut found, 0);
        let (text, c) = found
            .into_iter()
            .find_map(|text| Some((text, text.chars().find(|c| is_hidden(*c))?)))?;
        let what = format!(
            "{where_} holds the invisible character U+{:04X}",
            u32::from(c)
        );
        Some(RuleViolation::new(what).with_excerpt(&text))
    });
    RuleVerdict::Evaluated(faults.collect())
}

/// Phrases that steer the model away from other tools.
const STEERING: [&str; 12] = [
    "prefer this tool",
    "prefer this over",
    "always use this tool",
    "use this tool instead of",
    "instead of any other tool",
    "instead of other tools",
    "do not use built-in",
    "don't use built-in",
    "do not use web search",
    "do not use browsing",
    "do not use: built-in",
    "never use other tools",
];

pub(super) fn steering(survey: &ServerSurvey) -> RuleVerdict {
    for_descriptions_containing(survey, &STEERING, |tool, words| {
        format!("the description of `{tool}` says `{words}`")
    })
}

/// Phrases of prompt injection, which only a poisoned description contains.
const INJECTION: [&str; 12] = [
    "ignore previous instructions",
    "ignore all previous",
    "ignore the above",
    "disregard previous",
    "disregard all previous",
    "do not tell the user",
    "don't tell the user",
    "without telling the user",
    "do not mention this to the user",
    "<important>",
    "<system>",
    "you must always call this tool",
];

pub(super) fn injection(survey: &ServerSurvey) -> RuleVerdict {
    for_descriptions_containing(survey, &INJECTION, |tool, words| {
        format!("the description of `{tool}` holds `{words}`")
    })
}

/// Reports each tool whose descriptions, or those of its parameters, contain one of these phrases.
fn for_descriptions_containing(
    survey: &ServerSurvey,
    words: &[&str],
    what: impl Fn(&str, &str) -> String,
) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let mut found = Vec::new();
        descriptions(tool, &mut found, 0);
        let lower: Vec<String> = found.iter().map(|text| text.to_lowercase()).collect();
        let (at, word) = lower
            .iter()
            .enumerate()
            .find_map(|(at, text)| Some((at, words.iter().find(|word| text.contains(**word))?)))?;
        Some(RuleViolation::new(what(&name(tool), word)).with_excerpt(found.get(at)?))
    })
}

fn descriptions<'a>(value: &'a Value, found: &mut Vec<&'a str>, depth: usize) {
    if depth > 32 || found.len() > 1_000 {
        return;
    }
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if key == "description" || key == "title" => {
                        found.push(text);
                    }
                    other => descriptions(other, found, depth + 1),
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| descriptions(item, found, depth + 1)),
        _ => {}
    }
}
