//! A folder and its index, kept in step: what was added, changed or removed in the folder is put
//! into the engine in bounded batches.
//!
//! An index that was brought up to date holds the same documents as one built anew, whatever
//! happened in the folder between. New documents go in before old ones go out, so that a reader
//! meanwhile misses nothing.

mod seen;
mod tally;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use docent_ingest::{
    Dedup, Entry, Fingerprint, Limits, Reason, Sandbox, Skipped, Source, Warning, Workers,
};
use docent_search::{Change, DocId, Document, Engine, Held, MAX_DOCUMENT_BYTES, Status};

pub use self::seen::Seen;
pub use self::tally::{Counts, Tally};
use crate::problem::Problem;
use crate::shape::Shape;

/// The argument that makes this program a child process that parses files and does nothing else.
pub const PARSER: &str = "__parse";

/// The most documents of a batch. Each batch is written through to the disk, which costs as much
/// as indexing some hundred documents.
const BATCH_DOCUMENTS: usize = 2_000;

/// The most bytes of documents that wait in a batch, unless one document alone has more.
const BATCH_BYTES: usize = 16 * 1024 * 1024;

/// Whoever wants to know how far a sync is, and may stop it.
pub trait Watch {
    /// So many of so many files have been looked at.
    fn at(&mut self, done: usize, total: usize);

    /// A batch has been applied, and the engine is like this now.
    fn applied(&mut self, _status: Status) {}

    /// True when the sync should end early. The index is then partly new, and every document
    /// in it is whole.
    fn stop(&self) -> bool {
        false
    }
}

/// What a sync did.
#[derive(Debug, Default)]
pub struct Report {
    /// Files in the folder.
    pub files: usize,
    /// Documents that were added or changed.
    pub indexed: usize,
    /// Documents that were there already.
    pub unchanged: usize,
    /// Documents whose source is gone.
    pub removed: usize,
    /// Documents whose source could not be read this time, left as they were.
    pub kept: usize,
    /// What was not indexed, the first `max_reported` of it.
    pub skipped: Vec<Skipped>,
    /// What was indexed, but not quite as it was written, the first `max_reported` of it.
    pub warnings: Vec<Warning>,
    /// How many more of both there were.
    pub unlisted: usize,
    /// What became of the files that were opened, by their kinds.
    pub tally: Tally,
    /// True when somebody stopped it.
    pub stopped: bool,
}

/// Brings the engine in step with the folder. `seen` is what the sync before saw, and becomes what
/// this one saw: a file that looks as it did then is not read again.
///
/// Reads files on the thread that polls it: run it where blocking is no harm.
///
/// # Errors
/// When the folder cannot be opened or the engine fails. A bad file is a line in the report.
pub async fn sync(
    folder: &Path,
    engine: &dyn Engine,
    shape: &Shape<'_>,
    seen: &mut Seen,
    watch: &mut (dyn Watch + Send),
) -> Result<Report, Problem> {
    let (workers, limits) = (workers()?, shape.limits);
    let source = open(folder, limits.clone())?
        .with_options(shape.options.clone())
        .parsed_by(workers.clone());
    // Every name that was left out must be known here, or documents below a folder that could not
    // be read would be taken for removed ones.
    let listing = open(
        folder,
        Limits {
            max_reported: usize::MAX,
            ..limits.clone()
        },
    )?
    .list();
    let total = listing.entries.len();
    let mut run = Run::new(engine, shape, seen.begin()).await?;
    run.report.files = total;
    for skipped in listing.skipped {
        run.skip(skipped);
    }
    for (done, entry) in listing.entries.iter().enumerate() {
        if watch.stop() {
            run.report.stopped = true;
            break;
        }
        watch.at(done, total);
        run.file(&source, entry);
        if run.batch.is_full() {
            run.flush(watch).await?;
        }
    }
    run.flush(watch).await?;
    tell_open_walls(&workers);
    if !run.report.stopped {
        run.remove_the_rest(watch).await?;
        engine.complete().await?;
        watch.at(total, total);
    }
    // Only now is all that was seen also held.
    *seen = run.seen;
    Ok(run.report)
}

