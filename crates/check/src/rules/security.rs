//! Rules about attacks: foreign origins and hosts (CORS, DNS rebinding), hostile bodies, path traversal, and responses
//! that leak internals.
//!
//! Where the server runs decides how much an attack matters. A web page can reach a server on this machine through the
//! browser of its user; on a public server it can do no more than any other client.

use super::{
    CallPurpose, ChatGpt, CheckRule, Claude, EVERYWHERE, Error, MUST, Note, Protocol, RuleVerdict,
    RuleViolation, ServerSurvey, Submission, Warning, corroborated, for_calls, for_probe, official,
    own_measure,
};
use crate::exchange::ExchangeError;

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "security/https",
        requirement: "a server that is reachable from other machines uses https",
        severities: &[
            (Protocol, Error),
            (ChatGpt, Error),
            (Claude, Error),
            (Submission, Error),
        ],
        source: official(
            "OpenAI, plugins submission; Claude, connectors/building",
            "2026-11-15",
        ),
        fix: "put the server behind TLS, or behind a tunnel that has it",
        evaluate: https,
    },
    CheckRule {
        id: "security/origin",
        requirement: "a request with a foreign `Origin` is refused with 403",
        severities: MUST,
        source: official(
            "MCP specification 2025-11-25, basic/transports, security warning",
            "2025-11-25",
        ),
        fix: "compare `Origin`, when it is there, with a list of your own; answer others with 403",
        evaluate: origin,
    },
    CheckRule {
        id: "security/host",
        requirement: "a server on this machine refuses requests with a foreign `Host`, which come from DNS rebinding",
        severities: MUST,
        source: official(
            "MCP conformance suite, dns-rebinding-protection",
            "2026-11-15",
        ),
        fix: "compare `Host` with the names of the server; answer others with 403 or 421",
        evaluate: host,
    },
    CheckRule {
        id: "security/cors",
        requirement: "CORS does not allow foreign origins to send the user's credentials",
        severities: EVERYWHERE,
        source: official("Fetch standard, CORS protocol", "2026-11-15"),
        fix: "do not answer `Access-Control-Allow-Credentials: true` to origins that you did not choose",
        evaluate: cors,
    },
    CheckRule {
        id: "security/content-type",
        requirement: "a body that is not declared as JSON is refused",
        severities: &[(Protocol, Warning)],
        source: corroborated(
            "CVE-2026-33252: any web page can post text/plain",
            "2026-11-15",
        ),
        fix: "answer other types than `application/json` with 415",
        evaluate: content_type,
    },
    CheckRule {
        id: "security/exact-keys",
        requirement: "the keys of a message are case-sensitive",
        severities: &[(Protocol, Warning)],
        source: corroborated(
            "CVE-2026-27896: `METHOD` taken for `method` slips past filters",
            "2026-11-15",
        ),
        fix: "use a JSON parser that compares keys case-sensitively",
        evaluate: exact_keys,
    },
    CheckRule {
        id: "security/survives",
        requirement: "the server still answers after a deeply nested and after a very large body",
        severities: EVERYWHERE,
        source: official("OWASP AISVS C10, 10.4.3 and 10.4.5", "2026-11-15"),
        fix: "bound the size and the depth of bodies before they are parsed",
        evaluate: survives,
    },
    CheckRule {
        id: "security/large-body",
        requirement: "a body of six megabytes is refused",
        severities: &[(Protocol, Note)],
        source: official("OWASP AISVS C10, 10.4.5", "2026-11-15"),
        fix: "refuse bodies above a megabyte or so with 413; no tool call of a host is that large",
        evaluate: large_body,
    },
    CheckRule {
        id: "security/slow-request",
        requirement: "a request that stalls is ended by a timeout",
        severities: &[(Protocol, Note)],
        source: own_measure(
            "forty seconds; slow requests hold connections that others need",
            "2026-11-15",
        ),
        fix: "set a time limit for headers and bodies, here or in the proxy",
        evaluate: slow_request,
    },
    CheckRule {
        id: "security/leaks",
        requirement: "errors hold no stack traces, paths of the server or queries of its database",
        severities: &[
            (Protocol, Warning),
            (ChatGpt, Warning),
            (Claude, Warning),
            (Submission, Error),
        ],
        source: official(
            "OWASP MCP Top 10, MCP01; Claude's review refuses bare internal errors",
            "2026-04-14",
        ),
        fix: "say in the answer what the caller can do; keep the cause in the log",
        evaluate: leaks,
    },
    CheckRule {
        id: "security/paths",
        requirement: "`fetch` reads nothing outside of its documents",
        severities: EVERYWHERE,
        source: official(
            "CVE-2025-53109, CVE-2025-53110: files read through ids",
            "2026-11-15",
        ),
        fix: "look ids up in the index; never join them to a path",
        evaluate: paths,
    },
    CheckRule {
        id: "security/internal-ids",
        requirement: "results hold no ids of sessions, traces or requests",
        severities: &[(Submission, Warning)],
        source: official(
            "OpenAI, plugins submission: a reason for rejection",
            "2026-11-15",
        ),
        fix: "leave them out of `structuredContent` and of texts",
        evaluate: internal_ids,
    },
    CheckRule {
        id: "security/apps-challenge",
        requirement: "the domain verification file holds the token and nothing else",
        severities: &[(Submission, Error)],
        source: official("OpenAI, plugins submission", "2026-11-15"),
        fix: "serve the token alone, as `text/plain`, at `/.well-known/openai-apps-challenge`",
        evaluate: apps_challenge,
    },
];

