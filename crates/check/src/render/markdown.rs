//! Markdown output, for issues and pull requests, and the page of all rules.
//!
//! Text of the server cannot break out of its line or code span: backticks, bars and `<` are replaced. The page of the
//! rules is generated from the rule table, and a test compares `docs/rules.md` with it.

use super::{WORST_FIRST, evidence, group_by_rule, profile_names, source_line, summary};
use crate::profile::CheckProfile;
use crate::report::{CheckReport, RuleFinding};
use crate::rule::CheckRule;

/// Renders the report as Markdown. Texts of the server cannot break out of their line or code span.
#[must_use]
pub fn markdown(report: &CheckReport) -> String {
    let names: Vec<&str> = report
        .profiles
        .iter()
        .map(|profile| profile.name())
        .collect();
    let mut out = format!(
        "# {}\n\nChecked as {}. {}.\n",
        code(&report.target),
        names.join(", "),
        summary(report)
    );
    if !report.facts.is_empty() {
        out.push_str("\n| measured | |\n|---|---|\n");
        for (name, value) in &report.facts {
            out.push_str(&format!("| {name} | {} |\n", cell(value)));
        }
    }
    for (severity, heading) in WORST_FIRST {
        let groups = group_by_rule(report, severity);
        if !groups.is_empty() {
            out.push_str(&format!("\n## {heading}\n"));
        }
        for group in groups {
            out.push_str(&section(&group));
        }
    }
    out
}

fn section(group: &[&RuleFinding]) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let mut out = format!("\n### {}\n\n", first.rule);
    for finding in group {
        out.push_str(&format!("- {}\n", cell(&finding.message)));
    }
    if let Some((sent, received)) = evidence(group) {
        out.push('\n');
        for (label, value) in [("Sent", sent), ("Received", received)] {
            if !value.is_empty() {
                out.push_str(&format!("{label}: {}\n\n", code(&value)));
            }
        }
    } else {
        out.push('\n');
    }
    out.push_str(&format!(
        "**Fix:** {}. Source: {} ({}).\n",
        cell(first.fix),
        source_line(first.source),
        profile_names(first)
    ));
    out
}

/// Wraps text in a code span; backticks inside it become apostrophes.
fn code(text: &str) -> String {
    let plain = text.replace('`', "'");
    format!("`{plain}`")
}

/// Escapes text for a table cell or line: `|` and `<`.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

/// Renders the page of all rules. `docs/rules.md` is this text, and a test compares them.
#[must_use]
pub fn rules_markdown() -> String {
    let mut out = String::from(
        "# Check rules\n\n\
         This page lists the rules of `docent check`. `docent check --list-rules --format markdown` generates it.\n\n\
         An error is a violation of a MUST of the source, or something that hosts refuse. A warning is a violation of a\n\
         SHOULD. A note is worth knowing. A rule that rests on a single report, or on our own measurements, is never an\n\
         error, and says so. The date after a source is that of its version, or the day on which it was read.\n\n\
         | profile | rules of |\n|---|---|\n",
    );
    for profile in CheckProfile::ALL {
        out.push_str(&format!(
            "| `{}` | {} |\n",
            profile.name(),
            profile.description()
        ));
    }
    let mut group = "";
    for rule in crate::rules() {
        if rule.group() != group {
            group = rule.group();
            out.push_str(&format!("\n## {group}\n"));
        }
        out.push_str(&entry(rule));
    }
    out
}

fn entry(rule: &CheckRule) -> String {
    let weights: Vec<String> = rule
        .severities
        .iter()
        .map(|(profile, severity)| format!("{} {}", profile.name(), severity.word()))
        .collect();
    let mut requirement = rule.requirement.to_owned();
    if let Some(first) = requirement.get(..1).map(str::to_uppercase) {
        requirement.replace_range(..1, &first);
    }
    format!(
        "\n### {}\n\n{}.\n\n- Severity: {}\n- Source: {}\n- Fix: {}\n",
        rule.id,
        cell(&requirement),
        weights.join(", "),
        cell(&source_line(rule.source)),
        cell(rule.fix)
    )
}
