//! Many small segments into few larger ones, without what is no longer live.

use std::sync::Arc;

use super::MAX_SEGMENT_ROWS;
use super::live_documents::{LiveDocuments, NO_OWNER};
use super::segment_writer::RowSource;
use super::vector_segment::{RowReader, VectorSegment};
use super::vector_store::VectorStore;
use crate::error::SearchError;

/// How many segments of about one size become one. Each costs every search a few microseconds;
/// fewer would write the same rows more often.
const SEGMENTS_TO_MERGE: usize = 8;

/// Segments below this many rows count as equally small.
const SMALLEST_TIER: usize = 512;

/// One in this many rows may be dead before a segment is written anew without them.
const DEAD_SHARE: usize = 4;

/// No call merges more often than this; the next one goes on.
const MAX_MERGES: usize = 64;

/// What [`Store::maintain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// How many segments became fewer or smaller.
    pub merged: usize,
    /// How many rows went because their document is no longer live, or is there twice.
    pub dropped: usize,
}

impl VectorStore {
    /// Merges small segments, and writes those anew that hold too much of documents that are not
    /// in `live`. Views made before keep what they have.
    ///
    /// After this a document that is not live may have lost its vectors: `live` has to name all
    /// that will still be searched.
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

    /// Makes one segment, or none, of the chosen ones.
    fn merge(&mut self, chosen: &[usize], owners: &[Vec<u32>]) -> Result<(), SearchError> {
        let all = self.segments().to_vec();
        let mut documents = Vec::new();
        for (at, (segment, owners)) in all.iter().zip(owners).enumerate() {
            if chosen.contains(&at) {
                documents.extend(kept(segment, owners));
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

/// The documents of a segment that count.
fn kept<'s>(
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

/// How much of a segment there is, and how much of that is live.
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

/// The segments to make one of next, by their places.
fn plan_merge(sizes: &[SegmentSize]) -> Option<Vec<usize>> {
    if let Some(at) = sizes.iter().position(is_wasteful) {
        return Some(vec![at]);
    }
    let most = sizes.iter().map(tier).max()?;
    (0..=most).find_map(|wanted| {
        let alike = sizes.iter().enumerate();
        let alike = alike.filter(|(_, size)| tier(size) == wanted && !is_full(size));
        let alike: Vec<_> = alike.map(|(at, size)| (at, size.live_rows)).collect();
        if alike.len() < SEGMENTS_TO_MERGE {
            return None;
        }
        let mut sum = 0;
        let fits = alike.iter().take_while(|(_, rows)| {
            sum += rows;
            sum <= MAX_SEGMENT_ROWS
        });
        let chosen: Vec<_> = fits.map(|(at, _)| *at).collect();
        (chosen.len() > 1).then_some(chosen)
    })
}

/// Whether so much of a segment is dead that it is worth writing anew.
fn is_wasteful(size: &SegmentSize) -> bool {
    let dead_rows = size.rows - size.live_rows;
    let dead_documents = size.documents - size.live_documents;
    dead_rows > 0 && dead_rows * DEAD_SHARE >= size.rows
        || dead_documents > 0 && dead_documents * DEAD_SHARE >= size.documents
}

fn is_full(size: &SegmentSize) -> bool {
    size.live_rows > MAX_SEGMENT_ROWS / 2
}

/// Each tier is so many times as large as the one before as segments are merged at a time.
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

    /// As many batches as anyone sends leave few segments.
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
