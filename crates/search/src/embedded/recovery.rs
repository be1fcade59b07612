//! Opens the lexical index with recovery: only data that passes every check is used.
//!
//! The steps are: take the lock, check the format, verify every checksum, then open. When the index is opened
//! for writing, corrupt segments are quarantined, since they can always be rebuilt from their documents, and
//! the rest goes on answering. A reader cannot rebuild anything and refuses to open a corrupt index.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tantivy::directory::error::{LockError, OpenReadError};
use tantivy::directory::{Directory, META_LOCK};
use tantivy::index::{SegmentComponent, SegmentId, SegmentMeta};
use tantivy::{Index, IndexSettings, TantivyError};

use super::checksums::{FileChecksums, is_segment_file};
use super::durable_directory::{DurableDirectory, META};
use super::index_folder::{self, FORMAT};
use super::quarantine::Quarantine;
use super::schema::{IndexFields, schema};
use super::tokenizer;
use crate::error::SearchError;
use crate::folder_lock;

/// The file that says which format an index has. It is written last when an index is created, so an index
/// without it was never finished.
const FORMAT_FILE: &str = "docent-index.json";

/// tantivy's list of the files that it may remove.
const MANAGED: &str = ".managed.json";

/// The lock file that the only writer holds for as long as it has the index open.
const LOCK: &str = folder_lock::WRITER_LOCK_FILE;

#[derive(Serialize, Deserialize)]
struct FormatFile {
    format: u32,
}

/// Whether an index is opened for writing too, or for reading only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessMode {
    Write,
    Read,
}

/// A lexical index that has passed every check.
pub(super) struct RecoveredIndex {
    pub index: Index,
    pub disk: DurableDirectory,
    pub fields: IndexFields,
    /// The folder of the lexical index.
    pub lexical_dir: PathBuf,
    /// The parts that failed a check.
    pub quarantine: Quarantine,
    /// The writer's lock, held while the index is open; `None` for a reader.
    pub lock: Option<File>,
}

/// Opens the lexical index in `dir`; creates one when there is none and it is opened for writing.
pub(super) fn open(dir: &Path, access: AccessMode) -> Result<RecoveredIndex, SearchError> {
    let lexical_dir = index_folder::words_folder(dir);
    let mut quarantine = Quarantine::of(dir);
    let ((index, disk), lock) = match access {
        AccessMode::Write => {
            fs::create_dir_all(dir).map_err(|source| SearchError::io(dir, source))?;
            let lock = folder_lock::lock(dir, LOCK)?;
            (open_to_write(&lexical_dir, &mut quarantine)?, Some(lock))
        }
        AccessMode::Read if lexical_dir.join(FORMAT_FILE).exists() => {
            (open_to_read(&lexical_dir, dir)?, None)
        }
        AccessMode::Read => {
            return Err(SearchError::Missing {
                path: dir.to_owned(),
            });
        }
    };
    let (_, fields) = schema();
    Ok(RecoveredIndex {
        index,
        disk,
        fields,
        lexical_dir,
        quarantine,
        lock,
    })
}

fn open_to_read(lexical_dir: &Path, dir: &Path) -> Result<(Index, DurableDirectory), SearchError> {
    let disk = DurableDirectory::open(lexical_dir)
        .map_err(|source| map_tantivy_error(dir, source.into()))?;
    check_format(lexical_dir)?;
    let (index, damaged) = open_checked(lexical_dir, &disk)?;
    match damaged.into_iter().next() {
        None => Ok((index, disk)),
        Some(part) => Err(SearchError::corrupt(dir, part.why)),
    }
}

fn open_to_write(
    lexical_dir: &Path,
    quarantine: &mut Quarantine,
) -> Result<(Index, DurableDirectory), SearchError> {
    match prepare(lexical_dir, quarantine) {
        Err(error @ (SearchError::Corrupt { .. } | SearchError::Format { .. })) => {
            quarantine.isolate(lexical_dir, error.to_string())?;
            prepare(lexical_dir, quarantine)
        }
        other => other,
    }
}

/// Opens the lexical index in its folder, without the corrupt segments.
fn prepare(
    lexical_dir: &Path,
    quarantine: &mut Quarantine,
) -> Result<(Index, DurableDirectory), SearchError> {
    fs::create_dir_all(lexical_dir).map_err(|source| SearchError::io(lexical_dir, source))?;
    let disk = DurableDirectory::open(lexical_dir)
        .map_err(|source| map_tantivy_error(lexical_dir, source.into()))?;
    if lexical_dir.join(FORMAT_FILE).exists() {
        check_format(lexical_dir)?;
    } else {
        create(lexical_dir, &disk)?;
    }
    list_files(lexical_dir, &disk)?;
    let (index, damaged) = open_checked(lexical_dir, &disk)?;
    remove_torn_files(lexical_dir);
    if damaged.is_empty() {
        return Ok((index, disk));
    }
    let ids: Vec<_> = damaged.iter().map(|part| part.segment.id()).collect();
    drop_segments(lexical_dir, &disk, &ids)?;
    for part in damaged {
        for file in files(&part.segment) {
            quarantine.isolate(&lexical_dir.join(file), part.why.as_str())?;
        }
    }
    let (index, _) = open_checked(lexical_dir, &disk)?;
    Ok((index, disk))
}

