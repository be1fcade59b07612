//! Exhaustive BM25 scoring of small indexes, posting by posting.
//!
//! For larger indexes tantivy prunes: it skips blocks of posting lists that cannot reach the top. Preparing
//! that takes longer than reading every posting where there are no more of these than a few blocks.

use std::sync::Arc;

use tantivy::postings::TermInfo;
use tantivy::query::{Bm25StatisticsProvider as _, Bm25Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{InvertedIndexReader, SegmentReader, Term};

use super::document_frequencies::SharedDocFrequencies;
use super::schema::IndexFields;
use super::snapshot::IndexSnapshot;
use crate::analysis::QueryTerm;
use crate::ranking::FIELD_WEIGHTS;

/// Up to this many documents an index is scored exhaustively. A posting list is pruned by the block of 128 documents,
/// so in an index of this size a term has eight blocks at most, and there is hardly anything to skip.
const MAX_EXHAUSTIVE_DOCUMENTS: u64 = 1_024;

/// Whether the index is small enough for exhaustive scoring.
pub(super) fn is_small(snapshot: &IndexSnapshot) -> bool {
    let segments = snapshot.searcher.segment_readers().iter();
    let documents = segments.map(|segment| u64::from(segment.max_doc()));
    documents.sum::<u64>() <= MAX_EXHAUSTIVE_DOCUMENTS
}

/// The BM25 score of each document, by segment; 0 for one without any of the terms.
pub(super) fn scores(
    snapshot: &IndexSnapshot,
    fields: &IndexFields,
    frequencies: &SharedDocFrequencies<'_>,
    terms: &[&QueryTerm],
) -> tantivy::Result<Vec<Vec<f32>>> {
    let segments = snapshot.searcher.segment_readers();
    let all = segments.iter().map(|one| vec![0.0; one.max_doc() as usize]);
    let mut scores: Vec<Vec<f32>> = all.collect();
    let documents = frequencies.total_num_docs()?;
    for (field, boost) in FIELD_WEIGHTS {
        let field = FieldPostings::of(segments, fields.scored(field))?;
        let mean = field.tokens() as f32 / documents as f32;
        for term in terms {
            for form in &term.forms {
                let form = Term::from_field_text(field.field, form);
                let found = field.find(&form)?;
                if found.iter().all(Option::is_none) {
                    continue;
                }
                let infos = found.iter().flatten();
                let total_doc_freq = infos.map(|info| u64::from(info.doc_freq)).sum();
                let frequency = frequencies
                    .shared_frequency(&form)
                    .unwrap_or(total_doc_freq);
                let weight = Bm25Weight::for_one_term_without_explain(frequency, documents, mean);
                field.add(&found, &weight.boost_by(boost * term.weight), &mut scores)?;
            }
        }
    }
    Ok(scores)
}

/// The posting lists of one field, in all segments.
struct FieldPostings<'s> {
    field: Field,
    segments: Vec<(&'s SegmentReader, Arc<InvertedIndexReader>)>,
}

impl<'s> FieldPostings<'s> {
    fn of(segments: &'s [SegmentReader], field: Field) -> tantivy::Result<Self> {
        let open = |segment: &'s SegmentReader| Ok((segment, segment.inverted_index(field)?));
        let segments = segments.iter().map(open).collect::<tantivy::Result<_>>()?;
        Ok(Self { field, segments })
    }

    fn tokens(&self) -> u64 {
        let indexes = self.segments.iter().map(|(_, index)| index);
        indexes.map(|index| index.total_num_tokens()).sum()
    }

    /// The dictionary entry of a term in each segment.
    fn find(&self, term: &Term) -> tantivy::Result<Vec<Option<TermInfo>>> {
        let segments = self.segments.iter();
        let found = segments.map(|(_, index)| Ok(index.get_term_info(term)?));
        found.collect()
    }

    /// Adds the score of a term to each document that contains it.
    fn add(
        &self,
        found: &[Option<TermInfo>],
        weight: &Bm25Weight,
        scores: &mut [Vec<f32>],
    ) -> tantivy::Result<()> {
        let segments = self.segments.iter().zip(found).zip(scores);
        for (((segment, index), info), scores) in segments {
            let Some(info) = info else {
                continue;
            };
            let lengths = segment.get_fieldnorms_reader(self.field)?;
            let option = IndexRecordOption::WithFreqs;
            let mut postings = index.read_block_postings_from_terminfo(info, option)?;
            while postings.block_len() > 0 {
                for (doc, frequency) in postings.docs().iter().zip(postings.freqs()) {
                    if let Some(score) = scores.get_mut(*doc as usize) {
                        *score += weight.score(lengths.fieldnorm_id(*doc), *frequency);
                    }
                }
                postings.advance();
            }
        }
        Ok(())
    }
}
