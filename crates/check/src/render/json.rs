//! A report as JSON, for programs of the reader's own.

use serde_json::{Value, json};

use crate::profile::Profile;
use crate::report::{Finding, Report};
use crate::rule::{Basis, Source};

/// The report as one object.
#[must_use]
pub fn json(report: &Report) -> Value {
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

fn names(profiles: &[Profile]) -> Vec<&'static str> {
    profiles.iter().map(|profile| profile.name()).collect()
}

fn finding(finding: &Finding) -> Value {
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

fn source(source: Source) -> Value {
    let basis = match source.basis {
        Basis::Owner => "owner",
        Basis::Several => "several reports",
        Basis::Report => "single report",
        Basis::Ours => "our own measure",
    };
    json!({"name": source.name, "date": source.date, "basis": basis})
}

/// The rules of these profiles as a list.
#[must_use]
pub fn rules_json(profiles: &[Profile]) -> Value {
    let asked = crate::rules().filter(|rule| rule.weight(profiles).is_some());
    let of_rule = |rule: &crate::rule::Rule| {
        let weights = rule
            .weights
            .iter()
            .map(|(profile, severity)| (profile.name().to_owned(), Value::from(severity.word())));
        json!({
            "id": rule.id,
            "demand": rule.demand,
            "severities": Value::Object(weights.collect()),
            "source": source(rule.source),
            "fix": rule.fix,
        })
    };
    Value::Array(asked.map(of_rule).collect())
}
