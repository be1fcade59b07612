//! What the pipeline asks of an engine.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::ops::Range;

use crate::analysis::{Language, QueryTerm};
use crate::embedder::ModelLanguages;
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::hit::FacetCounts;
use crate::query::{AnalyzedQuery, Query, SortOrder};
use crate::ranking::TermPair;
use crate::snippet::DisplayDocument;

/// One generation of an index as one reader sees it: the primitives from which the pipeline builds an answer.
///
/// An engine decides how documents are found and read. It does not decide how they are ranked: whatever
/// compares two candidates with each other belongs in the pipeline.
pub(crate) trait IndexView: Sync {
    /// A handle of a document while it is ranked.
    type Document: Send;
    /// The documents that the reader, the filters, the phrases and the exclusions of a query allow.
    type CandidateSet: Sync;
    /// The candidates that contain a term of the query.
    type MatchSet;
    /// The weights of the query's terms in this index.
    type TermWeights: Sync;
    /// The embedding of the query.
    type QueryVector: Sync;
    /// A document as it was read to be shown.
    type Display: Borrow<DisplayDocument>;

    /// How many of the best candidates get a proximity bonus: all where positions are in the index, few where
    /// whole documents have to be read for it.
    const MAX_PROXIMITY_CANDIDATES: usize;

    /// The languages of the visible documents, most frequent first.
    fn languages(&self) -> Result<Cow<'_, [Language]>, SearchError>;

    /// Replaces terms that no visible document contains by likely ones.
    fn correct_spelling(&self, terms: &mut Vec<QueryTerm>) -> Result<(), SearchError>;

    /// The documents that the query allows.
    fn restrict(
        &self,
        query: &Query,
        analyzed: &AnalyzedQuery,
    ) -> Result<Self::CandidateSet, SearchError>;

    /// The candidates that contain at least one of these forms; all candidates when there are none.
    fn matches(
        &self,
        candidates: &Self::CandidateSet,
        forms: &[&str],
    ) -> Result<Self::MatchSet, SearchError>;

    /// The languages of the embedding model whose vectors answer; `None` without one.
    fn model_languages(&self) -> Option<ModelLanguages>;

    /// Embeds a query, with the scale of its cosines; `None` when there are no vectors or the model fails.
    fn embed(&self, text: &str) -> Option<(Self::QueryVector, CosineScale)>;

    /// Looks up the weights of distinct terms.
    fn weigh(&self, terms: &[&QueryTerm]) -> Result<Self::TermWeights, SearchError>;

    /// The `most` candidates with the best BM25 scores, without proximity; ids break ties.
    fn best_by_words(
        &self,
        words: &WordQuery<'_, Self::TermWeights>,
        candidates: &Self::CandidateSet,
        most: usize,
    ) -> Result<LexicalHits<Self::Document>, SearchError>;

    /// The `most` candidates with the nearest passages, each with its cosine.
    fn nearest(
        &self,
        vector: &Self::QueryVector,
        candidates: &Self::CandidateSet,
        most: usize,
    ) -> Result<Vec<Candidate<Self::Document>>, SearchError>;

    /// Adds the BM25 scores of candidates that only the vector half found, unless the lexical half was
    /// `complete`: then they have none. Drops those that the query does not allow, where the vectors alone
    /// could not tell.
    fn score_words(
        &self,
        words: &WordQuery<'_, Self::TermWeights>,
        candidates: &Self::CandidateSet,
        found: Vec<Candidate<Self::Document>>,
        complete: bool,
    ) -> Result<Vec<Candidate<Self::Document>>, SearchError>;

    /// Adds the cosines of candidates that only the lexical half found, as far as they have vectors.
    fn score_meaning(
        &self,
        vector: &Self::QueryVector,
        found: &mut [&mut Candidate<Self::Document>],
    ) -> Result<(), SearchError>;

    /// Whether what one half found is scored for the other half together with reading it, see
    /// [`Self::cross_score`]. The pipeline then asks for the promising candidates only.
    fn reads_when_scoring(&self, _candidates: &Self::CandidateSet) -> bool {
        false
    }

    /// Gives the candidates of each half the scores of the other half. Drops those that the query does not
    /// allow, where the half that found them could not tell.
    fn cross_score(
        &self,
        found: CrossScoring<'_, Self>,
    ) -> Result<Vec<Candidate<Self::Document>>, SearchError>
    where
        Self: Sized,
    {
        found.half_by_half(self)
    }

    /// Adds the proximity bonus to the BM25 scores of these candidates.
    fn score_proximity(
        &self,
        words: &WordQuery<'_, Self::TermWeights>,
        found: &mut [&mut Candidate<Self::Document>],
    ) -> Result<(), SearchError>;

    /// Whether the embedding model has seen this document, so that a missing cosine means that it does not know
    /// the document's language.
    fn is_embedded(&self, vector: &Self::QueryVector, document: &Self::Document) -> bool;

