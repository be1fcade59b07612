//! Runs judged queries against the index one after the other, and scores and times each ranking.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use docent_search::{DocId, MAX_LIMIT, Query, ReaderIdentity, SearchError, SearchHit, grammar};

use super::judged_queries::JudgedQuery;
use super::metrics;
use crate::knowledge_base::KnowledgeBase;

/// The cutoff of most metrics: the number of results that a host shows a model.
pub(crate) const TOP: usize = 10;

/// The cutoff of deep recall, for relevant documents below the top.
pub(crate) const DEEP: usize = if MAX_LIMIT < 100 { MAX_LIMIT } else { 100 };

/// How many relevant documents with their ranks are kept for each query.
const MAX_EXPECTED: usize = 20;

/// The result of one query: its ranking, its metrics and its latency.
#[derive(Clone, Debug)]
pub(crate) struct QueryOutcome {
    /// The query with its judgements.
    pub(crate) judged: JudgedQuery,
    /// The top results, best first.
    pub(crate) found: Vec<DocId>,
    /// The most relevant documents with their ranks.
    pub(crate) expected: Vec<ExpectedDocument>,
    /// The rank of the first relevant document, down to [`DEEP`].
    pub(crate) first: Option<usize>,
    /// Normalized discounted cumulative gain at [`TOP`].
    pub(crate) ndcg: f64,
    /// Recall among the first [`TOP`] results.
    pub(crate) recall: f64,
    /// Recall among the first [`DEEP`] results.
    pub(crate) deep_recall: f64,
    /// Reciprocal rank of the first relevant document in the top.
    pub(crate) reciprocal_rank: f64,
    /// The fraction of the top without near-duplicates; `None` without results.
    pub(crate) diversity: Option<f64>,
    /// The latency of the search for the top.
    pub(crate) time: Duration,
}

/// A relevant document with its rank in the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedDocument {
    pub(crate) id: String,
    pub(crate) grade: u32,
    /// The rank within the first [`DEEP`] results, if it is there.
    pub(crate) rank: Option<usize>,
}

/// The clock and the progress display of a run; tests pass a fake clock.
pub(crate) trait EvalObserver {
    /// Monotonic time since an arbitrary start.
    fn now(&self) -> Duration;

    /// Reports that `done` of `total` queries have run.
    fn at(&mut self, done: usize, total: usize);
}

/// Runs every query twice: for the top, which is timed, and down to the deep cutoff.
pub(crate) async fn run_queries(
    knowledge: &KnowledgeBase,
    queries: Vec<JudgedQuery>,
    observer: &mut dyn EvalObserver,
) -> Result<Vec<QueryOutcome>, SearchError> {
    // A warm-up search opens files and fills caches, so that the first latency is comparable.
    if let Some(first) = queries.first() {
        search_hits(knowledge, &first.query, TOP).await?;
    }
    let total = queries.len();
    let mut outcomes = Vec::with_capacity(total);
    for (done, judged) in queries.into_iter().enumerate() {
        observer.at(done, total);
        let start = observer.now();
        let top = search_hits(knowledge, &judged.query, TOP).await?;
        let time = observer.now().saturating_sub(start);
        let deep = search_hits(knowledge, &judged.query, DEEP).await?;
        outcomes.push(outcome(judged, &top, &deep, time));
    }
    observer.at(total, total);
    Ok(outcomes)
}

/// Searches as the `search` tool does, with the same grammar, method and diversity.
pub(crate) async fn search_hits(
    knowledge: &KnowledgeBase,
    text: &str,
    limit: usize,
) -> Result<Vec<SearchHit>, SearchError> {
    let (catalog, _) = knowledge.fields(&ReaderIdentity::owner()).await?;
    let parsed = grammar::parse(text, &catalog, (knowledge.today)());
    let query = Query::parsed(&parsed, limit, ReaderIdentity::owner())
        .method(knowledge.method)
        .diversity(knowledge.diversity);
    Ok(knowledge.engine.search(query).await?.hits)
}

fn outcome(
    judged: JudgedQuery,
    top: &[SearchHit],
    deep: &[SearchHit],
    time: Duration,
) -> QueryOutcome {
    let gain = |hit: &SearchHit| judged.relevant.get(hit.id.as_str()).copied().unwrap_or(0);
    let gains = |hits: &[SearchHit]| hits.iter().map(gain).collect::<Vec<u32>>();
    let (top_gains, deep_gains) = (gains(top), gains(deep));
    let grades: Vec<u32> = judged.relevant.values().copied().collect();
    QueryOutcome {
        found: top.iter().map(|hit| hit.id.clone()).collect(),
        expected: expected(&judged.relevant, deep),
        first: metrics::first_relevant(&top_gains).or_else(|| metrics::first_relevant(&deep_gains)),
        ndcg: metrics::ndcg(&top_gains, &grades, TOP),
        recall: metrics::recall(&top_gains, &grades, TOP),
        deep_recall: metrics::recall(&deep_gains, &grades, DEEP),
        reciprocal_rank: metrics::reciprocal_rank(&top_gains, TOP),
        diversity: metrics::diversity(&top.iter().map(words).collect::<Vec<_>>()),
        time,
        judged,
    }
}

