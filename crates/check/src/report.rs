//! Findings into a report: what was found, how bad it is, and what was in order.

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Some hosts, or some of their features, will not work.
    Warning,
    /// Hosts refuse this.
    Error,
}

/// One thing that a server does not do as hosts ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name, such as `tools/hints-explicit`; it stays the same from release to release.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What was seen, cut and safe to print; empty where the message says it all.
    pub evidence: String,
    /// What to do.
    pub hint: &'static str,
    /// The text that the rule is taken from.
    pub source: &'static str,
    /// The day whose state of that text the rule follows, as `YYYY-MM-DD`.
    pub as_of: &'static str,
}

/// How many findings there are of each severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// [`Severity::Error`].
    pub errors: usize,
    /// [`Severity::Warning`].
    pub warnings: usize,
    /// [`Severity::Note`].
    pub notes: usize,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The address that was checked, safe to print.
    pub url: String,
    /// What is wrong, in the order of the rules.
    pub findings: Vec<Finding>,
    /// The rules that found nothing.
    pub passed: Vec<&'static str>,
}

/// The most findings a report holds. Nobody reads more, and a hostile server could provoke any number.
pub(crate) const MAX_FINDINGS: usize = 200;

/// The most characters of what a server said that are shown.
const MAX_SHOWN: usize = 200;

impl Report {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: shown(url),
            findings: Vec::new(),
            passed: Vec::new(),
        }
    }

    /// Takes what one rule found.
    pub(crate) fn add(&mut self, rule: &'static str, findings: Vec<Finding>) {
        if findings.is_empty() {
            self.passed.push(rule);
        }
        let room = MAX_FINDINGS.saturating_sub(self.findings.len());
        self.findings.extend(findings.into_iter().take(room));
    }

    /// How many findings there are of each severity.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for finding in &self.findings {
            match finding.severity {
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Note => counts.notes += 1,
            }
        }
        counts
    }

    /// The worst severity found; `None` when there is nothing to complain of.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Text of a server as it may be printed: one line, cut, and nothing that hides or moves the cursor.
pub(crate) fn shown(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E0FFF}')
    };
    let mut chars = text.chars().map(|c| if hidden(c) { '\u{FFFD}' } else { c });
    let mut out: String = chars.by_ref().take(MAX_SHOWN).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity) -> Finding {
        Finding {
            rule: "a/b",
            severity,
            message: String::new(),
            evidence: String::new(),
            hint: "",
            source: "",
            as_of: "",
        }
    }

    #[test]
    fn a_report_counts_and_knows_the_worst() {
        let mut report = Report::new("http://a.example/\u{1b}[2J");
        assert_eq!(report.url, "http://a.example/\u{FFFD}[2J");
        assert_eq!(report.worst(), None);
        report.add("good", Vec::new());
        report.add(
            "bad",
            vec![
                finding(Severity::Warning),
                finding(Severity::Error),
                finding(Severity::Note),
                finding(Severity::Note),
            ],
        );
        assert_eq!(
            report.counts(),
            Counts {
                errors: 1,
                warnings: 1,
                notes: 2
            }
        );
        assert_eq!(report.worst(), Some(Severity::Error));
        assert_eq!(report.passed, ["good"]);
    }

    #[test]
    fn a_report_ends_at_its_bound() {
        let mut report = Report::new("");
        report.add("a", vec![finding(Severity::Note); MAX_FINDINGS]);
        assert_eq!(report.findings.len(), MAX_FINDINGS);
        report.add("b", vec![finding(Severity::Error)]);
        assert_eq!(report.findings.len(), MAX_FINDINGS);
        assert_eq!(report.passed, [""; 0]);
    }

    #[test]
    fn what_a_server_said_is_shown_safely() {
        assert_eq!(
            shown("a\u{202E}b\nc\u{E0041}d"),
            "a\u{FFFD}b\u{FFFD}c\u{FFFD}d"
        );
        assert_eq!(shown(&"ü".repeat(200)), "ü".repeat(200));
        assert_eq!(shown(&"ü".repeat(201)), format!("{}…", "ü".repeat(200)));
    }
}
