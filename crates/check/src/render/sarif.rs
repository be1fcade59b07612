//! SARIF 2.1.0 output, which code hosting services show as code scanning results.
//!
//! Each result is placed at a URI, but a server has no source file. The checked URL takes its place, or the command
//! line under the scheme `stdio:`. The rules of the chosen profiles are declared even where they found nothing.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::source_line;
use crate::report::{CheckReport, RuleFinding, Severity};
use crate::rule::CheckRule;

/// Renders the report as a SARIF log with one run.
#[must_use]
pub fn sarif(report: &CheckReport) -> Value {
    let used = |rule: &&CheckRule| rule.severity_for(&report.profiles).is_some();
    let rules: Vec<&CheckRule> = crate::rules().filter(used).collect();
    let index = |id: &str| rules.iter().position(|rule| rule.id == id);
    let result = |finding: &RuleFinding| {
        json!({
            "ruleId": finding.rule,
            "ruleIndex": index(finding.rule),
            "level": level(finding.severity),
            "message": {"text": text(finding)},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": location(&report.target)}}}],
        })
    };
    let results: Vec<Value> = report.findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "docent check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| rule_descriptor(rule, report)).collect::<Vec<_>>(),
            }},
            "results": results,
        }],
    })
}

fn rule_descriptor(rule: &CheckRule, report: &CheckReport) -> Value {
    let severity = rule
        .severity_for(&report.profiles)
        .unwrap_or(Severity::Note);
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.requirement},
        "help": {"text": format!("{}\nSource: {}", rule.fix, source_line(rule.source))},
        "defaultConfiguration": {"level": level(severity)},
    })
}

fn level(severity: Severity) -> &'static str {
    severity.word()
}

fn text(finding: &RuleFinding) -> String {
    let mut text = finding.message.clone();
    for (label, value) in [("sent", &finding.sent), ("received", &finding.received)] {
        if !value.is_empty() {
            text.push_str(&format!("\n{label}: {value}"));
        }
    }
    text.push_str(&format!("\nfix: {}", finding.fix));
    text
}

/// The target as a URI: a URL as it is, a command line under the scheme `stdio:`.
fn location(target: &str) -> String {
    if target.contains("://") {
        return target.to_owned();
    }
    const STRANGE: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'-')
        .remove(b'.')
        .remove(b'_');
    format!("stdio:{}", utf8_percent_encode(target, STRANGE))
}
