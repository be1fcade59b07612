//! Rules about the HTTP transport: paths, headers, sessions, batches, and concurrent requests that share an id.
//!
//! Most of them judge one probe of the survey. Where a deviation breaks no client, the severity is lower: a JSON-RPC
//! error with status 200, for example, tells a client as much as one with status 400.

mod modern;
mod sessions;

use serde_json::Value;

use super::{
    ChatGpt, CheckRule, Claude, EVERYWHERE, Error, MUST, NOT_HTTP, Note, Protocol, RuleVerdict,
    RuleViolation, ServerSurvey, Submission, Warning, corroborated, for_probe, official,
    single_report,
};
use crate::exchange::RecordedExchange;

const SPEC_HTTP: &str = "MCP specification 2025-11-25, basic/transports, streamable HTTP";
const SPEC_HTTP_NOW: &str = "MCP specification 2026-07-28, basic/transports/streamable-http";

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "transport/no-redirect",
        requirement: "the address that people type is the endpoint, not a redirect to it",
        severities: &[
            (Protocol, Warning),
            (ChatGpt, Warning),
            (Claude, Error),
            (Submission, Error),
        ],
        source: corroborated(
            "Claude drops the token on a redirect to another host",
            "2026-11-15",
        ),
        fix: "serve the endpoint at the address itself; serve `/mcp` and `/mcp/` alike",
        evaluate: no_redirect,
    },
    CheckRule {
        id: "transport/content-type",
        requirement: "a request is answered with `application/json` or `text/event-stream`",
        severities: EVERYWHERE,
        source: official(SPEC_HTTP, "2025-11-25"),
        fix: "set the `Content-Type` of answers to one of the two",
        evaluate: content_type,
    },
    CheckRule {
        id: "transport/notification-accepted",
        requirement: "a notification is answered with 202 and no body",
        severities: MUST,
        source: official(SPEC_HTTP, "2025-11-25"),
        fix: "answer POSTed notifications with status 202 and an empty body",
        evaluate: notification,
    },
    CheckRule {
        id: "transport/accept-honoured",
        requirement: "an answer has a type that the request accepts",
        severities: &[(Protocol, Warning), (ChatGpt, Warning)],
        source: single_report(
            "a server that ChatGPT refused with `expected header to contain text/event-stream`",
            "2025-12-25",
        ),
        fix: "answer as an event stream when `Accept` lists only that, as JSON when it lists only JSON, or refuse with 406",
        evaluate: accept,
    },
    CheckRule {
        id: "transport/accept-any",
        requirement: "a request with `Accept: */*` is answered, or refused with a 4xx status",
        severities: &[(Protocol, Warning)],
        source: official("RFC 9110, section 12.5.1", "2022-06-01"),
        fix: "read `Accept` as a list of media ranges; `*/*` allows both types",
        evaluate: accept_any,
    },
    CheckRule {
        id: "transport/get",
        requirement: "GET opens an event stream or is answered with 405",
        severities: MUST,
        source: official(SPEC_HTTP, "2025-11-25"),
        fix: "answer GET with `text/event-stream`, or with 405 when there is no stream to open",
        evaluate: get,
    },
    CheckRule {
        id: "transport/slash",
        requirement: "the address works with and without a slash at its end",
        severities: &[(ChatGpt, Note), (Claude, Note)],
        source: corroborated(
            "connectors that failed on a 307 to the other spelling",
            "2026-11-15",
        ),
        fix: "serve both spellings without redirecting",
        evaluate: slash,
    },
    CheckRule {
        id: "transport/root",
        requirement: "the root path `/` of the host serves the endpoint too",
        severities: &[(ChatGpt, Note)],
        source: single_report(
            "a ChatGPT connector that was saved with the bare address and posted to `/`",
            "2025-12-25",
        ),
        fix: "serve the endpoint at `/` as well as at `/mcp`",
        evaluate: root,
    },
    CheckRule {
        id: "transport/lost-session",
        requirement: "a session that the server does not know is answered with 404, so that clients start a new one",
        severities: EVERYWHERE,
        source: official(SPEC_HTTP, "2025-11-25"),
        fix: "answer an unknown `Mcp-Session-Id` with 404, not with 400 or 503; or keep no sessions",
        evaluate: sessions::lost_session,
    },
    CheckRule {
        id: "transport/no-session",
        requirement: "a request without its session id is answered, or refused with 400",
        severities: &[(Protocol, Warning), (ChatGpt, Note)],
        source: official(SPEC_HTTP, "2025-11-25"),
        fix: "answer without a session, or refuse with 400; a server without sessions never has the problem",
        evaluate: sessions::no_session,
    },
    CheckRule {
        id: "transport/session-end",
        requirement: "DELETE ends a session or is refused with 405, and a request in an ended session is answered with 404",
        severities: &[(Protocol, Error)],
        source: official(SPEC_HTTP, "2025-11-25"),
        fix: "answer DELETE with 2xx and forget the session, or with 405 and keep it",
        evaluate: sessions::session_end,
    },
    CheckRule {
        id: "transport/same-id",
        requirement: "two requests with one id at the same time get their own answers",
        severities: &[(Claude, Warning)],
        source: single_report(
            "modelcontextprotocol/python-sdk#3060: claude.ai gives every request the id 1",
            "2026-11-15",
        ),
        fix: "keep no sessions, or match answers to connections and not to ids alone",
        evaluate: sessions::same_id,
    },
    CheckRule {
        id: "transport/batch",
        requirement: "a server that speaks 2025-03-26 accepts a batch: several requests in one body",
        severities: &[(Protocol, Note)],
        source: official(
            "MCP specification 2025-03-26, basic/transports",
            "2025-03-26",
        ),
        fix: "answer a JSON list of requests with a list of answers, or do not offer that revision",
        evaluate: batch,
    },
    CheckRule {
        id: "transport/broken-json",
        requirement: "a body that is not JSON is refused with a 4xx status",
        severities: MUST,
        source: official(SPEC_HTTP, "2025-11-25"),
        fix: "answer with status 400 and a JSON-RPC error of code -32700",
        evaluate: broken_json,
    },
    CheckRule {
        id: "transport/unknown-version",
        requirement: "a header with a version that does not exist is refused with 400",
        severities: MUST,
        source: official(SPEC_HTTP, "2025-11-25"),
        fix: "compare `MCP-Protocol-Version` with the versions you support; answer others with 400",
        evaluate: unknown_version,
    },
    CheckRule {
        id: "transport/later-version",
        requirement: "an unsupported revision is refused with 400, code -32022 and the supported ones",
        severities: MUST,
        source: official(
            "MCP specification 2026-07-28, basic/versioning",
            "2026-07-28",
        ),
        fix: "answer with error -32022 and `data: {\"supported\": […], \"requested\": \"…\"}`",
        evaluate: modern::later_version,
    },
    CheckRule {
        id: "transport/header-mismatch",
        requirement: "a header that differs from the body is refused with 400 and code -32020",
        severities: MUST,
        source: official(SPEC_HTTP_NOW, "2026-07-28"),
        fix: "compare `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name` with the body before anything else",
        evaluate: modern::header_mismatch,
    },
    CheckRule {
        id: "transport/missing-meta",
        requirement: "a request of 2026-07-28 without its `_meta` is refused with 400 and code -32602",
        severities: MUST,
        source: official(SPEC_HTTP_NOW, "2026-07-28"),
        fix: "refuse such requests with -32602; do not fall back to an older revision",
        evaluate: modern::missing_meta,
    },
    CheckRule {
        id: "transport/modern-unknown-method",
        requirement: "a method that does not exist in 2026-07-28 is answered with 404 and code -32601",
        severities: MUST,
        source: official(SPEC_HTTP_NOW, "2026-07-28"),
        fix: "send status 404 together with the JSON-RPC error -32601",
        evaluate: modern::modern_unknown_method,
    },
];

