//! Output formats of a report (terminal, JSON, SARIF, JUnit, Markdown, HTML) and of the rule table.
//!
//! Each format is a pure function of the report and gives the fix with every finding. Messages quote an untrusted
//! server. The report has made them printable already; each format escapes them for its own syntax on top of that.

mod html;
mod json;
mod junit;
mod markdown;
mod sarif;
mod terminal;

pub use html::html;
pub use json::{json, rules_json};
pub use junit::junit;
pub use markdown::{markdown, rules_markdown};
pub use sarif::sarif;
pub use terminal::{TerminalStyle, rules_text, terminal};

use crate::report::{CheckReport, RuleFinding, Severity};

/// A count with its noun, in the plural unless it is one.
fn pluralize(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The summary line: the number of findings by severity, and of rules that passed and were skipped.
#[must_use]
pub fn summary(report: &CheckReport) -> String {
    let counts = report.counts();
    [
        pluralize(counts.errors, "error"),
        pluralize(counts.warnings, "warning"),
        pluralize(counts.notes, "note"),
        format!("{} passed", pluralize(report.passed.len(), "rule")),
        format!("{} skipped", report.skipped.len()),
    ]
    .join(", ")
}

/// Groups the findings of one severity by rule.
fn group_by_rule(report: &CheckReport, severity: Severity) -> Vec<Vec<&RuleFinding>> {
    let mut groups: Vec<Vec<&RuleFinding>> = Vec::new();
    for finding in report
        .findings
        .iter()
        .filter(|finding| finding.severity == severity)
    {
        let known = groups.iter_mut().find(|group| {
            group
                .first()
                .is_some_and(|first| first.rule == finding.rule)
        });
        match known {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

const WORST_FIRST: [(Severity, &str); 3] = [
    (Severity::Error, "errors"),
    (Severity::Warning, "warnings"),
    (Severity::Note, "notes"),
];

/// The names of the profiles to which a finding applies, joined with commas.
fn profile_names(finding: &RuleFinding) -> String {
    let names: Vec<&str> = finding
        .profiles
        .iter()
        .map(|profile| profile.name())
        .collect();
    names.join(", ")
}

/// The source of a rule with its date, and its basis unless that is the owner's own text.
fn source_line(source: crate::rule::RuleSource) -> String {
    let basis = match source.basis {
        crate::rule::SourceBasis::Owner => String::new(),
        other => format!("; rests on {}", other.words()),
    };
    format!("{}, {}{basis}", source.name, source.date)
}

/// The request and response of the first finding of a group that has them; one example is enough evidence.
fn evidence(group: &[&RuleFinding]) -> Option<(String, String)> {
    let with = group
        .iter()
        .find(|finding| !finding.sent.is_empty() || !finding.received.is_empty())?;
    Some((with.sent.clone(), with.received.clone()))
}

#[cfg(test)]
mod tests;
