//! The form of single answers: ids, errors, and what every result of a revision has.

use serde_json::Value;

use super::super::{Fault, Seen, Verdict};
use super::is_scope;
use crate::exchange::Exchange;

pub(super) fn ping(seen: &Seen) -> Verdict {
    if !seen.legacy {
        return Verdict::Skipped("the server does not know `initialize`");
    }
    match seen.probe("ping") {
        Some(ping) => {
            let good = ping.result().is_some_and(Value::is_object);
            Verdict::one(
                (!good).then(|| Fault::new("`ping` is not answered with an object").from(ping)),
            )
        }
        None => Verdict::Skipped("it was not asked"),
    }
}

pub(super) fn unknown_method(seen: &Seen) -> Verdict {
    let Some(asked) = seen.probe("unknown-method") else {
        return Verdict::Skipped("it was not asked");
    };
    let what = match (asked.code(), asked.result()) {
        (Some(-32601), _) => return Verdict::Judged(Vec::new()),
        (Some(code), _) => format!("a method that does not exist is refused with code {code}"),
        (None, Some(_)) => "a method that does not exist gets a result".to_owned(),
        (None, None) => "a method that does not exist gets no JSON-RPC error".to_owned(),
    };
    Verdict::one(Some(Fault::new(what).from(asked)))
}

pub(super) fn ids_repeated(seen: &Seen) -> Verdict {
    let wrong = |exchange: &&std::sync::Arc<Exchange>| {
        let Some(id) = &exchange.sent.id else {
            return false;
        };
        let Some(received) = exchange
            .received()
            .filter(|received| received.is_ok() || received.status == 0)
        else {
            return false;
        };
        let is_result = |message: &&Value| message.get("result").is_some();
        let foreign = |message: &Value| message.get("id") != Some(id);
        exchange.answer().is_none()
            && received
                .messages
                .iter()
                .find(is_result)
                .is_some_and(foreign)
    };
    let fault = |exchange: &std::sync::Arc<Exchange>| {
        Fault::new("an answer does not repeat the id of its request").from(exchange)
    };
    Verdict::Judged(seen.log.iter().filter(wrong).take(3).map(fault).collect())
}

/// The results that came back in the newer revision.
fn modern_results(seen: &Seen) -> impl Iterator<Item = (&Exchange, &Value)> {
    let is_modern = |exchange: &&std::sync::Arc<Exchange>| {
        exchange
            .sent
            .body
            .contains("io.modelcontextprotocol/protocolVersion\":\"2026-07-28")
    };
    let log = seen.log.iter().filter(is_modern);
    log.filter_map(|exchange| Some((exchange.as_ref(), exchange.result()?)))
}

pub(super) fn result_type(seen: &Seen) -> Verdict {
    if !seen.modern {
        return Verdict::Skipped("the server does not speak 2026-07-28");
    }
    let lacks =
        |(_, result): &(&Exchange, &Value)| !result.get("resultType").is_some_and(Value::is_string);
    let fault = |(exchange, _): (&Exchange, &Value)| {
        Fault::new("a result of 2026-07-28 has no `resultType`").from(exchange)
    };
    Verdict::Judged(
        modern_results(seen)
            .filter(lacks)
            .take(3)
            .map(fault)
            .collect(),
    )
}

pub(super) fn cache_hints(seen: &Seen) -> Verdict {
    if !seen.modern {
        return Verdict::Skipped("the server does not speak 2026-07-28");
    }
    let methods = [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ];
    let is_list = |(exchange, _): &(&Exchange, &Value)| {
        methods.iter().any(|method| {
            exchange
                .sent
                .body
                .contains(&format!("\"method\":\"{method}\""))
        })
    };
    let lacks = |(_, result): &(&Exchange, &Value)| {
        !result.get("ttlMs").is_some_and(Value::is_u64)
            || !result.get("cacheScope").is_some_and(is_scope)
    };
    let fault = |(exchange, _): (&Exchange, &Value)| {
        Fault::new("a list of 2026-07-28 has no proper `ttlMs` and `cacheScope`").from(exchange)
    };
    Verdict::Judged(
        modern_results(seen)
            .filter(is_list)
            .filter(lacks)
            .take(3)
            .map(fault)
            .collect(),
    )
}

pub(super) fn json_output(seen: &Seen) -> Verdict {
    let garbled = seen
        .log
        .iter()
        .find(|exchange| exchange.received().is_some_and(|received| received.garbled));
    let what = if seen.is_http() {
        "a body or event that should be JSON is not"
    } else {
        "the program prints something to stdout that is not JSON"
    };
    Verdict::one(garbled.map(|exchange| Fault::new(what).from(exchange)))
}
