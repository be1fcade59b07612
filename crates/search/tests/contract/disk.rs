//! What the engine on disk does across restarts, crashes and damage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use docent_search::{Embedded, Engine, Error, Generation, Reader};
use futures::FutureExt;
use tempfile::TempDir;

use crate::shelf::{find, id, put, remove};

async fn filled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let engine = Embedded::open(dir.path()).unwrap();
    let changes = (0..20).map(|n| put(&format!("d{n:02}"), "Title", "the ferry was late"));
    engine.apply(changes.collect()).await.unwrap();
    engine
        .apply(vec![remove("d07"), put("d08", "Title", "a tram")])
        .await
        .unwrap();
    dir
}

/// Every file of an index that holds something.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let named = entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap())
    });
    named.filter(|(_, content)| !content.is_empty()).collect()
}

/// How many bytes at the end of a segment's file hold its sum and the version that wrote it. Of
/// the version only a part means anything.
fn footer(content: &[u8]) -> usize {
    let length = content.len().checked_sub(8).map(|at| &content[at..at + 4]);
    length.map_or(0, |bytes| {
        u32::from_le_bytes(bytes.try_into().unwrap()) as usize + 8
    })
}

/// The names in the list of all files that were ever begun.
fn begun(dir: &Path) -> BTreeSet<String> {
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
        let engine = Embedded::open(dir.path()).unwrap();
        let status = engine.status().await.unwrap();
        assert_eq!((status.documents, status.generation), (19, Generation(2)));
        assert_eq!(find(&engine, "ferry").await.len(), 18);
        assert_eq!(find(&engine, "tram").await, ["d08"]);
        assert_eq!(engine.inventory().await.unwrap().len(), 19);
    }
    let engine = Embedded::open(dir.path()).unwrap();
    assert_eq!(
        engine.apply(vec![remove("d00")]).await.unwrap(),
        Generation(3)
    );
}

#[tokio::test]
async fn a_second_writer_is_refused_and_a_reader_is_not() {
    let dir = filled().await;
    let first = Embedded::open(dir.path()).unwrap();
    assert!(matches!(
        Embedded::open(dir.path()),
        Err(Error::Locked { .. })
    ));
    first.apply(vec![put("new", "T", "ferry")]).await.unwrap();
    assert!(matches!(
        Embedded::open(dir.path()),
        Err(Error::Locked { .. })
    ));

    let reader = Embedded::open_read_only(dir.path(), None).unwrap();
    assert_eq!(find(&reader, "ferry").await.len(), 19);
    let refused = reader.apply(vec![remove("new")]).await;
    assert!(matches!(refused, Err(Error::ReadOnly { .. })));

    drop(first);
    let second = Embedded::open(dir.path()).unwrap();
    second.apply(vec![remove("new")]).await.unwrap();
}

#[tokio::test]
async fn a_reader_keeps_its_generation_while_another_writes() {
    let dir = filled().await;
    let writer = Embedded::open(dir.path()).unwrap();
    let reader = Embedded::open_read_only(dir.path(), None).unwrap();
    for n in 0..12 {
        writer
            .apply(vec![put(&format!("n{n}"), "T", "ferry"), remove("d08")])
            .await
            .unwrap();
    }
    assert_eq!(find(&reader, "tram").await, ["d08"]);
    assert!(
        reader
            .fetch(id("d08"), Reader::everyone())
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
            Embedded::open_read_only(&path, None),
            Err(Error::Missing { .. })
        ));
    }
    assert!(
        fs::read_dir(dir.path()).unwrap().next().is_none(),
        "looking leaves nothing behind"
    );
}

#[tokio::test]
async fn another_format_is_refused_with_a_cure() {
    let dir = filled().await;
    fs::write(dir.path().join("docent-index.json"), "{\"format\":999}").unwrap();
    let refused = [
        Embedded::open(dir.path()),
        Embedded::open_read_only(dir.path(), None),
    ];
    for error in refused.into_iter().filter_map(Result::err) {
        assert!(matches!(error, Error::Format { .. }), "{error}");
        assert!(error.to_string().contains("999") && error.hint().contains("build"));
    }
}

#[tokio::test]
async fn an_index_of_unknown_make_is_not_touched() {
    let dir = filled().await;
    fs::remove_file(dir.path().join("docent-index.json")).unwrap();
    let before = files(dir.path());
    assert!(matches!(
        Embedded::open(dir.path()),
        Err(Error::Format { .. })
    ));
    assert_eq!(files(dir.path()), before);
}

#[test]
fn an_index_left_unfinished_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(Embedded::open(dir.path()).unwrap());
    fs::remove_file(dir.path().join("docent-index.json")).unwrap();
    drop(Embedded::open(dir.path()).unwrap());
    Embedded::open_read_only(dir.path(), None).unwrap();
}