fn check_format(lexical_dir: &Path) -> Result<(), SearchError> {
    let path = lexical_dir.join(FORMAT_FILE);
    let content = fs::read(&path).map_err(|source| SearchError::io(&path, source))?;
    match serde_json::from_slice(&content) {
        Ok(FormatFile { format: FORMAT }) => Ok(()),
        Ok(FormatFile { format }) => Err(SearchError::Format {
            path: lexical_dir.to_owned(),
            found: format.to_string(),
            expected: FORMAT,
        }),
        Err(_) => Err(SearchError::corrupt(
            lexical_dir,
            format!("`{FORMAT_FILE}` cannot be read"),
        )),
    }
}

/// Creates an empty index, or recreates one that was left unfinished. An index with documents is never
/// touched here, whoever made it.
fn create(lexical_dir: &Path, disk: &DurableDirectory) -> Result<(), SearchError> {
    let map_error = |source| map_tantivy_error(lexical_dir, source);
    if disk
        .exists(Path::new(META))
        .map_err(|source| map_error(source.into()))?
    {
        let found = Index::open(disk.clone()).and_then(|index| index.searchable_segment_metas());
        if !found.map_err(map_error)?.is_empty() {
            return Err(SearchError::corrupt(
                lexical_dir,
                format!("`{FORMAT_FILE}` is missing"),
            ));
        }
    }
    // Without a thread for compressing each segment's documents: these are small, and the indexing threads
    // suffice.
    let settings = IndexSettings {
        docstore_compress_dedicated_thread: false,
        ..Default::default()
    };
    Index::create(disk.clone(), schema().0, settings).map_err(map_error)?;
    let content =
        serde_json::to_vec(&FormatFile { format: FORMAT }).map_err(SearchError::engine)?;
    disk.write(FORMAT_FILE, &content)
        .and_then(|()| docent_atomic_file::sync_folder(lexical_dir.parent().unwrap_or(lexical_dir)))
        .map_err(|source| SearchError::io(&lexical_dir.join(FORMAT_FILE), source))
}

/// Writes down which files tantivy may remove: all that look like its own. tantivy's list has no checksum,
/// and a file that is missing from it would stay forever.
fn list_files(lexical_dir: &Path, disk: &DurableDirectory) -> Result<(), SearchError> {
    let io = |source| SearchError::io(lexical_dir, source);
    let mut files = BTreeSet::from([PathBuf::from(META)]);
    for entry in fs::read_dir(lexical_dir).map_err(io)? {
        let name = PathBuf::from(entry.map_err(io)?.file_name());
        if is_segment_file(&name.to_string_lossy()) {
            files.insert(name);
        }
    }
    let listed = fs::read(lexical_dir.join(MANAGED)).ok();
    let listed = listed.and_then(|content| serde_json::from_slice(&content).ok());
    if listed.as_ref() == Some(&files) {
        return Ok(());
    }
    let content = serde_json::to_vec(&files).map_err(SearchError::engine)?;
    disk.write(MANAGED, &content).map_err(io)
}

/// A segment with a file that is not what was written.
struct CorruptSegment {
    segment: SegmentMeta,
    why: String,
}

/// Verifies every checksum of the index before any of it is used, and returns the corrupt segments. A corrupt
/// file that names the segments is an error, because it leaves nothing to return.
fn open_checked(
    lexical_dir: &Path,
    disk: &DurableDirectory,
) -> Result<(Index, Vec<CorruptSegment>), SearchError> {
    let map_error = |source| map_tantivy_error(lexical_dir, source);
    // While this lock is held, no other process removes files that the index has just named.
    let reading = disk
        .acquire_lock(&META_LOCK)
        .map_err(|source| map_error(source.into()))?;
    if !disk
        .meta_is_intact()
        .map_err(|source| map_error(source.into()))?
    {
        return Err(SearchError::corrupt(
            lexical_dir,
            format!("checksum mismatch in `{META}`"),
        ));
    }
    let mut index = Index::open(disk.clone()).map_err(map_error)?;
    if index.schema() != schema().0 {
        return Err(SearchError::corrupt(
            lexical_dir,
            "its fields are not those of its format",
        ));
    }
    // Read after the names of the segments, so that it lists all of them.
    let sums = disk
        .checksums()
        .map_err(|source| map_error(source.into()))?;
    let sums = sums.unwrap_or_default();
    let mut damaged = Vec::new();
    for segment in index.searchable_segment_metas().map_err(map_error)? {
        if let Some(why) = check_segment(lexical_dir, &index, &sums, &segment)? {
            damaged.push(CorruptSegment { segment, why });
        }
    }
    drop(reading);
    index.set_tokenizers(tokenizer::manager());
    Ok((index, damaged))
}

