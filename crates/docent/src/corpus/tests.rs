//! Incremental sync: folders that change, and the contents of the index after each sync.

use std::collections::{BTreeMap, HashSet};

use docent_ingest::{FileFilter, IngestOptions};
use docent_search::{InventoryEntry, MemoryEngine};
use proptest::prelude::*;

use super::sync_run::is_below;
use super::*;

struct NoopObserver;

impl SyncObserver for NoopObserver {
    fn at(&mut self, _: usize, _: usize) {}
}

fn options(limits: &Limits) -> SyncOptions {
    SyncOptions {
        shape: Arc::new(DocumentTransform::new(limits, &IngestOptions::NONE, &[])),
        choice: FileFilter::default(),
        budget: IndexMemoryBudget::default(),
    }
}

fn run(folder: &Path, engine: &MemoryEngine, limits: &Limits) -> SyncReport {
    run_with(folder, engine, limits, &mut FileStateCache::default())
}

fn run_with(
    folder: &Path,
    engine: &MemoryEngine,
    limits: &Limits,
    seen: &mut FileStateCache,
) -> SyncReport {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(sync(
            folder,
            engine,
            options(limits),
            seen,
            &mut NoopObserver,
        ))
        .unwrap()
}

fn write(folder: &Path, files: &BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn inventory(engine: &MemoryEngine) -> Vec<InventoryEntry> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(engine.inventory()).unwrap()
}

fn files(rows: &[(&str, &str)]) -> BTreeMap<String, String> {
    rows.iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn only_what_changed_is_indexed_again() {
    let dir = tempfile::tempdir().unwrap();
    let engine = MemoryEngine::new();
    let sync = |rows: &[(&str, &str)]| {
        write(dir.path(), &files(rows));
        let report = run(dir.path(), &engine, &Limits::default());
        (
            report.indexed,
            report.unchanged,
            report.removed,
            report.skipped.len(),
        )
    };
    let record = r#"{"id":"r1","title":"R","text":"one"}"#;
    assert_eq!(
        sync(&[("a.md", "one"), ("b.md", "two"), ("c.jsonl", record)]),
        (3, 0, 0, 0)
    );
    assert_eq!(
        sync(&[("a.md", "one"), ("b.md", "two"), ("c.jsonl", record)]),
        (0, 3, 0, 0)
    );
    assert_eq!(
        sync(&[("a.md", "one!"), ("c.jsonl", record), ("d.bin", "\0")]),
        (1, 1, 1, 1)
    );
    assert_eq!(sync(&[]), (0, 0, 2, 0));
}

/// Every document of the index as `id source`.
fn held(engine: &MemoryEngine) -> Vec<String> {
    let held = inventory(engine).into_iter();
    held.map(|held| format!("{} {}", held.id, held.source))
        .collect()
}

#[test]
fn the_first_file_keeps_an_id_and_others_follow_their_file() {
    let dir = tempfile::tempdir().unwrap();
    let engine = MemoryEngine::new();
    let mut seen = FileStateCache::default();
    let mut sync = |rows: &[(&str, &str)]| {
        write(dir.path(), &files(rows));
        let report = run_with(dir.path(), &engine, &Limits::default(), &mut seen);
        let codes = report.warnings.iter().map(|warning| warning.reason.code());
        (held(&engine), codes.collect::<Vec<_>>(), report.indexed)
    };
    let record = |id: u32, port: &str| format!("{{\"id\":{id},\"text\":\"{port}\"}}\n");
    let a = record(1, "Ellin") + &record(2, "Tarn");
    let b = record(1, "Orrin") + &record(3, "Skerry");
    let (one, two) = (("a.jsonl", a.as_str()), ("b.jsonl", b.as_str()));
    let both = [
        "1 a.jsonl",
        "2 a.jsonl",
        "3 b.jsonl",
        "b.jsonl#id=1 b.jsonl",
    ];
    let strings = |held: &[&str]| held.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
    assert_eq!(sync(&[one, two]), (strings(&both), vec!["shared-ids"], 4));
    assert_eq!(sync(&[one, two]), (strings(&both), vec!["shared-ids"], 0));
    // Without a conflict, the id stays unqualified.
    let alone = strings(&["1 b.jsonl", "3 b.jsonl"]);
    assert_eq!(sync(&[two]), (alone, Vec::new(), 1));
    // An earlier file takes the id back, and the unchanged later file is read again.
    assert_eq!(sync(&[one, two]), (strings(&both), vec!["shared-ids"], 3));
    let c = record(2, "Tarn") + &record(3, "Vale");
    let other = ("a.jsonl", c.as_str());
    let mixed = [
        "1 b.jsonl",
        "2 a.jsonl",
        "3 a.jsonl",
        "b.jsonl#id=3 b.jsonl",
    ];
    assert_eq!(sync(&[other, two]).0, strings(&mixed));
}

#[test]
fn an_id_twice_in_one_file_costs_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let engine = MemoryEngine::new();
    let rows = "{\"id\":\"x\",\"text\":\"one\"}\n".repeat(2);
    write(dir.path(), &files(&[("a.jsonl", &rows)]));
    let report = run(dir.path(), &engine, &Limits::default());
    let codes: Vec<_> = report.warnings.iter().map(|w| w.reason.code()).collect();
    let numbered = ["a.jsonl#L1 a.jsonl", "a.jsonl#L2 a.jsonl"];
    assert_eq!(held(&engine), numbered);
    assert_eq!((codes, report.lost), (vec!["numbered-rows"], 0));
}

