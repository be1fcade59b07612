//! Tests of store and search as a whole, against a brute-force oracle that keeps all documents in memory.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic in a test fixture fails the test"
)]

mod bounds;
mod crash;
mod model;

use proptest::prelude::*;

use super::test_support::{
    BruteForceOracle, TestRng, all_of, document, near, open, search_hits, unit,
};
use super::vector_search::SearchEffort;
use super::{EmbeddedDocument, EmbeddedPassage, OrdinalSet, VectorSearchOptions, VectorView};

const ALL: VectorSearchOptions<'_> = VectorSearchOptions {
    documents: 1_000,
    allowed: None,
    threads: 1,
};

/// Forces the two-stage search with several threads however few rows there are, and a candidate pool for all of them.
const PICKED: SearchEffort = SearchEffort {
    exact_rows: 0,
    scored_a_thread: 1,
    picked_a_thread: 1,
    candidates: 100_000,
};

#[derive(Clone, Debug)]
enum StoreStep {
    /// Appends a number of documents with up to a number of passages each.
    Append(usize, usize),
    Remove(usize),
    Maintain,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<StoreStep>> {
    let step = prop_oneof![
        6 => (1..30_usize, 0..9_usize).prop_map(|(count, most)| StoreStep::Append(count, most)),
        2 => (1..40_usize).prop_map(StoreStep::Remove),
        2 => Just(StoreStep::Maintain),
        1 => Just(StoreStep::Reopen),
    ];
    prop::collection::vec(step, 1..24)
}

fn allowed(random: &mut TestRng, one_in: usize) -> OrdinalSet {
    let mut allowed = OrdinalSet::new(300);
    for ordinal in 0..300 {
        if random.below(one_in) == 0 {
            allowed.insert(ordinal);
        }
    }
    allowed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// After any sequence of appends, removals, merges and reopenings, every search, with and without a filter, agrees
    /// with the brute-force oracle.
    #[test]
    fn searches_find_what_looking_at_everything_finds(
        steps in steps(), seed in any::<u64>(), dims in prop::sample::select(vec![1_usize, 5, 64, 100]),
    ) {
        let random = &mut TestRng::new(seed);
        let root = tempfile::tempdir().unwrap();
        let (mut store, mut oracle) = (open(root.path(), dims), BruteForceOracle::default());
        for step in steps {
            match step {
                StoreStep::Append(count, most) => {
                    let documents: Vec<_> = (0..count).map(|_| {
                        let key = random.below(300) as u128;
                        let passages = random.below(most + 1);
                        document(random, dims, key, passages)
                    }).collect();
                    store.append(&documents).unwrap();
                    oracle.put(&documents);
                }
                StoreStep::Remove(count) => for _ in 0..count {
                    oracle.documents.remove(&(random.below(300) as u128));
                },
                StoreStep::Maintain => { store.maintain(&oracle.live()).unwrap(); }
                StoreStep::Reopen => {
                    drop(store);
                    store = open(root.path(), dims);
                }
            }
        }
        let view = VectorView::new(&store, &oracle.live());
        prop_assert!(view.missing().is_empty());
        let question = unit(random, dims);
        let (some, few) = (allowed(random, 4), allowed(random, 40));
        for (documents, allowed) in [(1, None), (7, None), (1_000, None), (5, Some(&some)), (900, Some(&some)), (5, Some(&few))] {
            let expected = oracle.search(&question, documents, allowed);
            for threads in [1, 3] {
                let wanted = VectorSearchOptions { documents, allowed, threads };
                let exact = SearchEffort { exact_rows: usize::MAX, ..PICKED };
                for effort in [None, Some(exact), Some(PICKED)] {
                    prop_assert_eq!(&search_hits(&view, &question, &wanted, effort), &expected);
                }
            }
        }
        let query = view.question(&question).unwrap();
        let expected = oracle.search(&question, 1_000, None);
        for ordinal in (0..310).chain([u32::MAX]) {
            let known = expected.iter().find(|found| found.ordinal == ordinal);
            prop_assert_eq!(view.score(&query, ordinal), known.map(|found| found.score));
        }
    }
}

#[test]
fn scores_are_those_of_the_vectors_themselves() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(6));
    let mut store = open(root.path(), 384);
    let documents: Vec<_> = (0..50).map(|key| document(random, 384, key, 1)).collect();
    store.append(&documents).unwrap();
    let view = VectorView::new(&store, &all_of(0..50));
    let question = unit(random, 384);
    let found = search_hits(&view, &question, &ALL, None);
    assert_eq!(found.len(), 50);
    for one in found {
        let vector = &documents[one.ordinal as usize].passages[0].vector;
        let exact: f32 = vector.iter().zip(&question).map(|(a, b)| a * b).sum();
        assert!((one.score - exact).abs() < 0.005, "{} {exact}", one.score);
    }
}

/// Clusters of documents, and a query vector near the centre of each.
fn clusters(random: &mut TestRng, dims: usize) -> (Vec<EmbeddedDocument>, Vec<Vec<f32>>) {
    let centres: Vec<_> = (0..40).map(|_| unit(random, dims)).collect();
    let documents = (0..4_000).map(|key| {
        let centre = &centres[random.below(centres.len())];
        let vector = near(random, centre, 0.8);
        let passage = EmbeddedPassage {
            start: 0,
            end: 1,
            vector,
        };
        EmbeddedDocument {
            key,
            passages: vec![passage],
        }
    });
    let documents = documents.collect();
    let questions = centres.iter().map(|centre| near(random, centre, 0.5));
    (documents, questions.collect())
}

