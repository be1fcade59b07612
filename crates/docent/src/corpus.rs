//! Incremental indexing: synchronizes the index with a folder and writes added, changed and removed documents to the
//! engine in bounded batches.
//!
//! A sync is idempotent: an index that was updated incrementally holds the same documents as one that was rebuilt.
//! New documents are written before outdated ones are removed, so that a search during a sync misses nothing.

mod change_batch;
mod file_state;
mod format_counts;
mod id_claims;
mod index_inventory;
mod memory_budget;
mod prefetch;
mod sync_run;
mod unreadable_documents;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use docent_ingest::{
    FileEntry, FileFilter, FolderSource, IngestWarning, Limits, ParserPool, ReaderField,
    SandboxConfig, SkippedItem, qualified_id,
};
use docent_search::{DocId, Document, Engine, EngineStatus};

use self::file_state::FileProblems;
pub use self::file_state::FileStateCache;
pub use self::format_counts::{FormatBreakdown, FormatCounts};
use self::index_inventory::IndexInventory;
pub use self::memory_budget::IndexMemoryBudget;
use self::prefetch::{ContentCheck, FilePrefetcher, ReadJob, SyncInput};
use self::sync_run::SyncRun;
pub(crate) use self::unreadable_documents::{UnreadableDocuments, count_stale, remove_stale};
use crate::cli_error::CliError;
use crate::document_transform::DocumentTransform;
use crate::settings::Settings;

/// The hidden argument that turns this program into a sandboxed parser process, which the parser pool starts.
pub const PARSER: &str = "__parse";

/// Receives the progress of a sync and can cancel it.
pub trait SyncObserver {
    /// Reports progress: `done` of `total` files have been processed.
    fn at(&mut self, done: usize, total: usize);

    /// Called after each batch that was written, with the new status of the engine.
    fn applied(&mut self, _status: EngineStatus) {}

    /// Whether to cancel the sync. The index is then only partly updated, but no document in it is incomplete, because
    /// batches are written atomically.
    fn stop(&self) -> bool {
        false
    }
}

/// The outcome of a sync: counts, and the first problems.
#[derive(Debug, Default)]
pub struct SyncReport {
    /// Files that the listing of the folder contains.
    pub files: usize,
    /// Documents that were added or changed.
    pub indexed: usize,
    /// Documents that were there already.
    pub unchanged: usize,
    /// Files and folders that settings or ignore files exclude.
    pub excluded: u64,
    /// Documents that were removed because their source is gone.
    pub removed: usize,
    /// Documents whose source could not be read this time. They stay in the index unchanged.
    pub kept: usize,
    /// Files and records that were not indexed; the first `max_reported` of them.
    pub skipped: Vec<SkippedItem>,
    /// Warnings about documents that were indexed with changes; the first `max_reported` of them.
    pub warnings: Vec<IngestWarning>,
    /// The number of skipped items and warnings beyond `max_reported`.
    pub unlisted: usize,
    /// Rows and files that were lost: skipped for another reason than their format or the owner's settings.
    pub lost: u64,
    /// Statistics by file format of the files that were opened.
    pub formats: FormatBreakdown,
    /// Whether the observer cancelled the sync.
    pub stopped: bool,
}

/// Options of a sync.
#[derive(Debug, Clone)]
pub struct SyncOptions {
    /// The field rules, permissions and limits that are applied to documents.
    pub shape: Arc<DocumentTransform>,
    /// The include and exclude patterns of files.
    pub choice: FileFilter,
    /// The memory budget of indexing.
    pub budget: IndexMemoryBudget,
}

