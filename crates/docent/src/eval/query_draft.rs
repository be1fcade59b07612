//! Synthetic test queries: samples documents from the whole corpus and drafts a query for each, in words that a
//! person might use who remembers the document.

mod draft_kind;
mod term_frequencies;

use std::collections::HashSet;
use std::sync::Arc;

use docent_search::{DocId, Document, Engine, ReaderIdentity, SearchError};
use serde_json::{Value, json};

use super::splitmix::SplitMix64;
use draft_kind::{DraftKind, DraftSource};
use term_frequencies::SampleFrequencies;

/// The most queries of one draft.
pub(crate) const MAX_MADE: usize = 10_000;

/// How many documents are sampled for the document frequencies of words.
const SAMPLE: usize = 1_000;

/// How many documents are tried for each requested query before the draft ends with fewer.
const TRIES: usize = 20;

/// A drafted query with the document it was drafted from, which is its only judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueryDraft {
    query: String,
    document: DocId,
    kind: DraftKind,
}

impl QueryDraft {
    /// The draft as one line of a judged query file.
    pub(crate) fn json(&self) -> Value {
        json!({
            "query": self.query,
            "relevant": [self.document.as_str()],
            "kind": self.kind.name(),
        })
    }
}

/// Progress callback: drafted queries so far, and the requested number.
pub(crate) type DraftProgress<'a> = &'a mut dyn FnMut(usize, usize);

/// Drafts up to `count` queries. The result is deterministic for a seed and an index.
pub(crate) async fn make(
    engine: &dyn Engine,
    count: usize,
    seed: u64,
    progress: DraftProgress<'_>,
) -> Result<Vec<QueryDraft>, SearchError> {
    let held = engine.inventory().await?;
    let ids: Vec<DocId> = held.into_iter().map(|held| held.id).collect();
    let frequencies = frequencies(engine, &ids).await?;
    let mut drafter = QueryDrafter {
        rng: SplitMix64::new(seed),
        frequencies,
        queries: HashSet::new(),
        used: HashSet::new(),
        drafts: Vec::new(),
    };
    let mut waiting = sampling_order(&ids, count, &mut drafter.rng);
    // Every document gets one query before any document gets a second one of another kind.
    for round in 0..DraftKind::ALL.len() {
        let mut usable = Vec::new();
        for (place, id) in waiting.into_iter().enumerate() {
            if drafter.drafts.len() >= count || place >= count.saturating_mul(TRIES) {
                break;
            }
            let Some(document) = engine.fetch(id.clone(), ReaderIdentity::owner()).await? else {
                continue;
            };
            if drafter.draft(&document, place + round) {
                progress(drafter.drafts.len(), count);
                usable.push(id);
            }
        }
        waiting = usable;
    }
    Ok(drafter.drafts)
}

/// The state of a draft. `queries` prevents duplicate queries, and `used` a second query of the same kind for a
/// document.
struct QueryDrafter {
    rng: SplitMix64,
    frequencies: SampleFrequencies,
    queries: HashSet<String>,
    used: HashSet<(DocId, &'static str)>,
    drafts: Vec<QueryDraft>,
}

impl QueryDrafter {
    /// Drafts one query for a document; false when no kind fits it. The kinds alternate, and a kind that does not fit
    /// is replaced by the next one.
    fn draft(&mut self, document: &Arc<Document>, turn: usize) -> bool {
        let Some(parts) = DraftSource::new(&document.title, &document.text, &self.frequencies)
        else {
            return false;
        };
        let kinds = DraftKind::ALL
            .iter()
            .cycle()
            .skip(turn % DraftKind::ALL.len());
        for kind in kinds.take(DraftKind::ALL.len()) {
            if self.used.contains(&(document.id.clone(), kind.name())) {
                continue;
            }
            let query = parts.query(*kind, &mut self.rng);
            if let Some(query) = query.filter(|query| self.queries.insert(query.clone())) {
                self.used.insert((document.id.clone(), kind.name()));
                self.drafts.push(QueryDraft {
                    query,
                    document: document.id.clone(),
                    kind: *kind,
                });
                return true;
            }
        }
        false
    }
}

async fn frequencies(engine: &dyn Engine, ids: &[DocId]) -> Result<SampleFrequencies, SearchError> {
    let mut frequencies = SampleFrequencies::default();
    let step = ids.len().div_ceil(SAMPLE).max(1);
    for id in ids.iter().step_by(step) {
        if let Some(document) = engine.fetch(id.clone(), ReaderIdentity::owner()).await? {
            frequencies.add(&document.title, &document.text);
        }
    }
    Ok(frequencies)
}

/// Stratified sampling order: the inventory is divided into as many strata as queries are requested. One random id of
/// each stratum comes first, then all others in random order.
fn sampling_order(ids: &[DocId], count: usize, rng: &mut SplitMix64) -> Vec<DocId> {
    let stratum_size = ids.len().div_ceil(count.max(1)).max(1);
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for ids in ids.chunks(stratum_size) {
        let chosen = rng.below(ids.len());
        for (place, id) in ids.iter().enumerate() {
            let target = if place == chosen {
                &mut first
            } else {
                &mut rest
            };
            target.push(id.clone());
        }
    }
    rng.shuffle(&mut rest);
    first.extend(rest);
    first
}

#[cfg(test)]
mod tests {
    use docent_search::{DocumentChange, MemoryEngine};

