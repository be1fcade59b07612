//! A folder and its machine into findings: what is as it should be, what is wrong, and the command that mends
//! it. Nothing is changed.

pub(crate) mod folder;
pub(crate) mod index;
pub(crate) mod network;
pub(crate) mod system;

use serde_json::{Value, json};

use crate::output::AnsiStyler;

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FindingStatus {
    /// As it should be.
    Good,
    /// It works, though something is not as it should be.
    Warning,
    /// It does not work.
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

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DoctorFinding {
    /// What was looked at, such as `index`.
    pub about: &'static str,
    pub state: FindingStatus,
    pub says: String,
    /// What mends it.
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

/// The worst of all findings.
pub(crate) fn worst(findings: &[DoctorFinding]) -> FindingStatus {
    let states = findings.iter().map(|finding| finding.state);
    states.max().unwrap_or(FindingStatus::Good)
}

/// The findings for people.
pub(crate) fn text(findings: &[DoctorFinding], paint: AnsiStyler) -> String {
    let mut lines = Vec::new();
    for finding in findings {
        let head = format!(
            "{:<8} {:<9} {}",
            finding.state.label(),
            finding.about,
            finding.says
        );
        lines.push(match finding.state {
            FindingStatus::Good => paint.plain(&head),
            FindingStatus::Warning | FindingStatus::Wrong => paint.bold(&head),
        });
        if let Some(hint) = &finding.hint {
            lines.push(paint.plain(&format!("         {:<9} hint: {hint}", "")));
        }
    }
    lines.join("\n")
}

/// The findings for programs.
pub(crate) fn json(findings: &[DoctorFinding]) -> Value {
    let rows = findings.iter().map(|finding| {
        json!({
            "about": finding.about, "state": finding.state.label(),
            "says": finding.says, "hint": finding.hint,
        })
    });
    json!({"state": worst(findings).label(), "findings": rows.collect::<Vec<_>>()})
}
