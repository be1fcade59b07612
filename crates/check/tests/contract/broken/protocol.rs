//! Defects of the lifecycle, of the transport and of security.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{Broken, edited, result_of};
use crate::server::{CannedReply, Patience};

pub(super) fn lifecycle(name: &str) -> Option<Broken> {
    Some(match name {
        "answers" => Broken::reply(|_, _, _| CannedReply::raw("text/html", "<p>hello")),
        "discover-probe" => Broken::reply(|_, call, reply| {
            if call.method() == "server/discover" {
                CannedReply::status(500)
            } else {
                reply
            }
        }),
        "discover-result" => {
            Broken::result("server/discover", |result| result["ttlMs"] = json!("soon"))
        }
        "discover-kept" => Broken::reply(|_, call, reply| {
            let modern = call.header("mcp-method") == Some("tools/list");
            if modern {
                CannedReply::status(400)
            } else {
                reply
            }
        }),
        "initialize-result" => Broken::result("initialize", |result| {
            result["serverInfo"] = json!({"name": "x"})
        }),
        "version-negotiation" => Broken::reply(|_, call, reply| {
            let requested = call.body["params"]["protocolVersion"].clone();
            edited(reply, |message| {
                if requested == "1999-01-01" {
                    message["result"]["protocolVersion"] = requested.clone();
                }
            })
        }),
        "no-modern-initialize" => Broken::reply(|_, call, reply| {
            let requested = call.body["params"]["protocolVersion"].clone();
            edited(reply, |message| {
                if requested == "2026-07-28" {
                    message["result"]["protocolVersion"] = requested.clone();
                }
            })
        }),
        "tools-declared" => Broken::result("server/discover", |result| {
            result["capabilities"] = json!({})
        }),
        "declared-lists" => Broken::reply(|_, call, reply| {
            if call.method() == "resources/list" {
                CannedReply::status(500)
            } else {
                reply
            }
        }),
        "list-entries" => Broken::result("resources/list", |result| {
            result["resources"][0]["name"] = json!("")
        }),
        "undeclared-lists" => Broken::reply(|_, call, reply| {
            if call.method() == "prompts/list" {
                CannedReply::status(500)
            } else {
                reply
            }
        }),
        "ping" => Broken::reply(|_, call, reply| {
            if call.method() == "ping" {
                CannedReply::status(404)
            } else {
                reply
            }
        }),
        "unknown-method" => Broken::reply(|_, call, reply| {
            if call.method().starts_with("docent/") {
                result_of(call, &json!({"resultType": "complete"}))
            } else {
                reply
            }
        }),
        "ids-repeated" => Broken::reply(|_, call, reply| {
            let prompts = call.method() == "resources/templates/list";
            edited(reply, |message| {
                if prompts {
                    message["id"] = json!(call.body["id"].to_string());
                }
            })
        }),
        "result-type" => Broken::reply(|_, call, reply| {
            let listed = call.method() == "tools/list";
            edited(reply, |message| {
                if let Some(result) = message["result"].as_object_mut().filter(|_| listed) {
                    result.remove("resultType");
                }
            })
        }),
        "cache-hints" => Broken::result("resources/list", |result| {
            result["cacheScope"] = json!("everyone")
        }),
        "json-output" => Broken::reply(|_, call, reply| {
            if call.method() == "resources/templates/list" {
                CannedReply::raw("application/json", "{oops")
            } else {
                reply
            }
        }),
        "both-eras" => Broken::reply(|_, call, reply| {
            let legacy = call.method() == "tools/list" && call.header("mcp-method").is_none();
            edited(reply, |message| {
                if let Some(tools) = message["result"]["tools"].as_array_mut().filter(|_| legacy) {
                    tools.pop();
                }
            })
        }),
        "server-name" => Broken::result("server/discover", |result| result["_meta"] = json!({})),
        _ => return None,
    })
}

/// Uses `reply` for requests with this header.
fn when(header: &'static str, value: &'static str, reply: fn() -> CannedReply) -> Broken {
    Broken::reply(move |_, call, good| {
        if call.header(header) == Some(value) {
            reply()
        } else {
            good
        }
    })
}

/// Answers requests that should be refused, as a server without validation would.
fn lenient(fits: fn(&crate::server::ReceivedCall) -> bool) -> Broken {
    Broken::reply(move |_, call, reply| {
        if fits(call) {
            result_of(
                call,
                &json!({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}),
            )
        } else {
            reply
        }
    })
}

