//! Rules about the lifecycle: discovery, `initialize`, version negotiation, capabilities, lists, and the form of
//! responses.
//!
//! A server may support either protocol era or both. Rules of an era that it does not support are skipped, so that they
//! are no findings against it. If it supports both, clients of both must see the same tools.

mod answers;
mod lists;
mod messages;

use serde_json::Value;

use super::{
    ChatGpt, CheckRule, EVERYWHERE, MUST, Note, Protocol, RuleVerdict, RuleViolation, SHOULD,
    ServerSurvey, Warning, at_path, corroborated, official, single_report,
};
use crate::exchange::RecordedExchange;
use crate::request_builder::{LEGACY_REVISIONS, MODERN_REVISION};

const SPEC_DISCOVER: &str = "MCP specification 2026-07-28, server/discover";
const SPEC_LIFECYCLE: &str = "MCP specification 2025-11-25, basic/lifecycle";
const SPEC_BASIC: &str = "MCP specification 2026-07-28, basic";

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "lifecycle/answers",
        requirement: "the server answers `server/discover` or `initialize`",
        severities: EVERYWHERE,
        source: official(SPEC_LIFECYCLE, "2025-11-25"),
        fix: "read the response in the report, which has a hint for each kind of failure",
        evaluate: answers::answers,
    },
    CheckRule {
        id: "lifecycle/discover-probe",
        requirement: "ChatGPT's first question, `server/discover`, gets an answer or a clean refusal",
        severities: &[(ChatGpt, Warning)],
        source: single_report(
            "openai/tunnel-client#63: a connector marked broken after an odd answer to the probe",
            "2026-08-27",
        ),
        fix: "answer `server/discover` with its result, or with a JSON-RPC error and status 400 or 404, within seconds",
        evaluate: discover_probe,
    },
    CheckRule {
        id: "lifecycle/discover-result",
        requirement: "the result of `server/discover` has `supportedVersions`, `capabilities`, `resultType`, `ttlMs` and `cacheScope`",
        severities: EVERYWHERE,
        source: official(SPEC_DISCOVER, "2026-07-28"),
        fix: "return all five members; `ttlMs` is a whole number, `cacheScope` is `public` or `private`",
        evaluate: discover_result,
    },
    CheckRule {
        id: "lifecycle/discover-kept",
        requirement: "a revision that `server/discover` names is served",
        severities: EVERYWHERE,
        source: official(SPEC_DISCOVER, "2026-07-28"),
        fix: "serve `tools/list` in revision 2026-07-28, or leave that revision out of `supportedVersions`",
        evaluate: discover_kept,
    },
    CheckRule {
        id: "lifecycle/initialize-result",
        requirement: "the result of `initialize` has `protocolVersion`, `capabilities` and `serverInfo` with name and version",
        severities: EVERYWHERE,
        source: official(SPEC_LIFECYCLE, "2025-11-25"),
        fix: "return all three; `serverInfo` needs `name` and `version` as texts",
        evaluate: initialize_result,
    },
    CheckRule {
        id: "lifecycle/version-negotiation",
        requirement: "`initialize` answers with the requested version, or with another published one",
        severities: MUST,
        source: official(SPEC_LIFECYCLE, "2025-11-25"),
        fix: "repeat the version when you support it, else answer with the newest that you support",
        evaluate: version_negotiation,
    },
    CheckRule {
        id: "lifecycle/no-modern-initialize",
        requirement: "`initialize` is never answered with 2026-07-28, which has no `initialize`",
        severities: &[(Protocol, Warning), (ChatGpt, Warning)],
        source: corroborated(
            "clients built with SDKs from before 2026 fail on this answer",
            "2026-11-15",
        ),
        fix: "answer `initialize` with 2025-11-25 or older, whichever version was requested",
        evaluate: no_modern_initialize,
    },
    CheckRule {
        id: "lifecycle/tools-declared",
        requirement: "a server with tools declares the capability `tools`",
        severities: EVERYWHERE,
        source: official("MCP specification 2025-11-25, server/tools", "2025-11-25"),
        fix: "add `\"tools\": {}` to `capabilities`",
        evaluate: tools_declared,
    },
    CheckRule {
        id: "lifecycle/declared-lists",
        requirement: "the lists of declared capabilities can be read",
        severities: EVERYWHERE,
        source: official(
            "MCP specification 2025-11-25, server/resources and server/prompts",
            "2025-11-25",
        ),
        fix: "answer the list, empty if need be, or do not declare the capability",
        evaluate: lists::declared,
    },
    CheckRule {
        id: "lifecycle/list-entries",
        requirement: "every resource has its address and its name, and every prompt its name",
        severities: MUST,
        source: official(
            "MCP specification 2025-11-25, server/resources and server/prompts",
            "2025-11-25",
        ),
        fix: "give each entry its `name`, and each resource its `uri`; titles are for people and optional",
        evaluate: lists::entries,
    },
    CheckRule {
        id: "lifecycle/undeclared-lists",
        requirement: "lists of undeclared capabilities are refused cleanly or are empty",
        severities: &[(ChatGpt, Warning)],
        source: single_report(
            "a guide of 2025 that saw ChatGPT ask for resources and prompts of every server",
            "2026-11-15",
        ),
        fix: "answer `resources/list` and `prompts/list` with an empty list, or with error -32601",
        evaluate: lists::undeclared,
    },
    CheckRule {
        id: "lifecycle/ping",
        requirement: "`ping` of the older revisions is answered with an empty result",
        severities: MUST,
        source: official(
            "MCP specification 2025-11-25, basic/utilities/ping",
            "2025-11-25",
        ),
        fix: "answer `ping` with `{}`",
        evaluate: messages::ping,
    },
    CheckRule {
        id: "lifecycle/unknown-method",
        requirement: "a method that does not exist is refused with -32601",
        severities: &[(Protocol, Warning)],
        source: official("JSON-RPC 2.0, section 5.1", "2013-01-04"),
        fix: "answer unknown methods with a JSON-RPC error of code -32601",
        evaluate: messages::unknown_method,
    },
    CheckRule {
        id: "lifecycle/ids-repeated",
        requirement: "every answer repeats the id of its request, as the same JSON value",
        severities: EVERYWHERE,
        source: official("JSON-RPC 2.0, section 5", "2013-01-04"),
        fix: "copy the id as it came: a text stays a text, a number a number",
        evaluate: messages::ids_repeated,
    },
    CheckRule {
        id: "lifecycle/result-type",
        requirement: "every result of revision 2026-07-28 has a `resultType`",
        severities: MUST,
        source: official(SPEC_BASIC, "2026-07-28"),
        fix: "add `\"resultType\": \"complete\"` to results of that revision",
        evaluate: messages::result_type,
    },
    CheckRule {
        id: "lifecycle/cache-hints",
        requirement: "lists of revision 2026-07-28 say how long and for whom they may be cached",
        severities: MUST,
        source: official(
            "MCP specification 2026-07-28, server/utilities/caching",
            "2026-07-28",
        ),
        fix: "add `ttlMs` and `cacheScope` to the results of lists and of `resources/read`",
        evaluate: messages::cache_hints,
    },
    CheckRule {
        id: "lifecycle/json-output",
        requirement: "what is sent as JSON is JSON; a program prints nothing else to stdout",
        severities: EVERYWHERE,
        source: official(
            "MCP specification 2025-11-25, basic/transports",
            "2025-11-25",
        ),
        fix: "write logs to stderr; send one whole JSON-RPC message per line, event or body",
        evaluate: messages::json_output,
    },
    CheckRule {
        id: "lifecycle/both-eras",
        requirement: "clients of both protocol eras, `initialize` and 2026-07-28, see the same tools",
        severities: SHOULD,
        source: official(
            "MCP specification 2026-07-28, basic/versioning",
            "2026-07-28",
        ),
        fix: "serve one list of tools to `initialize` clients and to 2026-07-28 clients",
        evaluate: both_eras,
    },
    CheckRule {
        id: "lifecycle/server-name",
        requirement: "the server says its name and version",
        severities: &[(Protocol, Note)],
        source: official(SPEC_BASIC, "2026-07-28"),
        fix: "set `serverInfo` in `initialize`, and in the `_meta` of `server/discover`",
        evaluate: server_name,
    },
];