fn files(segment: &SegmentMeta) -> impl Iterator<Item = PathBuf> {
    let parts = [
        SegmentComponent::Postings,
        SegmentComponent::Positions,
        SegmentComponent::FastFields,
        SegmentComponent::FieldNorms,
        SegmentComponent::Terms,
        SegmentComponent::Store,
    ];
    let deletions = segment.has_deletes().then_some(SegmentComponent::Delete);
    let parts = parts.into_iter().chain(deletions);
    parts.map(|part| segment.relative_path(part))
}

/// Verifies the checksum of each file of a segment, and says what is wrong.
fn check_segment(
    lexical_dir: &Path,
    index: &Index,
    sums: &FileChecksums,
    segment: &SegmentMeta,
) -> Result<Option<String>, SearchError> {
    for file in files(segment) {
        if !sums.is_intact(lexical_dir, &file) {
            let why = format!("`{}` is not the file that was written", file.display());
            return Ok(Some(why));
        }
        let sum = index.directory().validate_checksum(&file);
        match sum.map_err(|source| map_tantivy_error(lexical_dir, source.into())) {
            Ok(true) => {}
            Ok(false) => {
                let why = format!("checksum mismatch in `{}`", file.display());
                return Ok(Some(why));
            }
            Err(SearchError::Corrupt { reason, .. }) => return Ok(Some(reason)),
            Err(SearchError::Format { found, .. }) => return Ok(Some(found)),
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

/// Commits the remaining segments, without the corrupt ones.
fn drop_segments(
    lexical_dir: &Path,
    disk: &DurableDirectory,
    damaged: &[SegmentId],
) -> Result<(), SearchError> {
    let unreadable = || SearchError::corrupt(lexical_dir, format!("`{META}` cannot be read"));
    let content = disk.atomic_read(Path::new(META));
    let content = content.map_err(|source| map_tantivy_error(lexical_dir, source.into()))?;
    let mut meta: serde_json::Value = serde_json::from_slice(&content).map_err(|_| unreadable())?;
    let segments = meta
        .get_mut("segments")
        .and_then(|list| list.as_array_mut());
    let id = |segment: &serde_json::Value| {
        let id = segment.get("segment_id")?.clone();
        serde_json::from_value::<SegmentId>(id).ok()
    };
    segments
        .ok_or_else(unreadable)?
        .retain(|segment| id(segment).is_some_and(|id| !damaged.contains(&id)));
    let content = serde_json::to_vec(&meta).map_err(SearchError::engine)?;
    disk.atomic_write(Path::new(META), &content)
        .map_err(|source| SearchError::io(&lexical_dir.join(META), source))
}

/// Removes half-written temporary files of a process that was killed. Complete files that no commit names are
/// removed by the writer's garbage collection.
fn remove_torn_files(lexical_dir: &Path) {
    let Ok(entries) = fs::read_dir(lexical_dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(".tmp") {
            // What cannot be removed now is tried again at the next start.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Translates an error of tantivy for whoever opened the index in `dir`.
pub(super) fn map_tantivy_error(dir: &Path, source: TantivyError) -> SearchError {
    let io = |path: PathBuf, source: &std::io::Error| {
        let kept = std::io::Error::new(source.kind(), source.to_string());
        SearchError::io(&dir.join(path), kept)
    };
    let reason = source.to_string();
    match source {
        TantivyError::LockFailure(LockError::LockBusy, _) => SearchError::Locked {
            path: dir.to_owned(),
        },
        TantivyError::LockFailure(LockError::IoError(source), _)
        | TantivyError::IoError(source) => io(PathBuf::new(), &source),
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(path)) => {
            SearchError::corrupt(dir, format!("`{}` is missing", path.display()))
        }
        // A file too short to have a footer is reported as a read error.
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath }) => {
            match io_error.kind() {
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => {
                    SearchError::corrupt(dir, format!("`{}` is truncated", filepath.display()))
                }
                _ => io(filepath, &io_error),
            }
        }
        TantivyError::DataCorruption(_) | TantivyError::DeserializeError(_) => {
            SearchError::corrupt(dir, reason)
        }
        TantivyError::IncompatibleIndex(_)
        | TantivyError::OpenReadError(OpenReadError::IncompatibleIndex(_)) => SearchError::Format {
            path: dir.to_owned(),
            found: reason,
            expected: FORMAT,
        },
        other => SearchError::engine(other),
    }
}
