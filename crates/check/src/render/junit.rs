//! JUnit XML output, which CI servers show as tests: a suite for each group, a test case for each rule.
//!
//! Only errors are failures. Warnings and notes go to the output of their test case, so that a build breaks only on a
//! violated MUST or on what hosts refuse. A skipped rule is a skipped test with its reason.

use super::html::escape_markup;
use crate::report::{CheckReport, RuleFinding, Severity};

/// Renders the report as JUnit test suites. Errors fail a test; warnings and notes are written to its output.
#[must_use]
pub fn junit(report: &CheckReport) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for rule in crate::rules() {
        if rule.severity_for(&report.profiles).is_some() && !groups.contains(&rule.group()) {
            groups.push(rule.group());
        }
    }
    let suites: String = groups.iter().map(|group| suite(report, group)).collect();
    let counts = report.counts();
    let tests = report.passed.len() + report.skipped.len() + failed(report, "").len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"docent check {}\" tests=\"{tests}\" failures=\"{}\">\n{suites}</testsuites>\n",
        escape_markup(&report.target),
        failing(report, "").len(),
    ) + &format!(
        "<!-- {} errors, {} warnings, {} notes -->\n",
        counts.errors, counts.warnings, counts.notes
    )
}

/// The rules of a group that have findings, each once.
fn failed<'a>(report: &'a CheckReport, group: &str) -> Vec<&'a str> {
    let mut rules: Vec<&str> = Vec::new();
    for finding in &report.findings {
        if finding.rule.starts_with(group) && !rules.contains(&finding.rule) {
            rules.push(finding.rule);
        }
    }
    rules
}

/// The rules of a group that have a finding of severity error.
fn failing<'a>(report: &'a CheckReport, group: &str) -> Vec<&'a str> {
    let is_error = |rule: &&str| {
        report
            .findings
            .iter()
            .any(|finding| finding.rule == *rule && finding.severity == Severity::Error)
    };
    failed(report, group).into_iter().filter(is_error).collect()
}

fn suite(report: &CheckReport, group: &str) -> String {
    let prefix = format!("{group}/");
    let mut cases = String::new();
    for rule in report
        .passed
        .iter()
        .filter(|rule| rule.starts_with(&prefix))
    {
        cases.push_str(&format!(
            "    <testcase classname=\"{group}\" name=\"{rule}\"/>\n"
        ));
    }
    for (rule, reason) in report
        .skipped
        .iter()
        .filter(|(rule, _)| rule.starts_with(&prefix))
    {
        cases.push_str(&format!("    <testcase classname=\"{group}\" name=\"{rule}\"><skipped message=\"{}\"/></testcase>\n", escape_markup(reason)));
    }
    for rule in failed(report, &prefix) {
        let findings: Vec<&RuleFinding> = report
            .findings
            .iter()
            .filter(|finding| finding.rule == rule)
            .collect();
        cases.push_str(&format!(
            "    <testcase classname=\"{group}\" name=\"{rule}\">{}</testcase>\n",
            body(&findings)
        ));
    }
    let (tests, failures) = (
        cases.matches("<testcase").count(),
        failing(report, &prefix).len(),
    );
    format!(
        "  <testsuite name=\"{group}\" tests=\"{tests}\" failures=\"{failures}\">\n{cases}  </testsuite>\n"
    )
}

fn body(findings: &[&RuleFinding]) -> String {
    let mut body = String::new();
    for finding in findings {
        let details = format!(
            "sent: {}\nreceived: {}\nfix: {}",
            finding.sent, finding.received, finding.fix
        );
        let (message, details) = (escape_markup(&finding.message), escape_markup(&details));
        body.push_str(&match finding.severity {
            Severity::Error => format!("<failure message=\"{message}\">{details}</failure>"),
            other => format!(
                "<system-out>{}: {message}\n{details}</system-out>",
                other.word()
            ),
        });
    }
    body
}