/// The words of a result as a reader sees it: title and snippet.
fn words(hit: &SearchHit) -> HashSet<String> {
    let text = format!("{} {}", hit.title, hit.snippet);
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// The relevant documents by grade, then by rank, then by id.
fn expected(relevant: &BTreeMap<String, u32>, deep: &[SearchHit]) -> Vec<ExpectedDocument> {
    let ranks: BTreeMap<&str, usize> = deep.iter().map(|hit| hit.id.as_str()).zip(1..).collect();
    let mut all: Vec<_> = relevant
        .iter()
        .map(|(id, grade)| ExpectedDocument {
            id: id.clone(),
            grade: *grade,
            rank: ranks.get(id.as_str()).copied(),
        })
        .collect();
    all.sort_by_key(|one| (std::cmp::Reverse(one.grade), one.rank.unwrap_or(usize::MAX)));
    all.truncate(MAX_EXPECTED);
    all
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use docent_search::{Document, DocumentChange, Engine as _, MemoryEngine};

    use super::*;
    use crate::settings::Settings;

    /// A fake clock that advances by one millisecond with each reading.
    #[derive(Default)]
    struct TickingObserver {
        now: Cell<u64>,
        seen: Vec<(usize, usize)>,
    }

    impl EvalObserver for TickingObserver {
        fn now(&self) -> Duration {
            self.now.set(self.now.get() + 1);
            Duration::from_millis(self.now.get())
        }

        fn at(&mut self, done: usize, total: usize) {
            self.seen.push((done, total));
        }
    }

    fn judged(query: &str, relevant: &[(&str, u32)]) -> JudgedQuery {
        JudgedQuery {
            id: query.to_owned(),
            query: query.to_owned(),
            kind: None,
            relevant: relevant
                .iter()
                .map(|(id, grade)| ((*id).to_owned(), *grade))
                .collect(),
        }
    }

    fn document(id: &str, text: &str) -> DocumentChange {
        DocumentChange::Put(Document {
            id: DocId::parse(id).unwrap(),
            title: format!("Title of {id}"),
            text: text.to_owned(),
            url: None,
            date: None,
            fields: Vec::new(),
            source: format!("{id}.md"),
            hash: String::new(),
            readers: docent_search::AllowedReaders::Everyone,
        })
    }

    fn run(
        documents: Vec<DocumentChange>,
        queries: Vec<JudgedQuery>,
        observer: &mut TickingObserver,
    ) -> Vec<QueryOutcome> {
        let engine = MemoryEngine::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(async {
                engine.apply(documents).await?;
                let knowledge = KnowledgeBase::new(Arc::new(engine), &Settings::default(), "test");
                run_queries(&knowledge, queries, observer).await
            })
            .unwrap()
    }

    #[test]
    fn every_query_is_asked_timed_and_scored() {
        let documents = vec![
            document("a", "the ferry sails at nine from the quay"),
            document("b", "a levee holds back the river"),
        ];
        let queries = vec![
            judged("ferry", &[("a", 1), ("gone", 2)]),
            judged("levee river", &[("b", 1)]),
            judged("zeppelin", &[("a", 1)]),
        ];
        let mut observer = TickingObserver::default();
        let outcomes = run(documents, queries, &mut observer);
        assert_eq!(observer.seen, [(0, 3), (1, 3), (2, 3), (3, 3)]);
        let [ferry, levee, zeppelin] = outcomes.as_slice() else {
            panic!("{outcomes:?}");
        };
        // A judged document that is not in the index counts against the ranking: 1 / (2 + 0.6309298).
        assert!((ferry.ndcg - 0.380_093_76).abs() < 1e-6, "{}", ferry.ndcg);
        assert_eq!(
            (ferry.recall, ferry.reciprocal_rank, ferry.first),
            (0.5, 1.0, Some(1))
        );
        let ranks: Vec<_> = ferry
            .expected
            .iter()
            .map(|e| (e.id.as_str(), e.grade, e.rank))
            .collect();
        assert_eq!(ranks, [("gone", 2, None), ("a", 1, Some(1))]);
        assert_eq!(
            (levee.ndcg, levee.deep_recall, levee.diversity),
            (1.0, 1.0, Some(1.0))
        );
        assert_eq!(
            (zeppelin.ndcg, zeppelin.found.len(), zeppelin.diversity),
            (0.0, 0, None)
        );
        assert!(
            outcomes
                .iter()
                .all(|outcome| outcome.time == Duration::from_millis(1))
        );
    }

    #[test]
    fn the_list_of_expected_documents_is_limited() {
        let relevant = |count: usize| (0..count).map(|n| (n.to_string(), 1)).collect();
        assert_eq!(expected(&relevant(MAX_EXPECTED), &[]).len(), MAX_EXPECTED);
        assert_eq!(
            expected(&relevant(MAX_EXPECTED + 1), &[]).len(),
            MAX_EXPECTED
        );
    }
}