    use super::*;

    fn engine(count: usize) -> MemoryEngine {
        let engine = MemoryEngine::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let letters = |n: usize| {
            let letter = |digit: char| char::from(b'a' + digit as u8 - b'0');
            format!("{n:03}").chars().map(letter).collect::<String>()
        };
        let document = |n: usize| {
            let name = letters(n);
            let words = [
                "quay", "levee", "barge", "slate", "ferry", "copper", "barley", "herring", "juror",
            ];
            let text: Vec<_> = words
                .iter()
                .map(|word| format!("the {word}{name} of the {name}{word}"))
                .collect();
            DocumentChange::Put(Document {
                id: DocId::parse(&format!("d{n:03}")).unwrap(),
                title: format!("The matter of {name}"),
                text: text.join(" and to "),
                url: None,
                date: None,
                fields: Vec::new(),
                source: String::new(),
                hash: String::new(),
                readers: docent_search::AllowedReaders::Everyone,
            })
        };
        runtime
            .block_on(engine.apply((0..count).map(document).collect()))
            .unwrap();
        engine
    }

    fn made(engine: &MemoryEngine, count: usize, seed: u64) -> Vec<QueryDraft> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(make(engine, count, seed, &mut |_, _| {}))
            .unwrap()
    }

    #[test]
    fn drafts_are_spread_and_the_same_for_the_same_seed() {
        let engine = engine(40);
        let drafts = made(&engine, 10, 7);
        assert_eq!(drafts, made(&engine, 10, 7));
        assert_ne!(drafts, made(&engine, 10, 8));
        let strata: HashSet<_> = drafts
            .iter()
            .map(|draft| draft.document.as_str()[1..].parse::<usize>().unwrap() / 4)
            .collect();
        assert_eq!(strata.len(), 10);
        let kinds: HashSet<_> = drafts.iter().map(|draft| draft.kind.name()).collect();
        assert_eq!(kinds.len(), 3);
        let line = drafts[0].json();
        assert_eq!(line["relevant"][0], drafts[0].document.as_str());
        assert_eq!(line["kind"], "keywords");
    }

    #[test]
    fn more_queries_than_documents_ask_again_in_other_ways() {
        let engine = engine(4);
        let drafts = made(&engine, 100, 1);
        assert_eq!(drafts.len(), 12);
        let different: HashSet<_> = drafts
            .iter()
            .map(|d| (d.document.as_str(), d.kind.name()))
            .collect();
        assert_eq!(different.len(), 12);
        assert!(made(&MemoryEngine::new(), 5, 1).is_empty());
    }

    #[test]
    fn every_document_is_picked_once_and_far_apart_first() {
        let ids: Vec<_> = (0..10)
            .map(|n| DocId::parse(&n.to_string()).unwrap())
            .collect();
        let order = sampling_order(&ids, 5, &mut SplitMix64::new(3));
        let first: Vec<usize> = order
            .iter()
            .take(5)
            .map(|id| id.as_str().parse::<usize>().unwrap() / 2)
            .collect();
        assert_eq!(first, [0, 1, 2, 3, 4]);
        let all: HashSet<_> = order.iter().collect();
        assert_eq!((order.len(), all.len()), (10, 10));
    }
}
