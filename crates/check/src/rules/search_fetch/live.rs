//! What `search` and `fetch` do when they are really called.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{Call, Fault, Purpose, Seen, Verdict, of_calls};
use super::payload::once;
use crate::report::Severity::Warning;

fn of(seen: &Seen, purpose: Purpose) -> impl Iterator<Item = &Call> {
    seen.calls
        .iter()
        .filter(move |call| call.purpose == purpose && !call.exchange.is_unsent())
}

const NO_SEARCH: Verdict = Verdict::Skipped("`search` could not be called");
const NO_RESULTS: Verdict = Verdict::Skipped("`search` returned nothing");

pub(super) fn finds(seen: &Seen) -> Verdict {
    let tried: Vec<&Call> = of(seen, Purpose::Explore).collect();
    let Some(last) = tried.last() else {
        return NO_SEARCH;
    };
    let lists = |call: &&Call| {
        call.payload()
            .is_some_and(|payload| payload.get("results").is_some_and(Value::is_array))
    };
    if !tried.iter().any(lists) {
        return Verdict::Skipped("`search` returned no list of results");
    }
    let nothing = tried.iter().all(|call| call.found().is_empty());
    let queries: Vec<&str> = tried
        .iter()
        .filter_map(|call| call.arguments.get("query")?.as_str())
        .collect();
    Verdict::one(nothing.then(|| {
        Fault::new(format!(
            "`search` finds nothing for any of `{}`",
            queries.join("`, `")
        ))
        .from(&last.exchange)
    }))
}

pub(super) fn url_opens(seen: &Seen) -> Verdict {
    let opened: Vec<_> = ["url-1", "url-2", "url-3"]
        .into_iter()
        .filter_map(|name| seen.probe(name))
        .collect();
    if opened.is_empty() {
        return Verdict::Skipped("addresses are opened only with `--open-urls`");
    }
    let closed = opened
        .into_iter()
        .filter(|exchange| exchange.status().is_none_or(|status| status >= 400));
    Verdict::Judged(
        closed
            .map(|exchange| {
                Fault::new(format!("`{}` does not open", exchange.sent.url)).from(exchange)
            })
            .collect(),
    )
}

pub(super) fn ids_round_trip(seen: &Seen) -> Verdict {
    let found = seen.calls.iter().any(|call| !call.found().is_empty());
    if !found {
        return NO_RESULTS;
    }
    of_calls(seen, &[Purpose::Fetch], |call| {
        let asked = call.arguments.get("id")?.as_str()?;
        let Some(document) = call.payload() else {
            return Some(Fault::new(format!(
                "`fetch` does not return `{asked}`, which `search` found"
            )));
        };
        let returned = document.get("id").and_then(Value::as_str)?;
        (returned != asked)
            .then(|| Fault::new(format!("`fetch` of `{asked}` returns the id `{returned}`")))
    })
}

pub(super) fn ids_unique(seen: &Seen) -> Verdict {
    let searches: Vec<&Call> = seen
        .calls
        .iter()
        .filter(|call| call.found().len() > 1)
        .collect();
    if searches.is_empty() {
        return NO_RESULTS;
    }
    let fault = |call: &Call| {
        let mut known = BTreeSet::new();
        let ids = call.found().into_iter().filter_map(|found| found.id);
        let twice = ids.into_iter().find(|id| !known.insert(id.clone()))?;
        Some(
            Fault::new(format!(
                "the id `{twice}` stands twice in one answer of `search`"
            ))
            .from(&call.exchange),
        )
    };
    Verdict::one(searches.into_iter().find_map(fault))
}

pub(super) fn text_full(seen: &Seen) -> Verdict {
    of_calls(seen, &[Purpose::Fetch], |call| {
        let document = call.payload()?;
        let text = document.get("text")?.as_str()?;
        text.trim()
            .is_empty()
            .then(|| Fault::new("`fetch` returns a document without text"))
    })
}

pub(super) fn finds_title(seen: &Seen) -> Verdict {
    let titled: Vec<&Call> = of(seen, Purpose::Title).collect();
    if titled.is_empty() {
        return NO_RESULTS;
    }
    let fault = |call: &&Call| {
        let wanted = call.arguments.get("query")?.as_str()?;
        call.success()?;
        let same = |title: &str| title.chars().take(200).collect::<String>() == wanted;
        let hit = call
            .found()
            .iter()
            .any(|found| found.title.as_deref().is_some_and(same));
        (!hit).then(|| {
            Fault::new(format!(
                "searching for the title `{wanted}` does not find it"
            ))
            .from(&call.exchange)
        })
    };
    Verdict::Judged(titled.iter().filter_map(fault).collect())
}

pub(super) fn same_twice(seen: &Seen) -> Verdict {
    let again: Vec<&Call> = of(seen, Purpose::Again).collect();
    if again.is_empty() {
        return NO_RESULTS;
    }
    let ids = |call: &Call| {
        call.found()
            .into_iter()
            .map(|found| found.id)
            .collect::<Vec<_>>()
    };
    let fault = |second: &&Call| {
        let first = of(seen, Purpose::Title).find(|first| first.arguments == second.arguments)?;
        let both = first.success().is_some() && second.success().is_some();
        (both && ids(first) != ids(second)).then(|| {
            Fault::new("the same question gets other results the second time")
                .from(&second.exchange)
        })
    };
    Verdict::Judged(again.iter().filter_map(fault).collect())
}

/// Whether a call was answered: with a result or an error of the tool, or refused as a bad argument.
fn is_answered(call: &Call) -> bool {
    call.result().is_some() || call.exchange.code() == Some(-32602)
}

pub(super) fn empty_query(seen: &Seen) -> Verdict {
    once(of_calls(seen, &[Purpose::Empty], |call| {
        (!is_answered(call))
            .then(|| Fault::new("an empty query is neither answered nor refused with a message"))
    }))
}

pub(super) fn odd_queries(seen: &Seen) -> Verdict {
    of_calls(seen, &[Purpose::Odd], |call| {
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
        let fault = Fault::new(format!("the query `{query}` is not answered"));
        // Refused at the door or by the protocol, the server stands all the same.
        Some(if call.exchange.broke() {
            fault
        } else {
            fault.at_most(Warning)
        })
    })
}

pub(super) fn missing_argument(seen: &Seen) -> Verdict {
    of_calls(seen, &[Purpose::NoArgument], |call| {
        let refused = call.is_error() || call.exchange.code().is_some_and(|code| code != -32603);
        (!refused).then(|| Fault::new("`search` without a query is not refused with a message"))
    })
}

pub(super) fn unknown_id(seen: &Seen) -> Verdict {
    once(of_calls(seen, &[Purpose::UnknownId], |call| {
        let id = call.arguments.get("id")?.as_str()?;
        if id.is_empty() || call.is_error() || call.exchange.code() == Some(-32602) {
            return None;
        }
        let what = if call.success().is_some() {
            "returns a result"
        } else {
            "is not answered with `isError`"
        };
        Some(Fault::new(format!(
            "`fetch` of an id that does not exist {what}"
        )))
    }))
}
