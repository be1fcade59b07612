//! Rules about `tools/list` as a whole: its form, its pages and its order.
//!
//! The order matters because hosts cache the list: one that changes by chance looks like new tools. A list that the
//! budget of the check cut short is not judged, since its end is unknown.

use std::sync::Arc;

use serde_json::Value;

use super::super::{NO_TOOLS, RuleVerdict, RuleViolation, ServerSurvey, name};
use crate::exchange::RecordedExchange;
use crate::survey::ToolList;

pub(super) fn list_form(survey: &ServerSurvey) -> RuleVerdict {
    let mut faults = Vec::new();
    for (_, page) in &survey.tool_pages {
        if let Some(result) = page.result()
            && !result.get("tools").is_some_and(Value::is_array)
        {
            faults.push(RuleViolation::new("`tools` is not a list").with_exchange(page));
        } else if page.result().is_none() && !page.was_not_sent() && survey.tools.is_empty() {
            faults.push(RuleViolation::new("`tools/list` has no result").with_exchange(page));
        }
    }
    faults.truncate(1);
    for tool in survey.tools.iter() {
        let named = tool
            .get("name")
            .and_then(Value::as_str)
            .is_some_and(|name| !name.is_empty());
        if !named || !tool.get("inputSchema").is_some_and(Value::is_object) {
            let what = format!(
                "the tool `{}` lacks its name or its `inputSchema`",
                name(tool)
            );
            faults.push(RuleViolation::new(what).with_excerpt(tool));
        }
    }
    RuleVerdict::Evaluated(faults)
}

pub(super) fn list_ends(survey: &ServerSurvey) -> RuleVerdict {
    let answered = survey
        .tool_pages
        .iter()
        .any(|(_, page)| page.result().is_some());
    if !answered {
        return RuleVerdict::Skipped("`tools/list` has no result");
    }
    let is_cut = |(_, page): &(bool, Arc<RecordedExchange>)| page.was_not_sent();
    if survey.tool_pages.iter().any(is_cut) {
        return RuleVerdict::Skipped("the budget of the check ended before the list did");
    }
    let last = survey
        .tool_pages
        .iter()
        .rev()
        .find(|(_, page)| page.result().is_some());
    RuleVerdict::from_option((!survey.tools_listed).then(|| {
        let fault = RuleViolation::new("`tools/list` does not end within 50 pages and 1000 tools");
        last.map_or(fault.clone(), |(_, page)| fault.with_exchange(page))
    }))
}

pub(super) fn list_stable(survey: &ServerSurvey) -> RuleVerdict {
    if survey.tools.is_empty() {
        return NO_TOOLS;
    }
    let Some(again) = &survey.tools_again else {
        return RuleVerdict::Skipped("the budget of the check ended before the second list");
    };
    let names = |tools: &ToolList| tools.iter().map(name).collect::<Vec<_>>();
    let (first, second) = (names(&survey.tools), names(again));
    RuleVerdict::from_option((first != second).then(|| {
        RuleViolation::new("`tools/list` differs when it is asked for again")
            .with_excerpt(&format!("{first:?} and {second:?}"))
    }))
}

pub(super) fn bad_cursor(survey: &ServerSurvey) -> RuleVerdict {
    let Some(exchange) = survey.probe("bad-cursor") else {
        return RuleVerdict::Skipped("the request was not sent");
    };
    let taken = exchange.result().is_some();
    RuleVerdict::from_option(taken.then(|| {
        RuleViolation::new("a cursor that was never issued is accepted").with_exchange(exchange)
    }))
}
