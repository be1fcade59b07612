//! Rules about the form of single responses: ids, errors, and the members that a revision requires in every result.
//!
//! Most look at every exchange of the survey and not at probes alone, since one code path may differ from the others. A
//! mistake that occurs everywhere is reported three times at most.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey};
use super::is_scope;
use crate::exchange::RecordedExchange;

pub(super) fn ping(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.legacy {
        return RuleVerdict::Skipped("the server does not know `initialize`");
    }
    match survey.probe("ping") {
        Some(ping) => {
            let good = ping.result().is_some_and(Value::is_object);
            RuleVerdict::from_option((!good).then(|| {
                RuleViolation::new("`ping` is not answered with an object").with_exchange(ping)
            }))
        }
        None => RuleVerdict::Skipped("the request was not sent"),
    }
}

pub(super) fn unknown_method(survey: &ServerSurvey) -> RuleVerdict {
    let Some(exchange) = survey.probe("unknown-method") else {
        return RuleVerdict::Skipped("the request was not sent");
    };
    let what = match (exchange.error_code(), exchange.result()) {
        (Some(-32601), _) => return RuleVerdict::Evaluated(Vec::new()),
        (Some(code), _) => format!("a method that does not exist is refused with code {code}"),
        (None, Some(_)) => "a method that does not exist gets a result".to_owned(),
        (None, None) => "a method that does not exist gets no JSON-RPC error".to_owned(),
    };
    RuleVerdict::from_option(Some(RuleViolation::new(what).with_exchange(exchange)))
}

pub(super) fn ids_repeated(survey: &ServerSurvey) -> RuleVerdict {
    let wrong = |exchange: &&std::sync::Arc<RecordedExchange>| {
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
    let fault = |exchange: &std::sync::Arc<RecordedExchange>| {
        RuleViolation::new("an answer does not repeat the id of its request")
            .with_exchange(exchange)
    };
    RuleVerdict::Evaluated(survey.log.iter().filter(wrong).take(3).map(fault).collect())
}

/// The results of requests in revision 2026-07-28.
fn modern_results(survey: &ServerSurvey) -> impl Iterator<Item = (&RecordedExchange, &Value)> {
    let is_modern = |exchange: &&std::sync::Arc<RecordedExchange>| {
        exchange
            .sent
            .body
            .contains("io.modelcontextprotocol/protocolVersion\":\"2026-07-28")
    };
    let log = survey.log.iter().filter(is_modern);
    log.filter_map(|exchange| Some((exchange.as_ref(), exchange.result()?)))
}

pub(super) fn result_type(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.modern {
        return RuleVerdict::Skipped("the server does not speak 2026-07-28");
    }
    let lacks = |(_, result): &(&RecordedExchange, &Value)| {
        !result.get("resultType").is_some_and(Value::is_string)
    };
    let fault = |(exchange, _): (&RecordedExchange, &Value)| {
        RuleViolation::new("a result of 2026-07-28 has no `resultType`").with_exchange(exchange)
    };
    RuleVerdict::Evaluated(
        modern_results(survey)
            .filter(lacks)
            .take(3)
            .map(fault)
            .collect(),
    )
}

pub(super) fn cache_hints(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.modern {
        return RuleVerdict::Skipped("the server does not speak 2026-07-28");
    }
    let methods = [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ];
    let is_list = |(exchange, _): &(&RecordedExchange, &Value)| {
        methods.iter().any(|method| {
            exchange
                .sent
                .body
                .contains(&format!("\"method\":\"{method}\""))
        })
    };
    let lacks = |(_, result): &(&RecordedExchange, &Value)| {
        !result.get("ttlMs").is_some_and(Value::is_u64)
            || !result.get("cacheScope").is_some_and(is_scope)
    };
    let fault = |(exchange, _): (&RecordedExchange, &Value)| {
        RuleViolation::new("a list of 2026-07-28 has no proper `ttlMs` and `cacheScope`")
            .with_exchange(exchange)
    };
    RuleVerdict::Evaluated(
        modern_results(survey)
            .filter(is_list)
            .filter(lacks)
            .take(3)
            .map(fault)
            .collect(),
    )
}

pub(super) fn json_output(survey: &ServerSurvey) -> RuleVerdict {
    let garbled = survey
        .log
        .iter()
        .find(|exchange| exchange.received().is_some_and(|received| received.garbled));
    let what = if survey.is_http() {
        "a body or event that should be JSON is not"
    } else {
        "the program prints something to stdout that is not JSON"
    };
    RuleVerdict::from_option(
        garbled.map(|exchange| RuleViolation::new(what).with_exchange(exchange)),
    )
}