fn https(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.is_http() {
        return super::NOT_HTTP;
    }
    if survey.is_local {
        return RuleVerdict::Skipped("the address is on this machine");
    }
    RuleVerdict::from_option(
        (!survey.is_https).then(|| RuleViolation::new("the address is not https")),
    )
}

fn origin(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "origin", |exchange| {
        let status = exchange.status();
        let refused = status.is_some_and(|status| matches!(status, 400 | 401 | 403));
        // On a public server, a page can do no more than any other client.
        let fault = |what: String| {
            if survey.is_local {
                RuleViolation::new(what)
            } else {
                RuleViolation::new(what).at_most(Warning)
            }
        };
        let what = status.map_or("nothing".to_owned(), |status| format!("status {status}"));
        (!refused).then(|| {
            fault(format!(
                "a request with `Origin: https://stranger.example` is answered with {what}, not 403"
            ))
        })
    })
}

fn host(survey: &ServerSurvey) -> RuleVerdict {
    if survey.is_http() && !survey.is_local {
        return RuleVerdict::Skipped("the address is not on this machine");
    }
    for_probe(survey, "host", |exchange| {
        let taken = exchange.result().is_some();
        taken.then(|| RuleViolation::new("a request with `Host: stranger.example` is answered"))
    })
}

fn cors(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "preflight", |exchange| {
        let received = exchange.received()?;
        let credentials = received.header("access-control-allow-credentials") == Some("true");
        let allowed = received
            .header("access-control-allow-origin")
            .unwrap_or_default();
        let open = allowed == "*" || allowed == crate::survey::STRANGER;
        (credentials && open).then(|| {
            let headers = format!(
                "Access-Control-Allow-Origin: {allowed}, Access-Control-Allow-Credentials: true"
            );
            RuleViolation::new("CORS allows a foreign origin to send the user's credentials")
                .with_exchange(exchange)
                .with_excerpt(&headers)
        })
    })
}

fn content_type(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "text-plain", |exchange| {
        exchange
            .result()
            .map(|_| RuleViolation::new("a request declared as `text/plain` is answered"))
    })
}

fn exact_keys(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "shouted-method", |exchange| {
        exchange
            .result()
            .map(|_| RuleViolation::new("`METHOD` is taken for `method`"))
    })
}

fn survives(survey: &ServerSurvey) -> RuleVerdict {
    let Some(alive) = survey.probe("alive") else {
        return RuleVerdict::Skipped("the request was not sent");
    };
    let dead = alive.result().is_none();
    RuleVerdict::from_option(dead.then(|| {
        RuleViolation::new("the server no longer answers after hostile bodies").with_exchange(alive)
    }))
}

fn large_body(survey: &ServerSurvey) -> RuleVerdict {
    for_probe(survey, "large", |exchange| {
        exchange
            .result()
            .map(|_| RuleViolation::new("a body of six megabytes is read and answered"))
    })
}