#[test]
fn few_candidates_hold_nearly_all_of_the_best() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(7));
    let (documents, questions) = clusters(random, 128);
    let mut store = open(root.path(), 128);
    for batch in documents.chunks(1_000) {
        store.append(batch).unwrap();
    }
    let view = VectorView::new(&store, &all_of(0..4_000));
    let half = allowed(random, 2);
    for allowed in [None, Some(&half)] {
        let wanted = VectorSearchOptions {
            documents: 10,
            allowed,
            threads: 2,
        };
        let effort = SearchEffort {
            candidates: 400,
            ..PICKED
        };
        let (mut right, mut all) = (0, 0);
        for question in &questions {
            let question = view.question(question).unwrap();
            let exact = view.search_exact(&question, &wanted).unwrap();
            let found = view.search_with(&question, &wanted, effort).unwrap();
            all += exact.len();
            right += found.iter().filter(|one| exact.contains(one)).count();
        }
        assert!(all >= 300, "{all}");
        assert!(right * 100 >= all * 97, "{right} of {all}");
    }
}

/// A document whose thousand passages are nearer than those of any other is one hit and does not fill the candidate
/// pool.
#[test]
fn a_long_document_does_not_hide_the_others() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(8));
    let question = unit(random, 64);
    let mut long = document(random, 64, 0, 1_000);
    for passage in &mut long.passages {
        passage.vector = near(random, &question, 0.1);
    }
    let others = (1..200).map(|key| document(random, 64, key, 2));
    let documents: Vec<_> = std::iter::once(long).chain(others).collect();
    let mut store = open(root.path(), 64);
    store.append(&documents).unwrap();
    let mut oracle = BruteForceOracle::default();
    oracle.put(&documents);
    let view = VectorView::new(&store, &oracle.live());
    let wanted = VectorSearchOptions {
        documents: 10,
        ..ALL
    };
    let few = SearchEffort {
        candidates: 1,
        ..PICKED
    };
    let found = search_hits(&view, &question, &wanted, Some(few));
    assert_eq!(found.len(), 10);
    assert_eq!(found[0], oracle.search(&question, 1, None)[0]);
}

#[test]
fn a_view_stays_as_it_was_whatever_the_store_does() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(9));
    let mut store = open(root.path(), 64);
    let documents: Vec<_> = (0..40).map(|key| document(random, 64, key, 2)).collect();
    for batch in documents.chunks(4) {
        store.append(batch).unwrap();
    }
    let question = unit(random, 64);
    let view = VectorView::new(&store, &all_of(0..40));
    let before = search_hits(&view, &question, &ALL, None);
    assert_eq!((before.len(), view.rows()), (40, 80));
    let done = store.maintain(&all_of(0..10)).unwrap();
    assert_eq!(done.dropped, 60);
    assert_eq!(search_hits(&view, &question, &ALL, None), before);
    assert_eq!((store.rows(), store.segment_count()), (20, 3));
    store.maintain(&all_of([])).unwrap();
    assert_eq!((store.rows(), store.segment_count()), (0, 0));
    drop(store);
    assert_eq!(search_hits(&view, &question, &ALL, None), before);
}

#[test]
fn a_view_says_which_documents_have_no_vectors_yet() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(10));
    let mut store = open(root.path(), 8);
    let live = all_of(0..6);
    assert_eq!(VectorView::new(&store, &live).missing(), [0, 1, 2, 3, 4, 5]);
    // A document without text counts as embedded.
    let documents = [document(random, 8, 1, 3), document(random, 8, 4, 0)];
    store.append(&documents).unwrap();
    let view = VectorView::new(&store, &live);
    assert_eq!(view.missing(), [0, 2, 3, 5]);
    assert!(store.contains(4) && !store.contains(5));
    assert_eq!(search_hits(&view, &unit(random, 8), &ALL, None).len(), 1);
}

#[test]
fn an_empty_store_finds_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut store = open(root.path(), 8);
    store.append(&[]).unwrap();
    assert_eq!(store.segment_count(), 0);
    let view = VectorView::new(&store, &all_of(0..3));
    let question = unit(&mut TestRng::new(1), 8);
    assert_eq!(search_hits(&view, &question, &ALL, None), []);
    assert_eq!(search_hits(&view, &question, &ALL, Some(PICKED)), []);
}

#[test]
fn batches_without_end_leave_few_segments() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(11));
    let mut store = open(root.path(), 8);
    let mut oracle = BruteForceOracle::default();
    for at in 0..100 {
        // Each batch replaces a document of the one before.
        let batch = [document(random, 8, at, 1), document(random, 8, at + 1, 2)];
        store.append(&batch).unwrap();
        oracle.put(&batch);
        assert!(store.segment_count() < 32, "{}", store.segment_count());
    }
    let view = VectorView::new(&store, &oracle.live());
    let question = unit(random, 8);
    let expected = oracle.search(&question, 1_000, None);
    assert_eq!(search_hits(&view, &question, &ALL, None), expected);
}
