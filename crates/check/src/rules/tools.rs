//! What every tool says about itself.

mod hints;
mod list;
mod meta;
mod schemas;
mod words;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Apps, ChatGpt, Claude, CompanyKnowledge, DeepResearch, EVERYWHERE, Error, Fault, Note,
    Protocol, Rule, SHOULD, Seen, Submission, Verdict, Warning, name, of_calls, of_tools, owner,
    several, text,
};
use crate::survey::Purpose;

const SPEC_TOOLS: &str = "MCP specification 2025-11-25, server/tools";
const OPENAI_REFERENCE: &str = "OpenAI, plugins/reference";
const CLAUDE_REVIEW: &str = "Claude, directory review criteria, as quoted by those reviewed";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "tools/list-form",
        demand: "`tools/list` returns a list of objects, each with a name and an input schema",
        weights: EVERYWHERE,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "give every tool `name` as a text and `inputSchema` as an object, even one without parameters",
        judge: list::list_form,
    },
    Rule {
        id: "tools/list-ends",
        demand: "the pages of `tools/list` come to an end",
        weights: EVERYWHERE,
        source: owner(
            "MCP specification 2025-11-25, server/utilities/pagination",
            "2025-11-25",
        ),
        fix: "leave out `nextCursor` on the last page, and list fewer than 1,000 tools",
        judge: list::list_ends,
    },
    Rule {
        id: "tools/bad-cursor",
        demand: "a cursor that was never handed out is refused with -32602",
        weights: &[(Protocol, Note)],
        source: owner(
            "MCP specification 2025-11-25, server/utilities/pagination",
            "2025-11-25",
        ),
        fix: "answer unknown cursors with JSON-RPC error -32602, also when there is one page only",
        judge: list::bad_cursor,
    },
    Rule {
        id: "tools/list-stable",
        demand: "the list of tools is the same, in the same order, when it is asked for twice",
        weights: SHOULD,
        source: owner("MCP specification 2026-07-28, server/tools", "2026-07-28"),
        fix: "sort the tools, or keep them in the order in which they are declared",
        judge: list::list_stable,
    },
    Rule {
        id: "tools/camel-case",
        demand: "members of a tool are written in camelCase",
        weights: EVERYWHERE,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "write `inputSchema`, `outputSchema`, `readOnlyHint` and so on",
        judge: camel_case,
    },
    Rule {
        id: "tools/name-form",
        demand: "a name has 1 to 128 letters, digits, `_`, `-` or `.`",
        weights: SHOULD,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "rename the tool; keep the old name answering, because hosts remember it",
        judge: name_form,
    },
    Rule {
        id: "tools/name-length",
        demand: "a name has at most 64 characters",
        weights: &[(Claude, Warning), (Submission, Error)],
        source: several(CLAUDE_REVIEW, "2026-11-15"),
        fix: "shorten the name; Claude Code puts the server's name before it",
        judge: name_length,
    },
    Rule {
        id: "tools/names-unique",
        demand: "no two tools have the same name",
        weights: &[
            (Protocol, Warning),
            (ChatGpt, Error),
            (Claude, Error),
            (Submission, Error),
        ],
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "rename one of them",
        judge: names_unique,
    },
    Rule {
        id: "tools/title",
        demand: "every tool has a title for people",
        weights: &[(Claude, Warning), (Submission, Error)],
        source: several(CLAUDE_REVIEW, "2026-11-15"),
        fix: "set `title`, or `annotations.title`",
        judge: title,
    },
    Rule {
        id: "tools/description",
        demand: "every tool has a description",
        weights: &[
            (Protocol, Warning),
            (ChatGpt, Warning),
            (Claude, Warning),
            (Submission, Error),
        ],
        source: owner(OPENAI_REFERENCE, "2026-11-15"),
        fix: "say what the tool does and when to use it; the model chooses by that text",
        judge: description,
    },
    Rule {
        id: "tools/parameter-descriptions",
        demand: "every parameter says what it is",
        weights: &[(ChatGpt, Warning), (Submission, Warning)],
        source: owner("OpenAI, apps-sdk/plan/tools", "2026-11-15"),
        fix: "give each property of `inputSchema` a `description`, with its range or choices where it has some",
        judge: schemas::parameter_descriptions,
    },
    Rule {
        id: "tools/steering",
        demand: "descriptions say what a tool does, and do not steer the model away from others",
        weights: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Error)],
        source: owner(
            "OpenAI, plugin review guidelines; Claude's directory policy says the same",
            "2026-11-15",
        ),
        fix: "drop `prefer this tool`, `do not use browsing` and the like; `use this when …` is fine",
        judge: words::steering,
    },
    Rule {
        id: "tools/hidden-characters",
        demand: "nothing in tools and instructions is invisible or turns the direction of writing",
        weights: EVERYWHERE,
        source: owner("OWASP MCP Top 10, MCP03 tool poisoning", "2026-04-14"),
        fix: "remove zero-width, tag and direction characters",
        judge: words::hidden,
    },
    Rule {
        id: "tools/injection",
        demand: "descriptions hold no orders to the model that the user would not see",
        weights: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Error)],
        source: owner("OWASP MCP Top 10, MCP03 tool poisoning", "2026-04-14"),
        fix: "describe the tool; do not order the model to hide, ignore or send anything",
        judge: words::injection,
    },
    Rule {
        id: "tools/hints-explicit",
        demand: "`readOnlyHint`, `destructiveHint` and `openWorldHint` are true or false on every tool",
        weights: &[
            (ChatGpt, Warning),
            (DeepResearch, Warning),
            (CompanyKnowledge, Warning),
            (Submission, Error),
        ],
        source: owner(OPENAI_REFERENCE, "2026-11-15"),
        fix: "set all three hints in `annotations`; without them every call asks for confirmation",
        judge: hints::hints_explicit,
    },
    Rule {
        id: "tools/hints-either",
        demand: "every tool says that it only reads, or whether it can destroy",
        weights: &[(Claude, Warning), (Submission, Error)],
        source: several(CLAUDE_REVIEW, "2026-11-15"),
        fix: "set `readOnlyHint` to true, or `destructiveHint` to true or false",
        judge: hints::hints_either,
    },
    Rule {
        id: "tools/hints-agree",
        demand: "a tool that only reads is not called destructive",
        weights: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Error)],
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "set `destructiveHint` to false where `readOnlyHint` is true",
        judge: hints::hints_agree,
    },
    Rule {
        id: "tools/hints-honest",
        demand: "a tool whose name says that it changes something does not claim to only read",
        weights: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Warning)],
        source: owner(
            "OpenAI, plugins submission: hints are compared with what tools do",
            "2026-11-15",
        ),
        fix: "set `readOnlyHint` to false, or choose a name that says what the tool does",
        judge: hints::hints_honest,
    },
    Rule {
        id: "tools/input-schema",
        demand: "the input schema is a valid JSON Schema 2020-12",
        weights: EVERYWHERE,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "correct the keyword that is named",
        judge: schemas::input,
    },
    Rule {
        id: "tools/input-schema-object",
        demand: "the root of the input schema has the type `object`",
        weights: EVERYWHERE,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "set `\"type\": \"object\"`, also for a tool without parameters",
        judge: schemas::input_object,
    },
    Rule {
        id: "tools/input-schema-choices",
        demand: "the root of the input schema has no `oneOf`, `anyOf` or `allOf`",
        weights: &[(Claude, Error), (Submission, Error)],
        source: owner("Claude, Messages API: such tools are refused", "2026-11-15"),
        fix: "make the choices optional properties, or split the tool",
        judge: schemas::input_choices,
    },
    Rule {
        id: "tools/output-schema",
        demand: "an output schema is a valid JSON Schema 2020-12",
        weights: EVERYWHERE,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "correct the keyword that is named",
        judge: schemas::output,
    },
    Rule {
        id: "tools/output-schema-object",
        demand: "before 2026-07-28 the root of an output schema has the type `object`",
        weights: &[(Protocol, Error), (ChatGpt, Error)],
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "wrap the value in an object",
        judge: schemas::output_object,
    },
    Rule {
        id: "tools/output-schema-declared",
        demand: "every tool declares what it returns",
        weights: &[(Submission, Warning)],
        source: owner("OpenAI, plugins submission", "2026-11-15"),
        fix: "add `outputSchema`, and return `structuredContent` that keeps it",
        judge: schemas::output_declared,
    },
    Rule {
        id: "tools/remote-refs",
        demand: "schemas hold everything they refer to",
        weights: EVERYWHERE,
        source: owner(
            "MCP specification 2026-07-28, basic: network references are not followed",
            "2026-07-28",
        ),
        fix: "copy the schema into `$defs` and refer to it there",
        judge: schemas::remote_refs,
    },
    Rule {
        id: "tools/output-kept",
        demand: "a tool with an output schema returns `structuredContent` that keeps it",
        weights: EVERYWHERE,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "return what the schema says, or correct the schema",
        judge: schemas::output_kept,
    },
    Rule {
        id: "tools/result-form",
        demand: "a tool result has `content`, a list of items that each name their type",
        weights: EVERYWHERE,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "return `content` as a list, such as `[{\"type\": \"text\", \"text\": \"…\"}]`",
        judge: result_form,
    },
    Rule {
        id: "tools/unknown-tool",
        demand: "a tool that does not exist is refused",
        weights: EVERYWHERE,
        source: owner(SPEC_TOOLS, "2025-11-25"),
        fix: "answer with JSON-RPC error -32602, or with a result with `isError: true`",
        judge: unknown_tool,
    },
    Rule {
        id: "tools/status-texts",
        demand: "status texts have at most 64 characters",
        weights: &[(ChatGpt, Error), (Apps, Error), (Submission, Error)],
        source: owner(OPENAI_REFERENCE, "2026-11-15"),
        fix: "shorten `openai/toolInvocation/invoking` and `/invoked`",
        judge: meta::status_texts,
    },
    Rule {
        id: "tools/icons",
        demand: "icons have a `src` that is an https or data address",
        weights: &[(Protocol, Warning), (Submission, Warning)],
        source: owner("MCP specification 2025-11-25, basic: icons", "2025-11-25"),
        fix: "give each icon a `src` beginning with `https://` or `data:`, and its `mimeType`",
        judge: meta::icons,
    },
    Rule {
        id: "tools/security-schemes",
        demand: "security schemes are `noauth` or `oauth2` with scopes, and stand in `_meta` too",
        weights: &[(ChatGpt, Error), (Submission, Error)],
        source: owner("OpenAI, plugins/build/auth", "2026-11-15"),
        fix: "write `[{\"type\": \"oauth2\", \"scopes\": […]}]` at the top and under `_meta.securitySchemes`",
        judge: meta::security_schemes,
    },
    Rule {
        id: "tools/file-params",
        demand: "`openai/fileParams` names top-level properties",
        weights: &[(ChatGpt, Error), (Apps, Error), (Submission, Error)],
        source: owner(OPENAI_REFERENCE, "2026-11-15"),
        fix: "list properties of the input schema that take a file object; nested ones are not supported",
        judge: meta::file_params,
    },
    Rule {
        id: "tools/retired-keys",
        demand: "no key is used that hosts have retired",
        weights: &[(ChatGpt, Note), (Apps, Note), (Submission, Note)],
        source: owner("OpenAI, plugins/changelog", "2026-07-21"),
        fix: "use `_meta.ui.visibility` in place of `openai/visibility`; drop `openai/resultCanProduceWidget`",
        judge: meta::retired_keys,
    },
    Rule {
        id: "tools/result-size-key",
        demand: "`anthropic/maxResultSizeChars` is a number up to 500,000",
        weights: &[(Claude, Warning)],
        source: owner("Claude Code, MCP documentation", "2026-11-15"),
        fix: "set a whole number from 1 to 500000, or leave the key out",
        judge: meta::result_size_key,
    },
    Rule {
        id: "tools/visibility",
        demand: "`_meta.ui.visibility` lists `model`, `app` or both",
        weights: &[(Apps, Error), (ChatGpt, Error), (Claude, Error)],
        source: owner("MCP Apps specification 2026-01-26", "2026-01-26"),
        fix: "write `[\"model\", \"app\"]`, `[\"model\"]` or `[\"app\"]`",
        judge: meta::visibility,
    },
];

