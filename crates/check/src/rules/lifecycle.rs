//! The first words: discovery, greeting, versions, capabilities, and answers that have the right form.

mod answers;
mod lists;
mod messages;

use serde_json::Value;

use super::{
    ChatGpt, EVERYWHERE, Fault, MUST, Note, Protocol, Rule, SHOULD, Seen, Verdict, Warning, owner,
    report, several, within,
};
use crate::exchange::Exchange;
use crate::voice::{LEGACY, MODERN};

const SPEC_DISCOVER: &str = "MCP specification 2026-07-28, server/discover";
const SPEC_LIFECYCLE: &str = "MCP specification 2025-11-25, basic/lifecycle";
const SPEC_BASIC: &str = "MCP specification 2026-07-28, basic";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "lifecycle/answers",
        demand: "the server answers `server/discover` or `initialize`",
        weights: EVERYWHERE,
        source: owner(SPEC_LIFECYCLE, "2025-11-25"),
        fix: "look at what came back: each way to fail has a hint of its own in the report",
        judge: answers::answers,
    },
    Rule {
        id: "lifecycle/discover-probe",
        demand: "ChatGPT's first question, `server/discover`, gets an answer or a clean refusal",
        weights: &[(ChatGpt, Warning)],
        source: report(
            "openai/tunnel-client#63: a connector marked broken after an odd answer to the probe",
            "2026-08-27",
        ),
        fix: "answer `server/discover` with its result, or with a JSON-RPC error and status 400 or 404, within seconds",
        judge: discover_probe,
    },
    Rule {
        id: "lifecycle/discover-result",
        demand: "the result of `server/discover` has `supportedVersions`, `capabilities`, `resultType`, `ttlMs` and `cacheScope`",
        weights: EVERYWHERE,
        source: owner(SPEC_DISCOVER, "2026-07-28"),
        fix: "return all five members; `ttlMs` is a whole number, `cacheScope` is `public` or `private`",
        judge: discover_result,
    },
    Rule {
        id: "lifecycle/discover-kept",
        demand: "a revision that `server/discover` names is served",
        weights: EVERYWHERE,
        source: owner(SPEC_DISCOVER, "2026-07-28"),
        fix: "serve `tools/list` in revision 2026-07-28, or leave that revision out of `supportedVersions`",
        judge: discover_kept,
    },
    Rule {
        id: "lifecycle/initialize-result",
        demand: "the result of `initialize` has `protocolVersion`, `capabilities` and `serverInfo` with name and version",
        weights: EVERYWHERE,
        source: owner(SPEC_LIFECYCLE, "2025-11-25"),
        fix: "return all three; `serverInfo` needs `name` and `version` as texts",
        judge: initialize_result,
    },
    Rule {
        id: "lifecycle/version-negotiation",
        demand: "`initialize` answers with the version asked for, or with another that exists",
        weights: MUST,
        source: owner(SPEC_LIFECYCLE, "2025-11-25"),
        fix: "repeat the version when you support it, else answer with the newest that you support",
        judge: version_negotiation,
    },
    Rule {
        id: "lifecycle/no-modern-initialize",
        demand: "`initialize` is never answered with 2026-07-28, which has no `initialize`",
        weights: &[(Protocol, Warning), (ChatGpt, Warning)],
        source: several(
            "clients built on SDKs before 2026 stop when they see it",
            "2026-11-15",
        ),
        fix: "answer `initialize` with 2025-11-25 or older, whatever was asked",
        judge: no_modern_initialize,
    },
    Rule {
        id: "lifecycle/tools-declared",
        demand: "a server with tools declares the capability `tools`",
        weights: EVERYWHERE,
        source: owner("MCP specification 2025-11-25, server/tools", "2025-11-25"),
        fix: "add `\"tools\": {}` to `capabilities`",
        judge: tools_declared,
    },
    Rule {
        id: "lifecycle/declared-lists",
        demand: "the lists of declared capabilities can be read",
        weights: EVERYWHERE,
        source: owner(
            "MCP specification 2025-11-25, server/resources and server/prompts",
            "2025-11-25",
        ),
        fix: "answer the list, empty if need be, or do not declare the capability",
        judge: lists::declared,
    },
    Rule {
        id: "lifecycle/list-entries",
        demand: "every resource has its address and its name, and every prompt its name",
        weights: MUST,
        source: owner(
            "MCP specification 2025-11-25, server/resources and server/prompts",
            "2025-11-25",
        ),
        fix: "give each entry its `name`, and each resource its `uri`; titles are for people and optional",
        judge: lists::entries,
    },
    Rule {
        id: "lifecycle/undeclared-lists",
        demand: "lists of undeclared capabilities are refused cleanly or are empty",
        weights: &[(ChatGpt, Warning)],
        source: report(
            "a guide of 2025 that saw ChatGPT ask for resources and prompts of every server",
            "2026-11-15",
        ),
        fix: "answer `resources/list` and `prompts/list` with an empty list, or with error -32601",
        judge: lists::undeclared,
    },
    Rule {
        id: "lifecycle/ping",
        demand: "`ping` of the older revisions is answered with an empty result",
        weights: MUST,
        source: owner(
            "MCP specification 2025-11-25, basic/utilities/ping",
            "2025-11-25",
        ),
        fix: "answer `ping` with `{}`",
        judge: messages::ping,
    },
    Rule {
        id: "lifecycle/unknown-method",
        demand: "a method that does not exist is refused with -32601",
        weights: &[(Protocol, Warning)],
        source: owner("JSON-RPC 2.0, section 5.1", "2013-01-04"),
        fix: "answer unknown methods with a JSON-RPC error of code -32601",
        judge: messages::unknown_method,
    },
    Rule {
        id: "lifecycle/ids-repeated",
        demand: "every answer repeats the id of its request, as the same JSON value",
        weights: EVERYWHERE,
        source: owner("JSON-RPC 2.0, section 5", "2013-01-04"),
        fix: "copy the id as it came: a text stays a text, a number a number",
        judge: messages::ids_repeated,
    },
    Rule {
        id: "lifecycle/result-type",
        demand: "every result of revision 2026-07-28 has a `resultType`",
        weights: MUST,
        source: owner(SPEC_BASIC, "2026-07-28"),
        fix: "add `\"resultType\": \"complete\"` to results of that revision",
        judge: messages::result_type,
    },
    Rule {
        id: "lifecycle/cache-hints",
        demand: "lists of revision 2026-07-28 say how long they hold and for whom",
        weights: MUST,
        source: owner(
            "MCP specification 2026-07-28, server/utilities/caching",
            "2026-07-28",
        ),
        fix: "add `ttlMs` and `cacheScope` to the results of lists and of `resources/read`",
        judge: messages::cache_hints,
    },
    Rule {
        id: "lifecycle/json-output",
        demand: "what is sent as JSON is JSON; a program prints nothing else to stdout",
        weights: EVERYWHERE,
        source: owner(
            "MCP specification 2025-11-25, basic/transports",
            "2025-11-25",
        ),
        fix: "write logs to stderr; send one whole JSON-RPC message per line, event or body",
        judge: messages::json_output,
    },
    Rule {
        id: "lifecycle/both-eras",
        demand: "the tools are the same in both eras of the protocol",
        weights: SHOULD,
        source: owner(
            "MCP specification 2026-07-28, basic/versioning",
            "2026-07-28",
        ),
        fix: "serve one list of tools to `initialize` clients and to 2026-07-28 clients",
        judge: both_eras,
    },
    Rule {
        id: "lifecycle/server-name",
        demand: "the server says its name and version",
        weights: &[(Protocol, Note)],
        source: owner(SPEC_BASIC, "2026-07-28"),
        fix: "set `serverInfo` in `initialize`, and in the `_meta` of `server/discover`",
        judge: server_name,
    },
];

