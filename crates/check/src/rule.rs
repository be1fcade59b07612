//! One demand of hosts: what it asks, of whom, where that is written, and how to meet it.

use crate::exchange::Exchange;
use crate::profile::Profile;
use crate::report::Severity;
use crate::survey::Seen;
use crate::text::shown;

/// The most characters of a piece of a descriptor that are shown.
const MAX_PIECE: usize = 300;

/// A rule of the table.
#[derive(Debug)]
pub struct Rule {
    /// Its name, `group/demand`; it stays the same from release to release.
    pub id: &'static str,
    /// What it asks for, as a sentence without a full stop.
    pub demand: &'static str,
    /// Who asks, and how much a fault matters to them.
    pub weights: &'static [(Profile, Severity)],
    /// Where that is written.
    pub source: Source,
    /// What a developer does about a fault.
    pub fix: &'static str,
    pub(crate) judge: fn(&Seen) -> Verdict,
}

impl Rule {
    /// How much a fault matters under the chosen profiles; `None` where none of them asks.
    pub(crate) fn weight(&self, chosen: &[Profile]) -> Option<Severity> {
        let asked = |(profile, _): &&(Profile, Severity)| chosen.contains(profile);
        let weights = self.weights.iter().filter(asked);
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
pub struct Source {
    /// Its owner and place.
    pub name: &'static str,
    /// The day whose state of it the rule follows, as `YYYY-MM-DD`.
    pub date: &'static str,
    /// How sure it is.
    pub basis: Basis,
}

/// How sure a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The owner's own document.
    Owner,
    /// Third parties who quote the owner, or several who saw the same.
    Several,
    /// One report of what was seen.
    Report,
    /// Nobody wrote it down: a measure of our own.
    Ours,
}

impl Basis {
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

pub(crate) const fn owner(name: &'static str, date: &'static str) -> Source {
    Source {
        name,
        date,
        basis: Basis::Owner,
    }
}

pub(crate) const fn several(name: &'static str, date: &'static str) -> Source {
    Source {
        name,
        date,
        basis: Basis::Several,
    }
}

pub(crate) const fn report(name: &'static str, date: &'static str) -> Source {
    Source {
        name,
        date,
        basis: Basis::Report,
    }
}

/// What a rule says of a server.
pub(crate) enum Verdict {
    /// It was held against the server; no fault means that all is well.
    Judged(Vec<Fault>),
    /// There was nothing to hold it against, for this reason.
    Skipped(&'static str),
}

impl Verdict {
    pub(crate) fn one(fault: Option<Fault>) -> Self {
        Self::Judged(fault.into_iter().collect())
    }
}

/// One departure from a rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fault {
    pub message: String,
    pub sent: String,
    pub received: String,
    /// Set where this departure matters less than the rule's worst.
    pub at_most: Option<Severity>,
    /// Set where this departure has a cure of its own.
    pub fix: Option<&'static str>,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// Adds what was sent and what came back.
    pub(crate) fn from(mut self, exchange: &Exchange) -> Self {
        self.sent = exchange.sent_line();
        self.received = exchange.received_line();
        self
    }

    /// Adds the piece of an answer that is wrong.
    pub(crate) fn seen(mut self, piece: &impl ToString) -> Self {
        self.received = shown(&piece.to_string(), MAX_PIECE);
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

pub(crate) const fn ours(name: &'static str, date: &'static str) -> Source {
    Source {
        name,
        date,
        basis: Basis::Ours,
    }
}
