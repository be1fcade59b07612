//! The global order of all ids of a generation, for deep paging.
//!
//! Ids break ties, and the id of another segment has to be looked up in a compressed dictionary. For ten hits
//! that is nothing. For the ten behind ten thousand it took 95 times as long as the search itself, so for
//! deep pages all dictionaries are merged once a generation, and ties are broken by number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tantivy::DocAddress;
use tantivy::columnar::StrColumn;

/// The offset from which on the global order is computed. Merging all dictionaries costs a pass over every id of the
/// index, which first pages need not pay: on them few ties have to be broken, and nearly all searches end there.
pub(super) const DEEP_PAGING: usize = 512;

/// The rank of every id among the ids of all segments.
pub(super) struct IdOrder {
    /// Global ranks by segment, then by the rank of the id in its segment.
    ranks: Vec<Vec<u32>>,
}

impl IdOrder {
    /// Computes the order with a k-way merge of the sorted dictionaries.
    pub(super) fn of(ids: &[StrColumn]) -> std::io::Result<Self> {
        let mut streams = Vec::with_capacity(ids.len());
        for column in ids {
            streams.push(column.dictionary().stream()?);
        }
        let mut ranks = vec![Vec::new(); ids.len()];
        let mut heap = BinaryHeap::new();
        for (segment, stream) in streams.iter_mut().enumerate() {
            if stream.advance() {
                heap.push(Reverse((stream.key().to_vec(), segment)));
            }
        }
        let (mut rank, mut last) = (0, None);
        while let Some(Reverse((mut key, segment))) = heap.pop() {
            // A document that was replaced has its id in two segments.
            if last.as_ref() != Some(&key) {
                rank += 1;
                last = Some(key.clone());
            }
            if let Some(ranks) = ranks.get_mut(segment) {
                ranks.push(rank);
            }
            if let Some(stream) = streams.get_mut(segment)
                && stream.advance()
            {
                key.clear();
                key.extend_from_slice(stream.key());
                heap.push(Reverse((key, segment)));
            }
        }
        Ok(Self { ranks })
    }

    /// The global rank of an id, given its rank in its segment.
    pub(super) fn rank(&self, at: DocAddress, in_segment: u64) -> Option<u32> {
        let ranks = self.ranks.get(at.segment_ord as usize)?;
        ranks.get(usize::try_from(in_segment).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use crate::document::tests::plain;
    use crate::embedded::EmbeddedEngine;
    use crate::engine::{DocumentChange, Engine as _};
    use crate::query::{Query, SortOrder};
    use crate::reader_identity::ReaderIdentity;

    async fn engine_with_segments(dir: &std::path::Path) -> EmbeddedEngine {
        let engine = EmbeddedEngine::open(dir).unwrap();
        for batch in 0..3_usize {
            // Ids of the segments interleave.
            let documents = (0..400).map(|n| {
                let mut document = plain("ferry");
                let id = format!("d{:04}", n * 3 + batch);
                document.id = crate::document::DocId::parse(&id).unwrap();
                DocumentChange::Put(document)
            });
            engine.apply(documents.collect()).await.unwrap();
        }
        engine
    }

    async fn page(engine: &EmbeddedEngine, offset: usize, sort: SortOrder) -> Vec<String> {
        let query = Query::new("ferry", 10, ReaderIdentity::everyone());
        let found = engine
            .search(query.offset(offset).sort(sort))
            .await
            .unwrap();
        found.hits.iter().map(|hit| hit.id.to_string()).collect()
    }

    #[tokio::test]
    async fn deep_pages_go_on_where_the_one_before_ended_and_look_up_no_ids() {
        let dir = tempfile::tempdir().unwrap();
        let engine = engine_with_segments(dir.path()).await;
        for sort in [SortOrder::Relevance, SortOrder::Newest] {
            for offset in [0, 500, 510, 1_000, 1_190] {
                let before = engine.0.snapshot().id_lookups();
                let expected: Vec<_> = (offset..offset + 10).map(|n| format!("d{n:04}")).collect();
                assert_eq!(page(&engine, offset, sort).await, expected, "{sort:?}");
                let lookups = engine.0.snapshot().id_lookups() - before;
                assert!(
                    offset < super::DEEP_PAGING || lookups == 0,
                    "{offset}: {lookups}"
                );
            }
        }
    }
}