fn no_redirect(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.is_http() {
        return NOT_HTTP;
    }
    let first = survey.handshakes.first().map(|(_, exchange)| exchange);
    let leads_on = |status: u16| (300..400).contains(&status);
    let redirected = survey
        .redirect
        .as_ref()
        .or_else(|| first.filter(|exchange| exchange.status().is_some_and(leads_on)));
    RuleVerdict::from_option(redirected.map(|exchange| {
        let location = exchange
            .received()
            .and_then(|received| received.header("location"));
        let location = location.unwrap_or("nowhere");
        RuleViolation::new(format!("the address redirects to `{location}`")).with_exchange(exchange)
    }))
}

fn content_type(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.is_http() {
        return NOT_HTTP;
    }
    let wrong = |exchange: &&std::sync::Arc<RecordedExchange>| {
        let is_request = exchange.sent.id.is_some() && exchange.sent.verb == "POST";
        let received = exchange
            .received()
            .filter(|received| is_request && received.status == 200);
        received.is_some_and(|received| {
            !matches!(
                received.kind.as_str(),
                "application/json" | "text/event-stream"
            )
        })
    };
    // Only the endpoint itself is judged; other URLs may be anything.
    let url = survey.url.as_deref().unwrap_or_default();
    let ours = |exchange: &&std::sync::Arc<RecordedExchange>| exchange.sent.url == url;
    let found = survey.log.iter().filter(ours).find(wrong);
    RuleVerdict::from_option(found.map(|exchange| {
        let kind = exchange
            .received()
            .map(|received| received.kind.clone())
            .unwrap_or_default();
        RuleViolation::new(format!("a request is answered with the type `{kind}`"))
            .with_exchange(exchange)
    }))
}

