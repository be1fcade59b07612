//! Rules about size and latency: lists, descriptions and results against the limits of hosts.
//!
//! Hosts cut longer texts off or refuse them, so a server may look healthy while the model misses the end. Tokens are
//! estimated. Of each tool only the largest result is judged, and only its text, since the structured content says the
//! same.

use std::time::Duration;

use serde_json::Value;

use super::{
    ChatGpt, CheckRule, Claude, CompanyKnowledge, DeepResearch, EVERYWHERE, Error, RuleVerdict,
    RuleViolation, ServerSurvey, Submission, SurveyedCall, Warning, at_path, corroborated,
    for_each_tool, name, official, own_measure, single_report, text,
};
use crate::exchange::ExchangeError;
use crate::text::{estimate_tokens, truncate_chars};

/// The bytes of a description or of instructions that Claude Code keeps.
const MAX_DESCRIPTION_BYTES: usize = 2_048;
/// The size limits of a result: characters in Claude, tokens by default in Claude Code.
const MAX_RESULT_CHARS: usize = 150_000;
const MAX_RESULT_TOKENS: usize = 25_000;
/// The tokens of a tool list that ChatGPT refused, by one report.
const MAX_LIST_TOKENS: usize = 16_000;
/// The latency that counts as slow. Hosts time out after a minute or more; people give up sooner.
const SLOW: Duration = Duration::from_secs(10);

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "limits/tool-list",
        requirement: "all tools together take fewer than 16,000 tokens",
        severities: &[(ChatGpt, Warning)],
        source: single_report(
            "homeassistant-ai/ha-mcp#614: a list that ChatGPT refused",
            "2026-11-15",
        ),
        fix: "shorten descriptions and schemas, or offer fewer tools",
        evaluate: tool_list,
    },
    CheckRule {
        id: "limits/description",
        requirement: "a description has at most 2 KB",
        severities: &[(Claude, Warning)],
        source: corroborated("Claude Code cuts longer ones off", "2026-11-15"),
        fix: "put what matters first, and move the rest to parameters or results",
        evaluate: description,
    },
    CheckRule {
        id: "limits/instructions",
        requirement: "instructions have at most 2 KB, and the first 512 characters stand alone",
        severities: &[(Claude, Warning)],
        source: corroborated(
            "Claude Code cuts longer ones off; OpenAI asks for the first 512",
            "2026-11-15",
        ),
        fix: "shorten them; say the most important thing first",
        evaluate: instructions,
    },
    CheckRule {
        id: "limits/result-chars",
        requirement: "a tool result has at most 150,000 characters",
        severities: &[(Claude, Error)],
        source: official("Claude, connectors/building", "2026-11-15"),
        fix: "cut long results, and let the model ask for the rest",
        evaluate: result_chars,
    },
    CheckRule {
        id: "limits/result-tokens",
        requirement: "a tool result has at most 25,000 tokens, or the tool says that it may have more",
        severities: &[(Claude, Warning)],
        source: official("Claude Code, MCP documentation", "2026-11-15"),
        fix: "cut long results, or set `anthropic/maxResultSizeChars` on the tool",
        evaluate: result_tokens,
    },
    CheckRule {
        id: "limits/answer-bytes",
        requirement: "an answer has at most 8 MiB",
        severities: EVERYWHERE,
        source: corroborated("Codex takes no more", "2026-11-15"),
        fix: "paginate lists, truncate results",
        evaluate: answer_bytes,
    },
    CheckRule {
        id: "limits/latency",
        requirement: "tools answer within ten seconds",
        severities: &[
            (ChatGpt, Warning),
            (DeepResearch, Warning),
            (CompanyKnowledge, Warning),
            (Claude, Warning),
            (Submission, Warning),
        ],
        source: own_measure(
            "ten seconds; ChatGPT is reported to repeat a call after about a minute",
            "2026-11-15",
        ),
        fix: "answer from an index or a cache; do slow work ahead of time",
        evaluate: latency,
    },
];

fn tool_list(survey: &ServerSurvey) -> RuleVerdict {
    if survey.tools.is_empty() {
        return super::NO_TOOLS;
    }
    let total: usize = survey
        .tools
        .iter()
        .map(|tool| estimate_tokens(&tool.to_string()))
        .sum();
    RuleVerdict::from_option((total >= MAX_LIST_TOKENS).then(|| {
        RuleViolation::new(format!(
            "the {} tools take about {total} tokens",
            survey.tools.len()
        ))
        .with_excerpt(&largest(survey))
    }))
}