fn camel_case(seen: &Seen) -> Verdict {
    const SNAKES: [&str; 9] = [
        "input_schema",
        "output_schema",
        "read_only_hint",
        "destructive_hint",
        "idempotent_hint",
        "open_world_hint",
        "structured_content",
        "mime_type",
        "security_schemes",
    ];
    of_tools(seen, |tool| {
        let annotations = tool.get("annotations").and_then(Value::as_object);
        let members = tool.as_object().into_iter().chain(annotations);
        let wrong = members
            .flat_map(|members| members.keys())
            .find(|key| SNAKES.contains(&key.as_str()))?;
        Some(Fault::new(format!("the tool `{}` has `{wrong}`", name(tool))).seen(tool))
    })
}

fn name_form(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let found = text(tool, "name");
        let good = (1..=128).contains(&found.len())
            && found
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        (!good && !found.is_empty()).then(|| {
            Fault::new(format!(
                "the name `{}` has other characters or more than 128",
                name(tool)
            ))
            .seen(&found)
        })
    })
}

fn name_length(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let length = text(tool, "name").chars().count();
        (length > 64).then(|| {
            Fault::new(format!("the name `{}` has {length} characters", name(tool)))
                .seen(&text(tool, "name"))
        })
    })
}

fn names_unique(seen: &Seen) -> Verdict {
    let known = std::cell::RefCell::new(BTreeSet::new());
    of_tools(seen, |tool| {
        let is_new = known.borrow_mut().insert(name(tool));
        (!is_new)
            .then(|| Fault::new(format!("there are two tools `{}`", name(tool))).seen(&name(tool)))
    })
}

