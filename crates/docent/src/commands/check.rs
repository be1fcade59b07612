//! `docent check`: the address of an MCP server into findings, and into an exit status for
//! scripts.

use std::process::ExitCode;

use docent_check::{Finding, Report, Severity};
use serde_json::{Value, json};
use url::Url;

use crate::knowledge::counted;
use crate::output;
use crate::problem::Problem;
use crate::settings::shorten;

pub(super) fn run(url: &str, as_json: bool) -> Result<ExitCode, Problem> {
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if !Url::parse(url).is_ok_and(|url| is_web(&url)) {
        return Err(
            Problem::usage(format!("`{}` is not a web address", shorten(url, 80)))
                .hint("example: `https://docs.example.org/mcp`"),
        );
    }
    let report = docent_check::check(url);
    if as_json {
        output::json(&wire(&report))?;
    } else {
        let lines: Vec<_> = report
            .findings
            .iter()
            .map(lines)
            .chain([summary(&report)])
            .collect();
        output::data(&lines.join("\n"))?;
    }
    let failed = report.worst() == Some(Severity::Error);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn lines(finding: &Finding) -> String {
    let Finding {
        rule,
        severity,
        message,
        evidence,
        hint,
        source,
        as_of,
    } = finding;
    let seen = if evidence.is_empty() {
        String::new()
    } else {
        format!("\n  seen: {evidence}")
    };
    format!(
        "{}: {message} [{rule}]{seen}\n  hint: {hint}\n  see:  {source}, {as_of}",
        word(*severity)
    )
}

fn summary(report: &Report) -> String {
    let counts = report.counts();
    [
        counted(report.passed.len() as u64, "rule") + " passed",
        counted(counts.errors as u64, "error"),
        counted(counts.warnings as u64, "warning"),
        counted(counts.notes as u64, "note"),
    ]
    .join(", ")
}

fn wire(report: &Report) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "rule": finding.rule,
            "severity": word(finding.severity),
            "message": finding.message,
            "evidence": finding.evidence,
            "hint": finding.hint,
            "source": finding.source,
            "asOf": finding.as_of,
        })
    };
    let counts = report.counts();
    json!({
        "url": report.url,
        "errors": counts.errors,
        "warnings": counts.warnings,
        "notes": counts.notes,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "passed": report.passed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_its_rule_its_cure_and_its_source() {
        let finding = Finding {
            rule: "tools/titles",
            severity: Severity::Warning,
            message: "tool `x` has no title".to_owned(),
            evidence: "{}".to_owned(),
            hint: "give it one",
            source: "hosts",
            as_of: "2026-11-15",
        };
        let report = Report {
            url: "https://a.example/mcp".to_owned(),
            findings: vec![finding],
            passed: vec!["tools/names"],
        };
        assert_eq!(
            lines(&report.findings[0]),
            "warning: tool `x` has no title [tools/titles]\n  seen: {}\n  hint: give it one\n  \
             see:  hosts, 2026-11-15"
        );
        assert_eq!(
            summary(&report),
            "1 rule passed, 0 errors, 1 warning, 0 notes"
        );
        assert_eq!(wire(&report)["findings"][0]["severity"], "warning");
    }
}
