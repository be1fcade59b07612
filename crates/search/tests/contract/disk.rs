//! The embedded engine across restarts, crashes and corruption of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use docent_search::{EmbeddedEngine, Engine, Generation, ReaderIdentity, SearchError};
use futures::FutureExt;
use tempfile::TempDir;

use crate::shelf::{find, id, put, remove};

async fn filled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    let changes = (0..20).map(|n| put(&format!("d{n:02}"), "Title", "the ferry was late"));
    engine.apply(changes.collect()).await.unwrap();
    engine
        .apply(vec![remove("d07"), put("d08", "Title", "a tram")])
        .await
        .unwrap();
    dir
}

/// The folder of the lexical index.
fn words(dir: &TempDir) -> PathBuf {
    dir.path().join("words-5")
}

/// All files of a folder that are not empty, with their content.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let named = entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap())
    });
    named.filter(|(_, content)| !content.is_empty()).collect()
}

/// The names in tantivy's list of managed files, which has every file that was ever begun.
fn managed_files(dir: &Path) -> BTreeSet<String> {
    serde_json::from_slice(&fs::read(dir.join(".managed.json")).unwrap()).unwrap()
}

fn restore(dir: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, content) in files {
        fs::write(dir.join(name), content).unwrap();
    }
}

#[tokio::test]
async fn everything_is_there_after_opening_again() {
    let dir = filled().await;
    for _ in 0..3 {
        let engine = EmbeddedEngine::open(dir.path()).unwrap();
        let status = engine.status().await.unwrap();
        assert_eq!((status.documents, status.generation), (19, Generation(2)));
        assert_eq!(find(&engine, "ferry").await.len(), 18);
        assert_eq!(find(&engine, "tram").await, ["d08"]);
        assert_eq!(engine.inventory().await.unwrap().len(), 19);
    }
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    assert_eq!(
        engine.apply(vec![remove("d00")]).await.unwrap(),
        Generation(3)
    );
}

#[tokio::test]
async fn a_second_writer_is_refused_and_a_reader_is_not() {
    let dir = filled().await;
    let first = EmbeddedEngine::open(dir.path()).unwrap();
    assert!(matches!(
        EmbeddedEngine::open(dir.path()),
        Err(SearchError::Locked { .. })
    ));
    first.apply(vec![put("new", "T", "ferry")]).await.unwrap();
    assert!(matches!(
        EmbeddedEngine::open(dir.path()),
        Err(SearchError::Locked { .. })
    ));

    let reader = EmbeddedEngine::open_read_only(dir.path(), None).unwrap();
    assert_eq!(find(&reader, "ferry").await.len(), 19);
    let refused = reader.apply(vec![remove("new")]).await;
    assert!(matches!(refused, Err(SearchError::ReadOnly { .. })));

    drop(first);
    let second = EmbeddedEngine::open(dir.path()).unwrap();
    second.apply(vec![remove("new")]).await.unwrap();
}

#[tokio::test]
async fn a_reader_keeps_its_generation_while_another_writes() {
    let dir = filled().await;
    let writer = EmbeddedEngine::open(dir.path()).unwrap();
    let reader = EmbeddedEngine::open_read_only(dir.path(), None).unwrap();
    for n in 0..12 {
        writer
            .apply(vec![put(&format!("n{n}"), "T", "ferry"), remove("d08")])
            .await
            .unwrap();
    }
    assert_eq!(find(&reader, "tram").await, ["d08"]);
    assert!(
        reader
            .fetch(id("d08"), ReaderIdentity::everyone())
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(find(&reader, "ferry").await.len(), 18);
    assert_eq!(find(&writer, "ferry").await.len(), 30);
}

#[test]
fn reading_where_there_is_no_index_says_so() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("nowhere")] {
        assert!(matches!(
            EmbeddedEngine::open_read_only(&path, None),
            Err(SearchError::Missing { .. })
        ));
    }
    assert!(
        fs::read_dir(dir.path()).unwrap().next().is_none(),
        "looking leaves nothing behind"
    );
}

