//! The report of a check: findings with their severity, the rules that passed, and the rules that were skipped.
//!
//! A hostile server could provoke any number of findings, so a report is bounded: 10 of one rule, 200 in all.

use serde_json::Value;

use crate::profile::CheckProfile;
use crate::rule::{CheckRule, RuleSource, RuleVerdict, RuleViolation, SourceBasis};
use crate::text::printable;

/// The severity of a finding; a greater value is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, but nothing breaks.
    Note,
    /// The source says SHOULD, or some hosts or features will not work.
    Warning,
    /// The source says MUST, or hosts reject the server.
    Error,
}

impl Severity {
    /// The lower-case name, as reports print it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One violation as a report shows it: the rule, what is wrong, the evidence, and the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFinding {
    /// The id of the rule, such as `tools/hints-explicit`.
    pub rule: &'static str,
    /// The severity for the strictest of the chosen profiles.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The request, truncated and safe to print; empty where the message says it all.
    pub sent: String,
    /// The response, or the excerpt of it that is wrong.
    pub received: String,
    /// What a developer does about it.
    pub fix: &'static str,
    /// The source that the rule is taken from.
    pub source: RuleSource,
    /// The chosen profiles to which the rule applies.
    pub profiles: Vec<CheckProfile>,
}

/// The number of findings of each severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeverityCounts {
    /// Findings of [`Severity::Error`].
    pub errors: usize,
    /// Findings of [`Severity::Warning`].
    pub warnings: usize,
    /// Findings of [`Severity::Note`].
    pub notes: usize,
}

/// The result of a check, which [`render`](crate::render) turns into text, JSON, SARIF and other formats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The URL or command that was checked, safe to print.
    pub target: String,
    /// The profiles whose rules were evaluated.
    pub profiles: Vec<CheckProfile>,
    /// The findings, worst first and then in the order of the rules.
    pub findings: Vec<RuleFinding>,
    /// The ids of the rules that passed.
    pub passed: Vec<&'static str>,
    /// The ids of the rules that did not apply, each with the reason.
    pub skipped: Vec<(&'static str, &'static str)>,
    /// Measurements, such as revisions, sizes and latencies, in the order in which they are shown.
    pub facts: Vec<(&'static str, String)>,
    /// The tools as the server lists them, which can serve as the baseline of a later check.
    pub tools: Vec<Value>,
    /// Why a requested part of the check failed on this side, such as a browser that did not start.
    pub trouble: Option<String>,
}

/// The most findings of a report. Nobody reads more, and a hostile server could provoke any number.
pub(crate) const MAX_FINDINGS: usize = 200;
/// The most findings of one rule; the last of them says how many more there are.
pub(crate) const MAX_FINDINGS_PER_RULE: usize = 10;

impl CheckReport {
    pub(crate) fn new(target: &str, profiles: &[CheckProfile]) -> Self {
        Self {
            target: printable(target, 200),
            profiles: profiles.to_vec(),
            ..Self::default()
        }
    }

    /// Records the verdict of one rule as findings, as passed or as skipped.
    pub(crate) fn add(&mut self, rule: &CheckRule, severity: Severity, verdict: RuleVerdict) {
        let mut faults = match verdict {
            RuleVerdict::Skipped(reason) => return self.skipped.push((rule.id, reason)),
            RuleVerdict::Evaluated(faults) => faults,
        };
        if faults.is_empty() {
            return self.passed.push(rule.id);
        }
        let more = faults.len().saturating_sub(MAX_FINDINGS_PER_RULE);
        faults.truncate(MAX_FINDINGS_PER_RULE);
        if more > 0
            && let Some(last) = faults.last_mut()
        {
            last.message.push_str(&format!(" (and {more} more)"));
        }
        let room = MAX_FINDINGS.saturating_sub(self.findings.len());
        let profiles = &self.profiles;
        let found = faults.into_iter().take(room);
        let found: Vec<_> = found
            .map(|fault| finding(rule, severity, profiles, fault))
            .collect();
        self.findings.extend(found);
    }

    /// Sorts the findings, worst first. The sort is stable, so rules keep their order within a severity.
    pub(crate) fn sort(&mut self) {
        self.findings
            .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }

    /// Counts the findings of each severity.
    #[must_use]
    pub fn counts(&self) -> SeverityCounts {
        let mut counts = SeverityCounts::default();
        for finding in &self.findings {
            match finding.severity {
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Note => counts.notes += 1,
            }
        }
        counts
    }