fn slow_request(survey: &ServerSurvey) -> RuleVerdict {
    if survey.is_http() && survey.probe("slow").is_none() {
        return RuleVerdict::Skipped(
            "a slow request is tried only with `--slow`, and not over https",
        );
    }
    for_probe(survey, "slow", |exchange| {
        let waits = exchange
            .outcome
            .as_ref()
            .is_err_and(ExchangeError::is_timeout);
        let seconds = exchange.took.as_secs();
        waits.then(|| {
            RuleViolation::new(format!(
                "a partial request is still not timed out after {seconds} s"
            ))
        })
    })
}

/// Markers of leaked internals: stack traces, local paths, database errors.
const INSIDE: [&str; 14] = [
    "Traceback (most recent call last)",
    "  File \"/",
    "\n    at ",
    "\\n    at ",
    "/home/",
    "/Users/",
    "/usr/src/",
    "/node_modules/",
    "site-packages/",
    "thread 'main' panicked",
    "goroutine 1 [",
    "SQLSTATE",
    "sqlite3.OperationalError",
    "java.lang.",
];

fn leaks(survey: &ServerSurvey) -> RuleVerdict {
    let says = |exchange: &std::sync::Arc<crate::exchange::RecordedExchange>| {
        let received = exchange.received()?;
        let of_tool = exchange
            .result()
            .is_some_and(|result| result.get("isError") == Some(&serde_json::Value::Bool(true)));
        let is_failure = received.status >= 400 || exchange.error().is_some() || of_tool;
        let sent = &exchange.sent.body;
        let word = INSIDE
            .into_iter()
            .find(|word| received.text.contains(word) && !sent.contains(word))?;
        is_failure.then(|| {
            RuleViolation::new(format!("an error says `{}`", word.trim())).with_exchange(exchange)
        })
    };
    RuleVerdict::Evaluated(survey.log.iter().filter_map(says).take(3).collect())
}

fn paths(survey: &ServerSurvey) -> RuleVerdict {
    for_calls(survey, &[CallPurpose::UnknownId], |call| {
        let text = call.success()?.to_string();
        text.contains("root:x:0:0")
            .then(|| RuleViolation::new("`fetch` of a path returns a file of the system"))
    })
}

fn internal_ids(survey: &ServerSurvey) -> RuleVerdict {
    const INTERNAL: [&str; 8] = [
        "sessionId",
        "session_id",
        "traceId",
        "trace_id",
        "requestId",
        "request_id",
        "correlationId",
        "correlation_id",
    ];
    for_calls(survey, CallPurpose::GOOD, |call| {
        let payload = call.payload()?;
        let members = payload.as_object()?;
        let found = members
            .keys()
            .find(|key| INTERNAL.contains(&key.as_str()))?;
        Some(RuleViolation::new(format!(
            "a result of `{}` holds `{found}`",
            call.tool
        )))
    })
}

fn apps_challenge(survey: &ServerSurvey) -> RuleVerdict {
    let served = survey
        .probe("apps-challenge")
        .is_some_and(|exchange| exchange.status() == Some(200));
    if survey.is_http() && !served {
        return RuleVerdict::Skipped("no token is served; the submission form gives one");
    }
    for_probe(survey, "apps-challenge", |exchange| {
        let received = exchange.received()?;
        let text = received.text.trim();
        let alone = !text.is_empty()
            && text.len() <= 512
            && !text.contains(char::is_whitespace)
            && !text.starts_with(['{', '[', '<']);
        let good = alone && received.kind == "text/plain";
        (!good).then(|| {
            RuleViolation::new(
                "`/.well-known/openai-apps-challenge` is not a token alone as text/plain",
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_others_reach_is_asked_for_https() {
        let survey = |is_local: bool, is_https: bool| ServerSurvey {
            url: Some("http://a.example/mcp".to_owned()),
            is_local,
            is_https,
            ..ServerSurvey::default()
        };
        let faults = |survey: &ServerSurvey| match https(survey) {
            RuleVerdict::Evaluated(faults) => Some(faults.len()),
            RuleVerdict::Skipped(_) => None,
        };
        assert_eq!(faults(&survey(false, false)), Some(1));
        assert_eq!(faults(&survey(false, true)), Some(0));
        assert_eq!(faults(&survey(true, false)), None);
        assert_eq!(faults(&ServerSurvey::default()), None);
    }
}
