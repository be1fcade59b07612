//! Rules about tools: their descriptors, their schemas, and the form of their results.
//!
//! A descriptor is all that a model knows of a tool before it calls it. So the rules judge names, texts, hints and
//! schemas in detail, and compare what was declared with what calls returned.

mod descriptions;
mod hints;
mod list;
mod meta;
mod schemas;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Apps, ChatGpt, CheckRule, Claude, CompanyKnowledge, DeepResearch, EVERYWHERE, Error, Note,
    Protocol, RuleVerdict, RuleViolation, SHOULD, ServerSurvey, Submission, Warning, corroborated,
    for_calls, for_each_tool, name, official, text,
};
use crate::survey::CallPurpose;

const SPEC_TOOLS: &str = "MCP specification 2025-11-25, server/tools";
const OPENAI_REFERENCE: &str = "OpenAI, plugins/reference";
const CLAUDE_REVIEW: &str = "Claude, directory review criteria, as quoted by those reviewed";

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "tools/list-form",
        requirement: "`tools/list` returns a list of objects, each with a name and an input schema",
        severities: EVERYWHERE,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "give every tool `name` as a text and `inputSchema` as an object, even one without parameters",
        evaluate: list::list_form,
    },
    CheckRule {
        id: "tools/list-ends",
        requirement: "the pages of `tools/list` come to an end",
        severities: EVERYWHERE,
        source: official(
            "MCP specification 2025-11-25, server/utilities/pagination",
            "2025-11-25",
        ),
        fix: "leave out `nextCursor` on the last page, and list fewer than 1,000 tools",
        evaluate: list::list_ends,
    },
    CheckRule {
        id: "tools/bad-cursor",
        requirement: "a cursor that was never handed out is refused with -32602",
        severities: &[(Protocol, Note)],
        source: official(
            "MCP specification 2025-11-25, server/utilities/pagination",
            "2025-11-25",
        ),
        fix: "answer unknown cursors with JSON-RPC error -32602, also when there is one page only",
        evaluate: list::bad_cursor,
    },
    CheckRule {
        id: "tools/list-stable",
        requirement: "the list of tools is the same, in the same order, when it is asked for twice",
        severities: SHOULD,
        source: official("MCP specification 2026-07-28, server/tools", "2026-07-28"),
        fix: "sort the tools, or keep them in the order in which they are declared",
        evaluate: list::list_stable,
    },
    CheckRule {
        id: "tools/camel-case",
        requirement: "members of a tool are written in camelCase",
        severities: EVERYWHERE,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "write `inputSchema`, `outputSchema`, `readOnlyHint` and so on",
        evaluate: camel_case,
    },
    CheckRule {
        id: "tools/name-form",
        requirement: "a name has 1 to 128 letters, digits, `_`, `-` or `.`",
        severities: SHOULD,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "rename the tool; keep the old name answering, because hosts remember it",
        evaluate: name_form,
    },
    CheckRule {
        id: "tools/name-length",
        requirement: "a name has at most 64 characters",
        severities: &[(Claude, Warning), (Submission, Error)],
        source: corroborated(CLAUDE_REVIEW, "2026-11-15"),
        fix: "shorten the name; Claude Code puts the server's name before it",
        evaluate: name_length,
    },
    CheckRule {
        id: "tools/names-unique",
        requirement: "no two tools have the same name",
        severities: &[
            (Protocol, Warning),
            (ChatGpt, Error),
            (Claude, Error),
            (Submission, Error),
        ],
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "rename one of them",
        evaluate: names_unique,
    },
    CheckRule {
        id: "tools/title",
        requirement: "every tool has a title for people",
        severities: &[(Claude, Warning), (Submission, Error)],
        source: corroborated(CLAUDE_REVIEW, "2026-11-15"),
        fix: "set `title`, or `annotations.title`",
        evaluate: title,
    },
    CheckRule {
        id: "tools/description",
        requirement: "every tool has a description",
        severities: &[
            (Protocol, Warning),
            (ChatGpt, Warning),
            (Claude, Warning),
            (Submission, Error),
        ],
        source: official(OPENAI_REFERENCE, "2026-11-15"),
        fix: "say what the tool does and when to use it; the model chooses by that text",
        evaluate: description,
    },
    CheckRule {
        id: "tools/parameter-descriptions",
        requirement: "every parameter says what it is",
        severities: &[(ChatGpt, Warning), (Submission, Warning)],
        source: official("OpenAI, apps-sdk/plan/tools", "2026-11-15"),
        fix: "give each property of `inputSchema` a `description`, with its range or choices where it has some",
        evaluate: schemas::parameter_descriptions,
    },
    CheckRule {
        id: "tools/steering",
        requirement: "descriptions say what a tool does, and do not steer the model away from others",
        severities: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Error)],
        source: official(
            "OpenAI, plugin review guidelines; Claude's directory policy says the same",
            "2026-11-15",
        ),
        fix: "drop `prefer this tool`, `do not use browsing` and the like; `use this when …` is fine",
        evaluate: descriptions::steering,
    },
    CheckRule {
        id: "tools/hidden-characters",
        requirement: "tools and instructions contain no invisible characters and no bidirectional controls",
        severities: EVERYWHERE,
        source: official("OWASP MCP Top 10, MCP03 tool poisoning", "2026-04-14"),
        fix: "remove zero-width, tag and bidirectional control characters",
        evaluate: descriptions::hidden,
    },
    CheckRule {
        id: "tools/injection",
        requirement: "descriptions contain no prompt injection: orders to the model that the user would not see",
        severities: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Error)],
        source: official("OWASP MCP Top 10, MCP03 tool poisoning", "2026-04-14"),
        fix: "describe the tool; do not order the model to hide, ignore or send anything",
        evaluate: descriptions::injection,
    },
    CheckRule {
        id: "tools/hints-explicit",
        requirement: "`readOnlyHint`, `destructiveHint` and `openWorldHint` are true or false on every tool",
        severities: &[
            (ChatGpt, Warning),
            (DeepResearch, Warning),
            (CompanyKnowledge, Warning),
            (Submission, Error),
        ],
        source: official(OPENAI_REFERENCE, "2026-11-15"),
        fix: "set all three hints in `annotations`; without them every call asks for confirmation",
        evaluate: hints::hints_explicit,
    },
    CheckRule {
        id: "tools/hints-either",
        requirement: "every tool declares that it is read-only, or whether it is destructive",
        severities: &[(Claude, Warning), (Submission, Error)],
        source: corroborated(CLAUDE_REVIEW, "2026-11-15"),
        fix: "set `readOnlyHint` to true, or `destructiveHint` to true or false",
        evaluate: hints::hints_either,
    },
    CheckRule {
        id: "tools/hints-agree",
        requirement: "a tool that only reads is not called destructive",
        severities: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Error)],
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "set `destructiveHint` to false where `readOnlyHint` is true",
        evaluate: hints::hints_agree,
    },
    CheckRule {
        id: "tools/hints-honest",
        requirement: "a tool whose name says that it changes something does not claim to only read",
        severities: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Warning)],
        source: official(
            "OpenAI, plugins submission: hints are compared with what tools do",
            "2026-11-15",
        ),
        fix: "set `readOnlyHint` to false, or choose a name that says what the tool does",
        evaluate: hints::hints_honest,
    },
    CheckRule {
        id: "tools/input-schema",
        requirement: "the input schema is a valid JSON Schema 2020-12",
        severities: EVERYWHERE,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "correct the keyword that is named",
        evaluate: schemas::input,
    },
    CheckRule {
        id: "tools/input-schema-object",
        requirement: "the root of the input schema has the type `object`",
        severities: EVERYWHERE,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "set `\"type\": \"object\"`, also for a tool without parameters",
        evaluate: schemas::input_object,
    },
    CheckRule {
        id: "tools/input-schema-choices",
        requirement: "the root of the input schema has no `oneOf`, `anyOf` or `allOf`",
        severities: &[(Claude, Error), (Submission, Error)],
        source: official("Claude, Messages API: such tools are refused", "2026-11-15"),
        fix: "make the choices optional properties, or split the tool",
        evaluate: schemas::input_choices,
    },
    CheckRule {
        id: "tools/output-schema",
        requirement: "an output schema is a valid JSON Schema 2020-12",
        severities: EVERYWHERE,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "correct the keyword that is named",
        evaluate: schemas::output,
    },
    CheckRule {
        id: "tools/output-schema-object",
        requirement: "before 2026-07-28 the root of an output schema has the type `object`",
        severities: &[(Protocol, Error), (ChatGpt, Error)],
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "wrap the value in an object",
        evaluate: schemas::output_object,
    },
    CheckRule {
        id: "tools/output-schema-declared",
        requirement: "every tool declares what it returns",
        severities: &[(Submission, Warning)],
        source: official("OpenAI, plugins submission", "2026-11-15"),
        fix: "add `outputSchema`, and return `structuredContent` that conforms to it",
        evaluate: schemas::output_declared,
    },
    CheckRule {
        id: "tools/remote-refs",
        requirement: "schemas are self-contained: no `$ref` points to the network",
        severities: EVERYWHERE,
        source: official(
            "MCP specification 2026-07-28, basic: network references are not followed",
            "2026-07-28",
        ),
        fix: "copy the schema into `$defs` and refer to it there",
        evaluate: schemas::remote_refs,
    },
    CheckRule {
        id: "tools/output-kept",
        requirement: "a tool with an output schema returns `structuredContent` that conforms to it",
        severities: EVERYWHERE,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "return what the schema says, or correct the schema",
        evaluate: schemas::output_kept,
    },
    CheckRule {
        id: "tools/result-form",
        requirement: "a tool result has `content`, a list of items that each name their type",
        severities: EVERYWHERE,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "return `content` as a list, such as `[{\"type\": \"text\", \"text\": \"…\"}]`",
        evaluate: result_form,
    },
    CheckRule {
        id: "tools/unknown-tool",
        requirement: "a tool that does not exist is refused",
        severities: EVERYWHERE,
        source: official(SPEC_TOOLS, "2025-11-25"),
        fix: "answer with JSON-RPC error -32602, or with a result with `isError: true`",
        evaluate: unknown_tool,
    },
    CheckRule {
        id: "tools/status-texts",
        requirement: "status texts have at most 64 characters",
        severities: &[(ChatGpt, Error), (Apps, Error), (Submission, Error)],
        source: official(OPENAI_REFERENCE, "2026-11-15"),
        fix: "shorten `openai/toolInvocation/invoking` and `/invoked`",
        evaluate: meta::status_texts,
    },
    CheckRule {
        id: "tools/icons",
        requirement: "icons have a `src` that is an https or data address",
        severities: &[(Protocol, Warning), (Submission, Warning)],
        source: official("MCP specification 2025-11-25, basic: icons", "2025-11-25"),
        fix: "give each icon a `src` beginning with `https://` or `data:`, and its `mimeType`",
        evaluate: meta::icons,
    },
    CheckRule {
        id: "tools/security-schemes",
        requirement: "security schemes are `noauth` or `oauth2` with scopes, and are repeated in `_meta`",
        severities: &[(ChatGpt, Error), (Submission, Error)],
        source: official("OpenAI, plugins/build/auth", "2026-11-15"),
        fix: "write `[{\"type\": \"oauth2\", \"scopes\": […]}]` at the top and under `_meta.securitySchemes`",
        evaluate: meta::security_schemes,
    },
    CheckRule {
        id: "tools/file-params",
        requirement: "`openai/fileParams` names top-level properties",
        severities: &[(ChatGpt, Error), (Apps, Error), (Submission, Error)],
        source: official(OPENAI_REFERENCE, "2026-11-15"),
        fix: "list properties of the input schema that take a file object; nested ones are not supported",
        evaluate: meta::file_params,
    },
    CheckRule {
        id: "tools/retired-keys",
        requirement: "no key is used that hosts have retired",
        severities: &[(ChatGpt, Note), (Apps, Note), (Submission, Note)],
        source: official("OpenAI, plugins/changelog", "2026-07-21"),
        fix: "use `_meta.ui.visibility` in place of `openai/visibility`; drop `openai/resultCanProduceWidget`",
        evaluate: meta::retired_keys,
    },
    CheckRule {
        id: "tools/result-size-key",
        requirement: "`anthropic/maxResultSizeChars` is a number up to 500,000",
        severities: &[(Claude, Warning)],
        source: official("Claude Code, MCP documentation", "2026-11-15"),
        fix: "set a whole number from 1 to 500000, or leave the key out",
        evaluate: meta::result_size_key,
    },
    CheckRule {
        id: "tools/visibility",
        requirement: "`_meta.ui.visibility` lists `model`, `app` or both",
        severities: &[(Apps, Error), (ChatGpt, Error), (Claude, Error)],
        source: official("MCP Apps specification 2026-01-26", "2026-01-26"),
        fix: "write `[\"model\", \"app\"]`, `[\"model\"]` or `[\"app\"]`",
        evaluate: meta::visibility,
    },
];

