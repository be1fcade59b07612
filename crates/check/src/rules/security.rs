//! What a stranger may try: pages in a browser, names that are not the server's, bodies that attack, and
//! answers that say too much.

use super::{
    ChatGpt, Claude, EVERYWHERE, Error, Fault, MUST, Note, Protocol, Purpose, Rule, Seen,
    Submission, Verdict, Warning, of_calls, of_probe, ours, owner, several,
};
use crate::exchange::Failure;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "security/https",
        demand: "a server that others reach is reached by https",
        weights: &[
            (Protocol, Error),
            (ChatGpt, Error),
            (Claude, Error),
            (Submission, Error),
        ],
        source: owner(
            "OpenAI, plugins submission; Claude, connectors/building",
            "2026-11-15",
        ),
        fix: "put the server behind TLS, or behind a tunnel that has it",
        judge: https,
    },
    Rule {
        id: "security/origin",
        demand: "a request from the page of a stranger is refused with 403",
        weights: MUST,
        source: owner(
            "MCP specification 2025-11-25, basic/transports, security warning",
            "2025-11-25",
        ),
        fix: "compare `Origin`, when it is there, with a list of your own; answer others with 403",
        judge: origin,
    },
    Rule {
        id: "security/host",
        demand: "a server on this machine refuses requests for another host's name",
        weights: MUST,
        source: owner(
            "MCP conformance suite, dns-rebinding-protection",
            "2026-11-15",
        ),
        fix: "compare `Host` with the names of the server; answer others with 403 or 421",
        judge: host,
    },
    Rule {
        id: "security/cors",
        demand: "a stranger's page is not allowed to send the user's credentials",
        weights: EVERYWHERE,
        source: owner("Fetch standard, CORS protocol", "2026-11-15"),
        fix: "do not answer `Access-Control-Allow-Credentials: true` to origins that you did not choose",
        judge: cors,
    },
    Rule {
        id: "security/content-type",
        demand: "a body that is not declared as JSON is refused",
        weights: &[(Protocol, Warning)],
        source: several(
            "CVE-2026-33252: any web page can post text/plain",
            "2026-11-15",
        ),
        fix: "answer other types than `application/json` with 415",
        judge: content_type,
    },
    Rule {
        id: "security/exact-keys",
        demand: "keys of a message are compared to the letter",
        weights: &[(Protocol, Warning)],
        source: several(
            "CVE-2026-27896: `METHOD` taken for `method` slips past filters",
            "2026-11-15",
        ),
        fix: "parse with keys that are case-sensitive",
        judge: exact_keys,
    },
    Rule {
        id: "security/survives",
        demand: "the server still answers after a deeply nested and after a very large body",
        weights: EVERYWHERE,
        source: owner("OWASP AISVS C10, 10.4.3 and 10.4.5", "2026-11-15"),
        fix: "bound the size and the depth of bodies before they are parsed",
        judge: survives,
    },
    Rule {
        id: "security/large-body",
        demand: "a body of six megabytes is refused",
        weights: &[(Protocol, Note)],
        source: owner("OWASP AISVS C10, 10.4.5", "2026-11-15"),
        fix: "refuse bodies above a megabyte or so with 413; no tool call of a host is that large",
        judge: large_body,
    },
    Rule {
        id: "security/slow-request",
        demand: "a request that does not go on is cut off",
        weights: &[(Protocol, Note)],
        source: ours(
            "forty seconds; slow requests hold connections that others need",
            "2026-11-15",
        ),
        fix: "set a time limit for headers and bodies, here or in the proxy",
        judge: slow_request,
    },
    Rule {
        id: "security/leaks",
        demand: "errors hold no stack traces, paths of the server or queries of its database",
        weights: &[
            (Protocol, Warning),
            (ChatGpt, Warning),
            (Claude, Warning),
            (Submission, Error),
        ],
        source: owner(
            "OWASP MCP Top 10, MCP01; Claude's review refuses bare internal errors",
            "2026-04-14",
        ),
        fix: "say in the answer what the caller can do; keep the cause in the log",
        judge: leaks,
    },
    Rule {
        id: "security/paths",
        demand: "`fetch` reads nothing outside of its documents",
        weights: EVERYWHERE,
        source: owner(
            "CVE-2025-53109, CVE-2025-53110: files read through ids",
            "2026-11-15",
        ),
        fix: "look ids up in the index; never join them to a path",
        judge: paths,
    },
    Rule {
        id: "security/internal-ids",
        demand: "results hold no ids of sessions, traces or requests",
        weights: &[(Submission, Warning)],
        source: owner(
            "OpenAI, plugins submission: a reason for rejection",
            "2026-11-15",
        ),
        fix: "leave them out of `structuredContent` and of texts",
        judge: internal_ids,
    },
    Rule {
        id: "security/apps-challenge",
        demand: "the file that proves the domain holds the token and nothing else",
        weights: &[(Submission, Error)],
        source: owner("OpenAI, plugins submission", "2026-11-15"),
        fix: "serve the token alone, as `text/plain`, at `/.well-known/openai-apps-challenge`",
        judge: apps_challenge,
    },
];

fn https(seen: &Seen) -> Verdict {
    if !seen.is_http() {
        return super::NOT_HTTP;
    }
    if seen.is_local {
        return Verdict::Skipped("the address is on this machine");
    }
    Verdict::one((!seen.is_https).then(|| Fault::new("the address is not https")))
}

