//! Tiered merge: turns many small segments into few larger ones, and drops rows that are no longer live.
//!
//! Segments have no tombstones. A document is dead once it is missing from the live documents or replaced in a newer
//! segment, and a merge is what frees its rows.

use std::sync::Arc;

use super::MAX_SEGMENT_ROWS;
use super::live_documents::{LiveDocuments, NO_OWNER};
use super::segment_writer::RowSource;
use super::vector_segment::{RowReader, VectorSegment};
use super::vector_store::VectorStore;
use crate::error::SearchError;

/// The merge factor: how many segments of a tier become one. Every segment costs each search a few microseconds; a
/// smaller factor would rewrite the same rows more often (write amplification).
const SEGMENTS_TO_MERGE: usize = 8;

/// The size of the smallest tier: segments with fewer live rows count as equal. Saving one edited file makes a segment
/// of a few rows; without a common tier, each such size would wait for seven others like it, and searches would visit
/// all of them.
const SMALLEST_TIER: usize = 512;

/// A segment is rewritten once one in this many of its rows or documents is dead. Searches skip dead rows but still
/// read past them, and they keep their place on disk; rewriting earlier would copy many live rows for each dead one.
const DEAD_SHARE: usize = 4;

/// The most merges of one call. A call holds the writer, so an index that was built in thousands of small batches is
/// merged in several calls, between which batches of documents can be written.
const MAX_MERGES: usize = 64;

/// The outcome of [`VectorStore::maintain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// How many segments were merged or rewritten.
    pub merged: usize,
    /// How many dead rows were dropped: their document is no longer live, or a newer segment replaced it.
    pub dropped: usize,
}

impl VectorStore {
    /// Merges small segments, and rewrites those with too many dead rows. Existing views are not affected.
    ///
    /// Documents that are not in `live` may lose their vectors for good, so `live` has to name all documents that will
    /// still be searched.
    pub fn maintain(&mut self, live: &LiveDocuments) -> Result<MergeReport, SearchError> {
        self.writable()?;
        let mut done = MergeReport::default();
        for _ in 0..MAX_MERGES {
            let (owners, _) = live.owners(self.segments());
            let segments = self.segments().iter().zip(&owners);
            let sizes: Vec<_> = segments.map(|(one, owners)| size(one, owners)).collect();
            let Some(chosen) = plan_merge(&sizes) else {
                break;
            };
            let before = self.rows();
            self.merge(&chosen, &owners)?;
            done.merged += chosen.len();
            done.dropped += before - self.rows();
        }
        Ok(done)
    }

    /// Merges the chosen segments into one, or into none if nothing in them is live.
    fn merge(&mut self, chosen: &[usize], owners: &[Vec<u32>]) -> Result<(), SearchError> {
        let all = self.segments().to_vec();
        let mut documents = Vec::new();
        for (at, (segment, owners)) in all.iter().zip(owners).enumerate() {
            if chosen.contains(&at) {
                documents.extend(live_sources(segment, owners));
            }
        }
        documents.sort_unstable_by_key(|document| document.key);
        let merged = match documents.as_slice() {
            [] => None,
            documents => Some(Arc::new(self.write(documents)?)),
        };
        let others = all
            .iter()
            .enumerate()
            .filter(|(at, _)| !chosen.contains(at));
        let others = others.map(|(_, segment)| segment.clone());
        self.commit(others.chain(merged.clone()).collect())
    }
}

/// The live documents of a segment, as sources for a merge.
fn live_sources<'s>(
    segment: &'s Arc<VectorSegment>,
    owners: &[u32],
) -> impl Iterator<Item = RowSource<'s>> {
    let documents = segment.keys().iter().zip(owners).enumerate();
    let live = documents.filter(|(_, (_, owner))| **owner != NO_OWNER);
    live.map(|(at, (key, _))| RowSource {
        key: *key,
        rows: segment.as_ref() as &dyn RowReader,
        range: segment.rows_of(at),
    })
}

/// The size of a segment, in documents and in rows, and how much of it is live.
#[derive(Clone, Copy, Debug)]
struct SegmentSize {
    documents: usize,
    live_documents: usize,
    rows: usize,
    live_rows: usize,
}

fn size(segment: &VectorSegment, owners: &[u32]) -> SegmentSize {
    let live = owners
        .iter()
        .enumerate()
        .filter(|(_, owner)| **owner != NO_OWNER);
    let lengths = live.map(|(at, _)| segment.rows_of(at).len());
    let (live_documents, live_rows) =
        lengths.fold((0, 0), |(count, sum), length| (count + 1, sum + length));
    SegmentSize {
        documents: segment.layout.documents,
        live_documents,
        rows: segment.layout.rows,
        live_rows,
    }
}