fn camel_case(survey: &ServerSurvey) -> RuleVerdict {
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
    for_each_tool(survey, |tool| {
        let annotations = tool.get("annotations").and_then(Value::as_object);
        let members = tool.as_object().into_iter().chain(annotations);
        let wrong = members
            .flat_map(|members| members.keys())
            .find(|key| SNAKES.contains(&key.as_str()))?;
        Some(
            RuleViolation::new(format!("the tool `{}` has `{wrong}`", name(tool)))
                .with_excerpt(tool),
        )
    })
}

fn name_form(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let found = text(tool, "name");
        let good = (1..=128).contains(&found.len())
            && found
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        (!good && !found.is_empty()).then(|| {
            RuleViolation::new(format!(
                "the name `{}` has other characters or more than 128",
                name(tool)
            ))
            .with_excerpt(&found)
        })
    })
}

fn name_length(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let length = text(tool, "name").chars().count();
        (length > 64).then(|| {
            RuleViolation::new(format!("the name `{}` has {length} characters", name(tool)))
                .with_excerpt(&text(tool, "name"))
        })
    })
}

fn names_unique(survey: &ServerSurvey) -> RuleVerdict {
    let known = std::cell::RefCell::new(BTreeSet::new());
    for_each_tool(survey, |tool| {
        let is_new = known.borrow_mut().insert(name(tool));
        (!is_new).then(|| {
            RuleViolation::new(format!("there are two tools `{}`", name(tool)))
                .with_excerpt(&name(tool))
        })
    })
}

fn title(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        let missing =
            text(tool, "title").trim().is_empty() && text(annotations, "title").trim().is_empty();
        missing.then(|| {
            RuleViolation::new(format!("the tool `{}` has no title", name(tool))).with_excerpt(tool)
        })
    })
}

fn description(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let missing = text(tool, "description").trim().is_empty();
        missing.then(|| {
            RuleViolation::new(format!("the tool `{}` has no description", name(tool)))
                .with_excerpt(tool)
        })
    })
}

fn result_form(survey: &ServerSurvey) -> RuleVerdict {
    for_calls(survey, CallPurpose::ALL, |call| {
        let result = call.result()?;
        // In 2026-07-28 a result may also be a question to the client, or a task.
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
        (!good).then(|| RuleViolation::new(format!("`{}` returns no proper `content`", call.tool)))
    })
}

fn unknown_tool(survey: &ServerSurvey) -> RuleVerdict {
    for_calls(survey, &[CallPurpose::UnknownTool], |call| {
        if call.exchange.has_server_failed() && call.exchange.error().is_none() {
            return Some(RuleViolation::new(
                "a tool that does not exist breaks the server",
            ));
        }
        call.success()
            .map(|_| RuleViolation::new("a tool that does not exist returns a result"))
    })
}