fn origin(seen: &Seen) -> Verdict {
    of_probe(seen, "origin", |exchange| {
        let status = exchange.status();
        let refused = status.is_some_and(|status| matches!(status, 400 | 401 | 403));
        // Beyond this machine a page can do no more than anybody else can.
        let fault = |what: String| {
            if seen.is_local {
                Fault::new(what)
            } else {
                Fault::new(what).at_most(Warning)
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

fn host(seen: &Seen) -> Verdict {
    if seen.is_http() && !seen.is_local {
        return Verdict::Skipped("the address is not on this machine");
    }
    of_probe(seen, "host", |exchange| {
        let taken = exchange.result().is_some();
        taken.then(|| Fault::new("a request with `Host: stranger.example` is answered"))
    })
}

fn cors(seen: &Seen) -> Verdict {
    of_probe(seen, "preflight", |exchange| {
        let received = exchange.received()?;
        let credentials = received.header("access-control-allow-credentials") == Some("true");
        let allowed = received
            .header("access-control-allow-origin")
            .unwrap_or_default();
        let open = allowed == "*" || allowed == crate::survey::STRANGER;
        (credentials && open).then(|| {
            let seen = format!(
                "Access-Control-Allow-Origin: {allowed}, Access-Control-Allow-Credentials: true"
            );
            Fault::new("a stranger's page may send the user's credentials")
                .from(exchange)
                .seen(&seen)
        })
    })
}

fn content_type(seen: &Seen) -> Verdict {
    of_probe(seen, "text-plain", |exchange| {
        exchange
            .result()
            .map(|_| Fault::new("a request declared as `text/plain` is answered"))
    })
}

fn exact_keys(seen: &Seen) -> Verdict {
    of_probe(seen, "shouted-method", |exchange| {
        exchange
            .result()
            .map(|_| Fault::new("`METHOD` is taken for `method`"))
    })
}

fn survives(seen: &Seen) -> Verdict {
    let Some(alive) = seen.probe("alive") else {
        return Verdict::Skipped("it was not asked");
    };
    let dead = alive.result().is_none();
    Verdict::one(
        dead.then(|| Fault::new("after hostile bodies the server no longer answers").from(alive)),
    )
}

fn large_body(seen: &Seen) -> Verdict {
    of_probe(seen, "large", |exchange| {
        exchange
            .result()
            .map(|_| Fault::new("a body of six megabytes is read and answered"))
    })
}

fn slow_request(seen: &Seen) -> Verdict {
    if seen.is_http() && seen.probe("slow").is_none() {
        return Verdict::Skipped("a slow request is tried only with `--slow`, and not over https");
    }
    of_probe(seen, "slow", |exchange| {
        let waits = exchange.outcome.as_ref().is_err_and(Failure::is_timeout);
        let seconds = exchange.took.as_secs();
        waits.then(|| {
            Fault::new(format!(
                "half a request is still waited for after {seconds} s"
            ))
        })
    })
}

/// What only the inside of a server has.
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

fn leaks(seen: &Seen) -> Verdict {
    let says = |exchange: &std::sync::Arc<crate::exchange::Exchange>| {
        let received = exchange.received()?;
        let of_tool = exchange
            .result()
            .is_some_and(|result| result.get("isError") == Some(&serde_json::Value::Bool(true)));
        let is_failure = received.status >= 400 || exchange.error().is_some() || of_tool;
        let sent = &exchange.sent.body;
        let word = INSIDE
            .into_iter()
            .find(|word| received.text.contains(word) && !sent.contains(word))?;
        is_failure.then(|| Fault::new(format!("an error says `{}`", word.trim())).from(exchange))
    };
    Verdict::Judged(seen.log.iter().filter_map(says).take(3).collect())
}

fn paths(seen: &Seen) -> Verdict {
    of_calls(seen, &[Purpose::UnknownId], |call| {
        let text = call.success()?.to_string();
        text.contains("root:x:0:0")
            .then(|| Fault::new("`fetch` of a path returns a file of the system"))
    })
}

fn internal_ids(seen: &Seen) -> Verdict {
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
    of_calls(seen, Purpose::GOOD, |call| {
        let payload = call.payload()?;
        let members = payload.as_object()?;
        let found = members
            .keys()
            .find(|key| INTERNAL.contains(&key.as_str()))?;
        Some(Fault::new(format!(
            "a result of `{}` holds `{found}`",
            call.tool
        )))
    })
}

fn apps_challenge(seen: &Seen) -> Verdict {
    let served = seen
        .probe("apps-challenge")
        .is_some_and(|exchange| exchange.status() == Some(200));
    if seen.is_http() && !served {
        return Verdict::Skipped("no token is served; the submission form gives one");
    }
    of_probe(seen, "apps-challenge", |exchange| {
        let received = exchange.received()?;
        let text = received.text.trim();
        let alone = !text.is_empty()
            && text.len() <= 512
            && !text.contains(char::is_whitespace)
            && !text.starts_with(['{', '[', '<']);
        let good = alone && received.kind == "text/plain";
        (!good).then(|| {
            Fault::new("`/.well-known/openai-apps-challenge` is not a token alone as text/plain")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_others_reach_is_asked_for_https() {
        let seen = |is_local: bool, is_https: bool| Seen {
            url: Some("http://a.example/mcp".to_owned()),
            is_local,
            is_https,
            ..Seen::default()
        };
        let faults = |seen: &Seen| match https(seen) {
            Verdict::Judged(faults) => Some(faults.len()),
            Verdict::Skipped(_) => None,
        };
        assert_eq!(faults(&seen(false, false)), Some(1));
        assert_eq!(faults(&seen(false, true)), Some(0));
        assert_eq!(faults(&seen(true, false)), None);
        assert_eq!(faults(&Seen::default()), None);
    }
}
