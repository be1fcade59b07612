//! A folder into an index that can be trusted, or the reason why it cannot.
//!
//! Opening is recovering: lock, check the format, check every sum, then open. In doubt the index is
//! refused, since it can always be built again from its documents.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tantivy::directory::error::{LockError, OpenReadError};
use tantivy::directory::{Directory, DirectoryLock, META_LOCK};
use tantivy::index::SegmentComponent;
use tantivy::{Index, IndexSettings, TantivyError};

use super::disk::{Disk, META, writer_lock};
use super::schema::{Fields, schema};
use super::tokens;
use crate::error::Error;

/// The format this version writes and reads. It counts up whenever an index written before would
/// be misread: another schema, another stored shape, other terms for the same text.
pub(super) const FORMAT: u32 = 3;

/// The file that says which format an index has. It is written last when an index is made, so an
/// index without it was never finished.
const FORMAT_FILE: &str = "docent-index.json";

#[derive(Serialize, Deserialize)]
struct FormatFile {
    format: u32,
}

/// What the one who opens an index wants to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    Read,
}

/// An index that passed every check.
pub(super) struct Opened {
    pub index: Index,
    pub fields: Fields,
    /// Held for as long as the index may be written to.
    pub lock: Option<DirectoryLock>,
}

/// Opens the index in `dir`; makes one there when there is none and it is to be written to.
pub(super) fn open(dir: &Path, access: Access) -> Result<Opened, Error> {
    if access == Access::Write {
        fs::create_dir_all(dir).map_err(|source| Error::io(dir, source))?;
    } else if !dir.is_dir() {
        return Err(Error::Missing {
            path: dir.to_owned(),
        });
    }
    let disk = Disk::open(dir).map_err(|source| failure(dir, source.into()))?;
    let lock = match access {
        Access::Write => Some(take_lock(dir, &disk)?),
        Access::Read => None,
    };
    if let Some(content) = read(dir, FORMAT_FILE)? {
        check_format(dir, &content)?;
    } else if access == Access::Write {
        create(dir, &disk)?;
    } else {
        return Err(Error::Missing {
            path: dir.to_owned(),
        });
    }
    let (index, fields) = open_checked(dir, disk)?;
    if access == Access::Write {
        remove_torn_files(dir);
    }
    Ok(Opened {
        index,
        fields,
        lock,
    })
}

fn take_lock(dir: &Path, disk: &Disk) -> Result<DirectoryLock, Error> {
    disk.acquire_lock(&writer_lock())
        .map_err(|source| failure(dir, source.into()))
}

/// A file's content, or nothing when there is no such file.
fn read(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let path = dir.join(name);
    match fs::read(&path) {
        Ok(content) => Ok(Some(content)),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io(&path, source)),
    }
}

fn check_format(dir: &Path, content: &[u8]) -> Result<(), Error> {
    let FormatFile { format } = serde_json::from_slice(content)
        .map_err(|_| Error::corrupt(dir, format!("`{FORMAT_FILE}` cannot be read")))?;
    if format == FORMAT {
        return Ok(());
    }
    Err(Error::Format {
        path: dir.to_owned(),
        found: format.to_string(),
        expected: FORMAT,
    })
}

/// Makes an empty index, or makes one again that was left unfinished. An index that has documents
/// is never touched here, whoever made it.
fn create(dir: &Path, disk: &Disk) -> Result<(), Error> {
    let known = |source| failure(dir, source);
    if disk
        .exists(Path::new(META))
        .map_err(|source| known(source.into()))?
    {
        let found = Index::open(disk.clone()).and_then(|index| index.searchable_segment_metas());
        if !found.map_err(known)?.is_empty() {
            return Err(Error::Format {
                path: dir.to_owned(),
                found: "unknown".to_owned(),
                expected: FORMAT,
            });
        }
    }
    // One thread less for each segment: our documents are small and the indexing threads suffice.
    let settings = IndexSettings {
        docstore_compress_dedicated_thread: false,
        ..Default::default()
    };
    Index::create(disk.clone(), schema().0, settings).map_err(known)?;
    let content = serde_json::to_vec(&FormatFile { format: FORMAT }).map_err(Error::engine)?;
    disk.write(FORMAT_FILE, &content)
        .map_err(|source| Error::io(&dir.join(FORMAT_FILE), source))
}

