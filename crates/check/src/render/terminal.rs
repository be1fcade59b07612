//! Terminal output: the measurements, then the findings, worst first, each with its fix.
//!
//! Findings of one rule share one block with one piece of evidence and one fix, since the same mistake usually occurs
//! many times. The caller chooses whether there are colors, because only it knows whether stdout is a terminal.

use super::{WORST_FIRST, evidence, group_by_rule, profile_names, source_line, summary};
use crate::profile::CheckProfile;
use crate::report::{CheckReport, RuleFinding, Severity};

/// Whether the output has colours, which callers choose by whether stdout is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalStyle {
    /// Plain text without escape sequences.
    Plain,
    /// Colours by ANSI escape sequences.
    Colour,
}

impl TerminalStyle {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }

    fn severity(self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        self.paint(code, text)
    }
}

/// Renders the report as text for people.
#[must_use]
pub fn terminal(report: &CheckReport, style: TerminalStyle) -> String {
    let names: Vec<&str> = report
        .profiles
        .iter()
        .map(|profile| profile.name())
        .collect();
    let mut lines = vec![format!(
        "{} as {}",
        style.paint("1", &report.target),
        names.join(", ")
    )];
    let width = report
        .facts
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, value) in &report.facts {
        lines.push(format!("  {name:width$}  {value}"));
    }
    for (severity, heading) in WORST_FIRST {
        let groups = group_by_rule(report, severity);
        if !groups.is_empty() {
            lines.push(format!("\n{}", style.severity(severity, heading)));
        }
        for group in groups {
            lines.extend(lines_of(&group, severity, style));
        }
    }
    lines.push(format!("\n{}", summary(report)));
    lines.join("\n")
}

fn lines_of(group: &[&RuleFinding], severity: Severity, style: TerminalStyle) -> Vec<String> {
    let Some(first) = group.first() else {
        return Vec::new();
    };
    let mut lines = vec![format!("  {}", style.severity(severity, first.rule))];
    lines.extend(
        group
            .iter()
            .map(|finding| format!("    {}", finding.message)),
    );
    if let Some((sent, received)) = evidence(group) {
        if !sent.is_empty() {
            lines.push(format!("    {} {sent}", style.paint("2", "sent:    ")));
        }
        if !received.is_empty() {
            lines.push(format!("    {} {received}", style.paint("2", "received:")));
        }
    }
    lines.push(format!(
        "    {} {}",
        style.paint("32", "fix:     "),
        first.fix
    ));
    lines.push(format!(
        "    {} {} ({})",
        style.paint("2", "source:  "),
        source_line(first.source),
        profile_names(first)
    ));
    lines
}

/// Lists the rules that apply to these profiles, one line each.
#[must_use]
pub fn rules_text(profiles: &[CheckProfile]) -> String {
    let applicable = crate::rules().filter_map(|rule| Some((rule, rule.severity_for(profiles)?)));
    let lines: Vec<String> = applicable
        .map(|(rule, severity)| {
            format!("{:34} {:8} {}", rule.id, severity.word(), rule.requirement)
        })
        .collect();
    lines.join("\n")
}