#[test]
fn a_skipped_file_is_not_read_again_until_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let engine = MemoryEngine::new();
    let mut seen = FileStateCache::default();
    let rows = [
        ("a.md", "fine"),
        ("b.bin", "\0"),
        ("c.jsonl", "{\n{\"text\":\"x\"}"),
    ];
    write(dir.path(), &files(&rows));
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    for (name, _) in rows {
        let file = std::fs::File::options()
            .write(true)
            .open(dir.path().join(name))
            .unwrap();
        file.set_modified(old).unwrap();
    }
    let mut sync = || {
        let report = run_with(dir.path(), &engine, &Limits::default(), &mut seen);
        let codes = report.skipped.iter().map(|skipped| skipped.reason.code());
        (codes.collect::<Vec<_>>(), report.indexed, report.unchanged)
    };
    let codes = vec!["binary", "bad-json"];
    assert_eq!(sync(), (codes.clone(), 2, 0));
    // Size and timestamp stay the same while the content changes. The sync must not open the files, so it
    // reports the remembered problems.
    for (name, text) in [
        ("b.bin", "b"),
        ("c.jsonl", &"x".repeat(rows[2].1.len())[..]),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(old).unwrap();
    }
    assert_eq!(sync(), (codes, 0, 2));
    std::fs::write(dir.path().join("c.jsonl"), "{\"text\":\"y\"}").unwrap();
    assert_eq!(sync(), (vec!["binary"], 1, 1));
}

#[test]
fn the_report_ends_at_its_bound_and_counts_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits {
        max_reported: 2,
        ..Limits::default()
    };
    let binary = |count: usize| {
        (0..count)
            .map(|n| (format!("{n}.bin"), "\0".to_owned()))
            .collect()
    };
    write(dir.path(), &binary(2));
    let report = run(dir.path(), &MemoryEngine::new(), &limits);
    assert_eq!((report.skipped.len(), report.unlisted), (2, 0));
    write(dir.path(), &binary(3));
    let report = run(dir.path(), &MemoryEngine::new(), &limits);
    assert_eq!((report.skipped.len(), report.unlisted), (2, 1));
}

