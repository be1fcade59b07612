//! Rules about the lists of resources and prompts: whether they can be read, and whether their entries are complete.
//!
//! A declared capability is a promise, so its list must be readable. An undeclared one must be empty or refused
//! cleanly, because ChatGPT was seen to ask every server for it.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, at_path, text};

const LISTS: [(&str, &str, &str); 2] = [
    ("resources", "resources/list", "resources"),
    ("prompts", "prompts/list", "prompts"),
];

pub(super) fn declared(survey: &ServerSurvey) -> RuleVerdict {
    let is_declared =
        |name: &str| at_path(&survey.initialize_result, &["capabilities", name]).is_some();
    let declared = LISTS.into_iter().filter(|(name, ..)| is_declared(name));
    let fault = |(probe, method, key): (&str, &str, &str)| {
        let listed = survey.probe(probe)?;
        let good = listed
            .result()
            .and_then(|result| result.get(key))
            .is_some_and(Value::is_array);
        (!good).then(|| {
            RuleViolation::new(format!(
                "`{key}` are declared, but `{method}` returns no list"
            ))
            .with_exchange(listed)
        })
    };
    let declared: Vec<_> = declared.collect();
    if declared.is_empty() {
        return RuleVerdict::Skipped("neither resources nor prompts are declared");
    }
    RuleVerdict::Evaluated(declared.into_iter().filter_map(fault).collect())
}

pub(super) fn undeclared(survey: &ServerSurvey) -> RuleVerdict {
    let is_declared =
        |name: &str| at_path(&survey.initialize_result, &["capabilities", name]).is_some();
    let undeclared: Vec<_> = LISTS
        .into_iter()
        .filter(|(name, ..)| !is_declared(name))
        .collect();
    if undeclared.is_empty() {
        return RuleVerdict::Skipped("resources and prompts are declared");
    }
    let fault = |(probe, method, key): (&str, &str, &str)| {
        let listed = survey.probe(probe)?;
        let empty = listed
            .result()
            .and_then(|result| result.get(key))
            .is_some_and(Value::is_array);
        let refused = listed.error().is_some();
        (!empty && !refused).then(|| {
            RuleViolation::new(format!(
                "`{method}` is neither answered nor refused cleanly"
            ))
            .with_exchange(listed)
        })
    };
    RuleVerdict::Evaluated(undeclared.into_iter().filter_map(fault).collect())
}

/// Reports the first entry of each list that lacks a required member.
pub(super) fn entries(survey: &ServerSurvey) -> RuleVerdict {
    let listed = |(probe, _, key): (&'static str, &str, &str)| {
        let exchange = survey.probe(probe)?;
        let all = exchange.result()?.get(key)?.as_array()?;
        (!all.is_empty()).then_some((key.to_owned(), exchange, all))
    };
    let lists: Vec<_> = LISTS.into_iter().filter_map(listed).collect();
    if lists.is_empty() {
        return RuleVerdict::Skipped("there are neither resources nor prompts");
    }
    let faults = lists.into_iter().filter_map(|(key, exchange, all)| {
        let wanted: &[&str] = if key == "resources" {
            &["uri", "name"]
        } else {
            &["name"]
        };
        let lacks = |entry: &Value| wanted.iter().any(|member| text(entry, member).is_empty());
        let bad = all.iter().find(|entry| lacks(entry))?;
        let what = format!(
            "an entry of `{key}` lacks its `{}`",
            wanted.join("` or its `")
        );
        let mut fault = RuleViolation::new(what).with_excerpt(bad);
        fault.sent = exchange.sent_line();
        Some(fault)
    });
    RuleVerdict::Evaluated(faults.collect())
}