fn discover_probe(seen: &Seen) -> Verdict {
    let Some(discover) = &seen.discover else {
        return Verdict::Skipped("it was not asked");
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
    Verdict::one(fault.map(|what| Fault::new(what).from(discover)))
}

/// Whether a member has the form it should have.
type Form = fn(&Value) -> bool;

fn discover_result(seen: &Seen) -> Verdict {
    let Some((discover, result)) = seen
        .discover
        .as_ref()
        .and_then(|found| Some((found, found.result()?)))
    else {
        return Verdict::Skipped("the server does not speak 2026-07-28");
    };
    let texts = |value: &Value| {
        value
            .as_array()
            .is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string))
    };
    let members: [(&str, Form); 5] = [
        ("supportedVersions", texts),
        ("capabilities", Value::is_object),
        ("resultType", |value| value == "complete"),
        ("ttlMs", Value::is_u64),
        ("cacheScope", is_scope),
    ];
    let faults = members.into_iter().filter_map(|(key, is_good)| {
        let good = result.get(key).is_some_and(is_good);
        (!good)
            .then(|| Fault::new(format!("`server/discover` has no proper `{key}`")).from(discover))
    });
    Verdict::Judged(faults.collect())
}

fn is_scope(value: &Value) -> bool {
    value == "public" || value == "private"
}

fn discover_kept(seen: &Seen) -> Verdict {
    if !seen.modern {
        return Verdict::Skipped("the server does not speak 2026-07-28");
    }
    let list = seen.tool_pages.iter().find(|(modern, _)| *modern);
    let fault = list.filter(|(_, page)| page.result().is_none() && !page.is_unsent());
    Verdict::one(fault.map(|(_, page)| {
        Fault::new("`server/discover` names 2026-07-28, yet `tools/list` in that revision fails")
            .from(page)
    }))
}

