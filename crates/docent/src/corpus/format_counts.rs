//! What became of the files of a folder, counted by their kinds.

use std::collections::BTreeMap;

use docent_ingest::IngestError;

/// The most kinds that are told apart; beyond them all are one.
const MAX_KINDS: usize = 64;

/// What everything is called that is no file, and every kind beyond the bound.
const OTHER: &str = "other";

/// How many of what, by kind. Files come one after the other, so that what is counted belongs to the last
/// one that was begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatBreakdown {
    kinds: BTreeMap<String, FormatCounts>,
    current: Option<String>,
}

/// What became of the files of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatCounts {
    /// Files.
    pub files: usize,
    /// Documents that were added or changed.
    pub indexed: usize,
    /// Documents that were there already.
    pub unchanged: usize,
    /// What was left out, whole files and parts of them, by the code of the reason.
    pub skipped: BTreeMap<&'static str, usize>,
    /// What was indexed, but not quite as it was written, in the same way.
    pub warnings: BTreeMap<&'static str, usize>,
}

impl FormatBreakdown {
    /// Begins the next file, which is of this kind.
    pub(super) fn begin_file(&mut self, kind: String) {
        self.current = Some(kind);
        self.counts().files += 1;
    }

    /// Counts a document that was added or changed.
    pub(super) fn indexed(&mut self) {
        self.counts().indexed += 1;
    }

    /// Counts documents that were there already.
    pub(super) fn unchanged(&mut self, documents: usize) {
        self.counts().unchanged += documents;
    }

    /// Counts something that was left out.
    pub(super) fn skip(&mut self, reason: &IngestError) {
        count(&mut self.counts().skipped, reason);
    }

    /// Counts something that was changed.
    pub(super) fn warn(&mut self, reason: &IngestError) {
        count(&mut self.counts().warnings, reason);
    }

    /// The kinds with their counts, in the order of their names.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &FormatCounts)> {
        let kinds = self.kinds.iter();
        kinds.map(|(kind, counts)| (kind.as_str(), counts))
    }

    fn counts(&mut self) -> &mut FormatCounts {
        let kind = self.current.as_deref().unwrap_or(OTHER);
        let is_full = self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(kind);
        let kind = if is_full { OTHER } else { kind };
        self.kinds.entry(kind.to_owned()).or_default()
    }
}

/// A reason that stands for several counts as often.
fn count(codes: &mut BTreeMap<&'static str, usize>, reason: &IngestError) {
    let times = match reason {
        IngestError::More { count, .. } => usize::try_from(*count).unwrap_or(usize::MAX),
        _ => 1,
    };
    let known = codes.entry(reason.code()).or_default();
    *known = known.saturating_add(times);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_end_at_their_bound() {
        let mut tally = FormatBreakdown::default();
        tally.skip(&IngestError::Link);
        for n in 1..MAX_KINDS {
            tally.begin_file(format!("k{n}"));
        }
        assert_eq!(tally.kinds().count(), MAX_KINDS);
        tally.begin_file("k1".to_owned());
        tally.begin_file("one more".to_owned());
        tally.begin_file("and another".to_owned());
        tally.indexed();
        assert_eq!(tally.kinds().count(), MAX_KINDS);
        let of = |kind: &str| tally.kinds().find(|(found, _)| *found == kind).unwrap().1;
        assert_eq!(
            (of("k1").files, of(OTHER).files, of(OTHER).indexed),
            (2, 2, 1)
        );
        assert_eq!(of(OTHER).skipped, BTreeMap::from([("link", 1)]));
    }

    #[test]
    fn reasons_are_counted_by_their_codes() {
        let mut tally = FormatBreakdown::default();
        tally.begin_file("csv".to_owned());
        tally.skip(&IngestError::Empty);
        tally.skip(&IngestError::Empty);
        tally.warn(&IngestError::More { count: 7, lost: 0 });
        tally.unchanged(1);
        let (kind, counts) = tally.kinds().next().unwrap();
        assert_eq!((kind, counts.files, counts.unchanged), ("csv", 1, 1));
        assert_eq!(counts.skipped, BTreeMap::from([("empty", 2)]));
        assert_eq!(counts.warnings, BTreeMap::from([("more", 7)]));
    }
}
