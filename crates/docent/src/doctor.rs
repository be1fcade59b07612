//! Diagnostics of a folder and its machine: findings with a severity and, for each problem, the command that fixes it.
//! The checks are read-only.

pub(crate) mod folder;
pub(crate) mod index;
pub(crate) mod network;
pub(crate) mod system;

use serde_json::{Value, json};

use crate::output::AnsiStyler;

/// Severity of a finding, ordered so that the maximum is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FindingStatus {
    Good,
    /// It works, but something should be fixed; the exit status stays 0.
    Warning,
    /// It does not work, and the command exits with 1.
    Wrong,
}

impl FindingStatus {
    fn label(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
        }
    }
}

/// Result of one check: the subject, its severity, what was found, and the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DoctorFinding {
    /// Subject of the check, such as `index`.
    pub about: &'static str,
    pub state: FindingStatus,
    pub says: String,
    pub hint: Option<String>,
}

impl DoctorFinding {
    pub(crate) fn good(about: &'static str, says: impl Into<String>) -> Self {
        Self {
            about,
            state: FindingStatus::Good,
            says: says.into(),
            hint: None,
        }
    }

    pub(crate) fn warning(
        about: &'static str,
        says: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            about,
            state: FindingStatus::Warning,
            says: says.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn wrong(
        about: &'static str,
        says: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            state: FindingStatus::Wrong,
            ..Self::warning(about, says, hint)
        }
    }
}

/// The worst severity among all findings.
pub(crate) fn worst(findings: &[DoctorFinding]) -> FindingStatus {
    let states = findings.iter().map(|finding| finding.state);
    states.max().unwrap_or(FindingStatus::Good)
}

/// Formats the findings as text for a terminal, with problems in bold.
pub(crate) fn text(findings: &[DoctorFinding], styler: AnsiStyler) -> String {
    let mut lines = Vec::new();
    for finding in findings {
        let head = format!(
            "{:<8} {:<9} {}",
            finding.state.label(),
            finding.about,
            finding.says
        );
        lines.push(match finding.state {
            FindingStatus::Good => styler.plain(&head),
            FindingStatus::Warning | FindingStatus::Wrong => styler.bold(&head),
        });
        if let Some(hint) = &finding.hint {
            lines.push(styler.plain(&format!("         {:<9} hint: {hint}", "")));
        }
    }
    lines.join("\n")
}

/// Formats the findings as JSON for scripts, as `docent doctor --json` prints them.
pub(crate) fn json(findings: &[DoctorFinding]) -> Value {
    let rows = findings.iter().map(|finding| {
        json!({
            "about": finding.about, "state": finding.state.label(),
            "says": finding.says, "hint": finding.hint,
        })
    });
    json!({"state": worst(findings).label(), "findings": rows.collect::<Vec<_>>()})
}