/// A folder whose files are read as they are when it is indexed.
pub(crate) fn source(folder: &Path, shape: &Shape<'_>) -> Result<Source, Problem> {
    let source = open(folder, shape.limits.clone())?;
    let options = shape.options.clone();
    Ok(source.with_options(options).parsed_by(workers()?))
}

/// The child processes that parse. None is started before a file needs it, and they end with the sync.
fn workers() -> Result<Arc<Workers>, Problem> {
    let workers = Sandbox::of_this_program(PARSER).and_then(Workers::new);
    let failed =
        |error| Problem::failed(format!("no process can be started to read files: {error}"));
    workers.map(Arc::new).map_err(failed)
}

/// Says when files were parsed with less around the parser than this system should have.
fn tell_open_walls(workers: &Workers) {
    let walls = workers.confinement().filter(|walls| !walls.is_complete());
    if let Some(walls) = walls.filter(|_| cfg!(target_os = "linux")) {
        let (limits, landlock, seccomp) = (walls.limits, walls.landlock, walls.seccomp);
        tracing::warn!(
            limits,
            landlock,
            seccomp,
            "files are parsed without every wall around"
        );
    }
}

fn open(folder: &Path, limits: Limits) -> Result<Source, Problem> {
    Source::open(folder, limits).map_err(|reason| {
        Problem::failed(format!("`{}`: {reason}", folder.display())).hint(reason.hint())
    })
}

/// One sync on its way.
struct Run<'a> {
    engine: &'a dyn Engine,
    shape: &'a Shape<'a>,
    /// What the engine held at the start and nobody has claimed yet.
    held: HashMap<DocId, Held>,
    claims: Dedup,
    batch: Batch,
    /// What the sync before saw, and what this one sees.
    seen: Seen,
    /// Files and folders that could not be read this time.
    unreadable: HashSet<String>,
    report: Report,
}

#[derive(Default)]
struct Batch {
    changes: Vec<Change>,
    bytes: usize,
}

impl Batch {
    fn put(&mut self, document: Document) {
        self.bytes += document.bytes();
        self.changes.push(Change::Put(document));
    }

    fn is_full(&self) -> bool {
        self.changes.len() >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES
    }
}

impl<'a> Run<'a> {
    async fn new(
        engine: &'a dyn Engine,
        shape: &'a Shape<'a>,
        seen: Seen,
    ) -> Result<Self, Problem> {
        let held = engine.inventory().await?;
        Ok(Self {
            engine,
            shape,
            held: held
                .into_iter()
                .map(|held| (held.id.clone(), held))
                .collect(),
            claims: Dedup::new(shape.limits),
            batch: Batch::default(),
            seen,
            unreadable: HashSet::new(),
            report: Report::default(),
        })
    }

    fn file(&mut self, source: &Source, entry: &Entry) {
        if self.looks_unchanged(entry) {
            return;
        }
        self.report.tally.begin(source.kind(entry));
        if self.is_unchanged(source, entry) {
            return;
        }
        match source.read(entry) {
            Ok(reading) => {
                let ids = reading.documents.iter().map(|document| document.id.clone());
                let is_whole = reading.skipped.is_empty() && reading.warnings.is_empty();
                if is_whole {
                    self.seen.note(entry, &reading.fingerprint, ids.collect());
                }
                for skipped in reading.skipped {
                    self.skip(skipped);
                }
                for warning in reading.warnings {
                    self.warn(warning);
                }
                for document in reading.documents {
                    self.document(document);
                }
            }
            Err(reason) => self.skip(Skipped {
                path: entry.path().to_owned(),
                line: None,
                reason,
            }),
        }
    }

