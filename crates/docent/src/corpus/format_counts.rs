//! Per-format statistics of a sync: files, documents, skips and warnings for each file format.

use std::collections::BTreeMap;

use docent_ingest::IngestError;

/// The most formats with counts of their own. File extensions come from the folder, so this cardinality limit
/// keeps a folder of random names from growing the report; further formats are counted under `other`.
const MAX_KINDS: usize = 64;

/// The bucket for items that are not files and for formats beyond the cardinality limit.
const OTHER: &str = "other";

/// Counts by file format. A sync takes files one after the other, so everything counted belongs to the file that
/// was begun last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatBreakdown {
    kinds: BTreeMap<String, FormatCounts>,
    current: Option<String>,
}

/// Counts of the files of one format and of their documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatCounts {
    /// Files of this format that were opened.
    pub files: usize,
    /// Documents that were added or changed.
    pub indexed: usize,
    /// Documents that were there already.
    pub unchanged: usize,
    /// Skipped files and parts of files, by error code.
    pub skipped: BTreeMap<&'static str, usize>,
    /// Content that was altered while it was indexed, by error code.
    pub warnings: BTreeMap<&'static str, usize>,
}

impl FormatBreakdown {
    /// Begins the next file; later counts belong to its format.
    pub(super) fn begin_file(&mut self, kind: String) {
        self.current = Some(kind);
        self.counts().files += 1;
    }

    /// Counts a document that was added or changed.
    pub(super) fn indexed(&mut self) {
        self.counts().indexed += 1;
    }

    /// Counts documents that the index holds already.
    pub(super) fn unchanged(&mut self, documents: usize) {
        self.counts().unchanged += documents;
    }

    /// Counts a skipped file or part under its error code.
    pub(super) fn skip(&mut self, reason: &IngestError) {
        count(&mut self.counts().skipped, reason);
    }

    /// Counts a warning under its error code.
    pub(super) fn warn(&mut self, reason: &IngestError) {
        count(&mut self.counts().warnings, reason);
    }

    /// The formats with their counts, sorted by name.
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

/// Counts a reason; `More` stands for several unlisted problems and counts as that many.
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
        let mut breakdown = FormatBreakdown::default();
        breakdown.skip(&IngestError::Link);
        for n in 1..MAX_KINDS {
            breakdown.begin_file(format!("k{n}"));
        }
        assert_eq!(breakdown.kinds().count(), MAX_KINDS);
        breakdown.begin_file("k1".to_owned());
        breakdown.begin_file("one more".to_owned());
        breakdown.begin_file("and another".to_owned());
        breakdown.indexed();
        assert_eq!(breakdown.kinds().count(), MAX_KINDS);
        let of = |kind: &str| {
            breakdown
                .kinds()
                .find(|(found, _)| *found == kind)
                .unwrap()
                .1
        };
        assert_eq!(
            (of("k1").files, of(OTHER).files, of(OTHER).indexed),
            (2, 2, 1)
        );
        assert_eq!(of(OTHER).skipped, BTreeMap::from([("link", 1)]));
    }

    #[test]
    fn reasons_are_counted_by_their_codes() {
        let mut breakdown = FormatBreakdown::default();
        breakdown.begin_file("csv".to_owned());
        breakdown.skip(&IngestError::Empty);
        breakdown.skip(&IngestError::Empty);
        breakdown.warn(&IngestError::More { count: 7, lost: 0 });
        breakdown.unchanged(1);
        let (kind, counts) = breakdown.kinds().next().unwrap();
        assert_eq!((kind, counts.files, counts.unchanged), ("csv", 1, 1));
        assert_eq!(counts.skipped, BTreeMap::from([("empty", 2)]));
        assert_eq!(counts.warnings, BTreeMap::from([("more", 7)]));
    }
}
