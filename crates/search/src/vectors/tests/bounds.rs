//! Tests of the limits: each is accepted at its value and refused one above.

use super::super::quantization::QueryVector;
use super::super::test_support::{TestRng, all_of, document, model, open, search_hits, unit};
use super::super::{
    EmbeddedDocument, EmbeddedPassage, MAX_BATCH_DOCUMENTS, MAX_BATCH_ROWS, MAX_DIMENSIONS,
    MAX_DOCUMENTS, MAX_FINGERPRINT_BYTES, MAX_PASSAGES, VectorModel, VectorSearchOptions,
    VectorStore, VectorView,
};
use super::ALL;
use crate::error::SearchError;

fn too_large<T>(result: &Result<T, SearchError>) -> bool {
    matches!(result, Err(SearchError::TooLarge { .. }))
}

/// A document with `count` passages of one dimension each.
fn small(key: u128, count: usize) -> EmbeddedDocument {
    let passage = EmbeddedPassage {
        start: 0,
        end: 0,
        vector: vec![1.0],
    };
    EmbeddedDocument {
        key,
        passages: vec![passage; count],
    }
}

#[test]
fn a_batch_has_bounds() {
    let root = tempfile::tempdir().unwrap();
    let mut store = open(root.path(), 1);
    assert!(too_large(&store.append(&[small(1, MAX_PASSAGES + 1)])));
    let rows = [
        small(1, MAX_BATCH_ROWS / 2),
        small(2, MAX_BATCH_ROWS / 2 + 1),
    ];
    assert!(too_large(&store.append(&rows)));
    let documents: Vec<_> = (0..=MAX_BATCH_DOCUMENTS as u128)
        .map(|key| small(key, 0))
        .collect();
    assert!(too_large(&store.append(&documents)));
    assert_eq!((store.rows(), store.segment_count()), (0, 0));
    store.append(&documents[1..]).unwrap();
    store.append(&[small(1, MAX_PASSAGES)]).unwrap();
    assert_eq!((store.rows(), store.segment_count()), (MAX_PASSAGES, 2));
    drop(store);
    assert_eq!(open(root.path(), 1).rows(), MAX_PASSAGES);
}

#[test]
fn a_model_has_bounds() {
    let root = tempfile::tempdir().unwrap();
    assert!(too_large(&VectorModel::new("m", MAX_DIMENSIONS + 1)));
    assert!(VectorModel::new("m", 0).is_err());
    let longest = "m".repeat(MAX_FINGERPRINT_BYTES);
    assert!(too_large(&VectorModel::new(&format!("{longest}m"), 1)));
    let model = VectorModel::new(&longest, MAX_DIMENSIONS).unwrap();
    let mut store = VectorStore::open(root.path(), model).unwrap();
    let random = &mut TestRng::new(1);
    let documents: Vec<_> = (0..3)
        .map(|key| document(random, MAX_DIMENSIONS, key, 2))
        .collect();
    store.append(&documents).unwrap();
    let view = VectorView::new(&store, &all_of(0..3));
    let question = documents[2].passages[1].vector.clone();
    let found = search_hits(&view, &question, &ALL, None);
    assert_eq!((found[0].ordinal, found[0].passages[0].number), (2, 1));
    assert!((found[0].score - 1.0).abs() < 0.001, "{}", found[0].score);
}

#[test]
fn a_search_has_bounds() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 4);
    let view = VectorView::new(&store, &all_of(0..3));
    let question = view.question(&unit(&mut TestRng::new(1), 4)).unwrap();
    let wanted = |documents| VectorSearchOptions { documents, ..ALL };
    assert!(view.search(&question, &wanted(MAX_DOCUMENTS)).is_ok());
    assert!(too_large(
        &view.search(&question, &wanted(MAX_DOCUMENTS + 1))
    ));
    assert_eq!(view.search(&question, &wanted(0)).unwrap(), []);
    let other = QueryVector::new(vec![1.0; 5], 64);
    assert!(view.search(&other, &ALL).is_err());
}

#[test]
fn a_batch_with_an_invalid_vector_is_rejected_as_a_whole() {
    let root = tempfile::tempdir().unwrap();
    let mut store = open(root.path(), 4);
    let random = &mut TestRng::new(2);
    let good = document(random, 4, 1, 1);
    let bad = [
        vec![],
        vec![1.0, 0.0, 0.0],
        vec![1.0, 0.0, 0.0, 0.0, 0.0],
        vec![0.0; 4],
        vec![1.0; 4],
        vec![f32::NAN; 4],
        vec![f32::INFINITY, 0.0, 0.0, 0.0],
    ];
    for vector in bad {
        let passage = EmbeddedPassage {
            start: 0,
            end: 1,
            vector: vector.clone(),
        };
        let bad = EmbeddedDocument {
            key: 2,
            passages: vec![passage],
        };
        assert!(store.append(&[good.clone(), bad]).is_err(), "{vector:?}");
        let view = VectorView::new(&store, &all_of(0..3));
        assert!(view.question(&vector).is_err(), "{vector:?}");
    }
    let mut inverted = document(random, 4, 3, 1);
    inverted.passages[0].start = 11;
    assert!(store.append(&[inverted]).is_err());
    assert_eq!((store.rows(), store.segment_count()), (0, 0));
}

#[test]
fn only_one_writes_and_any_number_read() {
    let root = tempfile::tempdir().unwrap();
    let missing = VectorStore::open_read_only(root.path(), model(4));
    assert!(matches!(missing, Err(SearchError::Missing { .. })));
    let mut writer = open(root.path(), 4);
    let random = &mut TestRng::new(3);
    writer.append(&[document(random, 4, 1, 2)]).unwrap();
    let second = VectorStore::open(root.path(), model(4));
    assert!(matches!(second, Err(SearchError::Locked { .. })));
    let readers: Vec<_> = (0..2)
        .map(|_| VectorStore::open_read_only(root.path(), model(4)).unwrap())
        .collect();
    writer.append(&[document(random, 4, 2, 2)]).unwrap();
    writer.maintain(&all_of([2])).unwrap();
    for mut reader in readers {
        let view = VectorView::new(&reader, &all_of(1..3));
        let found = search_hits(&view, &unit(random, 4), &ALL, None);
        assert_eq!(found.len(), 1);
        let refused = reader.append(&[document(random, 4, 3, 1)]);
        assert!(matches!(refused, Err(SearchError::ReadOnly { .. })));
        let refused = reader.maintain(&all_of([]));
        assert!(matches!(refused, Err(SearchError::ReadOnly { .. })));
    }
    assert_eq!(
        VectorStore::open_read_only(root.path(), model(4))
            .unwrap()
            .rows(),
        2
    );
}
