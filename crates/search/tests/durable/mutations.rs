//! Fault injection into files: four hundred seeded corruptions of an index, each of a fresh copy. They flip a
//! bit, zero a range, truncate, append, delete or replace a file. Every one is detected when the index is
//! opened, and what is missing then can be applied again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use docent_search::{
    DocId, Document, DocumentChange, EmbeddedEngine, Engine, Query, RankingMethod, ReaderIdentity,
};

use crate::world::{WorldRng, assert_holds, batch, finish, open, state};

const MUTATIONS: u64 = 400;
const SEED: u64 = 77;
const GENERATIONS: u64 = 14;

const QUESTIONS: [&str; 6] = [
    "w1 w2",
    "w17",
    "paper 12",
    "shelf:s3 w5",
    "\"w4 w9\"",
    "w100 w200 w300",
];

type FileSnapshot = BTreeMap<PathBuf, Vec<u8>>;

#[tokio::test]
async fn every_corrupted_file_is_detected_and_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).unwrap();
    for generation in 1..=GENERATIONS {
        engine.apply(batch(SEED, generation)).await.unwrap();
        engine.embed_pending(20).await.unwrap();
    }
    finish(&engine).await;
    let expected = state(SEED, GENERATIONS);
    let answers = answers(&engine).await;
    drop(engine);
    let whole = read(dir.path());
    let names: Vec<_> = whole.keys().cloned().collect();
    assert!(
        names
            .iter()
            .any(|name| name.extension().is_some_and(|it| it == "del"))
    );
    let mut random = WorldRng::new(SEED);
    let (mut found, mut harmless) = (0, 0);
    for number in 0..MUTATIONS {
        restore(dir.path(), &whole);
        let name = &names[random.index(names.len())];
        let mutation = mutate(dir.path(), name, (&whole, &names), &mut random);
        let context = format!("{number}: {} {mutation}", name.display());
        let engine = open(dir.path()).unwrap_or_else(|error| panic!("{context}: {error}"));
        if engine.quarantined().is_empty() {
            assert!(may_be_harmless(name, &mutation), "{context}");
            harmless += 1;
        } else {
            found += 1;
        }
        repair(&engine, &expected, &context).await;
        assert_holds(&engine, &expected, (&mut random, &context)).await;
        assert_eq!(self::answers(&engine).await, answers, "{context}");
    }
    println!("{MUTATIONS} mutations: {found} found, {harmless} without any effect");
    assert!(found > MUTATIONS / 2, "{found}");
}

/// Whether a change may go unnoticed, because nothing is read from the place it hits.
fn may_be_harmless(name: &Path, mutation: &str) -> bool {
    let name = name.to_string_lossy();
    // A lock file has no content, and the file list is rewritten at every start. Much of the ledger is free
    // space, and a lost ledger is rebuilt from the lexical index.
    let is_read = !["lock", ".managed.json", "ledger.redb"]
        .iter()
        .any(|ending| name.ends_with(ending));
    !is_read || mutation == "zero 0 bytes"
}

fn mutate(
    dir: &Path,
    name: &Path,
    (whole, names): (&FileSnapshot, &[PathBuf]),
    random: &mut WorldRng,
) -> String {
    let path = dir.join(name);
    let mut bytes = whole[name].clone();
    let at = random.index(bytes.len());
    let mutation = match random.below(7) {
        _ if bytes.is_empty() => "empty".to_owned(),
        0..=2 => {
            bytes[at] ^= 1 << random.below(8);
            format!("flip at {at}")
        }
        3 => {
            let end = (at + 1 + random.index(4_096)).min(bytes.len());
            let changed = bytes[at..end].iter().filter(|byte| **byte != 0).count();
            bytes[at..end].fill(0);
            format!("zero {changed} bytes")
        }
        4 => {
            bytes.truncate(at);
            format!("cut to {at}")
        }
        5 => {
            fs::remove_file(&path).unwrap();
            return "gone".to_owned();
        }
        _ => {
            let other = &names[random.index(names.len())];
            bytes.clone_from(&whole[other]);
            if bytes == whole[name] {
                bytes.extend([1, 2, 3]);
            }
            format!("replaced by {}", other.display())
        }
    };
    fs::write(path, bytes).unwrap();
    mutation
}

/// Applies what is missing, as a synchronisation with the source would.
async fn repair(engine: &EmbeddedEngine, expected: &BTreeMap<DocId, Document>, context: &str) {
    let held = engine.inventory().await.unwrap();
    for one in &held {
        let fetched = engine.fetch(one.id.clone(), ReaderIdentity::owner()).await;
        let fetched = fetched.unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(fetched.as_deref(), expected.get(&one.id), "{context}");
    }
    let is_held = |id: &DocId| held.binary_search_by(|one| one.id.cmp(id)).is_ok();
    let missing = expected.values().filter(|document| !is_held(&document.id));
    let missing: Vec<_> = missing.cloned().map(DocumentChange::Put).collect();
    engine.apply(missing).await.unwrap();
    finish(engine).await;
}

/// The ids found for each query, sorted: the order of hits may depend on how the index is segmented.
async fn answers(engine: &EmbeddedEngine) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for question in QUESTIONS {
        let query =
            Query::new(question, 200, ReaderIdentity::owner()).method(RankingMethod::Lexical);
        let found = engine.search(query).await.unwrap();
        let mut ids: Vec<_> = found.hits.iter().map(|hit| hit.id.to_string()).collect();
        ids.sort();
        all.push(ids);
    }
    all
}

fn read(dir: &Path) -> FileSnapshot {
    let mut files = FileSnapshot::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

fn restore(dir: &Path, whole: &FileSnapshot) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    for (name, content) in whole {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}
