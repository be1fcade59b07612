//! A folder and its index, kept in step: what was added, changed or removed in the folder is put
//! into the engine in bounded batches.
//!
//! An index that was brought up to date holds the same documents as one built anew, whatever
//! happened in the folder between. New documents go in before old ones go out, so that a reader
//! meanwhile misses nothing.

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

/// The argument that makes this program a child process that parses files and does nothing else.
pub const PARSER: &str = "__parse";

/// Whoever wants to know how far a sync is, and may stop it.
pub trait SyncObserver {
    /// So many of so many files have been looked at.
    fn at(&mut self, done: usize, total: usize);

    /// A batch has been applied, and the engine is like this now.
    fn applied(&mut self, _status: EngineStatus) {}

    /// True when the sync should end early. The index is then partly new, and every document
    /// in it is whole.
    fn stop(&self) -> bool {
        false
    }
}

/// What a sync did.
#[derive(Debug, Default)]
pub struct SyncReport {
    /// Files in the folder.
    pub files: usize,
    /// Documents that were added or changed.
    pub indexed: usize,
    /// Documents that were there already.
    pub unchanged: usize,
    /// Names that the owner left out, by settings or ignore files.
    pub excluded: u64,
    /// Documents whose source is gone.
    pub removed: usize,
    /// Documents whose source could not be read this time, left as they were.
    pub kept: usize,
    /// What was not indexed, the first `max_reported` of it.
    pub skipped: Vec<SkippedItem>,
    /// What was indexed, but not quite as it was written, the first `max_reported` of it.
    pub warnings: Vec<IngestWarning>,
    /// How many more of both there were.
    pub unlisted: usize,
    /// Rows and files that were lost: skipped for another reason than their kind or the owner's choice.
    pub lost: u64,
    /// What became of the files that were opened, by their kinds.
    pub formats: FormatBreakdown,
    /// True when somebody stopped it.
    pub stopped: bool,
}

/// How a folder is read.
#[derive(Debug, Clone)]
pub struct SyncOptions {
    /// What becomes of files.
    pub shape: Arc<DocumentTransform>,
    /// Which files are wanted.
    pub choice: FileFilter,
    /// The memory that indexing may take.
    pub budget: IndexMemoryBudget,
}

/// Brings the engine in step with the folder. `seen` is what the sync before saw, and becomes what
/// this one saw: a file that looks as it did then is not read again.
///
/// Waits for files on the thread that polls it: run it where blocking is no harm.
///
/// # Errors
/// When the folder cannot be opened or the engine fails. A bad file is a line in the report.
pub async fn sync(
    folder: &Path,
    engine: &dyn Engine,
    way: SyncOptions,
    seen: &mut FileStateCache,
    watch: &mut (dyn SyncObserver + Send),
) -> Result<SyncReport, CliError> {
    let SyncOptions {
        shape,
        choice,
        budget,
    } = way;
    let (workers, limits) = (workers()?, &shape.limits);
    let source = open(folder, limits.clone())?
        .with_options(shape.options.clone())
        .with_workers(workers.clone());
    // Every name that was left out must be known here, or documents below a folder that could not
    // be read would be taken for removed ones.
    let all = Limits {
        max_reported: usize::MAX,
        ..limits.clone()
    };
    let listing = open(folder, all)?.with_filter(choice).list();
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
    let register = Arc::new(load_inventory(engine, seen, &entries).await?);
    let input = SyncInput {
        entries: entries.clone(),
        inventory: register,
        transform: shape.clone(),
        budget,
    };
    let mut run = SyncRun::new(engine, input.clone(), seen.start_sync());
    run.report.excluded = listing.excluded;
    for skipped in listing.skipped {
        run.skip(skipped);
    }
    let jobs = read_jobs(&entries, &run.seen);
    let ahead = FilePrefetcher::start(source, workers.clone(), input, jobs)?;
    let total = entries.len();
    for at in 0..total {
        watch.at(at, total);
        if watch.stop() || !run.sync_file(at, &ahead, watch).await? {
            run.report.stopped = true;
            break;
        }
    }
    drop(ahead);
    run.flush(watch).await?;
    warn_incomplete_sandbox(&workers, limits.require_sandbox);
    if !run.report.stopped {
        run.remove_unclaimed(watch).await?;
        engine.mark_complete().await?;
        run.remember_inventory().await?;
        watch.at(total, total);
    }
    // Only now is all that was seen also held.
    *seen = run.seen;
    Ok(run.report)
}