fn discover_probe(survey: &ServerSurvey) -> RuleVerdict {
    let Some(discover) = &survey.discover else {
        return RuleVerdict::Skipped("the request was not sent");
    };
    let fault = match &discover.outcome {
        Err(failure) => Some(format!("`server/discover`: {failure}")),
        Ok(received) if received.status >= 500 => Some(format!(
            "`server/discover` is answered with status {}",
            received.status
        )),
        Ok(received) if (300..400).contains(&received.status) => None,
        Ok(received)
            if received.is_ok()
                && received.status != 0
                && discover.answer().is_none()
                && discover.error().is_none() =>
        {
            Some(
                "`server/discover` is answered with 200 and neither a result nor an error"
                    .to_owned(),
            )
        }
        Ok(_) => None,
    };
    RuleVerdict::from_option(fault.map(|what| RuleViolation::new(what).with_exchange(discover)))
}

/// Whether a member of a result has the right type.
type MemberCheck = fn(&Value) -> bool;

fn discover_result(survey: &ServerSurvey) -> RuleVerdict {
    let Some((discover, result)) = survey
        .discover
        .as_ref()
        .and_then(|found| Some((found, found.result()?)))
    else {
        return RuleVerdict::Skipped("the server does not speak 2026-07-28");
    };
    let texts = |value: &Value| {
        value
            .as_array()
            .is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string))
    };
    let members: [(&str, MemberCheck); 5] = [
        ("supportedVersions", texts),
        ("capabilities", Value::is_object),
        ("resultType", |value| value == "complete"),
        ("ttlMs", Value::is_u64),
        ("cacheScope", is_scope),
    ];
    let faults = members.into_iter().filter_map(|(key, is_good)| {
        let good = result.get(key).is_some_and(is_good);
        (!good).then(|| {
            RuleViolation::new(format!("`server/discover` has no proper `{key}`"))
                .with_exchange(discover)
        })
    });
    RuleVerdict::Evaluated(faults.collect())
}

