//! A report into the forms that people and programs read, and the table of rules into its page.

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

/// A number with its noun.
fn pluralize(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The last line of every report.
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

/// Findings of one severity, those of one rule together.
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

/// For whom the rule of a finding is, in words.
fn profile_names(finding: &RuleFinding) -> String {
    let names: Vec<&str> = finding
        .profiles
        .iter()
        .map(|profile| profile.name())
        .collect();
    names.join(", ")
}

/// Where the rule of a finding is written, and how sure that is.
fn source_line(source: crate::rule::RuleSource) -> String {
    let basis = match source.basis {
        crate::rule::SourceBasis::Owner => String::new(),
        other => format!("; rests on {}", other.words()),
    };
    format!("{}, {}{basis}", source.name, source.date)
}

/// The least of what was seen that makes a finding believable.
fn evidence(group: &[&RuleFinding]) -> Option<(String, String)> {
    let with = group
        .iter()
        .find(|finding| !finding.sent.is_empty() || !finding.received.is_empty())?;
    Some((with.sent.clone(), with.received.clone()))
}

#[cfg(test)]
mod tests;