pub(super) fn transport(name: &str) -> Option<Broken> {
    Some(match name {
        "no-redirect" => Broken::reply(|origin, call, reply| {
            if call.verb == "POST" && call.path == "/mcp" {
                CannedReply::status(307).with("Location", &format!("{origin}/mcp/"))
            } else {
                reply
            }
        }),
        "content-type" => Broken::reply(|_, call, mut reply| {
            if call.method() == "resources/templates/list" {
                reply.headers = vec![("Content-Type".to_owned(), "text/plain".to_owned())];
            }
            reply
        }),
        "notification-accepted" => Broken::reply(|_, call, reply| {
            if call.method().starts_with("notifications/") {
                CannedReply::json(&json!({}))
            } else {
                reply
            }
        }),
        "accept-honoured" => Broken::reply(|_, call, reply| {
            let wants_events =
                call.header("accept") == Some("text/event-stream") && call.verb == "POST";
            if wants_events {
                result_of(call, &json!({"tools": []}))
            } else {
                reply
            }
        }),
        "accept-any" => when("accept", "*/*", || CannedReply::status(500)),
        "get" => Broken::reply(|_, call, reply| {
            if call.verb == "GET" && call.path == "/mcp" {
                CannedReply::raw("text/html", "hello")
            } else {
                reply
            }
        }),
        "slash" => Broken::reply(|_, call, reply| {
            if call.path == "/mcp/" {
                CannedReply::status(307)
            } else {
                reply
            }
        }),
        "root" => Broken::reply(|_, call, reply| {
            if call.path == "/" {
                CannedReply::status(404)
            } else {
                reply
            }
        }),
        "lost-session" => Broken::reply(|_, call, reply| {
            let lost = call
                .header("mcp-session-id")
                .is_some_and(|id| id != "a-session");
            if lost {
                CannedReply::status(400)
            } else {
                reply
            }
        })
        .sessions(),
        "no-session" => Broken::reply(|_, call, reply| {
            let legacy = call.method() == "tools/list" && call.header("mcp-method").is_none();
            if legacy && call.header("mcp-session-id").is_none() {
                CannedReply::status(503)
            } else {
                reply
            }
        })
        .sessions(),
        "session-end" => Broken::reply(|_, call, reply| {
            if call.verb == "DELETE" {
                CannedReply::status(200)
            } else {
                reply
            }
        })
        .sessions(),
        "same-id" => Broken::reply(|_, call, reply| {
            let crossed = call.method() == "ping" && call.body["id"] == 1;
            if crossed {
                result_of(call, &json!({"tools": []}))
            } else {
                reply
            }
        }),
        "batch" => Broken::reply(|_, call, reply| {
            if call.body.is_array() {
                CannedReply::status(400)
            } else {
                reply
            }
        }),
        "broken-json" => Broken::reply(|_, call, reply| {
            if call.body.is_null() && call.text.len() < 1_000 && !call.text.is_empty() {
                CannedReply::status(500)
            } else {
                reply
            }
        }),
        "unknown-version" => {
            lenient(|call| call.header("mcp-protocol-version") == Some("1999-01-01"))
        }
        "later-version" => Broken::reply(|_, call, reply| {
            let later = call.header("mcp-protocol-version") == Some("2099-01-01");
            edited(reply, |message| {
                if let Some(error) = message["error"].as_object_mut().filter(|_| later) {
                    error.remove("data");
                }
            })
        }),
        "header-mismatch" => lenient(|call| {
            call.header("mcp-method") == Some("prompts/list") && call.method() == "tools/list"
        }),
        "missing-meta" => lenient(|call| {
            call.header("mcp-method") == Some("tools/list")
                && call.body["params"]["_meta"].is_null()
                && !call.text.contains("METHOD")
        }),
        "modern-unknown-method" => Broken::reply(|_, call, reply| {
            if call.method().starts_with("docent/") {
                reply.coded(200)
            } else {
                reply
            }
        }),
        _ => return None,
    })
}

pub(super) fn security(name: &str) -> Option<Broken> {
    Some(match name {
        "origin" => lenient(|call| call.header("origin").is_some() && call.verb == "POST"),
        "host" => lenient(|call| call.header("host") == Some("stranger.example")),
        "cors" => Broken::reply(|_, call, reply| {
            let origin = call.header("origin").unwrap_or_default();
            if call.verb == "OPTIONS" {
                reply
                    .with("Access-Control-Allow-Origin", origin)
                    .with("Access-Control-Allow-Credentials", "true")
            } else {
                reply
            }
        }),
        "content-type" => lenient(|call| call.header("content-type") == Some("text/plain")),
        "exact-keys" => lenient(|call| call.text.contains("METHOD")),
        "survives" => {
            let dead = AtomicBool::new(false);
            Broken::reply(move |_, call, reply| {
                dead.fetch_or(call.text.contains("[[[["), Ordering::Relaxed);
                if dead.load(Ordering::Relaxed) {
                    CannedReply::status(500)
                } else {
                    reply
                }
            })
        }
        "large-body" => lenient(|call| call.text.len() > 1_000_000),
        "slow-request" => {
            let mut broken = Broken::nothing().checked(|options| {
                options.slow = true;
                options.slow_wait = Duration::from_millis(200);
            });
            broken.patience = Patience { headers: None };
            broken
        }
        "leaks" => Broken::call("fetch", |_, result| {
            if result["isError"] == true {
                result["content"][0]["text"] =
                    json!("Traceback (most recent call last):\n  File \"/srv/app.py\", line 1");
            }
        }),
        "paths" => Broken::reply(|_, call, reply| {
            let path = call.body["params"]["arguments"]["id"]
                .as_str()
                .is_some_and(|id| id.contains("etc/passwd"));
            if path {
                result_of(
                    call,
                    &json!({"content": [{"type": "text", "text": "root:x:0:0:root:/root:/bin/sh"}], "resultType": "complete"}),
                )
            } else {
                reply
            }
        }),
        "internal-ids" => Broken::payload("search", |payload| payload["requestId"] = json!("7f3a")),
        "apps-challenge" => Broken::reply(|_, call, reply| {
            if call.path.ends_with("openai-apps-challenge") {
                CannedReply::json(&json!({"token": "x"}))
            } else {
                reply
            }
        }),
        _ => return None,
    })
}