fn is_scope(value: &Value) -> bool {
    value == "public" || value == "private"
}

fn discover_kept(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.modern {
        return RuleVerdict::Skipped("the server does not speak 2026-07-28");
    }
    let list = survey.tool_pages.iter().find(|(modern, _)| *modern);
    let fault = list.filter(|(_, page)| page.result().is_none() && !page.was_not_sent());
    RuleVerdict::from_option(fault.map(|(_, page)| {
        RuleViolation::new(
            "`server/discover` names 2026-07-28, yet `tools/list` in that revision fails",
        )
        .with_exchange(page)
    }))
}

fn initialize_result(survey: &ServerSurvey) -> RuleVerdict {
    let Some((exchange, result)) = survey
        .handshakes
        .first()
        .and_then(|(_, found)| Some((found, found.result()?)))
    else {
        return RuleVerdict::Skipped("the server does not know `initialize`");
    };
    let paths: [(&[&str], MemberCheck); 4] = [
        (&["protocolVersion"], Value::is_string),
        (&["capabilities"], Value::is_object),
        (&["serverInfo", "name"], Value::is_string),
        (&["serverInfo", "version"], Value::is_string),
    ];
    let faults = paths.into_iter().filter_map(|(path, is_good)| {
        let good = at_path(result, path).is_some_and(is_good);
        (!good).then(|| {
            RuleViolation::new(format!("`initialize` has no proper `{}`", path.join(".")))
                .with_exchange(exchange)
        })
    });
    RuleVerdict::Evaluated(faults.collect())
}