/// Synchronizes the engine with the folder. `seen` holds the file states of the previous sync and is updated to those
/// of this one: a file with unchanged size and modification time is not read again.
///
/// The future blocks its thread on file reads, so run it on a thread where blocking is allowed.
///
/// # Errors
/// When the folder cannot be opened or the engine fails. An unreadable file is not an error but an item of the report.
pub async fn sync(
    folder: &Path,
    engine: &dyn Engine,
    options: SyncOptions,
    seen: &mut FileStateCache,
    observer: &mut (dyn SyncObserver + Send),
) -> Result<SyncReport, CliError> {
    let SyncOptions {
        shape,
        choice,
        budget,
    } = options;
    let (workers, limits) = (workers()?, &shape.limits);
    let source = open(folder, limits.clone())?
        .with_options(shape.options.clone())
        .with_workers(workers.clone());
    // No limit on reported items here: every skipped path must be known, or documents below an unreadable folder would
    // count as removed.
    let all = Limits {
        max_reported: usize::MAX,
        ..limits.clone()
    };
    // With the options, because the listing says which pages the reader field of a table covers.
    let listing = open(folder, all)?
        .with_options(shape.options.clone())
        .with_filter(choice)
        .list();
    let entries: Arc<[FileEntry]> = listing.entries.into();
    if let Some((documents, problems)) = seen.unchanged_since_last(&entries) {
        let unchanged = SyncReport {
            files: entries.len(),
            excluded: listing.excluded,
            unchanged: documents,
            skipped: listing.skipped,
            ..SyncReport::default()
        };
        return Ok(with_earlier_problems(
            unchanged,
            &problems,
            limits.max_reported,
        ));
    }
    let inventory = Arc::new(load_inventory(engine, seen, &entries).await?);
    let input = SyncInput {
        entries: entries.clone(),
        inventory,
        transform: shape.clone(),
        budget,
    };
    let mut run = SyncRun::new(engine, input.clone(), seen.start_sync());
    run.report.excluded = listing.excluded;
    for skipped in listing.skipped {
        run.skip(skipped);
    }
    let jobs = read_jobs(&entries, &run.seen);
    let prefetcher = FilePrefetcher::start(source, workers.clone(), input, jobs)?;
    let total = entries.len();
    for at in 0..total {
        observer.at(at, total);
        if observer.stop() || !run.sync_file(at, &prefetcher, observer).await? {
            run.report.stopped = true;
            break;
        }
    }
    drop(prefetcher);
    run.flush(observer).await?;
    warn_incomplete_sandbox(&workers, limits.require_sandbox);
    if !run.report.stopped {
        run.remove_unclaimed(observer).await?;
        engine.mark_complete().await?;
        run.remember_inventory().await?;
        observer.at(total, total);
    }
    // Only now: before the last write, a failure would leave files marked as seen whose documents are not indexed.
    *seen = run.seen;
    Ok(run.report)
}

/// Opens the folder with the limits, formats and file patterns of the settings, as indexing does.
pub(crate) fn source(folder: &Path, settings: &Settings) -> Result<FolderSource, CliError> {
    let source = open(folder, settings.ingest.clone())?
        .with_options(settings.formats.clone())
        .with_filter(settings.files.choice());
    Ok(source.with_workers(workers()?))
}

/// The reader field of a document, read again from its file; `None` if the file or the document no longer exists.
/// The index stores only the readers that follow from it, which is not enough to explain a decision.
pub(crate) fn reader_field_of(
    folder: &Path,
    settings: &Settings,
    document: &Document,
) -> Option<ReaderField> {
    let wanted = [(document.source.as_str(), &document.id)];
    said_by_files(folder, settings, &wanted).remove(&document.id)
}

