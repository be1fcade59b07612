//! What was measured on the way, for the head of the report: revisions, sizes, times. No judgement.

use std::time::Duration;

use serde_json::Value;

use super::{ServerSurvey, at_path, text};
use crate::request_builder::LEGACY_REVISIONS;
use crate::text::{estimate_tokens, printable};

/// The facts, in the order in which they are shown.
pub(crate) fn measured_facts(seen: &ServerSurvey) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !seen.is_connected {
        return facts;
    }
    let places: [&[&str]; 2] = [
        &["serverInfo"],
        &["_meta", "io.modelcontextprotocol/serverInfo"],
    ];
    if let Some(info) = places
        .into_iter()
        .find_map(|path| at_path(&seen.initialize_result, path))
    {
        let name = printable(
            &format!("{} {}", text(info, "name"), text(info, "version")),
            100,
        );
        facts.push(("server", name));
    }
    facts.push(("revisions", revisions(seen).join(", ")));
    if !seen.tools.is_empty() {
        let total: usize = seen
            .tools
            .iter()
            .map(|tool| estimate_tokens(&tool.to_string()))
            .sum();
        facts.push((
            "tools",
            format!("{}, about {total} tokens", seen.tools.len()),
        ));
    }
    let calls: Vec<_> = seen
        .calls
        .iter()
        .filter(|call| call.success().is_some())
        .collect();
    if let Some((first, rest)) = calls.split_first() {
        let mut warm: Vec<Duration> = rest.iter().map(|call| call.exchange.took).collect();
        warm.sort();
        let median = warm
            .get(warm.len() / 2)
            .copied()
            .unwrap_or(first.exchange.took);
        let times = format!(
            "first {}, then {} (median of {})",
            millis(first.exchange.took),
            millis(median),
            warm.len()
        );
        facts.push(("calls", times));
        let largest = calls.iter().filter_map(|call| {
            Some((
                estimate_tokens(&call.result()?.get("content")?.to_string()),
                &call.tool,
            ))
        });
        if let Some((size, tool)) = largest.max() {
            facts.push((
                "largest result",
                format!("about {size} tokens, of `{}`", printable(tool, 60)),
            ));
        }
    }
    if !seen.widgets.is_empty() {
        facts.push(("widgets", seen.widgets.len().to_string()));
    }
    if seen
        .sign_in
        .as_ref()
        .is_some_and(crate::survey::SignInSurvey::is_asked)
    {
        facts.push(("sign-in", "asked for".to_owned()));
    }
    facts.push(("requests", seen.log.len().to_string()));
    facts
}

fn revisions(seen: &ServerSurvey) -> Vec<&str> {
    let modern = seen
        .modern
        .then_some(crate::request_builder::MODERN_REVISION);
    let greeted = |version: &&str| {
        let fits =
            |(asked, exchange): &(String, std::sync::Arc<crate::exchange::RecordedExchange>)| {
                let answered = exchange
                    .result()
                    .and_then(|result| result.get("protocolVersion"))
                    .and_then(Value::as_str);
                asked == version && answered == Some(version)
            };
        seen.greetings.iter().any(fits)
    };
    modern
        .into_iter()
        .chain(LEGACY_REVISIONS.into_iter().filter(greeted))
        .collect()
}

fn millis(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