fn version_negotiation(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.legacy {
        return RuleVerdict::Skipped("the server does not know `initialize`");
    }
    let supported: Vec<&str> = survey
        .handshakes
        .iter()
        .filter_map(|(_, exchange)| version(exchange))
        .collect();
    let fault = |(requested, exchange): &(String, std::sync::Arc<RecordedExchange>)| {
        let what = match version(exchange) {
            Some(answered) if answered == requested && LEGACY_REVISIONS.contains(&answered) => {
                return None;
            }
            // A server may refuse a version that it never supported, but not one that it supports.
            None if exchange.has_server_failed() => {
                format!("`initialize` with version `{requested}` breaks the server")
            }
            None if LEGACY_REVISIONS.contains(&requested.as_str())
                && supported.contains(&requested.as_str()) =>
            {
                format!(
                    "`initialize` with version `{requested}` is refused, though another answer names it"
                )
            }
            None => return None,
            // 2026-07-28 has a rule of its own, `lifecycle/no-modern-initialize`.
            Some(MODERN_REVISION) => return None,
            Some(answered) if LEGACY_REVISIONS.contains(&answered) => {
                if !supported.contains(&requested.as_str())
                    || !LEGACY_REVISIONS.contains(&requested.as_str())
                {
                    return None;
                }
                format!(
                    "`initialize` with version `{requested}` is answered with `{answered}`, though the server speaks it"
                )
            }
            Some(answered) => format!(
                "`initialize` with version `{requested}` is answered with `{answered}`, which does not exist"
            ),
        };
        Some(RuleViolation::new(what).with_exchange(exchange))
    };
    RuleVerdict::Evaluated(
        survey
            .handshakes
            .iter()
            .filter(|(_, exchange)| !exchange.was_not_sent())
            .filter_map(fault)
            .collect(),
    )
}

fn version(exchange: &RecordedExchange) -> Option<&str> {
    exchange.result()?.get("protocolVersion")?.as_str()
}

fn no_modern_initialize(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.legacy {
        return RuleVerdict::Skipped("the server does not know `initialize`");
    }
    let wrong = survey
        .handshakes
        .iter()
        .find(|(_, exchange)| version(exchange) == Some(MODERN_REVISION));
    RuleVerdict::from_option(wrong.map(|(requested, exchange)| {
        RuleViolation::new(format!(
            "`initialize` with version `{requested}` is answered with `{MODERN_REVISION}`"
        ))
        .with_exchange(exchange)
    }))
}

fn tools_declared(survey: &ServerSurvey) -> RuleVerdict {
    if survey.tools.is_empty() {
        return super::NO_TOOLS;
    }
    let capabilities = survey
        .initialize_result
        .get("capabilities")
        .unwrap_or(&Value::Null);
    let missing = capabilities.get("tools").is_none();
    RuleVerdict::from_option(missing.then(|| {
        RuleViolation::new("there are tools, but the capability `tools` is not declared")
            .with_excerpt(capabilities)
    }))
}

fn both_eras(survey: &ServerSurvey) -> RuleVerdict {
    let Some(other) = &survey.tools_other_era else {
        return RuleVerdict::Skipped("the server speaks one era only");
    };
    let names = |tools: &crate::survey::ToolList| {
        let mut names: Vec<String> = tools.iter().map(super::name).collect();
        names.sort();
        names
    };
    let (ours, theirs) = (names(&survey.tools), names(other));
    RuleVerdict::from_option((ours != theirs).then(|| {
        RuleViolation::new("clients of 2026-07-28 and clients of `initialize` see different tools")
            .with_excerpt(&format!("{ours:?} and {theirs:?}"))
    }))
}

fn server_name(survey: &ServerSurvey) -> RuleVerdict {
    let places: [&[&str]; 2] = [
        &["serverInfo"],
        &["_meta", "io.modelcontextprotocol/serverInfo"],
    ];
    let info = places
        .into_iter()
        .find_map(|path| at_path(&survey.initialize_result, path));
    let named = |key: &str| {
        info.and_then(|info| info.get(key))
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    let silent = !named("name") || !named("version");
    RuleVerdict::from_option(silent.then(|| {
        RuleViolation::new("the server does not say its name and version")
            .with_excerpt(&info.unwrap_or(&Value::Null))
    }))
}