/// The reader fields of many documents, given with their sources. Every file is read at most once.
pub(crate) fn said_by_files(
    folder: &Path,
    settings: &Settings,
    wanted: &[(&str, &DocId)],
) -> HashMap<DocId, ReaderField> {
    let mut fields = HashMap::new();
    let Ok(source) = source(folder, settings) else {
        return fields;
    };
    let source = source.with_options(settings.document_transform().options);
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    for entry in source.list().entries {
        let is_in = |document: &str| {
            let rest = document.strip_prefix(entry.path());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let first = wanted.partition_point(|(document, _)| *document < entry.path());
        let sources = wanted.get(first..).unwrap_or_default();
        let begin = sources
            .iter()
            .take_while(|(document, _)| document.starts_with(entry.path()));
        let ids: HashSet<_> = begin
            .filter(|(document, _)| is_in(document))
            .map(|(_, id)| *id)
            .collect();
        if ids.is_empty() {
            continue;
        }
        let Ok(reading) = source.read(&entry) else {
            continue;
        };
        for one in reading.documents {
            let renamed = qualified_id(&one.source, one.id.as_str());
            // If two files claim an id, the first keeps it and the other one's id is qualified with its path.
            let id = renamed.filter(|id| ids.contains(id));
            let id = id.unwrap_or_else(|| one.id.clone());
            if ids.contains(&id) {
                fields.entry(id).or_insert(one.readers);
            }
        }
    }
    fields
}

/// The inventory of the index. The previous sync leaves it in memory; it is loaded from the engine if that sync failed
/// or if another process has changed the index since, which the generation shows.
async fn load_inventory(
    engine: &dyn Engine,
    seen: &mut FileStateCache,
    entries: &[FileEntry],
) -> Result<IndexInventory, CliError> {
    let generation = engine.status().await?.generation;
    let known = seen.held.take().filter(|(held, _)| *held == generation);
    let mut inventory = match known {
        Some((_, inventory)) => inventory,
        None => IndexInventory::of(engine).await?,
    };
    inventory.assign_files(entries.iter().map(FileEntry::path));
    Ok(inventory)
}

/// The report of a sync that found no change. Problems of earlier syncs are repeated, because they still exist.
fn with_earlier_problems(
    mut report: SyncReport,
    problems: &[&FileProblems],
    most: usize,
) -> SyncReport {
    for earlier in problems {
        report.skipped.extend(earlier.skipped.iter().cloned());
        report.warnings.extend(earlier.warnings.iter().cloned());
    }
    let lost = report
        .skipped
        .iter()
        .map(|skipped| skipped.reason.lost_items());
    report.lost = lost.sum();
    let more = |items: usize| items.saturating_sub(most);
    report.unlisted = more(report.skipped.len()) + more(report.warnings.len());
    report.skipped.truncate(most);
    report.warnings.truncate(most);
    report
}

/// The files to read: those whose size or modification time changed. Where the size is the same, the checksum of the
/// content decides whether the file is parsed again.
fn read_jobs(entries: &[FileEntry], seen: &FileStateCache) -> VecDeque<ReadJob> {
    let job = |(at, entry): (usize, &FileEntry)| {
        let state = seen.previous(entry);
        if state.is_some_and(|state| state.matches(entry)) {
            return None;
        }
        let compare = match state {
            None => ContentCheck::Held,
            Some(state) if state.size == entry.size => state
                .sha256
                .clone()
                .map_or(ContentCheck::No, ContentCheck::Sum),
            Some(_) => ContentCheck::No,
        };
        Some(ReadJob { at, compare })
    };
    entries.iter().enumerate().filter_map(job).collect()
}

/// The pool of sandboxed parser processes. They start lazily, when a file needs one, and end with the sync.
fn workers() -> Result<Arc<ParserPool>, CliError> {
    let workers = SandboxConfig::of_this_program(PARSER).and_then(ParserPool::new);
    let failed = |error| CliError::failed(format!("cannot start a parser process: {error}"));
    workers.map(Arc::new).map_err(failed)
}

/// Warns if files were parsed in an incomplete sandbox: without resource limits, Landlock or seccomp, which every
/// supported Linux has unless the kernel or the container turns them off.
fn warn_incomplete_sandbox(workers: &ParserPool, is_required: bool) {
    let incomplete = workers.confinement().filter(|found| !found.is_complete());
    if let Some(found) = incomplete.filter(|_| cfg!(target_os = "linux")) {
        let (limits, landlock, seccomp) = (found.limits, found.landlock, found.seccomp);
        let message = if is_required {
            "files of third-party formats are skipped: the sandbox is incomplete"
        } else {
            "files are parsed in an incomplete sandbox"
        };
        tracing::warn!(?limits, ?landlock, ?seccomp, "{message}");
    }
}

fn open(folder: &Path, limits: Limits) -> Result<FolderSource, CliError> {
    FolderSource::open(folder, limits).map_err(|reason| {
        CliError::failed(format!("`{}`: {reason}", folder.display())).hint(reason.hint())
    })
}

#[cfg(test)]
mod tests;