/// Plans the next merge: returns the indexes of the segments to merge into one. A segment with many dead rows is
/// rewritten alone; otherwise the smallest tier with enough segments is merged.
fn plan_merge(sizes: &[SegmentSize]) -> Option<Vec<usize>> {
    if let Some(at) = sizes.iter().position(is_wasteful) {
        return Some(vec![at]);
    }
    let largest = sizes.iter().map(tier).max()?;
    (0..=largest).find_map(|current| {
        let same_tier = sizes.iter().enumerate();
        let same_tier = same_tier.filter(|(_, size)| tier(size) == current && !is_full(size));
        let same_tier: Vec<_> = same_tier.map(|(at, size)| (at, size.live_rows)).collect();
        if same_tier.len() < SEGMENTS_TO_MERGE {
            return None;
        }
        let mut sum = 0;
        let fits = same_tier.iter().take_while(|(_, rows)| {
            sum += rows;
            sum <= MAX_SEGMENT_ROWS
        });
        let chosen: Vec<_> = fits.map(|(at, _)| *at).collect();
        (chosen.len() > 1).then_some(chosen)
    })
}

/// Whether so much of a segment is dead that it is worth rewriting.
fn is_wasteful(size: &SegmentSize) -> bool {
    let dead_rows = size.rows - size.live_rows;
    let dead_documents = size.documents - size.live_documents;
    dead_rows > 0 && dead_rows * DEAD_SHARE >= size.rows
        || dead_documents > 0 && dead_documents * DEAD_SHARE >= size.documents
}

fn is_full(size: &SegmentSize) -> bool {
    size.live_rows > MAX_SEGMENT_ROWS / 2
}

/// The tier of a segment by its live rows. Tiers grow by the merge factor, so merging a tier yields one of the next.
fn tier(size: &SegmentSize) -> u32 {
    (size.live_rows / SMALLEST_TIER)
        .checked_ilog(SEGMENTS_TO_MERGE)
        .map_or(0, |tier| tier + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(rows: usize, live_rows: usize) -> SegmentSize {
        SegmentSize {
            documents: rows,
            live_documents: live_rows,
            rows,
            live_rows,
        }
    }

    #[test]
    fn segments_of_a_size_are_merged_once_there_are_enough() {
        let mut sizes = vec![size(100, 100); SEGMENTS_TO_MERGE - 1];
        sizes.push(size(100_000, 100_000));
        assert_eq!(plan_merge(&sizes), None);
        sizes.push(size(200, 200));
        assert_eq!(plan_merge(&sizes), Some(vec![0, 1, 2, 3, 4, 5, 6, 8]));
        assert_eq!(plan_merge(&[]), None);
    }

    #[test]
    fn a_segment_is_written_anew_when_a_quarter_is_dead() {
        assert_eq!(plan_merge(&[size(100, 76)]), None);
        assert_eq!(plan_merge(&[size(100, 100), size(100, 75)]), Some(vec![1]));
        assert_eq!(plan_merge(&[size(3, 0)]), Some(vec![0]));
        // Documents without passages.
        let empty = |documents, live_documents| SegmentSize {
            documents,
            live_documents,
            rows: 0,
            live_rows: 0,
        };
        assert_eq!(plan_merge(&[empty(3, 0)]), Some(vec![0]));
        assert_eq!(plan_merge(&[empty(3, 3)]), None);
    }

    #[test]
    fn no_segment_grows_over_its_bound() {
        let third = MAX_SEGMENT_ROWS / 3;
        let sizes = vec![size(third, third); 9];
        assert_eq!(plan_merge(&sizes), Some(vec![0, 1, 2]));
        let sizes = vec![size(MAX_SEGMENT_ROWS, MAX_SEGMENT_ROWS); 20];
        assert_eq!(plan_merge(&sizes), None);
    }

    /// However many batches are appended, the number of segments stays bounded.
    #[test]
    fn the_number_of_segments_stays_small() {
        let mut sizes = Vec::new();
        for _ in 0..20_000 {
            sizes.push(size(64, 64));
            while let Some(chosen) = plan_merge(&sizes) {
                let sum = chosen.iter().map(|at| sizes[*at].rows).sum();
                let mut at = 0;
                sizes.retain(|_| (!chosen.contains(&at), at += 1).0);
                sizes.push(size(sum, sum));
            }
            assert!(sizes.len() < 50, "{}", sizes.len());
        }
        assert_eq!(
            sizes.iter().map(|size| size.rows).sum::<usize>(),
            64 * 20_000
        );
    }
}
