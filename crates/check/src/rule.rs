//! One demand of hosts: what it asks, of whom, where that is written, and how to meet it.

use crate::exchange::RecordedExchange;
use crate::profile::CheckProfile;
use crate::report::Severity;
use crate::survey::ServerSurvey;
use crate::text::printable;

/// The most characters of a piece of a descriptor that are shown.
const MAX_PIECE: usize = 300;

/// A rule of the table.
#[derive(Debug)]
pub struct CheckRule {
    /// Its name, `group/demand`; it stays the same from release to release.
    pub id: &'static str,
    /// What it asks for, as a sentence without a full stop.
    pub requirement: &'static str,
    /// Who asks, and how much a fault matters to them.
    pub severities: &'static [(CheckProfile, Severity)],
    /// Where that is written.
    pub source: RuleSource,
    /// What a developer does about a fault.
    pub fix: &'static str,
    pub(crate) evaluate: fn(&ServerSurvey) -> RuleVerdict,
}

impl CheckRule {
    /// How much a fault matters under the chosen profiles; `None` where none of them asks.
    pub(crate) fn severity_for(&self, chosen: &[CheckProfile]) -> Option<Severity> {
        let asked = |(profile, _): &&(CheckProfile, Severity)| chosen.contains(profile);
        let weights = self.severities.iter().filter(asked);
        weights.map(|(_, severity)| *severity).max()
    }

    /// The group in its name.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or_default()
    }
}

/// The text a rule is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSource {
    /// Its owner and place.
    pub name: &'static str,
    /// The day whose state of it the rule follows, as `YYYY-MM-DD`.
    pub date: &'static str,
    /// How sure it is.
    pub basis: SourceBasis,
}

/// How sure a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceBasis {
    /// The owner's own document.
    Owner,
    /// Third parties who quote the owner, or several who saw the same.
    Several,
    /// One report of what was seen.
    Report,
    /// Nobody wrote it down: a measure of our own.
    Ours,
}

impl SourceBasis {
    /// The words for it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Owner => "the owner's own text",
            Self::Several => "several reports",
            Self::Report => "a single report",
            Self::Ours => "our own measure",
        }
    }
}

pub(crate) const fn official(name: &'static str, date: &'static str) -> RuleSource {
    RuleSource {
        name,
        date,
        basis: SourceBasis::Owner,
    }
}

pub(crate) const fn corroborated(name: &'static str, date: &'static str) -> RuleSource {
    RuleSource {
        name,
        date,
        basis: SourceBasis::Several,
    }
}

pub(crate) const fn single_report(name: &'static str, date: &'static str) -> RuleSource {
    RuleSource {
        name,
        date,
        basis: SourceBasis::Report,
    }
}

/// What a rule says of a server.
pub(crate) enum RuleVerdict {
    /// It was held against the server; no fault means that all is well.
    Evaluated(Vec<RuleViolation>),
    /// There was nothing to hold it against, for this reason.
    Skipped(&'static str),
}

impl RuleVerdict {
    pub(crate) fn from_option(fault: Option<RuleViolation>) -> Self {
        Self::Evaluated(fault.into_iter().collect())
    }
}

/// One departure from a rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleViolation {
    pub message: String,
    pub sent: String,
    pub received: String,
    /// Set where this departure matters less than the rule's worst.
    pub at_most: Option<Severity>,
    /// Set where this departure has a cure of its own.
    pub fix: Option<&'static str>,
}

impl RuleViolation {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// Adds what was sent and what came back.
    pub(crate) fn with_exchange(mut self, exchange: &RecordedExchange) -> Self {
        self.sent = exchange.sent_line();
        self.received = exchange.received_line();
        self
    }

    /// Adds the piece of an answer that is wrong.
    pub(crate) fn with_excerpt(mut self, piece: &impl ToString) -> Self {
        self.received = printable(&piece.to_string(), MAX_PIECE);
        self
    }

    /// Names the cure of exactly this departure.
    pub(crate) fn fix(mut self, fix: &'static str) -> Self {
        self.fix = Some(fix);
        self
    }

    /// Says that it matters no more than this.
    pub(crate) fn at_most(mut self, severity: Severity) -> Self {
        self.at_most = Some(severity);
        self
    }
}

pub(crate) const fn own_measure(name: &'static str, date: &'static str) -> RuleSource {
    RuleSource {
        name,
        date,
        basis: SourceBasis::Ours,
    }
}