fn initialize_result(seen: &Seen) -> Verdict {
    let Some((greeted, result)) = seen
        .greetings
        .first()
        .and_then(|(_, found)| Some((found, found.result()?)))
    else {
        return Verdict::Skipped("the server does not know `initialize`");
    };
    let paths: [(&[&str], Form); 4] = [
        (&["protocolVersion"], Value::is_string),
        (&["capabilities"], Value::is_object),
        (&["serverInfo", "name"], Value::is_string),
        (&["serverInfo", "version"], Value::is_string),
    ];
    let faults = paths.into_iter().filter_map(|(path, is_good)| {
        let good = within(result, path).is_some_and(is_good);
        (!good).then(|| {
            Fault::new(format!("`initialize` has no proper `{}`", path.join("."))).from(greeted)
        })
    });
    Verdict::Judged(faults.collect())
}

fn version_negotiation(seen: &Seen) -> Verdict {
    if !seen.legacy {
        return Verdict::Skipped("the server does not know `initialize`");
    }
    let supported: Vec<&str> = seen
        .greetings
        .iter()
        .filter_map(|(_, greeted)| version(greeted))
        .collect();
    let fault = |(asked, greeted): &(String, std::sync::Arc<Exchange>)| {
        let what = match version(greeted) {
            Some(answered) if answered == asked && LEGACY.contains(&answered) => return None,
            // Asking for what it never knew may be refused; asking for what it speaks may not be.
            None if greeted.broke() => {
                format!("`initialize` with version `{asked}` breaks the server")
            }
            None if LEGACY.contains(&asked.as_str()) && supported.contains(&asked.as_str()) => {
                format!(
                    "`initialize` with version `{asked}` is refused, though another answer names it"
                )
            }
            None => return None,
            // The newest is judged by a rule of its own.
            Some(MODERN) => return None,
            Some(answered) if LEGACY.contains(&answered) => {
                if !supported.contains(&asked.as_str()) || !LEGACY.contains(&asked.as_str()) {
                    return None;
                }
                format!(
                    "`initialize` with version `{asked}` is answered with `{answered}`, though the server speaks it"
                )
            }
            Some(answered) => format!(
                "`initialize` with version `{asked}` is answered with `{answered}`, which does not exist"
            ),
        };
        Some(Fault::new(what).from(greeted))
    };
    Verdict::Judged(
        seen.greetings
            .iter()
            .filter(|(_, greeted)| !greeted.is_unsent())
            .filter_map(fault)
            .collect(),
    )
}

fn version(greeted: &Exchange) -> Option<&str> {
    greeted.result()?.get("protocolVersion")?.as_str()
}

fn no_modern_initialize(seen: &Seen) -> Verdict {
    if !seen.legacy {
        return Verdict::Skipped("the server does not know `initialize`");
    }
    let wrong = seen
        .greetings
        .iter()
        .find(|(_, greeted)| version(greeted) == Some(MODERN));
    Verdict::one(wrong.map(|(asked, greeted)| {
        Fault::new(format!(
            "`initialize` with version `{asked}` is answered with `{MODERN}`"
        ))
        .from(greeted)
    }))
}

fn tools_declared(seen: &Seen) -> Verdict {
    if seen.tools.is_empty() {
        return super::NO_TOOLS;
    }
    let capabilities = seen.hello.get("capabilities").unwrap_or(&Value::Null);
    let missing = capabilities.get("tools").is_none();
    Verdict::one(missing.then(|| {
        Fault::new("there are tools, but the capability `tools` is not declared").seen(capabilities)
    }))
}

fn both_eras(seen: &Seen) -> Verdict {
    let Some(other) = &seen.tools_other_era else {
        return Verdict::Skipped("the server speaks one era only");
    };
    let names = |tools: &crate::survey::ToolList| {
        let mut names: Vec<String> = tools.iter().map(super::name).collect();
        names.sort();
        names
    };
    let (ours, theirs) = (names(&seen.tools), names(other));
    Verdict::one((ours != theirs).then(|| {
        Fault::new("clients of 2026-07-28 and clients of `initialize` see other tools")
            .seen(&format!("{ours:?} and {theirs:?}"))
    }))
}

fn server_name(seen: &Seen) -> Verdict {
    let places: [&[&str]; 2] = [
        &["serverInfo"],
        &["_meta", "io.modelcontextprotocol/serverInfo"],
    ];
    let info = places
        .into_iter()
        .find_map(|path| within(&seen.hello, path));
    let named = |key: &str| {
        info.and_then(|info| info.get(key))
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    let silent = !named("name") || !named("version");
    Verdict::one(silent.then(|| {
        Fault::new("the server does not say its name and version")
            .seen(&info.unwrap_or(&Value::Null))
    }))
}
