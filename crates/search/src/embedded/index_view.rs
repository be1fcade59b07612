//! The primitives of the search pipeline, on an index on disk.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use tantivy::DocAddress;

use super::EmbeddedInner;
use super::candidate_set::{self, SegmentedDocSet};
use super::document_frequencies::SharedDocFrequencies;
use super::id_order::DEEP_PAGING;
use super::lexical::LexicalSearch;
use super::listing;
use super::semantic_index::SemanticQuery;
use super::snapshot::IndexSnapshot;
use super::term_dictionary::TermDictionary;
use super::visibility_cache::ReaderVisibility;
use crate::analysis::{Language, LanguageId, QueryTerm};
use crate::embedder::ModelLanguages;
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::hit::{FacetCounts, SearchResults};
use crate::pipeline::{self, Candidate, IndexView, LexicalHits, WordQuery};
use crate::query::{self, AnalyzedQuery, Query, RankingMethod, SortOrder};
use crate::snippet::DisplayDocument;
use crate::spelling;
use crate::vectors::{MAX_DOCUMENTS, OrdinalSet, VectorSearchOptions};

/// How many threads scan vectors for one answer.
const THREADS: usize = 2;

/// One generation of the index, as one reader sees it.
pub(super) struct EmbeddedView<'s> {
    pub inner: &'s EmbeddedInner,
    pub snapshot: &'s IndexSnapshot,
    pub visibility: &'s ReaderVisibility,
}

/// The address of a document. Its id, and the id's rank in the segment, are read only when ties have to be
/// broken: the rank within one segment, the id between two.
pub(super) struct DocHandle {
    pub at: DocAddress,
    rank: OnceCell<u64>,
    id: OnceCell<String>,
}

impl DocHandle {
    pub(super) const fn new(at: DocAddress) -> Self {
        Self {
            at,
            rank: OnceCell::new(),
            id: OnceCell::new(),
        }
    }

    /// The order of two documents with the same score.
    pub(super) fn by_id(&self, other: &Self, snapshot: &IndexSnapshot) -> Ordering {
        if self.at.segment_ord == other.at.segment_ord {
            return self.rank(snapshot).cmp(&other.rank(snapshot));
        }
        let global = |one: &Self| snapshot.global_id_rank(one.at, one.rank(snapshot));
        match (global(self), global(other)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => self.id(snapshot).cmp(other.id(snapshot)),
        }
    }

    fn rank(&self, snapshot: &IndexSnapshot) -> u64 {
        *self.rank.get_or_init(|| snapshot.id_rank(self.at))
    }

    fn id(&self, snapshot: &IndexSnapshot) -> &str {
        self.id.get_or_init(|| snapshot.id(self.at))
    }
}

impl EmbeddedInner {
    /// Whether the answer takes little time: the query is not an expensive one, and it needs no embedding model,
    /// or a query embedding that is cached.
    pub(super) fn is_cheap(&self, query: &Query) -> bool {
        if query.is_expensive() {
            return false;
        }
        let snapshot = self.snapshot();
        let (Some(semantic), Some(views)) = (&self.semantic, &snapshot.vectors) else {
            return true;
        };
        query.method == RankingMethod::Lexical
            || query::query_language(query, semantic.languages(views)) == LanguageId::Foreign
            || semantic.is_query_cached(&query.text, views)
    }

    pub(super) fn search(&self, query: &Query) -> Result<SearchResults, SearchError> {
        let snapshot = self.snapshot();
        if query.depth() > DEEP_PAGING {
            snapshot.order_ids();
        }
        self.with_view(&snapshot, query, |view| pipeline::search(view, query))
    }

    /// Runs `work` with what the reader of a query sees of a snapshot.
    pub(super) fn with_view<T>(
        &self,
        snapshot: &IndexSnapshot,
        query: &Query,
        work: impl FnOnce(&EmbeddedView<'_>) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        let visibility = snapshot.visibility(query.reader());
        let visibility = visibility.map_err(|source| self.index_error(source))?;
        work(&EmbeddedView {
            inner: self,
            snapshot,
            visibility: &visibility,
        })
    }
}

impl<'s> EmbeddedView<'s> {
    fn result<T>(&self, result: tantivy::Result<T>) -> Result<T, SearchError> {
        result.map_err(|source| self.inner.index_error(source))
    }

    fn lexical<'a>(
        &'a self,
        words: &'a WordQuery<'a, SharedDocFrequencies<'s>>,
        candidates: &'a Option<Arc<SegmentedDocSet>>,
    ) -> LexicalSearch<'a> {
        LexicalSearch {
            snapshot: self.snapshot,
            fields: &self.inner.fields,
            words,
            allowed: candidates.as_deref(),
            visibility: self.visibility,
        }
    }
}

impl<'s> IndexView for EmbeddedView<'s> {
    type Document = DocHandle;
    /// `None` when all documents are allowed.
    type CandidateSet = Option<Arc<SegmentedDocSet>>;
    type MatchSet = SegmentedDocSet;
    type TermWeights = SharedDocFrequencies<'s>;
    type QueryVector = SemanticQuery<'s>;
    type Display = Arc<DisplayDocument>;

    const MAX_PROXIMITY_CANDIDATES: usize = usize::MAX;

