//! How large and how slow: lists, texts and answers against the limits of hosts.

use std::time::Duration;

use serde_json::Value;

use super::{
    Call, ChatGpt, Claude, CompanyKnowledge, DeepResearch, EVERYWHERE, Error, Fault, Rule, Seen,
    Submission, Verdict, Warning, name, of_tools, ours, owner, report, several, text, within,
};
use crate::exchange::Failure;
use crate::text::tokens;

/// What Claude Code keeps of a description or of instructions.
const MAX_WORDS: usize = 2_048;
/// What Claude takes of a result, and Claude Code by default.
const MAX_RESULT_CHARS: usize = 150_000;
const MAX_RESULT_TOKENS: usize = 25_000;
/// What one user saw ChatGPT take of all tools together.
const MAX_LIST_TOKENS: usize = 16_000;
/// Hosts give up at a minute or later; people do so sooner.
const SLOW: Duration = Duration::from_secs(10);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "limits/tool-list",
        demand: "all tools together take fewer than 16,000 tokens",
        weights: &[(ChatGpt, Warning)],
        source: report(
            "homeassistant-ai/ha-mcp#614: a list that ChatGPT refused",
            "2026-11-15",
        ),
        fix: "shorten descriptions and schemas, or offer fewer tools",
        judge: tool_list,
    },
    Rule {
        id: "limits/description",
        demand: "a description has at most 2 KB",
        weights: &[(Claude, Warning)],
        source: several("Claude Code cuts longer ones off", "2026-11-15"),
        fix: "put what matters first, and move the rest to parameters or results",
        judge: description,
    },
    Rule {
        id: "limits/instructions",
        demand: "instructions have at most 2 KB, and the first 512 characters stand alone",
        weights: &[(Claude, Warning)],
        source: several(
            "Claude Code cuts longer ones off; OpenAI asks for the first 512",
            "2026-11-15",
        ),
        fix: "shorten them; say the most important thing first",
        judge: instructions,
    },
    Rule {
        id: "limits/result-chars",
        demand: "a tool result has at most 150,000 characters",
        weights: &[(Claude, Error)],
        source: owner("Claude, connectors/building", "2026-11-15"),
        fix: "cut long results, and let the model ask for the rest",
        judge: result_chars,
    },
    Rule {
        id: "limits/result-tokens",
        demand: "a tool result has at most 25,000 tokens, or the tool says that it may have more",
        weights: &[(Claude, Warning)],
        source: owner("Claude Code, MCP documentation", "2026-11-15"),
        fix: "cut long results, or set `anthropic/maxResultSizeChars` on the tool",
        judge: result_tokens,
    },
    Rule {
        id: "limits/answer-bytes",
        demand: "an answer has at most 8 MiB",
        weights: EVERYWHERE,
        source: several("Codex takes no more", "2026-11-15"),
        fix: "page lists, cut results",
        judge: answer_bytes,
    },
    Rule {
        id: "limits/latency",
        demand: "tools answer within ten seconds",
        weights: &[
            (ChatGpt, Warning),
            (DeepResearch, Warning),
            (CompanyKnowledge, Warning),
            (Claude, Warning),
            (Submission, Warning),
        ],
        source: ours(
            "ten seconds; ChatGPT is reported to repeat a call after about a minute",
            "2026-11-15",
        ),
        fix: "answer from what is ready; do slow work before it is asked for",
        judge: latency,
    },
];

fn tool_list(seen: &Seen) -> Verdict {
    if seen.tools.is_empty() {
        return super::NO_TOOLS;
    }
    let total: usize = seen
        .tools
        .iter()
        .map(|tool| tokens(&tool.to_string()))
        .sum();
    Verdict::one((total >= MAX_LIST_TOKENS).then(|| {
        Fault::new(format!(
            "the {} tools take about {total} tokens",
            seen.tools.len()
        ))
        .seen(&largest(seen))
    }))
}

/// The three largest tools, by name.
fn largest(seen: &Seen) -> String {
    let mut sizes: Vec<_> = seen
        .tools
        .iter()
        .map(|tool| (tokens(&tool.to_string()), name(tool)))
        .collect();
    sizes.sort_by(|a, b| b.cmp(a));
    let sizes = sizes
        .into_iter()
        .take(3)
        .map(|(size, name)| format!("{name}: {size}"));
    sizes.collect::<Vec<_>>().join(", ")
}