/// Checks every byte of the index before one of them is believed.
fn open_checked(dir: &Path, disk: Disk) -> Result<(Index, Fields), Error> {
    let known = |source| failure(dir, source);
    // While this is held no other process takes files away that were just found in the index.
    let reading = disk
        .acquire_lock(&META_LOCK)
        .map_err(|source| known(source.into()))?;
    if !disk
        .meta_is_intact()
        .map_err(|source| known(source.into()))?
    {
        return Err(Error::corrupt(
            dir,
            format!("the sum of `{META}` does not match"),
        ));
    }
    let mut index = Index::open(disk).map_err(known)?;
    let (schema, fields) = schema();
    if index.schema() != schema {
        return Err(Error::corrupt(
            dir,
            "it has other fields than its format says",
        ));
    }
    check_segments(dir, &index)?;
    drop(reading);
    index.set_tokenizers(tokens::manager());
    Ok((index, fields))
}

/// Compares the sum of each file of each segment. tantivy has the same, but passes over files that
/// its list of files does not name, and that list has no sum either.
fn check_segments(dir: &Path, index: &Index) -> Result<(), Error> {
    let known = |source| failure(dir, source);
    for segment in index.searchable_segment_metas().map_err(known)? {
        let deletions = segment.has_deletes().then_some(SegmentComponent::Delete);
        let parts = [
            SegmentComponent::Postings,
            SegmentComponent::Positions,
            SegmentComponent::FastFields,
            SegmentComponent::FieldNorms,
            SegmentComponent::Terms,
            SegmentComponent::Store,
        ];
        for part in parts.into_iter().chain(deletions) {
            let file = segment.relative_path(part);
            let sum = index.directory().validate_checksum(&file);
            if !sum.map_err(|source| known(source.into()))? {
                let reason = format!("the sum of `{}` does not match", file.display());
                return Err(Error::corrupt(dir, reason));
            }
        }
    }
    Ok(())
}

/// Removes what a process that was killed left half written. Whole files that no commit names are
/// removed by the writer, which knows them.
fn remove_torn_files(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(".tmp") {
            // What cannot be removed now is tried again at the next start.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What a failure of tantivy means to the one who opened the index in `dir`.
pub(super) fn failure(dir: &Path, source: TantivyError) -> Error {
    let io = |path: PathBuf, source: &std::io::Error| {
        let kept = std::io::Error::new(source.kind(), source.to_string());
        Error::io(&dir.join(path), kept)
    };
    let reason = source.to_string();
    match source {
        TantivyError::LockFailure(LockError::LockBusy, _) => Error::Locked {
            path: dir.to_owned(),
        },
        TantivyError::LockFailure(LockError::IoError(source), _)
        | TantivyError::IoError(source) => io(PathBuf::new(), &source),
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(path)) => {
            Error::corrupt(dir, format!("`{}` is missing", path.display()))
        }
        // A file too short to have a footer is told as a failure to read it.
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath }) => {
            match io_error.kind() {
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => {
                    Error::corrupt(dir, format!("`{}` is cut short", filepath.display()))
                }
                _ => io(filepath, &io_error),
            }
        }
        TantivyError::DataCorruption(_) | TantivyError::DeserializeError(_) => {
            Error::corrupt(dir, reason)
        }
        TantivyError::IncompatibleIndex(_)
        | TantivyError::OpenReadError(OpenReadError::IncompatibleIndex(_)) => Error::Format {
            path: dir.to_owned(),
            found: reason,
            expected: FORMAT,
        },
        other => Error::engine(other),
    }
}