/// The three largest tools with their estimated tokens.
fn largest(survey: &ServerSurvey) -> String {
    let mut sizes: Vec<_> = survey
        .tools
        .iter()
        .map(|tool| (estimate_tokens(&tool.to_string()), name(tool)))
        .collect();
    sizes.sort_by(|a, b| b.cmp(a));
    let sizes = sizes
        .into_iter()
        .take(3)
        .map(|(size, name)| format!("{name}: {size}"));
    sizes.collect::<Vec<_>>().join(", ")
}

fn description(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let length = text(tool, "description").len();
        (length > MAX_DESCRIPTION_BYTES).then(|| {
            let start = truncate_chars(text(tool, "description"), 80);
            RuleViolation::new(format!(
                "the description of `{}` has {length} bytes",
                name(tool)
            ))
            .with_excerpt(&start)
        })
    })
}

fn instructions(survey: &ServerSurvey) -> RuleVerdict {
    let found = text(&survey.initialize_result, "instructions");
    if found.is_empty() {
        return RuleVerdict::Skipped("there are no instructions");
    }
    RuleVerdict::from_option((found.len() > MAX_DESCRIPTION_BYTES).then(|| {
        RuleViolation::new(format!("the instructions have {} bytes", found.len()))
            .with_excerpt(&found)
    }))
}

/// The size of a result in characters, with its text. Only the text items count, since hosts give the model either the
/// text or the structured content, and both hold the same.
fn size(call: &SurveyedCall) -> Option<(usize, String)> {
    let content = call.result()?.get("content")?.as_array()?;
    let texts: String = content
        .iter()
        .filter_map(|item| item.get("text")?.as_str())
        .collect();
    Some((texts.chars().count(), texts))
}

/// Evaluates a rule for the largest result of each tool.
fn largest_results(
    survey: &ServerSurvey,
    judge: impl Fn(&SurveyedCall) -> Option<RuleViolation>,
) -> RuleVerdict {
    if !survey.calls.iter().any(|call| call.success().is_some()) {
        return RuleVerdict::Skipped("no tool was called");
    }
    let mut by_size: Vec<&SurveyedCall> = survey.calls.iter().collect();
    by_size.sort_by_key(|call| std::cmp::Reverse(size(call).map_or(0, |(size, _)| size)));
    let mut judged: Vec<&str> = Vec::new();
    let mut faults = Vec::new();
    for call in by_size {
        if !judged.contains(&call.tool.as_str()) {
            judged.push(&call.tool);
            faults.extend(judge(call));
        }
    }
    RuleVerdict::Evaluated(faults)
}

fn result_chars(survey: &ServerSurvey) -> RuleVerdict {
    largest_results(survey, |call| {
        let (size, _) = size(call)?;
        (size > MAX_RESULT_CHARS).then(|| {
            RuleViolation::new(format!("a result of `{}` has {size} characters", call.tool))
                .with_excerpt(&call.arguments)
        })
    })
}

fn result_tokens(survey: &ServerSurvey) -> RuleVerdict {
    largest_results(survey, |call| {
        let (size, texts) = size(call)?;
        let tool = survey.tool(&call.tool)?;
        let allowed =
            at_path(tool, &["_meta", "anthropic/maxResultSizeChars"]).and_then(Value::as_u64);
        let raised = allowed.is_some_and(|most| size as u64 <= most);
        let tokens = estimate_tokens(&texts);
        (tokens > MAX_RESULT_TOKENS && !raised).then(|| {
            RuleViolation::new(format!(
                "a result of `{}` has about {tokens} tokens",
                call.tool
            ))
            .with_excerpt(&call.arguments)
        })
    })
}

fn answer_bytes(survey: &ServerSurvey) -> RuleVerdict {
    let large = survey.log.iter().find(|exchange| {
        matches!(
            exchange.outcome,
            Err(ExchangeError::TooLarge(_) | ExchangeError::TooMuchJson(_))
        )
    });
    RuleVerdict::from_option(large.map(|exchange| {
        let what = match exchange.outcome {
            Err(ExchangeError::TooMuchJson(_)) => {
                "the JSON of an answer takes more than 32 MiB of memory".to_owned()
            }
            _ => "an answer has more than 8 MiB".to_owned(),
        };
        RuleViolation::new(what).with_exchange(exchange)
    }))
}

fn latency(survey: &ServerSurvey) -> RuleVerdict {
    if survey.calls.is_empty() {
        return RuleVerdict::Skipped("no tool was called");
    }
    let slow = survey.calls.iter().filter(|call| {
        call.exchange.took > SLOW
            || call
                .exchange
                .outcome
                .as_ref()
                .is_err_and(ExchangeError::is_timeout)
    });
    let slowest = slow.max_by_key(|call| call.exchange.took);
    RuleVerdict::from_option(slowest.map(|call| {
        let seconds = call.exchange.took.as_secs_f64();
        RuleViolation::new(format!("a call of `{}` took {seconds:.1} s", call.tool))
            .with_exchange(&call.exchange)
    }))
}