    fn languages(&self) -> Result<Cow<'_, [Language]>, SearchError> {
        Ok(Cow::Borrowed(&self.visibility.languages))
    }

    fn correct_spelling(&self, terms: &mut Vec<QueryTerm>) -> Result<(), SearchError> {
        let dictionary = TermDictionary {
            snapshot: self.snapshot,
            fields: &self.inner.fields,
            visible: self.visibility.documents().map(Arc::as_ref),
        };
        self.result(spelling::correct(terms, &dictionary))
    }

    fn restrict(
        &self,
        query: &Query,
        analyzed: &AnalyzedQuery,
    ) -> Result<Self::CandidateSet, SearchError> {
        self.result(candidate_set::allowed_documents(
            self.snapshot,
            self.visibility,
            &self.inner.fields,
            query,
            analyzed,
        ))
    }

    fn matches(
        &self,
        candidates: &Self::CandidateSet,
        forms: &[&str],
    ) -> Result<SegmentedDocSet, SearchError> {
        let fields = &self.inner.fields;
        let allowed = candidates.as_deref();
        self.result(candidate_set::matching(
            self.snapshot,
            fields,
            forms,
            allowed,
        ))
    }

    fn model_languages(&self) -> Option<ModelLanguages> {
        let semantic = self.inner.semantic.as_ref()?;
        Some(semantic.languages(self.snapshot.vectors.as_ref()?))
    }

    fn embed(&self, text: &str) -> Option<(SemanticQuery<'s>, CosineScale)> {
        let semantic = self.inner.semantic.as_ref()?;
        match semantic.embed_query(text, self.snapshot.vectors.as_ref()?) {
            Ok((query, scale)) => Some((query, scale)).filter(|(query, _)| query.view.rows() > 0),
            // Words alone give a worse answer than both, and a better one than none.
            Err(error) => {
                tracing::warn!(%error, "could not embed the query, searching by words alone");
                None
            }
        }
    }

    fn weigh(&self, terms: &[&QueryTerm]) -> Result<SharedDocFrequencies<'s>, SearchError> {
        self.result(SharedDocFrequencies::of(
            self.snapshot,
            &self.inner.fields,
            terms,
        ))
    }

    fn best_by_words(
        &self,
        words: &WordQuery<'_, SharedDocFrequencies<'s>>,
        candidates: &Self::CandidateSet,
        most: usize,
    ) -> Result<LexicalHits<DocHandle>, SearchError> {
        self.result(self.lexical(words, candidates).top_hits(most))
    }

    fn nearest(
        &self,
        query: &SemanticQuery<'s>,
        candidates: &Self::CandidateSet,
        most: usize,
    ) -> Result<Vec<Candidate<DocHandle>>, SearchError> {
        let near = |allowed: Option<&OrdinalSet>| {
            let options = VectorSearchOptions {
                documents: most.min(MAX_DOCUMENTS),
                allowed,
                threads: THREADS,
            };
            query.view.search(&query.question, &options)
        };
        let allowed = candidates.as_deref();
        let near = self
            .visibility
            .with_ordinals(self.snapshot, allowed, near)?;
        let near = near.into_iter().filter_map(|one| {
            let document = DocHandle::new(self.snapshot.address(one.ordinal)?);
            Some(Candidate::with_cosine(document, one.score))
        });
        Ok(near.collect())
    }

    fn score_words(
        &self,
        words: &WordQuery<'_, SharedDocFrequencies<'s>>,
        candidates: &Self::CandidateSet,
        mut found: Vec<Candidate<DocHandle>>,
        complete: bool,
    ) -> Result<Vec<Candidate<DocHandle>>, SearchError> {
        if !complete {
            self.result(self.lexical(words, candidates).score(&mut found))?;
        }
        Ok(found)
    }

    fn score_meaning(
        &self,
        query: &SemanticQuery<'s>,
        found: &mut [&mut Candidate<DocHandle>],
    ) -> Result<(), SearchError> {
        for one in found {
            let ordinal = self.snapshot.ordinal(one.document.at);
            one.cosine = query.view.score(&query.question, ordinal);
        }
        Ok(())
    }

    fn score_proximity(
        &self,
        words: &WordQuery<'_, SharedDocFrequencies<'s>>,
        found: &mut [&mut Candidate<DocHandle>],
    ) -> Result<(), SearchError> {
        self.result(self.lexical(words, &None).add_proximity(found))
    }

    fn is_embedded(&self, query: &SemanticQuery<'s>, document: &DocHandle) -> bool {
        query.view.is_embedded(self.snapshot.ordinal(document.at))
    }

    fn by_day(
        &self,
        matches: &SegmentedDocSet,
        sort: SortOrder,
        most: usize,
    ) -> Result<Vec<DocHandle>, SearchError> {
        Ok(listing::by_day(self.snapshot, matches, sort, most))
    }

    fn count(&self, matches: &SegmentedDocSet) -> Result<u64, SearchError> {
        Ok(matches.count())
    }

    fn facets(
        &self,
        matches: &SegmentedDocSet,
        fields: &[String],
    ) -> Result<Vec<FacetCounts>, SearchError> {
        let found = listing::facets(self.snapshot, &self.inner.fields, matches, fields);
        self.result(found)
    }

    fn read(
        &self,
        documents: &[&DocHandle],
    ) -> Result<Vec<Option<Arc<DisplayDocument>>>, SearchError> {
        let read = |one: &&DocHandle| Ok(Some(self.inner.displayable(self.snapshot, one.at)?));
        documents.iter().map(read).collect()
    }

    fn passages(&self, query: &SemanticQuery<'s>, document: &DocHandle) -> Vec<Range<usize>> {
        let ordinal = self.snapshot.ordinal(document.at);
        let near = query.view.passages(&query.question, ordinal).into_iter();
        near.map(|one| one.start as usize..one.end as usize)
            .collect()
    }

    fn by_handle(left: &DocHandle, right: &DocHandle) -> Ordering {
        left.at.cmp(&right.at)
    }

    fn by_id(&self, left: &DocHandle, right: &DocHandle) -> Ordering {
        left.by_id(right, self.snapshot)
    }
}