    /// The first `most` documents by day. Those without a day come last, and ids break ties.
    fn by_day(
        &self,
        matches: &Self::MatchSet,
        sort: SortOrder,
        most: usize,
    ) -> Result<Vec<Self::Document>, SearchError>;

    /// The number of matching documents.
    fn count(&self, matches: &Self::MatchSet) -> Result<u64, SearchError>;

    /// The facet counts of these fields.
    fn facets(
        &self,
        matches: &Self::MatchSet,
        fields: &[String],
    ) -> Result<Vec<FacetCounts>, SearchError>;

    /// Reads documents to show or compare them; `None` for one that is gone.
    fn read(
        &self,
        documents: &[&Self::Document],
    ) -> Result<Vec<Option<Self::Display>>, SearchError>;

    /// Fetches the nearest passages of documents whose excerpts are shown, where [`Self::passages`] would
    /// otherwise ask for each document alone.
    fn prefetch_passages(
        &self,
        _vector: &Self::QueryVector,
        _shown: &mut [&mut Self::Document],
    ) -> Result<(), SearchError> {
        Ok(())
    }

    /// The passages of a document that are nearest to the query, the nearest first.
    fn passages(&self, vector: &Self::QueryVector, document: &Self::Document) -> Vec<Range<usize>>;

    /// An order of document handles in which only handles of the same document are equal.
    fn by_handle(left: &Self::Document, right: &Self::Document) -> Ordering;

    /// The order of documents with the same score.
    fn by_id(&self, left: &Self::Document, right: &Self::Document) -> Ordering;

    /// Keeps what the vector half knows about a document that the lexical half found too.
    fn absorb(_known: &mut Self::Document, _near: &mut Self::Document) {}

    /// Runs both closures, in parallel where each of them waits for a network.
    fn both<A: Send, B: Send>(
        first: impl FnOnce() -> Result<A, SearchError> + Send,
        second: impl FnOnce() -> Result<B, SearchError> + Send,
    ) -> (Result<A, SearchError>, Result<B, SearchError>) {
        (first(), second())
    }
}

/// The words of a query, with the weights that an engine looked up for them.
pub(crate) struct WordQuery<'q, W> {
    /// The distinct terms, in the order of their first occurrence.
    pub terms: Vec<&'q QueryTerm>,
    /// The pairs of adjacent words, for the proximity bonus.
    pub pairs: Vec<TermPair<'q>>,
    pub weights: W,
}

/// What both halves found, before each has scored what only the other one found.
pub(crate) struct CrossScoring<'q, V: IndexView> {
    pub vector: &'q V::QueryVector,
    pub words: &'q WordQuery<'q, V::TermWeights>,
    pub candidates: &'q V::CandidateSet,
    /// What the lexical half found, with cosines where the vector half found it too.
    pub lexical: Vec<Candidate<V::Document>>,
    /// What only the vector half found.
    pub near: Vec<Candidate<V::Document>>,
    /// Whether every candidate that contains a term is in `lexical`.
    pub complete: bool,
    /// Whether only the promising ones are left, whose documents are needed.
    pub is_promising: bool,
}

impl<V: IndexView> CrossScoring<'_, V> {
    /// Has each half score what only the other one found, both at once.
    pub(crate) fn half_by_half(self, view: &V) -> Result<Vec<Candidate<V::Document>>, SearchError> {
        let (mut found, near) = (self.lexical, self.near);
        let lacks_cosine = |one: &&mut Candidate<V::Document>| one.cosine.is_none();
        let mut without_cosine: Vec<_> = found.iter_mut().filter(lacks_cosine).collect();
        let (scored, near) = V::both(
            || view.score_meaning(self.vector, &mut without_cosine),
            || view.score_words(self.words, self.candidates, near, self.complete),
        );
        scored?;
        found.extend(near?);
        Ok(found)
    }
}

/// What the lexical half found.
pub(crate) struct LexicalHits<D> {
    pub found: Vec<Candidate<D>>,
    /// Whether every candidate that contains a term is among them.
    pub complete: bool,
}

/// A document on its way to become a hit.
pub(crate) struct Candidate<D> {
    pub document: D,
    /// Its BM25 score, with the proximity bonus; 0 when it contains no term.
    pub bm25: f32,
    /// The part of the score that is the proximity bonus.
    pub proximity: f32,
    /// The cosine of its nearest passage, if it has a vector.
    pub cosine: Option<f32>,
}

impl<D> Candidate<D> {
    /// A candidate that the lexical half found.
    pub(crate) fn with_words(document: D, bm25: f32) -> Self {
        Self {
            document,
            bm25,
            proximity: 0.0,
            cosine: None,
        }
    }

    /// A candidate that the vector half found.
    pub(crate) fn with_cosine(document: D, cosine: f32) -> Self {
        Self {
            cosine: Some(cosine),
            ..Self::with_words(document, 0.0)
        }
    }

    /// Adds a bonus for adjacent query terms.
    pub(crate) fn add_proximity(&mut self, bonus: f32) {
        self.bm25 += bonus;
        self.proximity += bonus;
    }
}
