//! Diagnosis of a failed handshake: what came back, and a fix for exactly that failure.
//!
//! A failed handshake is the only finding of its report, so it must say more than "does not answer".

use super::super::{RuleVerdict, RuleViolation, ServerSurvey};
use crate::exchange::{ExchangeError, ProgramOutput, ReceivedResponse, RecordedExchange};
use crate::text::{printable, truncate_chars};

/// The longest address or message in a finding, in characters.
const MAX_SHOWN: usize = 120;

pub(super) fn answers(survey: &ServerSurvey) -> RuleVerdict {
    if survey.is_connected || (survey.requires_sign_in && !survey.has_token) {
        return RuleVerdict::Evaluated(Vec::new());
    }
    let Some((_, exchange)) = survey.handshakes.first() else {
        let url = survey.url.as_deref().unwrap_or_default();
        let fault = RuleViolation::new(format!("`{url}` is not an http or https address"));
        let fault = fault.fix("give an address such as `https://docs.example.org/mcp`");
        return RuleVerdict::from_option(Some(fault));
    };
    let (what, fix) = match &exchange.outcome {
        Err(failure) => explain_failure(failure, survey),
        Ok(received) if survey.is_http() => received_over_http(exchange, received, survey),
        Ok(received) => received_from_program(exchange, received),
    };
    RuleVerdict::from_option(Some(
        RuleViolation::new(what).with_exchange(exchange).fix(fix),
    ))
}

/// The message and the fix for a request without a response.
fn explain_failure(failure: &ExchangeError, survey: &ServerSurvey) -> (String, &'static str) {
    let fix = match failure {
        ExchangeError::ConnectionRefused => {
            "start the server, or correct the port: nothing listens at this one"
        }
        ExchangeError::NoSuchHost => "correct the host's name, or publish it in DNS",
        ExchangeError::Tls(why) if why.contains("certificate") => {
            "install a certificate for this host name from a public certificate authority, with its full chain"
        }
        ExchangeError::Tls(_) => "serve TLS at this port, or give the address with `http://`",
        ExchangeError::NotHttp(_) if survey.is_https => "serve HTTP at this port",
        ExchangeError::NotHttp(_) => "serve HTTP at this port, or give the address with `https://`",
        ExchangeError::TimedOut(_) if survey.is_http() => {
            "answer within seconds; look for a firewall that drops packets, or raise `--timeout`"
        }
        ExchangeError::TimedOut(output) => return explain_silence(output),
        ExchangeError::TooLarge(_)
        | ExchangeError::TooMuchJson(_)
        | ExchangeError::TooManyLines(_) => "answer `initialize` with a short message of its own",
        ExchangeError::NotStarted {
            is_missing: true, ..
        } => "correct the command, or install it; it is looked for in the folders of PATH",
        ExchangeError::NotStarted { .. } => "make the file executable, and name the program itself",
        ExchangeError::Ended(output) => return explain_exit(output),
        ExchangeError::Unreachable(_) | ExchangeError::BlockedAddress => {
            "check host and port, and the network in between"
        }
        ExchangeError::BudgetSpent => "check again; the check had no time left",
    };
    (failure.to_string(), fix)
}

fn explain_exit(output: &ProgramOutput) -> (String, &'static str) {
    let status = output.status.as_deref();
    let status = status.map_or_else(String::new, |status| format!(" with {status}"));
    let what = format!("the program ended{status} before it answered `initialize`");
    let fix = if output.stray.is_some() {
        "write logs to stderr and nothing but messages to stdout, and read stdin until it is closed"
    } else if output.stderr.is_empty() {
        "run the command in a terminal: a server reads stdin until it is closed, and says on stderr why it ends"
    } else {
        "correct what it says on stderr; the arguments and the environment are those of your command"
    };
    (what, fix)
}

fn explain_silence(output: &ProgramOutput) -> (String, &'static str) {
    if output.stray.is_some() {
        let what = "the program writes something other than JSON to stdout, and no answer";
        let fix = "write logs to stderr; answer each line on stdin with one line of JSON on stdout";
        return (what.to_owned(), fix);
    }
    let what = "the program did not answer `initialize` in time";
    let fix = "flush stdout after every message; a program that only serves HTTP is checked by its address";
    (what.to_owned(), fix)
}

fn received_from_program(
    exchange: &RecordedExchange,
    _: &ReceivedResponse,
) -> (String, &'static str) {
    json_rpc_refusal(exchange).unwrap_or_else(|| {
        (
            "the answer to `initialize` is not a JSON-RPC answer to it".to_owned(),
            "answer with `jsonrpc`, the same `id`, and `result`",
        )
    })
}

/// The message and the fix for a JSON-RPC error, if the response is one.
fn json_rpc_refusal(exchange: &RecordedExchange) -> Option<(String, &'static str)> {
    let error = exchange.error()?;
    let message = error.get("message").and_then(serde_json::Value::as_str);
    let message = printable(message.unwrap_or("no message"), MAX_SHOWN);
    let code = exchange.error_code().unwrap_or_default();
    Some((
        format!("the server refuses `initialize` with code {code}: {message}"),
        "answer `initialize` in a revision from 2024-11-05 on, or `server/discover` in 2026-07-28",
    ))
}

