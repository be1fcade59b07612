//! JSON output, for scripts and other programs.
//!
//! Findings are not grouped by rule as in the formats for people: each has its message, evidence, fix and source. Rules
//! that passed and rules that were skipped are listed too, so that a program can tell a rule that holds from one that
//! was never evaluated.

use serde_json::{Value, json};

use crate::profile::CheckProfile;
use crate::report::{CheckReport, RuleFinding};
use crate::rule::{RuleSource, SourceBasis};

/// Renders the report as one JSON object.
#[must_use]
pub fn json(report: &CheckReport) -> Value {
    let counts = report.counts();
    let skipped = |(rule, reason): &(&str, &str)| json!({"rule": rule, "reason": reason});
    let facts = report
        .facts
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(value.clone())));
    json!({
        "target": report.target,
        "profiles": names(&report.profiles),
        "errors": counts.errors,
        "warnings": counts.warnings,
        "notes": counts.notes,
        "facts": Value::Object(facts.collect()),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "passed": report.passed,
        "skipped": report.skipped.iter().map(skipped).collect::<Vec<_>>(),
    })
}

fn names(profiles: &[CheckProfile]) -> Vec<&'static str> {
    profiles.iter().map(|profile| profile.name()).collect()
}

fn finding(finding: &RuleFinding) -> Value {
    json!({
        "rule": finding.rule,
        "severity": finding.severity.word(),
        "message": finding.message,
        "sent": finding.sent,
        "received": finding.received,
        "fix": finding.fix,
        "source": source(finding.source),
        "profiles": names(&finding.profiles),
    })
}

fn source(source: RuleSource) -> Value {
    let basis = match source.basis {
        SourceBasis::Owner => "owner",
        SourceBasis::Several => "several reports",
        SourceBasis::Report => "single report",
        SourceBasis::Ours => "our own measure",
    };
    json!({"name": source.name, "date": source.date, "basis": basis})
}

/// Renders the rules that apply to these profiles as a JSON array.
#[must_use]
pub fn rules_json(profiles: &[CheckProfile]) -> Value {
    let applicable = crate::rules().filter(|rule| rule.severity_for(profiles).is_some());
    let of_rule = |rule: &crate::rule::CheckRule| {
        let weights = rule
            .severities
            .iter()
            .map(|(profile, severity)| (profile.name().to_owned(), Value::from(severity.word())));
        json!({
            "id": rule.id,
            "demand": rule.requirement,
            "severities": Value::Object(weights.collect()),
            "source": source(rule.source),
            "fix": rule.fix,
        })
    };
    Value::Array(applicable.map(of_rule).collect())
}
