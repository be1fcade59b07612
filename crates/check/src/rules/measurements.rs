//! Measurements for the head of the report: revisions, sizes and latencies. They are facts without a verdict.
//!
//! Limits are the business of rules; a number helps even where no rule exists for it. The first call is shown apart
//! from the median of the others, because it may pay for connections and caches.

use std::time::Duration;

use serde_json::Value;

use super::{ServerSurvey, at_path, text};
use crate::request_builder::LEGACY_REVISIONS;
use crate::text::{estimate_tokens, printable};

/// The measurements by name, in the order in which reports show them.
pub(crate) fn measured_facts(survey: &ServerSurvey) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !survey.is_connected {
        return facts;
    }
    let places: [&[&str]; 2] = [
        &["serverInfo"],
        &["_meta", "io.modelcontextprotocol/serverInfo"],
    ];
    if let Some(info) = places
        .into_iter()
        .find_map(|path| at_path(&survey.initialize_result, path))
    {
        let name = printable(
            &format!("{} {}", text(info, "name"), text(info, "version")),
            100,
        );
        facts.push(("server", name));
    }
    facts.push(("revisions", revisions(survey).join(", ")));
    if !survey.tools.is_empty() {
        let total: usize = survey
            .tools
            .iter()
            .map(|tool| estimate_tokens(&tool.to_string()))
            .sum();
        facts.push((
            "tools",
            format!("{}, about {total} tokens", survey.tools.len()),
        ));
    }
    let calls: Vec<_> = survey
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
    if !survey.widgets.is_empty() {
        facts.push(("widgets", survey.widgets.len().to_string()));
    }
    if survey
        .sign_in
        .as_ref()
        .is_some_and(crate::survey::SignInSurvey::is_asked)
    {
        facts.push(("sign-in", "asked for".to_owned()));
    }
    facts.push(("requests", survey.log.len().to_string()));
    facts
}

fn revisions(survey: &ServerSurvey) -> Vec<&str> {
    let modern = survey
        .modern
        .then_some(crate::request_builder::MODERN_REVISION);
    let is_negotiated = |version: &&str| {
        let fits = |(requested, exchange): &(
            String,
            std::sync::Arc<crate::exchange::RecordedExchange>,
        )| {
            let answered = exchange
                .result()
                .and_then(|result| result.get("protocolVersion"))
                .and_then(Value::as_str);
            requested == version && answered == Some(version)
        };
        survey.handshakes.iter().any(fits)
    };
    modern
        .into_iter()
        .chain(LEGACY_REVISIONS.into_iter().filter(is_negotiated))
        .collect()
}

fn millis(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
