//! Tests of one folder for each model, and of the switch from one model to another.

use std::fs;

use super::super::test_support::{
    TestRng, all_of, document, folder, model, open, search_hits, unit,
};
use super::super::{VectorModel, VectorStore, VectorView};
use super::ALL;
use crate::error::SearchError;

#[test]
fn a_new_model_grows_beside_the_old_one_until_it_takes_its_place() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(30));
    let mut old = open(root.path(), 8);
    old.append(&[document(random, 8, 1, 2)]).unwrap();
    let other = VectorModel::new("another model", 16).unwrap();
    let mut new = VectorStore::open(root.path(), other.clone()).unwrap();
    assert_eq!(VectorView::new(&new, &all_of([1])).missing(), [1]);
    new.append(&[document(random, 16, 1, 3)]).unwrap();

    // Both are searched, each with query vectors of its own model.
    let found = search_hits(
        &VectorView::new(&old, &all_of([1])),
        &unit(random, 8),
        &ALL,
        None,
    );
    assert_eq!(found.len(), 1);
    let found = search_hits(
        &VectorView::new(&new, &all_of([1])),
        &unit(random, 16),
        &ALL,
        None,
    );
    assert_eq!(found.len(), 1);

    // A store that is locked by a writer is not deleted.
    fs::create_dir(root.path().join("not ours")).unwrap();
    assert_eq!(new.remove_other_models(), 0);
    drop(old);
    assert_eq!(new.remove_other_models(), 1);
    assert_eq!(new.remove_other_models(), 0);
    assert!(root.path().join("not ours").is_dir());
    let gone = VectorStore::open_read_only(root.path(), model(8));
    assert!(matches!(gone, Err(SearchError::Missing { .. })));
    drop(new);
    assert_eq!(VectorStore::open(root.path(), other).unwrap().rows(), 3);
}

#[test]
fn the_same_name_with_other_dimensions_is_refused() {
    let root = tempfile::tempdir().unwrap();
    drop(open(root.path(), 8));
    let opened = VectorStore::open(root.path(), model(9));
    assert!(matches!(opened, Err(SearchError::Corrupt { .. })));
    assert_eq!(
        VectorStore::recreate(root.path(), model(9)).unwrap().rows(),
        0
    );
}

#[test]
fn a_model_that_is_being_written_is_not_thrown_away() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path(), 8);
    let anew = VectorStore::recreate(root.path(), model(8));
    assert!(matches!(anew, Err(SearchError::Locked { .. })));
    assert!(folder(root.path()).join("manifest.json").is_file());
    drop(store);
}