    /// True when the file looks as the sync before saw it, and all it gave is held.
    fn looks_unchanged(&mut self, entry: &Entry) -> bool {
        let Some(ids) = self.seen.again(entry) else {
            return false;
        };
        let is_held = |id: &DocId| {
            let held = self.held.get(id);
            // An id that another file has by now is reported when this one is read.
            held.is_some_and(|held| held.source == entry.path()) && self.claims.is_free(id)
        };
        if !ids.iter().all(is_held) {
            return false;
        }
        for id in ids.iter() {
            if self.claims.claim(id, entry.path()).is_ok() {
                self.held.remove(id);
            }
        }
        self.report.unchanged += ids.len();
        true
    }

    /// True when the file is one document that the engine holds as it is. Comparing takes less
    /// than parsing, and most files do not change from one run to the next.
    fn is_unchanged(&mut self, source: &Source, entry: &Entry) -> bool {
        let Ok(id) = DocId::parse(entry.id()) else {
            return false;
        };
        let Some(held) = self
            .held
            .get(&id)
            .filter(|held| held.source == entry.path())
        else {
            return false;
        };
        let found = source.fingerprint(entry).ok();
        let same = |found: &Fingerprint| {
            let hash = self.shape.hash(entry.path(), &found.sha256);
            hash == held.hash
        };
        let Some(found) = found.filter(same) else {
            return false;
        };
        let unchanged = self.claims.claim(&id, entry.path()).is_ok();
        if unchanged {
            self.seen.note(entry, &found, vec![id.clone()]);
            self.held.remove(&id);
            self.report.unchanged += 1;
            self.report.tally.unchanged();
        }
        unchanged
    }

    fn document(&mut self, mut document: Document) {
        for reason in self.shape.apply(&mut document) {
            self.warn(Warning {
                path: document.source.clone(),
                line: line(&document),
                reason,
            });
        }
        let size = document.bytes();
        let claimed = if size > MAX_DOCUMENT_BYTES {
            Err(Reason::TooLarge {
                bytes: size as u64,
                limit: MAX_DOCUMENT_BYTES as u64,
            })
        } else {
            self.claims.claim(&document.id, &document.source)
        };
        if let Err(reason) = claimed {
            return self.skip(Skipped {
                path: document.source,
                line: None,
                reason,
            });
        }
        let held = self.held.remove(&document.id);
        if held.is_some_and(|held| held.source == document.source && held.hash == document.hash) {
            self.report.unchanged += 1;
            self.report.tally.unchanged();
        } else {
            self.report.indexed += 1;
            self.report.tally.indexed();
            self.batch.put(document);
        }
    }

    async fn flush(&mut self, watch: &mut (dyn Watch + Send)) -> Result<(), Problem> {
        let batch = std::mem::take(&mut self.batch);
        if !batch.changes.is_empty() {
            self.engine.apply(batch.changes).await?;
            watch.applied(self.engine.status().await?);
        }
        Ok(())
    }

    /// Removes what nobody claimed. Documents of what could not be read stay: a disk that fails
    /// for a moment must not empty the index.
    async fn remove_the_rest(&mut self, watch: &mut (dyn Watch + Send)) -> Result<(), Problem> {
        let rest = std::mem::take(&mut self.held);
        let all = rest.len();
        let mut gone: Vec<DocId> = rest
            .into_values()
            .filter(|held| !is_below(&held.source, &self.unreadable))
            .map(|held| held.id)
            .collect();
        gone.sort();
        self.report.removed = gone.len();
        self.report.kept = all - gone.len();
        for ids in gone.chunks(BATCH_DOCUMENTS) {
            self.batch
                .changes
                .extend(ids.iter().cloned().map(Change::Remove));
            self.flush(watch).await?;
        }
        Ok(())
    }

    fn skip(&mut self, skipped: Skipped) {
        self.report.tally.skip(&skipped.reason);
        if matches!(skipped.reason, Reason::Unreadable { .. }) {
            self.unreadable.insert(skipped.path.clone());
        }
        if self.report.skipped.len() < self.shape.limits.max_reported {
            self.report.skipped.push(skipped);
        } else {
            self.report.unlisted += 1;
        }
    }

    fn warn(&mut self, warning: Warning) {
        self.report.tally.warn(&warning.reason);
        if self.report.warnings.len() < self.shape.limits.max_reported {
            self.report.warnings.push(warning);
        } else {
            self.report.unlisted += 1;
        }
    }
}