/// A folder whose files are read as they are when it is indexed.
pub(crate) fn source(folder: &Path, settings: &Settings) -> Result<FolderSource, CliError> {
    let source = open(folder, settings.ingest.clone())?
        .with_options(settings.formats.clone())
        .with_filter(settings.files.choice());
    Ok(source.with_workers(workers()?))
}

/// What the file of a document says about its readers, read once more; nothing where the file or the document
/// is not to be found any more.
pub(crate) fn reader_field_of(
    folder: &Path,
    settings: &Settings,
    document: &Document,
) -> Option<ReaderField> {
    let wanted = [(document.source.as_str(), &document.id)];
    said_by_files(folder, settings, &wanted).remove(&document.id)
}

/// The same for many documents, each with its source; every file is read once.
pub(crate) fn said_by_files(
    folder: &Path,
    settings: &Settings,
    wanted: &[(&str, &DocId)],
) -> HashMap<DocId, ReaderField> {
    let mut said = HashMap::new();
    let Ok(source) = source(folder, settings) else {
        return said;
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
            // An id that two files have stays with the first, and in the other the file's name comes before it.
            let id = renamed.filter(|id| ids.contains(id));
            let id = id.unwrap_or_else(|| one.id.clone());
            if ids.contains(&id) {
                said.entry(id).or_insert(one.readers);
            }
        }
    }
    said
}

/// What the index holds. The sync before knows, unless it failed or somebody else has changed the index.
async fn load_inventory(
    engine: &dyn Engine,
    seen: &mut FileStateCache,
    entries: &[FileEntry],
) -> Result<IndexInventory, CliError> {
    let generation = engine.status().await?.generation;
    let known = seen.held.take().filter(|(held, _)| *held == generation);
    let mut register = match known {
        Some((_, register)) => register,
        None => IndexInventory::of(engine).await?,
    };
    register.assign_files(entries.iter().map(FileEntry::path));
    Ok(register)
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

/// The files that do not look as they did before.
fn read_jobs(entries: &[FileEntry], seen: &FileStateCache) -> VecDeque<ReadJob> {
    let job = |(at, entry): (usize, &FileEntry)| {
        let look = seen.previous(entry);
        if look.is_some_and(|look| look.matches(entry)) {
            return None;
        }
        let compare = match look {
            None => ContentCheck::Held,
            Some(look) if look.size == entry.size => look
                .sha256
                .clone()
                .map_or(ContentCheck::No, ContentCheck::Sum),
            Some(_) => ContentCheck::No,
        };
        Some(ReadJob { at, compare })
    };
    entries.iter().enumerate().filter_map(job).collect()
}

/// The child processes that parse. None is started before a file needs it, and they end with the sync.
fn workers() -> Result<Arc<ParserPool>, CliError> {
    let workers = SandboxConfig::of_this_program(PARSER).and_then(ParserPool::new);
    let failed =
        |error| CliError::failed(format!("no process can be started to read files: {error}"));
    workers.map(Arc::new).map_err(failed)
}

/// Says when files were parsed with less around the parser than this system should have.
fn warn_incomplete_sandbox(workers: &ParserPool, is_required: bool) {
    let walls = workers.confinement().filter(|walls| !walls.is_complete());
    if let Some(walls) = walls.filter(|_| cfg!(target_os = "linux")) {
        let (limits, landlock, seccomp) = (walls.limits, walls.landlock, walls.seccomp);
        let what = if is_required {
            "files of foreign formats are left out: the sandbox is incomplete"
        } else {
            "files are parsed in an incomplete sandbox"
        };
        tracing::warn!(?limits, ?landlock, ?seccomp, "{what}");
    }
}

fn open(folder: &Path, limits: Limits) -> Result<FolderSource, CliError> {
    FolderSource::open(folder, limits).map_err(|reason| {
        CliError::failed(format!("`{}`: {reason}", folder.display())).hint(reason.hint())
    })
}

#[cfg(test)]
mod tests;