fn description(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let length = text(tool, "description").len();
        (length > MAX_WORDS).then(|| {
            let start: String = text(tool, "description").chars().take(80).collect();
            Fault::new(format!(
                "the description of `{}` has {length} bytes",
                name(tool)
            ))
            .seen(&start)
        })
    })
}

fn instructions(seen: &Seen) -> Verdict {
    let found = text(&seen.hello, "instructions");
    if found.is_empty() {
        return Verdict::Skipped("there are no instructions");
    }
    Verdict::one(
        (found.len() > MAX_WORDS).then(|| {
            Fault::new(format!("the instructions have {} bytes", found.len())).seen(&found)
        }),
    )
}

/// How many characters the model gets of a result: text and structure together are counted by one of
/// them, since hosts show either.
fn size(call: &Call) -> Option<(usize, String)> {
    let content = call.result()?.get("content")?.as_array()?;
    let texts: String = content
        .iter()
        .filter_map(|item| item.get("text")?.as_str())
        .collect();
    Some((texts.chars().count(), texts))
}

/// What is wrong with the largest result of each tool.
fn largest_results(seen: &Seen, judge: impl Fn(&Call) -> Option<Fault>) -> Verdict {
    if !seen.calls.iter().any(|call| call.success().is_some()) {
        return Verdict::Skipped("no tool was called");
    }
    let mut by_size: Vec<&Call> = seen.calls.iter().collect();
    by_size.sort_by_key(|call| std::cmp::Reverse(size(call).map_or(0, |(size, _)| size)));
    let mut judged: Vec<&str> = Vec::new();
    let mut faults = Vec::new();
    for call in by_size {
        if !judged.contains(&call.tool.as_str()) {
            judged.push(&call.tool);
            faults.extend(judge(call));
        }
    }
    Verdict::Judged(faults)
}

fn result_chars(seen: &Seen) -> Verdict {
    largest_results(seen, |call| {
        let (size, _) = size(call)?;
        (size > MAX_RESULT_CHARS).then(|| {
            Fault::new(format!("a result of `{}` has {size} characters", call.tool))
                .seen(&call.arguments)
        })
    })
}

fn result_tokens(seen: &Seen) -> Verdict {
    largest_results(seen, |call| {
        let (size, texts) = size(call)?;
        let tool = seen.tool(&call.tool)?;
        let allowed =
            within(tool, &["_meta", "anthropic/maxResultSizeChars"]).and_then(Value::as_u64);
        let raised = allowed.is_some_and(|most| size as u64 <= most);
        let tokens = tokens(&texts);
        (tokens > MAX_RESULT_TOKENS && !raised).then(|| {
            Fault::new(format!(
                "a result of `{}` has about {tokens} tokens",
                call.tool
            ))
            .seen(&call.arguments)
        })
    })
}

fn answer_bytes(seen: &Seen) -> Verdict {
    let large = seen.log.iter().find(|exchange| {
        matches!(
            exchange.outcome,
            Err(Failure::TooLarge(_) | Failure::TooMuchJson(_))
        )
    });
    Verdict::one(large.map(|exchange| {
        let what = match exchange.outcome {
            Err(Failure::TooMuchJson(_)) => {
                "the JSON of an answer takes more than 32 MiB of memory".to_owned()
            }
            _ => "an answer has more than 8 MiB".to_owned(),
        };
        Fault::new(what).from(exchange)
    }))
}

fn latency(seen: &Seen) -> Verdict {
    if seen.calls.is_empty() {
        return Verdict::Skipped("no tool was called");
    }
    let slow = seen.calls.iter().filter(|call| {
        call.exchange.took > SLOW
            || call
                .exchange
                .outcome
                .as_ref()
                .is_err_and(Failure::is_timeout)
    });
    let slowest = slow.max_by_key(|call| call.exchange.took);
    Verdict::one(slowest.map(|call| {
        let seconds = call.exchange.took.as_secs_f64();
        Fault::new(format!("a call of `{}` took {seconds:.1} s", call.tool)).from(&call.exchange)
    }))
}