/// The corpus exceeds the prefetch budget, and every file spans several chunks.
#[test]
fn files_that_are_read_side_by_side_come_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let engine = MemoryEngine::new();
    let words = "Ellin ".repeat(500);
    let rows: Vec<_> = (0..12)
        .map(|file| {
            let record = |n: u32| format!("{{\"id\":{},\"text\":\"{words}\"}}\n", n + file * 250);
            (format!("{file:02}.jsonl"), (0..500).map(record).collect())
        })
        .collect();
    write(dir.path(), &rows.into_iter().collect());
    let limits = Limits::default();
    let small = SyncOptions {
        budget: IndexMemoryBudget::of_mib(IndexMemoryBudget::LEAST_MIB),
        ..options(&limits)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (mut seen, mut observer) = (FileStateCache::default(), NoopObserver);
    let sync = sync(dir.path(), &engine, small, &mut seen, &mut observer);
    let report = runtime.block_on(sync).unwrap();
    assert_eq!(report.indexed, 12 * 500);
    // Each file shares half of its ids with the previous file, which keeps them.
    let held = held(&engine);
    let bare = held.iter().filter(|id| !id.contains('#')).count();
    assert_eq!((held.len(), bare), (12 * 500, 13 * 250));
    assert!(held.contains(&"250 00.jsonl".to_owned()));
    assert!(held.contains(&"01.jsonl#id=250 01.jsonl".to_owned()));
}

#[test]
fn a_corpus_ends_at_its_bound() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits {
        max_documents: 2,
        ..Limits::default()
    };
    write(
        dir.path(),
        &files(&[("a.md", "a"), ("b.md", "b"), ("c.md", "c")]),
    );
    let report = run(dir.path(), &MemoryEngine::new(), &limits);
    assert_eq!(report.indexed, 2);
    assert_eq!(report.skipped[0].reason.code(), "too-many-documents");
}

#[cfg(unix)]
#[test]
fn documents_of_what_cannot_be_read_stay() {
    let unreadable: HashSet<String> = ["a/b".to_owned(), "c.md".to_owned()].into();
    for (path, below) in [
        ("a/b", true),
        ("a/b/c.md", true),
        ("a/bc.md", false),
        ("c.md", true),
        ("d.md", false),
    ] {
        assert_eq!(is_below(path, &unreadable), below, "{path}");
    }
    assert!(is_below("anything", &[String::new()].into()));
    assert!(!is_below("anything", &HashSet::new()));
}

struct StoppingObserver(usize);

impl SyncObserver for StoppingObserver {
    fn at(&mut self, done: usize, _: usize) {
        self.0 = done;
    }
    fn stop(&self) -> bool {
        self.0 >= 1
    }
}

#[test]
fn a_stopped_sync_removes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = MemoryEngine::new();
    write(
        dir.path(),
        &files(&[("a.md", "a"), ("b.md", "b"), ("z.md", "z")]),
    );
    run(dir.path(), &engine, &Limits::default());
    write(
        dir.path(),
        &files(&[("a.md", "a"), ("b.md", "b"), ("c.md", "c")]),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let limits = Limits::default();
    let report = runtime
        .block_on(sync(
            dir.path(),
            &engine,
            options(&limits),
            &mut FileStateCache::default(),
            &mut StoppingObserver(0),
        ))
        .unwrap();
    assert!(report.stopped);
    assert_eq!((report.removed, inventory(&engine).len()), (0, 3));
}