#[tokio::test]
async fn an_index_of_another_version_stays_until_the_new_one_is_complete() {
    let dir = filled().await;
    let older = dir.path().join("words-3");
    fs::rename(words(&dir), &older).unwrap();
    let oldest = dir.path().join("meta.json");
    fs::write(&oldest, "{}").unwrap();
    assert!(matches!(
        EmbeddedEngine::open_read_only(dir.path(), None),
        Err(SearchError::Missing { .. })
    ));
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    assert!(engine.has_other_versions() && engine.quarantined().is_empty());
    assert_eq!(engine.status().await.unwrap().documents, 0);
    engine.apply(vec![put("new", "T", "ferry")]).await.unwrap();
    assert!(older.exists() && oldest.exists());
    engine.mark_complete().await.unwrap();
    assert!(!older.exists() && !oldest.exists() && !engine.has_other_versions());
    assert_eq!(find(&engine, "ferry").await, ["new"]);
}

#[tokio::test]
async fn words_of_unknown_make_are_set_aside() {
    let dir = filled().await;
    for content in ["{\"format\":999}", "{", ""] {
        fs::write(words(&dir).join("docent-index.json"), content).unwrap();
        assert!(EmbeddedEngine::open_read_only(dir.path(), None).is_err());
        let engine = EmbeddedEngine::open(dir.path()).unwrap();
        assert_eq!(engine.quarantined().len(), 1, "{content}");
        assert_eq!(engine.inventory().await.unwrap().len(), 0);
        assert!(dir.path().join("damaged/words-5/meta.json").exists());
        engine.apply(vec![put("new", "T", "ferry")]).await.unwrap();
        engine.mark_complete().await.unwrap();
        assert!(!dir.path().join("damaged").exists());
    }
    fs::remove_file(words(&dir).join("docent-index.json")).unwrap();
    assert_eq!(
        EmbeddedEngine::open(dir.path())
            .unwrap()
            .quarantined()
            .len(),
        1
    );
}

#[test]
fn an_index_left_unfinished_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedEngine::open(dir.path()).unwrap());
    fs::remove_file(words(&dir).join("docent-index.json")).unwrap();
    assert!(
        EmbeddedEngine::open(dir.path())
            .unwrap()
            .quarantined()
            .is_empty()
    );
    EmbeddedEngine::open_read_only(dir.path(), None).unwrap();
}

#[tokio::test]
async fn a_reader_refuses_what_is_damaged() {
    let dir = filled().await;
    let whole = files(&words(&dir));
    assert!(
        whole.keys().any(|name| name.ends_with(".del")),
        "{:?}",
        whole.keys()
    );
    let mut tried = 0;
    for (name, content) in &whole {
        // The file list is only used for cleaning up, and the ledger is read by the writer only.
        if [".managed.json", "ledger.redb"].contains(&name.as_str()) {
            continue;
        }
        let path = words(&dir).join(name);
        let step = (content.len() / 40).max(1);
        let flips = (0..content.len()).step_by(step).map(|at| {
            let mut changed = content.clone();
            changed[at] ^= 1 << (at % 8);
            changed
        });
        let cuts = [0, 1, content.len() / 2, content.len() - 1];
        let cuts = cuts.map(|length| content[..length].to_vec());
        for changed in flips.chain(cuts) {
            fs::write(&path, &changed).unwrap();
            let error = EmbeddedEngine::open_read_only(dir.path(), None).err();
            let error = error.unwrap_or_else(|| panic!("`{name}`: a change went unnoticed"));
            let named = matches!(
                error,
                SearchError::Corrupt { .. } | SearchError::Format { .. }
            );
            assert!(named, "`{name}`: {error:?}");
            tried += 1;
        }
        fs::remove_file(&path).unwrap();
        let error = EmbeddedEngine::open_read_only(dir.path(), None).err();
        let error = error.unwrap_or_else(|| panic!("`{name}` is gone and nobody noticed"));
        assert!(
            matches!(
                error,
                SearchError::Corrupt { .. } | SearchError::Missing { .. }
            ),
            "{name}: {error:?}"
        );
        restore(&words(&dir), &whole);
    }
    assert!(tried > 200, "{tried}");
    EmbeddedEngine::open_read_only(dir.path(), None).unwrap();
}