fn notification(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.is_http() {
        return NOT_HTTP;
    }
    for_probe(survey, "initialized", |sent| {
        let received = sent.received()?;
        let empty = received.text.trim().is_empty() && received.messages.is_empty();
        match received.status {
            202 if empty => None,
            202 => Some(
                RuleViolation::new("a notification is answered with 202 and a body")
                    .at_most(Warning),
            ),
            status => Some(RuleViolation::new(format!(
                "a notification is answered with status {status}, not 202"
            ))),
        }
    })
}

fn accept(survey: &ServerSurvey) -> RuleVerdict {
    let probes = [
        ("accept-events", "text/event-stream"),
        ("accept-json", "application/json"),
    ];
    let mut faults = Vec::new();
    for (probe, wanted) in probes {
        let Some(exchange) = survey.probe(probe) else {
            return NOT_HTTP;
        };
        let received = exchange.received();
        let what = match received {
            Some(received) if received.is_ok() && received.kind != wanted => {
                format!("`Accept: {wanted}` is answered with `{}`", received.kind)
            }
            Some(received) if received.status >= 500 => {
                format!(
                    "`Accept: {wanted}` is answered with status {}",
                    received.status
                )
            }
            None => format!("`Accept: {wanted}` is not answered"),
            Some(_) => continue,
        };
        faults.push(RuleViolation::new(what).with_exchange(exchange));
    }
    RuleVerdict::Evaluated(faults)
}

fn accept_any(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "accept-any", |exchange| {
        let broken = exchange.has_server_failed()
            || (exchange.status() == Some(200) && exchange.answer().is_none());
        broken.then(|| RuleViolation::new("`Accept: */*` breaks the answer"))
    })
}

fn get(survey: &ServerSurvey) -> RuleVerdict {
    if survey.is_http() && !survey.legacy {
        return RuleVerdict::Skipped("the server speaks 2026-07-28 only");
    }
    for_probe(survey, "get", |exchange| {
        // A stream may stay silent, so a timeout is no violation.
        let received = exchange.received()?;
        let good =
            (received.is_ok() && received.kind == "text/event-stream") || received.status == 405;
        let busy = received.status == 409;
        (!good && !busy).then(|| {
            RuleViolation::new(format!(
                "GET is answered with status {} and type `{}`",
                received.status, received.kind
            ))
        })
    })
}

fn slash(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "slash", |exchange| {
        let works = exchange.answer().is_some();
        let what = exchange
            .status()
            .map_or("nothing".to_owned(), |status| format!("status {status}"));
        (!works)
            .then(|| RuleViolation::new(format!("`{}` is answered with {what}", exchange.sent.url)))
    })
}

fn root(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "root", |exchange| {
        let works = exchange.answer().is_some();
        let what = exchange
            .status()
            .map_or("nothing".to_owned(), |status| format!("status {status}"));
        (!works).then(|| {
            RuleViolation::new(format!("POST to the bare address is answered with {what}"))
        })
    })
}

fn batch(survey: &ServerSurvey) -> RuleVerdict {
    if survey.probe("batch").is_none() && survey.is_http() {
        return RuleVerdict::Skipped("the server does not speak 2025-03-26");
    }
    for_probe(survey, "batch", |exchange| {
        let answered = |id: &str| {
            let fits = |message: &Value| {
                message.get("id").is_some_and(|found| found == id)
                    && message.get("result").is_some()
            };
            exchange
                .received()
                .is_some_and(|received| received.messages.iter().any(fits))
        };
        // Reading of an event stream ends with the first response, so the second one may be missing.
        let streamed = exchange
            .received()
            .is_some_and(|received| received.kind == "text/event-stream");
        let good = answered("one") && (answered("two") || streamed);
        (!good).then(|| RuleViolation::new("two requests in one body are not both answered, though the server speaks 2025-03-26"))
    })
}

fn broken_json(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "broken-json", |exchange| {
        let refused = exchange
            .status()
            .is_some_and(|status| (400..500).contains(&status));
        let what = exchange
            .status()
            .map_or("nothing".to_owned(), |status| format!("status {status}"));
        let fault = RuleViolation::new(format!("a body that is not JSON is answered with {what}"));
        // A JSON-RPC error with status 200 tells the client as much.
        let has_error = exchange.error().is_some();
        (!refused).then(|| {
            if has_error {
                fault.at_most(Warning)
            } else {
                fault
            }
        })
    })
}

fn unknown_version(survey: &ServerSurvey) -> RuleVerdict {
    if survey.is_http() && !survey.legacy {
        return RuleVerdict::Skipped("the server speaks 2026-07-28 only");
    }
    for_probe(survey, "old-version", |exchange| {
        let status = exchange.status();
        let what = status.map_or("nothing".to_owned(), |status| format!("status {status}"));
        (status != Some(400)).then(|| {
            RuleViolation::new(format!(
                "`MCP-Protocol-Version: 1999-01-01` is answered with {what}, not 400"
            ))
        })
    })
}