fn title(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        let missing =
            text(tool, "title").trim().is_empty() && text(annotations, "title").trim().is_empty();
        missing.then(|| Fault::new(format!("the tool `{}` has no title", name(tool))).seen(tool))
    })
}

fn description(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let missing = text(tool, "description").trim().is_empty();
        missing
            .then(|| Fault::new(format!("the tool `{}` has no description", name(tool))).seen(tool))
    })
}

fn result_form(seen: &Seen) -> Verdict {
    of_calls(seen, Purpose::ALL, |call| {
        let result = call.result()?;
        // The newer revision may ask back, or hand out a task.
        let kind = text(result, "resultType");
        if !kind.is_empty() && kind != "complete" {
            return None;
        }
        let items = result.get("content").and_then(Value::as_array);
        let good = items.is_some_and(|items| {
            items
                .iter()
                .all(|item| item.get("type").is_some_and(Value::is_string))
        });
        (!good).then(|| Fault::new(format!("`{}` returns no proper `content`", call.tool)))
    })
}

fn unknown_tool(seen: &Seen) -> Verdict {
    of_calls(seen, &[Purpose::UnknownTool], |call| {
        if call.exchange.broke() && call.exchange.error().is_none() {
            return Some(Fault::new("a tool that does not exist breaks the server"));
        }
        call.success()
            .map(|_| Fault::new("a tool that does not exist returns a result"))
    })
}
