//! Defects of `search` and `fetch`, and of sizes and latencies.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Broken, edited};
use crate::server::CannedReply;

/// Changes every result of a search.
fn results(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Broken {
    Broken::payload("search", move |payload| {
        if let Some(results) = payload["results"].as_array_mut() {
            results.iter_mut().for_each(&change);
        }
    })
}

/// Uses `reply` for searches whose query matches.
fn query(fits: fn(&str) -> bool, reply: fn() -> CannedReply) -> Broken {
    Broken::reply(move |_, call, good| {
        let sent_query = call.body["params"]["arguments"]["query"].as_str();
        if sent_query.is_some_and(fits) {
            reply()
        } else {
            good
        }
    })
}

pub(super) fn search_fetch(name: &str) -> Option<Broken> {
    Some(match name {
        "exist" => Broken::tools(|tools| tools[1]["name"] = json!("read")),
        "signatures" => Broken::tool(|tool| {
            tool["inputSchema"]["properties"]["limit"] = json!({"type": "integer"})
        }),
        "read-only" => Broken::tool(|tool| tool["annotations"]["readOnlyHint"] = json!(false)),
        "output-schema" => Broken::tool(|tool| tool["outputSchema"] = Value::Null),
        "finds" => Broken::payload("search", |payload| payload["results"] = json!([])),
        "one-text" => Broken::call("search", |_, result| {
            result["content"] = json!([{"type": "text", "text": "Found 3 documents"}])
        }),
        "structured" => Broken::call("search", |_, result| {
            result["content"][0]["text"] = json!("{\"results\": []}")
        }),
        "results-form" => results(|result| result["url"] = Value::Null),
        "results-alone" => Broken::payload("search", |payload| payload["total"] = json!(3)),
        "document-form" => Broken::payload("fetch", |payload| payload["title"] = json!(5)),
        "url-absolute" => results(|result| result["url"] = json!("x-documents://doc-1")),
        "url-cites" => results(|result| result["url"] = json!("")),
        "url-opens" => opening(404),
        "ids-round-trip" => Broken::payload("fetch", |payload| payload["id"] = json!("other")),
        "ids-unique" => results(|result| result["id"] = json!("doc-1")),
        "text-full" => Broken::payload("fetch", |payload| payload["text"] = json!(" ")),
        "finds-title" => Broken::call("search", |arguments, result| {
            if arguments["query"] == "Ferry timetable" {
                result["structuredContent"] = json!({"results": []});
                result["content"][0]["text"] = json!("{\"results\":[]}");
            }
        }),
        "same-twice" => {
            let count = AtomicUsize::new(0);
            Broken::payload("search", move |payload| {
                if let Some(results) = payload["results"].as_array_mut()
                    && count.fetch_add(1, Ordering::Relaxed) % 2 == 1
                {
                    results.clear();
                }
            })
        }
        "empty-query" => query(str::is_empty, || CannedReply::status(500)),
        "odd-queries" => query(
            |query| query.starts_with("((("),
            || CannedReply::status(500),
        ),
        "missing-argument" => Broken::call("search", |arguments, result| {
            if arguments["query"].is_null() {
                *result = json!({"content": [], "resultType": "complete"});
            }
        }),
        "unknown-id" => Broken::call("fetch", |_, result| {
            if result["isError"] == true {
                result["isError"] = json!(false);
            }
        }),
        _ => return None,
    })
}

/// A server whose results have URLs on itself, which answer with this status.
pub(crate) fn opening(status: u16) -> Broken {
    let broken = Broken::reply(move |origin, call, reply| {
        if call.path.starts_with("/d/") {
            return CannedReply::raw("text/html", "a document").coded(status);
        }
        edited(reply, |message| {
            let results = message.pointer("/result/structuredContent/results");
            if results.is_none() {
                return;
            }
            let payload = &mut message["result"]["structuredContent"];
            for result in payload["results"].as_array_mut().into_iter().flatten() {
                result["url"] = json!(format!(
                    "{origin}/d/{}",
                    result["id"].as_str().unwrap_or_default()
                ));
            }
            if payload["results"].is_array() {
                let text = payload.to_string();
                message["result"]["content"][0]["text"] = json!(text);
            }
        })
    });
    broken.checked(|options| options.open_urls = true)
}

pub(super) fn limits(name: &str) -> Option<Broken> {
    let long = |length: usize| {
        Broken::payload("fetch", move |payload| {
            payload["text"] = json!("x".repeat(length))
        })
    };
    Some(match name {
        "tool-list" => Broken::tool(|tool| tool["_meta"]["notes"] = json!("x".repeat(64_000))),
        "description" => Broken::tool(|tool| tool["description"] = json!("x".repeat(2_049))),
        "instructions" => Broken::result("server/discover", |result| {
            result["instructions"] = json!("x".repeat(2_049))
        }),
        "result-chars" => long(150_001),
        // The tool declares a limit of 150,000 characters; this is more, and about a quarter as many tokens.
        "result-tokens" => long(151_000),
        "answer-bytes" => Broken::reply(|_, call, reply| {
            if call.method() == "resources/templates/list" {
                CannedReply::endless("application/json")
            } else {
                reply
            }
        }),
        "latency" => Broken::reply(|_, call, reply| {
            let slow = call.body["params"]["arguments"]["id"] == "doc-2";
            if slow { CannedReply::silence() } else { reply }
        })
        .checked(|options| options.call_timeout = Duration::from_millis(700)),
        _ => return None,
    })
}