/// The line of a record that is called after it.
fn line(document: &Document) -> Option<u64> {
    let (_, line) = document.id.as_str().rsplit_once("#L")?;
    line.parse().ok()
}

/// True when a path or one of the folders above it is in the set; the root is the empty path.
fn is_below(path: &str, set: &HashSet<String>) -> bool {
    let folders = path
        .match_indices('/')
        .filter_map(|(end, _)| path.get(..end));
    !set.is_empty() && folders.chain(["", path]).any(|part| set.contains(part))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use docent_ingest::Options;
    use docent_search::Memory;
    use proptest::prelude::*;

    use super::*;

    struct Unwatched;

    impl Watch for Unwatched {
        fn at(&mut self, _: usize, _: usize) {}
    }

    fn run(folder: &Path, engine: &Memory, limits: &Limits) -> Report {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(sync(
                folder,
                engine,
                &Shape::new(limits, &Options::NONE, &[]),
                &mut Seen::default(),
                &mut Unwatched,
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

    fn inventory(engine: &Memory) -> Vec<Held> {
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
        let engine = Memory::new();
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

    #[test]
    fn the_first_file_keeps_an_id_and_gives_it_up_when_it_goes() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Memory::new();
        let one = (r"a.jsonl", r#"{"id":"x","text":"one"}"#);
        let two = (r"b.jsonl", r#"{"id":"x","text":"two"}"#);
        write(dir.path(), &files(&[one, two]));
        let report = run(dir.path(), &engine, &Limits::default());
        assert_eq!(
            report.skipped.first().map(|skipped| skipped.reason.code()),
            Some("duplicate-id")
        );
        assert_eq!(
            report.skipped.first().map(|skipped| skipped.path.as_str()),
            Some("b.jsonl")
        );
        assert_eq!(inventory(&engine)[0].source, "a.jsonl");
        write(dir.path(), &files(&[two]));
        let report = run(dir.path(), &engine, &Limits::default());
        assert_eq!((report.indexed, report.removed), (1, 0));
        assert_eq!(inventory(&engine)[0].source, "b.jsonl");
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
        let report = run(dir.path(), &Memory::new(), &limits);
        assert_eq!((report.skipped.len(), report.unlisted), (2, 0));
        write(dir.path(), &binary(3));
        let report = run(dir.path(), &Memory::new(), &limits);
        assert_eq!((report.skipped.len(), report.unlisted), (2, 1));
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
        let report = run(dir.path(), &Memory::new(), &limits);
        assert_eq!(report.indexed, 2);
        assert_eq!(report.skipped[0].reason.code(), "too-many-documents");
    }

    #[test]
    fn batches_end_at_their_bounds() {
        let document = |bytes: usize| Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: "a".repeat(bytes - 1),
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
        };
        let mut many = Batch::default();
        (1..BATCH_DOCUMENTS).for_each(|_| many.put(document(1)));
        assert!(!many.is_full());
        many.put(document(1));
        assert!(many.is_full());
        let mut large = Batch::default();
        large.put(document(BATCH_BYTES - 1));
        assert!(!large.is_full());
        large.put(document(1));
        assert!(large.is_full());
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

    struct Stopped(usize);

    impl Watch for Stopped {
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
        let engine = Memory::new();
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
                &Shape::new(&limits, &Options::NONE, &[]),
                &mut Seen::default(),
                &mut Stopped(0),
            ))
            .unwrap();
        assert!(report.stopped);
        assert_eq!((report.removed, inventory(&engine).len()), (0, 3));
    }

    /// Files of a small world in which names, ids and texts meet again and again.
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
            let (engine, limits) = (Memory::new(), Limits::default());
            for world in worlds {
                write(dir.path(), &world);
                run(dir.path(), &engine, &limits);
                let fresh = Memory::new();
                run(dir.path(), &fresh, &limits);
                prop_assert_eq!(inventory(&engine), inventory(&fresh));
            }
        }
    }
}
