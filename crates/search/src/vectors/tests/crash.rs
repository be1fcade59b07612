//! Tests of crash safety: interrupted writes, failing disks and flipped bits.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::test_support::{
    BruteForceOracle, TestRng, document, folder, model, open, search_hits, unit,
};
use super::super::{EmbeddedDocument, VectorStore, VectorView};
use super::ALL;
use crate::error::SearchError;

const DIMS: usize = 64;

type SavedFiles = Vec<(PathBuf, Vec<u8>)>;

/// All files of a folder except for the lock.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| !path.ends_with("lock")).collect();
    files.sort();
    files
}

/// Replaces the files of a folder by exactly these.
fn restore(dir: &Path, content: &[(PathBuf, Vec<u8>)]) {
    for path in files(dir) {
        fs::remove_file(path).unwrap();
    }
    for (path, bytes) in content {
        fs::write(path, bytes).unwrap();
    }
}

fn saved(dir: &Path) -> SavedFiles {
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    files(dir).into_iter().map(read).collect()
}

fn batch(random: &mut TestRng, keys: std::ops::Range<u128>) -> Vec<EmbeddedDocument> {
    keys.map(|key| document(random, DIMS, key, 2)).collect()
}

/// Asserts that the store opens, has the content of `oracle` and no orphaned files, and accepts further batches.
fn assert_recovers(root: &Path, oracle: &BruteForceOracle, state: &str) {
    let random = &mut TestRng::new(99);
    let question = unit(random, DIMS);
    let mut store = open(root, DIMS);
    let view = VectorView::new(&store, &oracle.live());
    let expected = oracle.search(&question, 1_000, None);
    assert_eq!(
        search_hits(&view, &question, &ALL, None),
        expected,
        "{state}"
    );
    assert_eq!(view.rows(), store.rows(), "{state}");
    assert_eq!(
        files(&folder(root)).len(),
        store.segment_count() + 1,
        "{state}"
    );
    let more = batch(random, 1_000..1_002);
    store.append(&more).unwrap();
    let mut oracle = oracle.clone();
    oracle.put(&more);
    let expected = oracle.search(&question, 1_000, None);
    drop(store);
    let view = VectorView::new(&open(root, DIMS), &oracle.live());
    assert_eq!(
        search_hits(&view, &question, &ALL, None),
        expected,
        "{state}"
    );
}

/// All states of the disk that a crash can leave between `before` and `after`: the new segment partially written, then
/// the temporary manifest partially written, then the manifest replaced, then old segments removed one by one. The flag
/// tells whether the change is committed.
fn states(before: &[(PathBuf, Vec<u8>)], after: &[(PathBuf, Vec<u8>)]) -> Vec<(bool, SavedFiles)> {
    let is_manifest = |path: &Path| path.ends_with("manifest.json");
    let is_new = |path: &PathBuf| !is_manifest(path) && !before.iter().any(|(old, _)| old == path);
    let cuts = |bytes: &[u8]| {
        let len = bytes.len();
        [0, 1, 63, len / 3, len / 2, len.saturating_sub(1), len]
    };
    let mut states = vec![(false, before.to_vec())];
    let mut present = before.to_vec();
    for (path, bytes) in after.iter().filter(|(path, _)| is_new(path)) {
        for cut in cuts(bytes) {
            let mut state = present.clone();
            state.push((path.clone(), bytes[..cut].to_vec()));
            states.push((false, state));
        }
        present.push((path.clone(), bytes.clone()));
    }
    let manifest = after.iter().find(|(path, _)| is_manifest(path)).unwrap();
    for cut in cuts(&manifest.1) {
        let mut state = present.clone();
        state.push((
            manifest
                .0
                .with_file_name(".manifest.json.0123456789abcdef.part"),
            manifest.1[..cut].to_vec(),
        ));
        states.push((false, state));
    }
    present.retain(|(path, _)| !is_manifest(path));
    present.push(manifest.clone());
    states.push((true, present.clone()));
    let is_gone = |path: &PathBuf| !after.iter().any(|(new, _)| new == path);
    while let Some(at) = present.iter().position(|(path, _)| is_gone(path)) {
        present.remove(at);
        states.push((true, present.clone()));
    }
    states
}

#[test]
fn a_crash_while_adding_leaves_all_or_nothing_of_the_batch() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(20));
    let mut store = open(root.path(), DIMS);
    let dir = folder(root.path());
    let (first, second) = (batch(random, 0..5), batch(random, 3..9));
    let (mut old, mut new) = (BruteForceOracle::default(), BruteForceOracle::default());
    store.append(&first).unwrap();
    let before = saved(&dir);
    store.append(&second).unwrap();
    let after = saved(&dir);
    drop(store);
    old.put(&first);
    new.put(&first);
    new.put(&second);
    let states = states(&before, &after);
    assert!(states.len() > 15);
    for (number, (is_done, state)) in states.iter().enumerate() {
        restore(&dir, state);
        let oracle = if *is_done { &new } else { &old };
        let oracle = BruteForceOracle {
            documents: oracle.documents.clone(),
        };
        if *is_done {
            // Two documents were replaced, so their old rows are dead.
            let mut store = open(root.path(), DIMS);
            store.maintain(&oracle.live()).unwrap();
        }
        assert_recovers(root.path(), &oracle, &format!("state {number}"));
    }
}