/// Folders with so few names, ids and texts that collisions and renames are frequent.
fn folders() -> impl Strategy<Value = BTreeMap<String, String>> {
    let record = ("[xyz]|a\\.md", "[12]")
        .prop_map(|(id, text)| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n"));
    let records = prop::collection::vec(record, 0..4).prop_map(|lines| lines.concat());
    let markdown = ("[ab]\\.md", "[12]").prop_map(|(name, text)| (name, text));
    let jsonl = ("[a-c]\\.jsonl", records);
    let file = prop_oneof![markdown, jsonl];
    prop::collection::vec(file, 0..6).prop_map(|files| files.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_index_in_step_equals_one_built_anew(worlds in prop::collection::vec(folders(), 1..4)) {
        let dir = tempfile::tempdir().unwrap();
        let (engine, limits) = (MemoryEngine::new(), Limits::default());
        let mut seen = FileStateCache::default();
        for world in worlds {
            write(dir.path(), &world);
            run_with(dir.path(), &engine, &limits, &mut seen);
            let fresh = MemoryEngine::new();
            run(dir.path(), &fresh, &limits);
            prop_assert_eq!(inventory(&engine), inventory(&fresh));
        }
    }
}

#[test]
fn excluded_files_are_not_indexed_and_their_documents_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let engine = MemoryEngine::new();
    for folder in ["drafts", "sub/build"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    for name in ["a.md", "b.txt", "drafts/c.md", "sub/d.md", "sub/build/e.md"] {
        std::fs::write(dir.path().join(name), format!("# {name}")).unwrap();
    }
    let sync = |choice: FileFilter| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let options = SyncOptions {
            choice,
            ..options(&Limits::default())
        };
        let mut seen = FileStateCache::default();
        let mut observer = NoopObserver;
        let report = sync(dir.path(), &engine, options, &mut seen, &mut observer);
        let report = runtime.block_on(report).unwrap();
        let held = inventory(&engine).into_iter();
        let ids: Vec<_> = held.map(|held| held.id.as_str().to_owned()).collect();
        (ids.join(" "), report.excluded, report.removed)
    };
    let expected = |ids: &str, excluded, removed| (ids.to_owned(), excluded, removed);
    let all = "a.md b.txt drafts/c.md sub/build/e.md sub/d.md";
    assert_eq!(sync(FileFilter::default()), expected(all, 0, 0));
    std::fs::write(dir.path().join(".gitignore"), "drafts/\nbuild/\n").unwrap();
    assert_eq!(
        sync(FileFilter::default()),
        expected("a.md b.txt sub/d.md", 2, 2)
    );
    // The nearest ignore file decides, and `.docentignore` has precedence over `.gitignore`.
    std::fs::write(dir.path().join("sub/.docentignore"), "!build/\n").unwrap();
    assert_eq!(
        sync(FileFilter::default()),
        expected("a.md b.txt sub/build/e.md sub/d.md", 1, 0)
    );
    let patterns = |patterns: &[&str]| -> Vec<String> {
        patterns.iter().map(|&pattern| pattern.to_owned()).collect()
    };
    let (include, exclude) = (patterns(&["*.md"]), patterns(&["/sub/d.md"]));
    let choice = FileFilter::new(&include, &exclude, false).unwrap();
    assert_eq!(
        sync(choice),
        expected("a.md drafts/c.md sub/build/e.md", 2, 2)
    );
}

/// Counts how often a file is opened, by the notifications of the kernel.
#[cfg(target_os = "linux")]
fn count_opens(path: &Path, action: impl FnOnce()) -> usize {
    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

    let events = init(CreateFlags::NONBLOCK).unwrap();
    // The kernel merges equal events that follow each other, so the ends of files have to be among them.
    let kinds = WatchFlags::OPEN | WatchFlags::ACCESS | WatchFlags::CLOSE;
    add_watch(&events, path, kinds).unwrap();
    action();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4_096];
    let mut reader = Reader::new(&events, &mut buffer);
    let mut opens = 0;
    while let Ok(event) = reader.next() {
        opens += usize::from(event.events().contains(ReadFlags::OPEN));
    }
    opens
}

#[cfg(target_os = "linux")]
#[test]
fn a_changed_file_is_opened_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.md");
    let engine = MemoryEngine::new();
    let mut seen = FileStateCache::default();
    let mut sync = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let mut report = SyncReport::default();
        let opens = count_opens(&path, || {
            report = run_with(dir.path(), &engine, &Limits::default(), &mut seen);
        });
        (report.indexed, report.unchanged, opens)
    };
    assert_eq!(sync("one"), (1, 0, 1), "new");
    assert_eq!(sync("two"), (1, 0, 1), "changed, of the same size");
    assert_eq!(sync("three"), (1, 0, 1), "changed, of another size");
    assert_eq!(sync("three"), (0, 1, 1), "written again unchanged");
    // A restarted server knows nothing but the index.
    let engine = &engine;
    let opens = count_opens(&path, || {
        let report = run(dir.path(), engine, &Limits::default());
        assert_eq!((report.indexed, report.unchanged), (0, 1));
    });
    assert_eq!(opens, 1, "unchanged since the last start");
}