fn received_over_http(
    exchange: &RecordedExchange,
    received: &ReceivedResponse,
    survey: &ServerSurvey,
) -> (String, &'static str) {
    let status = received.status;
    if let 300..=399 = status {
        let location = received.header("location").unwrap_or("nowhere");
        let location = printable(location, MAX_SHOWN);
        return (
            format!(
                "the server answers `initialize` with status {status} and leads to `{location}`"
            ),
            "give the address that it leads to, if that is the endpoint; a login page means that a proxy in front requires authentication",
        );
    }
    if status == 401 && survey.has_token {
        return (
            "the server refuses the token with status 401".to_owned(),
            "give a token that has not expired and was issued for this address, or sign in with `--login`",
        );
    }
    if status < 300 {
        return explain_success_status(exchange, received);
    }
    let body = describe_body(received);
    if let Some((message, _)) = json_rpc_refusal(exchange) {
        return (
            format!("{message} (status {status})"),
            status_fix(status, received),
        );
    }
    (
        format!("the server answers `initialize` with status {status} and {body}"),
        status_fix(status, received),
    )
}

/// The fix for a response with an error status.
fn status_fix(status: u16, received: &ReceivedResponse) -> &'static str {
    let is_page = is_page(received);
    match status {
        400 => "look at what it says: the request is the one that ChatGPT sends",
        401 => "answer 401 to every request without a token alike, or to none",
        403 if is_page => {
            "let the clients of ChatGPT and Claude pass the firewall or bot protection in front"
        }
        403 => {
            "allow this `Host`, and requests without an `Origin`; look at the server's log for the reason"
        }
        404 | 410 => "correct the path; MCP endpoints often end in `/mcp`",
        405 => {
            "answer POST at this path; `/sse` of the older transport is not enough, give the streamable HTTP endpoint"
        }
        406 | 415 => {
            "take `Content-Type: application/json` with `Accept: application/json, text/event-stream`"
        }
        408 | 504 => "answer within seconds; the proxy in front gave up waiting",
        429 => "raise the rate limit, or check again later",
        502 | 503 => "start the server behind the proxy, and let the proxy reach it",
        500..=599 => "look at the server's log: it failed over `initialize`",
        _ => "answer POST with 200 and a JSON-RPC message",
    }
}

/// The message and the fix for a 2xx response that does not answer `initialize`.
fn explain_success_status(
    exchange: &RecordedExchange,
    received: &ReceivedResponse,
) -> (String, &'static str) {
    if let Some(refused) = json_rpc_refusal(exchange) {
        return refused;
    }
    let status = received.status;
    if received.bytes == 0 && received.kind != "text/event-stream" {
        return (
            format!("the server answers `initialize` with status {status} and an empty body"),
            "send the result in the answer to the same POST, as JSON or as an event stream",
        );
    }
    if received.garbled {
        return (
            "the answer to `initialize` is not valid JSON".to_owned(),
            "send one whole JSON-RPC message, and nothing before or after it",
        );
    }
    match received.kind.as_str() {
        "application/json" => (
            "the answer to `initialize` is JSON, but not a JSON-RPC answer to it".to_owned(),
            "answer with `jsonrpc`, the same `id`, and `result`; another service may be at this address",
        ),
        "text/event-stream" => (
            "the event stream ends without an answer to `initialize`".to_owned(),
            "send the answer as an event of the stream before it ends",
        ),
        _ if is_page(received) => (
            format!(
                "a web page answers `initialize`: {}",
                describe_body(received)
            ),
            "correct the path; this is a web page for people, and MCP endpoints often end in `/mcp`",
        ),
        _ => (
            format!(
                "the answer to `initialize` is neither JSON nor an event stream, but {}",
                describe_body(received)
            ),
            "set the `Content-Type` of answers to `application/json` or `text/event-stream`",
        ),
    }
}

fn is_page(received: &ReceivedResponse) -> bool {
    let start = truncate_chars(received.text.trim_start(), 15).to_ascii_lowercase();
    received.kind == "text/html"
        || start.starts_with("<!doctype html")
        || start.starts_with("<html")
}

/// Describes the body by its content type and, for a page, its title.
fn describe_body(received: &ReceivedResponse) -> String {
    if received.bytes == 0 {
        return "an empty body".to_owned();
    }
    let kind = match received.kind.as_str() {
        "" => "a body without a content type".to_owned(),
        kind => format!("`{}`", printable(kind, MAX_SHOWN)),
    };
    match title(received) {
        Some(title) => format!("{kind}, a page called `{title}`"),
        None => kind,
    }
}

/// The `<title>` of an HTML page, safe to print.
fn title(received: &ReceivedResponse) -> Option<String> {
    let lower = received.text.to_ascii_lowercase();
    let from = lower.find("<title>")? + "<title>".len();
    let to = lower.get(from..)?.find("</title>")?;
    let title = received.text.get(from..from + to)?.trim();
    (!title.is_empty()).then(|| printable(title, MAX_SHOWN))
}