#[tokio::test]
async fn a_changed_byte_is_found_wherever_it_is() {
    let dir = filled().await;
    let whole = files(dir.path());
    assert!(
        whole.keys().any(|name| name.ends_with(".del")),
        "{:?}",
        whole.keys()
    );
    let mut tried = 0;
    for (name, content) in &whole {
        // The list of files is only used to clean up; a wrong name in it harms nothing.
        if name == ".managed.json" {
            continue;
        }
        let step = (content.len() / 40).max(1);
        for at in (0..content.len()).step_by(step) {
            let mut changed = content.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(dir.path().join(name), &changed).unwrap();
            let Some(error) = Embedded::open_read_only(dir.path(), None).err() else {
                let is_harmless = !name.contains("json") && at + footer(content) >= content.len();
                assert!(is_harmless, "`{name}` byte {at} went unnoticed");
                continue;
            };
            let named = matches!(error, Error::Corrupt { .. } | Error::Format { .. });
            assert!(named, "`{name}` byte {at}: {error:?}");
            tried += 1;
        }
        restore(dir.path(), &whole);
    }
    assert!(tried > 200, "{tried}");
    Embedded::open_read_only(dir.path(), None).unwrap();
}

#[tokio::test]
async fn a_file_cut_short_or_gone_is_found() {
    let dir = filled().await;
    let whole = files(dir.path());
    for (name, content) in &whole {
        if name == ".managed.json" {
            continue;
        }
        for length in [0, 1, content.len() / 2, content.len() - 1] {
            fs::write(dir.path().join(name), &content[..length]).unwrap();
            let error = Embedded::open(dir.path()).err();
            let error = error.unwrap_or_else(|| panic!("`{name}` cut to {length} unnoticed"));
            assert!(
                matches!(error, Error::Corrupt { .. }),
                "`{name}` to {length}: {error:?}"
            );
        }
        fs::remove_file(dir.path().join(name)).unwrap();
        let error = Embedded::open_read_only(dir.path(), None).err();
        let error = error.unwrap_or_else(|| panic!("`{name}` is gone and nobody noticed"));
        assert!(
            matches!(error, Error::Corrupt { .. } | Error::Missing { .. }),
            "{name}: {error:?}"
        );
        restore(dir.path(), &whole);
    }
}

#[tokio::test]
async fn what_a_killed_process_left_behind_does_not_stop_the_next() {
    let dir = filled().await;
    // A process that dies just before its commit is named leaves all files of that commit behind,
    // a list of deleted documents among them whose name the next commit chooses again.
    let before = files(dir.path());
    let mut begun_in_all = begun(dir.path());
    let doomed = Embedded::open(dir.path()).unwrap();
    let changes = vec![remove("d01"), put("d02", "T", "a bus")];
    doomed.apply(changes.clone()).await.unwrap();
    drop(doomed);
    begun_in_all.extend(begun(dir.path()));
    let after = files(dir.path());
    restore(dir.path(), &before);
    let sums = "docent-meta.sum";
    fs::write(dir.path().join(sums), &after[sums]).unwrap();
    let list = serde_json::to_vec(&begun_in_all).unwrap();
    fs::write(dir.path().join(".managed.json"), list).unwrap();
    fs::write(dir.path().join(".tmpAbC123"), "half").unwrap();

    let engine = Embedded::open(dir.path()).unwrap();
    assert_eq!(engine.status().await.unwrap().generation, Generation(2));
    assert_eq!(find(&engine, "ferry").await.len(), 18);
    assert_eq!(engine.apply(changes).await.unwrap(), Generation(3));
    assert_eq!(find(&engine, "ferry").await.len(), 16);
    assert_eq!(find(&engine, "bus").await, ["d02"]);
    assert!(!dir.path().join(".tmpAbC123").exists());
    drop(engine);
    Embedded::open(dir.path()).unwrap();
}

#[tokio::test]
async fn many_small_batches_do_not_pile_up() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Embedded::open(dir.path()).unwrap();
    for n in 0..40 {
        engine
            .apply(vec![put(&format!("d{}", n % 7), "T", "ferry")])
            .await
            .unwrap();
    }
    assert_eq!(find(&engine, "ferry").await.len(), 7);
    drop(engine);
    let reopened = Embedded::open(dir.path()).unwrap();
    assert_eq!(find(&reopened, "ferry").await.len(), 7);
    assert_eq!(reopened.status().await.unwrap().generation, Generation(40));
    let segments = fs::read_dir(dir.path()).unwrap().filter(|entry| {
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
    let engine = Embedded::open(dir.path()).unwrap();
    engine
        .apply(vec![put("new", "T", "ferry")])
        .now_or_never()
        .unwrap()
        .unwrap();
    assert_eq!(find(&engine, "ferry").now_or_never().unwrap(), ["new"]);
}
