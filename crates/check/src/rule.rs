//! The shape of a rule and of its result: what it requires and of which profiles, the source that it is taken from, and
//! the violations that it reports.
//!
//! Every rule names its source with a date, because hosts change. How reliable the source is limits the severity: what
//! rests on one report, or on our own measure, is never an error.

use crate::exchange::RecordedExchange;
use crate::profile::CheckProfile;
use crate::report::Severity;
use crate::survey::ServerSurvey;
use crate::text::printable;

/// The longest excerpt of a descriptor that a finding shows, in characters.
const MAX_EXCERPT: usize = 300;

/// One entry of the rule table: a requirement of hosts, with its source, its severity for each profile, and its fix.
#[derive(Debug)]
pub struct CheckRule {
    /// The stable identifier, `group/name`; it does not change from release to release.
    pub id: &'static str,
    /// The requirement, as a sentence without a full stop.
    pub requirement: &'static str,
    /// The profiles that require it, each with the severity of a violation.
    pub severities: &'static [(CheckProfile, Severity)],
    /// The document or report that the rule is taken from.
    pub source: RuleSource,
    /// What a developer does about a violation.
    pub fix: &'static str,
    pub(crate) evaluate: fn(&ServerSurvey) -> RuleVerdict,
}

impl CheckRule {
    /// The highest severity among the chosen profiles; `None` where the rule applies to none of them.
    pub(crate) fn severity_for(&self, chosen: &[CheckProfile]) -> Option<Severity> {
        let is_chosen = |(profile, _): &&(CheckProfile, Severity)| chosen.contains(profile);
        let severities = self.severities.iter().filter(is_chosen);
        severities.map(|(_, severity)| *severity).max()
    }

    /// The group, which is the first half of the id.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or_default()
    }
}

/// The source that a rule is taken from, as it was on a certain day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSource {
    /// The owner and the place, such as a specification and its section.
    pub name: &'static str,
    /// The date of the version that the rule follows, as `YYYY-MM-DD`.
    pub date: &'static str,
    /// How reliable the source is.
    pub basis: SourceBasis,
}

/// How reliable a source is. Rules that rest on one report or on our own measure are never errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceBasis {
    /// The owner's document: a specification, an RFC, the documentation of a host.
    Owner,
    /// Third parties who quote the owner, or several independent reports of the same behaviour.
    Several,
    /// One report of observed behaviour.
    Report,
    /// A threshold of our own, which no source states.
    Ours,
}

impl SourceBasis {
    /// The wording that reports print for this basis.
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

/// The outcome of evaluating one rule against one server.
pub(crate) enum RuleVerdict {
    /// The rule was evaluated; an empty list means that it passed.
    Evaluated(Vec<RuleViolation>),
    /// The rule does not apply to this server, for this reason.
    Skipped(&'static str),
}

impl RuleVerdict {
    pub(crate) fn from_option(fault: Option<RuleViolation>) -> Self {
        Self::Evaluated(fault.into_iter().collect())
    }
}

/// One violation of a rule, with its evidence: the request and the response, or the excerpt that is wrong.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleViolation {
    pub message: String,
    pub sent: String,
    pub received: String,
    /// An upper bound of the severity, where this violation matters less than the rule's worst case.
    pub at_most: Option<Severity>,
    /// A fix for exactly this violation, in place of the rule's general one.
    pub fix: Option<&'static str>,
}

impl RuleViolation {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    pub(crate) fn with_exchange(mut self, exchange: &RecordedExchange) -> Self {
        self.sent = exchange.sent_line();
        self.received = exchange.received_line();
        self
    }

    pub(crate) fn with_excerpt(mut self, excerpt: &impl ToString) -> Self {
        self.received = printable(&excerpt.to_string(), MAX_EXCERPT);
        self
    }

    pub(crate) fn fix(mut self, fix: &'static str) -> Self {
        self.fix = Some(fix);
        self
    }

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