#[test]
fn a_crash_while_merging_loses_nothing() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(21));
    let mut store = open(root.path(), DIMS);
    let dir = folder(root.path());
    let mut oracle = BruteForceOracle::default();
    for at in 0..10 {
        let batch = batch(random, at * 2..at * 2 + 2);
        store.append(&batch).unwrap();
        oracle.put(&batch);
    }
    let before = saved(&dir);
    assert_eq!(store.maintain(&oracle.live()).unwrap().dropped, 0);
    let after = saved(&dir);
    assert!(after.len() < before.len());
    drop(store);
    for (number, (_, state)) in states(&before, &after).iter().enumerate() {
        restore(&dir, state);
        assert_recovers(root.path(), &oracle, &format!("state {number}"));
    }
}

#[test]
fn a_crash_while_the_folder_is_made_leaves_an_empty_store() {
    let root = tempfile::tempdir().unwrap();
    drop(open(root.path(), DIMS));
    let dir = folder(root.path());
    let after = saved(&dir);
    for (_, state) in states(&[], &after) {
        restore(&dir, &state);
        assert_recovers(root.path(), &BruteForceOracle::default(), "made");
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(22));
    let mut store = open(root.path(), DIMS);
    for at in 0..2 {
        store.append(&batch(random, at * 2..at * 2 + 2)).unwrap();
    }
    drop(store);
    let dir = folder(root.path());
    let whole = saved(&dir);
    assert_eq!(whole.len(), 3);
    let is_found = |result: Result<VectorStore, SearchError>| {
        matches!(
            result,
            Err(SearchError::Corrupt { .. } | SearchError::Format { .. })
        )
    };
    let assert_found = |path: &Path, bytes: &[u8], how: &str| {
        fs::write(path, bytes).unwrap();
        let reader = VectorStore::open_read_only(root.path(), model(DIMS));
        assert!(is_found(reader), "{} {how}", path.display());
    };
    for (path, bytes) in &whole {
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << random.below(8);
            assert_found(path, &flipped, &format!("flipped at {at}"));
        }
        for at in [0, 1, 64, bytes.len() / 2, bytes.len() - 1] {
            assert_found(path, &bytes[..at], &format!("cut at {at}"));
            let writer = VectorStore::open(root.path(), model(DIMS));
            assert!(is_found(writer), "{} cut at {at}", path.display());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_found(path, &longer, "longer");
        fs::remove_file(path).unwrap();
        let opened = VectorStore::open(root.path(), model(DIMS));
        assert!(
            matches!(opened, Err(SearchError::Corrupt { .. })),
            "{}",
            path.display()
        );
        restore(&dir, &whole);
    }
    // An intact segment under the name of another.
    assert_found(&whole[0].0, &whole[1].1, "swapped");
    // Recreating the store is the cure.
    let store = VectorStore::recreate(root.path(), model(DIMS)).unwrap();
    assert_eq!((store.rows(), files(&dir).len()), (0, 1));
}

#[test]
fn a_failed_write_is_rolled_back_and_the_next_batch_succeeds() {
    let (root, random) = (tempfile::tempdir().unwrap(), &mut TestRng::new(23));
    let mut store = open(root.path(), DIMS);
    let dir = folder(root.path());
    let mut oracle = BruteForceOracle::default();
    let first = batch(random, 0..3);
    store.append(&first).unwrap();
    oracle.put(&first);
    let lost = batch(random, 10..13);
    let count = |store: &VectorStore| store.rows();

    // The segment file cannot be created.
    let taken = dir.join(format!("{:016x}.seg", 2));
    fs::create_dir(&taken).unwrap();
    assert!(store.append(&lost).is_err());
    fs::remove_dir(&taken).unwrap();
    assert_eq!(count(&store), 6);

    // The rename of the manifest fails; afterwards the state on disk counts.
    let (present, backup) = (dir.join("manifest.json"), root.path().join("backup"));
    fs::rename(&present, &backup).unwrap();
    fs::create_dir_all(present.join("full")).unwrap();
    assert!(store.append(&lost).is_err());
    let is_part = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "part");
    assert!(!files(&dir).iter().any(is_part));
    assert!(store.append(&lost).is_err());
    fs::remove_dir_all(&present).unwrap();
    fs::rename(&backup, &present).unwrap();

    let second = batch(random, 20..23);
    store.append(&second).unwrap();
    oracle.put(&second);
    drop(store);
    assert_recovers(root.path(), &oracle, "after failures");
}