    /// The worst severity of all findings; `None` when there are none.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

fn finding(
    rule: &CheckRule,
    severity: Severity,
    chosen: &[CheckProfile],
    fault: RuleViolation,
) -> RuleFinding {
    let applies = |profile: &CheckProfile| {
        rule.severities
            .iter()
            .any(|(required_by, _)| required_by == profile)
    };
    // A rule that rests on one report, or on our own measure, is never an error.
    let cap = match rule.source.basis {
        SourceBasis::Report | SourceBasis::Ours => Severity::Warning,
        SourceBasis::Owner | SourceBasis::Several => Severity::Error,
    };
    let cap = cap.min(fault.at_most.unwrap_or(Severity::Error));
    RuleFinding {
        rule: rule.id,
        severity: severity.min(cap),
        message: printable(&fault.message, 400),
        sent: fault.sent,
        received: fault.received,
        fix: fault.fix.unwrap_or(rule.fix),
        source: rule.source,
        profiles: chosen.iter().copied().filter(applies).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{official, single_report as one_report};

    fn rule(source: RuleSource) -> CheckRule {
        CheckRule {
            id: "a/b",
            requirement: "",
            severities: &[
                (CheckProfile::ChatGpt, Severity::Warning),
                (CheckProfile::Submission, Severity::Error),
            ],
            source,
            fix: "",
            evaluate: |_| RuleVerdict::Skipped(""),
        }
    }

    fn faults(count: usize) -> RuleVerdict {
        RuleVerdict::Evaluated(vec![RuleViolation::new("x\u{1b}"); count])
    }

    #[test]
    fn a_report_counts_and_puts_the_worst_first() {
        let mut report = CheckReport::new("http://a.example/\u{1b}[2J", &[CheckProfile::ChatGpt]);
        assert_eq!(report.target, "http://a.example/\u{FFFD}[2J");
        let rule = rule(official("", ""));
        report.add(&rule, Severity::Note, faults(1));
        report.add(&rule, Severity::Error, faults(1));
        report.add(&rule, Severity::Error, RuleVerdict::Evaluated(Vec::new()));
        report.add(&rule, Severity::Error, RuleVerdict::Skipped("no tools"));
        report.sort();
        assert_eq!(report.findings[0].severity, Severity::Error);
        assert_eq!(report.findings[0].message, "x\u{FFFD}");
        assert_eq!(report.findings[0].profiles, [CheckProfile::ChatGpt]);
        let counts = report.counts();
        assert_eq!((counts.errors, counts.warnings, counts.notes), (1, 0, 1));
        assert_eq!(report.worst(), Some(Severity::Error));
        assert_eq!(report.passed, ["a/b"]);
        assert_eq!(report.skipped, [("a/b", "no tools")]);
    }

    #[test]
    fn a_report_ends_at_its_bounds() {
        let rule = rule(official("", ""));
        let mut report = CheckReport::new("", &[]);
        report.add(&rule, Severity::Note, faults(MAX_FINDINGS_PER_RULE));
        assert_eq!(report.findings.len(), MAX_FINDINGS_PER_RULE);
        assert_eq!(
            report.findings[MAX_FINDINGS_PER_RULE - 1].message,
            "x\u{FFFD}"
        );
        report.add(&rule, Severity::Note, faults(MAX_FINDINGS_PER_RULE + 1));
        assert_eq!(report.findings.len(), 2 * MAX_FINDINGS_PER_RULE);
        assert!(
            report
                .findings
                .last()
                .unwrap()
                .message
                .ends_with("(and 1 more)")
        );
        for _ in 0..MAX_FINDINGS {
            report.add(&rule, Severity::Error, faults(1));
        }
        assert_eq!(report.findings.len(), MAX_FINDINGS);
    }

    #[test]
    fn a_single_report_is_never_an_error() {
        let mut report = CheckReport::new("", &[]);
        report.add(&rule(one_report("", "")), Severity::Error, faults(1));
        assert_eq!(report.worst(), Some(Severity::Warning));
    }

    #[test]
    fn the_weight_is_that_of_the_strictest_profile() {
        let rule = rule(official("", ""));
        assert_eq!(
            rule.severity_for(&[CheckProfile::ChatGpt]),
            Some(Severity::Warning)
        );
        assert_eq!(rule.severity_for(&CheckProfile::ALL), Some(Severity::Error));
        assert_eq!(rule.severity_for(&[CheckProfile::Claude]), None);
    }
}
