//! The list of tools as a whole.

use std::sync::Arc;

use serde_json::Value;

use super::super::{Fault, NO_TOOLS, Seen, Verdict, name};
use crate::exchange::Exchange;
use crate::survey::ToolList;

pub(super) fn list_form(seen: &Seen) -> Verdict {
    let mut faults = Vec::new();
    for (_, page) in &seen.tool_pages {
        if let Some(result) = page.result()
            && !result.get("tools").is_some_and(Value::is_array)
        {
            faults.push(Fault::new("`tools` is not a list").from(page));
        } else if page.result().is_none() && !page.is_unsent() && seen.tools.is_empty() {
            faults.push(Fault::new("`tools/list` has no result").from(page));
        }
    }
    faults.truncate(1);
    for tool in seen.tools.iter() {
        let named = tool
            .get("name")
            .and_then(Value::as_str)
            .is_some_and(|name| !name.is_empty());
        if !named || !tool.get("inputSchema").is_some_and(Value::is_object) {
            let what = format!(
                "the tool `{}` lacks its name or its `inputSchema`",
                name(tool)
            );
            faults.push(Fault::new(what).seen(tool));
        }
    }
    Verdict::Judged(faults)
}

pub(super) fn list_ends(seen: &Seen) -> Verdict {
    let answered = seen
        .tool_pages
        .iter()
        .any(|(_, page)| page.result().is_some());
    if !answered {
        return Verdict::Skipped("`tools/list` has no result");
    }
    let is_cut = |(_, page): &(bool, Arc<Exchange>)| page.is_unsent();
    if seen.tool_pages.iter().any(is_cut) {
        return Verdict::Skipped("the check had no room for all of the list");
    }
    let last = seen
        .tool_pages
        .iter()
        .rev()
        .find(|(_, page)| page.result().is_some());
    Verdict::one((!seen.tools_listed).then(|| {
        let fault = Fault::new("`tools/list` does not end within 50 pages and 1000 tools");
        last.map_or(fault.clone(), |(_, page)| fault.from(page))
    }))
}

pub(super) fn list_stable(seen: &Seen) -> Verdict {
    if seen.tools.is_empty() {
        return NO_TOOLS;
    }
    let Some(again) = &seen.tools_again else {
        return Verdict::Skipped("the check had no room for a second list");
    };
    let names = |tools: &ToolList| tools.iter().map(name).collect::<Vec<_>>();
    let (first, second) = (names(&seen.tools), names(again));
    Verdict::one((first != second).then(|| {
        Fault::new("`tools/list` differs when it is asked for again")
            .seen(&format!("{first:?} and {second:?}"))
    }))
}

pub(super) fn bad_cursor(seen: &Seen) -> Verdict {
    let Some(asked) = seen.probe("bad-cursor") else {
        return Verdict::Skipped("it was not asked");
    };
    let taken = asked.result().is_some();
    Verdict::one(
        taken.then(|| Fault::new("a cursor that was never handed out is taken").from(asked)),
    )
}