#[tokio::test]
async fn intact_segments_answer_while_others_are_quarantined() {
    let dir = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    engine.apply(vec![put("a", "T", "ferry")]).await.unwrap();
    let first = files(&words(&dir));
    engine.apply(vec![put("b", "T", "ferry")]).await.unwrap();
    drop(engine);
    let second = files(&words(&dir));
    let is_new = |name: &&String| name.ends_with(".store") && !first.contains_key(*name);
    let store = second.keys().find(is_new).unwrap();
    fs::write(words(&dir).join(store), "no store").unwrap();
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    assert!(!engine.quarantined().is_empty());
    assert_eq!(find(&engine, "ferry").await, ["a"]);
    let held = engine.inventory().await.unwrap();
    assert_eq!(held.len(), 1, "{held:?}");
    // The lost document is applied again, and the next engine to open finds nothing wrong.
    engine.apply(vec![put("b", "T", "ferry")]).await.unwrap();
    engine.mark_complete().await.unwrap();
    drop(engine);
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    assert!(
        engine.quarantined().is_empty(),
        "{:?}",
        engine.quarantined()
    );
    assert_eq!(find(&engine, "ferry").await.len(), 2);
}

#[tokio::test]
async fn a_lost_ledger_is_made_from_the_words() {
    let dir = filled().await;
    let held = |engine: EmbeddedEngine| async move { engine.inventory().await.unwrap() };
    let before = held(EmbeddedEngine::open(dir.path()).unwrap()).await;
    let path = words(&dir).join("ledger.redb");
    fs::remove_file(&path).unwrap();
    assert_eq!(
        held(EmbeddedEngine::open(dir.path()).unwrap()).await,
        before
    );
    fs::write(&path, "no ledger").unwrap();
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    assert_eq!(engine.quarantined().len(), 1);
    assert_eq!(held(engine).await, before);
}

#[tokio::test]
async fn files_of_a_killed_process_do_not_stop_the_next_one() {
    let dir = filled().await;
    // A process that dies just before its commit is published leaves all files of that commit behind, among
    // them a list of deleted documents whose name the next commit chooses again.
    let before = files(&words(&dir));
    let mut begun_in_all = managed_files(&words(&dir));
    let doomed = EmbeddedEngine::open(dir.path()).unwrap();
    let changes = vec![remove("d01"), put("d02", "T", "a bus")];
    doomed.apply(changes.clone()).await.unwrap();
    drop(doomed);
    begun_in_all.extend(managed_files(&words(&dir)));
    let after = files(&words(&dir));
    restore(&words(&dir), &before);
    let sums = "docent-meta.sum";
    fs::write(words(&dir).join(sums), &after[sums]).unwrap();
    let list = serde_json::to_vec(&begun_in_all).unwrap();
    fs::write(words(&dir).join(".managed.json"), list).unwrap();
    fs::write(words(&dir).join(".tmpAbC123"), "half").unwrap();

    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    assert_eq!(engine.status().await.unwrap().generation, Generation(2));
    assert_eq!(find(&engine, "ferry").await.len(), 18);
    assert_eq!(engine.apply(changes).await.unwrap(), Generation(3));
    assert_eq!(find(&engine, "ferry").await.len(), 16);
    assert_eq!(find(&engine, "bus").await, ["d02"]);
    assert!(!words(&dir).join(".tmpAbC123").exists());
    drop(engine);
    EmbeddedEngine::open(dir.path()).unwrap();
}

#[tokio::test]
async fn many_small_batches_do_not_pile_up() {
    let dir = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    for n in 0..40 {
        engine
            .apply(vec![put(&format!("d{}", n % 7), "T", "ferry")])
            .await
            .unwrap();
    }
    assert_eq!(find(&engine, "ferry").await.len(), 7);
    drop(engine);
    let reopened = EmbeddedEngine::open(dir.path()).unwrap();
    assert_eq!(find(&reopened, "ferry").await.len(), 7);
    assert_eq!(reopened.status().await.unwrap().generation, Generation(40));
    let segments = fs::read_dir(words(&dir)).unwrap().filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|extension| extension == "store")
    });
    assert!(segments.count() < 12);
}

#[test]
fn it_answers_without_a_runtime_too() {
    let dir = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    engine
        .apply(vec![put("new", "T", "ferry")])
        .now_or_never()
        .unwrap()
        .unwrap();
    assert_eq!(find(&engine, "ferry").now_or_never().unwrap(), ["new"]);
}
