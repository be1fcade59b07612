//! Archive unpacker: streams the members of an archive through the format parsers, nested archives included.
//!
//! One [`UnpackBudget`] covers the whole archive. A member that fails costs only itself; the unpacker stops
//! only when the budget is spent.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{Cursor, Read};

use ::zip::read::{Config, ZipFileEntry, ZipReadOptions};
use ::zip::unstable::read::ZipIterable;
use flate2::read::MultiGzDecoder;

use super::member_path::MemberPath;
use super::unpack_budget::{UnpackBudget, damaged};
use super::zip_entry::{ClosableBytes, check_entry, entry_name, unsupported_storage};
use crate::digest::sha256;
use crate::error::bounded_report::{BoundedReport, ReportItem as _};
use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::formats::detect;
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::parser::folder_context::FolderContext;
use crate::parser::{HEAD_BYTES, IdPass, ParsedFile, ParserInput};
use crate::reader_field::ReaderKeys;
use crate::records::notion_table::{self, NotionTable, RestrictedPages, split_path};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArchiveKind {
    Zip,
    Tar,
    Gzip,
}

/// The state of unpacking one archive file: the shared budget, the documents so far, and the bounded lists of
/// skipped members and warnings.
pub(super) struct ArchiveUnpacker<'a> {
    limits: &'a Limits,
    options: &'a IngestOptions,
    budget: UnpackBudget,
    parsed: ParsedFile,
    skipped: BoundedReport<SkippedItem>,
    warnings: BoundedReport<IngestWarning>,
    readers: ReaderKeys,
    restricted: RestrictedPages,
}

impl<'a> ArchiveUnpacker<'a> {
    pub(super) fn new(input: &ParserInput<'a>) -> Self {
        let limits = input.limits;
        Self {
            limits,
            options: input.options,
            budget: UnpackBudget::new(limits, input.bytes.len() as u64),
            parsed: ParsedFile::default(),
            skipped: BoundedReport::new(limits.max_reported),
            warnings: BoundedReport::new(limits.max_reported),
            readers: ReaderKeys::for_any_path(&input.options.readers),
            restricted: RestrictedPages::default(),
        }
    }

    /// Returns everything that was parsed. An archive without a single document fails as a whole with the
    /// error that stopped it.
    pub(super) fn finish(
        mut self,
        input: &ParserInput<'_>,
        opened: Result<(), IngestError>,
    ) -> Result<ParsedFile, IngestError> {
        let no_documents = self.parsed.documents.is_empty();
        match opened {
            Err(reason) if no_documents => return Err(reason),
            Err(reason) => self.skip(input.path, reason),
            Ok(()) => {}
        }
        self.restricted.close(&mut self.parsed.documents);
        self.parsed.skipped = self.skipped.finish(input.path);
        self.parsed.warnings = self.warnings.finish(input.path);
        if no_documents && self.parsed.skipped.is_empty() {
            return Err(IngestError::Empty);
        }
        Ok(self.parsed)
    }

    /// Unpacks one archive. Recurses into nested archives; `max_nested_archives` bounds the depth.
    pub(super) fn archive(
        &mut self,
        at: &MemberPath,
        bytes: &[u8],
        kind: ArchiveKind,
        depth: usize,
    ) -> Result<(), IngestError> {
        match kind {
            ArchiveKind::Zip => self.zip(at, bytes, depth),
            ArchiveKind::Tar => self.tar(at, bytes, depth),
            ArchiveKind::Gzip => self.gzip(at, bytes, depth),
        }
    }

    /// Unpacks a zip entry by entry. `ZipArchive` finds members by name, so of two with one name it would show
    /// the last one only.
    fn zip(&mut self, at: &MemberPath, bytes: &[u8], depth: usize) -> Result<(), IngestError> {
        let mut zip = open_zip(bytes)?;
        let names = names(&mut zip, self.limits.max_members);
        for entry in zip.files().map_err(|_| damaged())? {
            self.budget.count_member()?;
            let entry = entry.map_err(|_| damaged())?;
            let name = entry_name(&entry);
            let (folder, file) = split_path(&name);
            if notion_table::is_view(file, |other| names.contains(&format!("{folder}{other}"))) {
                continue;
            }
            let Some(place) = self.resolve_member(at, &name) else {
                continue;
            };
            let read = check_entry(&entry, &place.extension, self.limits)
                .and_then(|()| self.read_entry(entry, bytes));
            if !self.is_repeated_table(&place, &read, &pages_beside(&name, &names)) {
                self.member(&place, read, depth)?;
            }
        }
        Ok(())
    }

    fn read_entry(&self, entry: ZipFileEntry<'_>, bytes: &[u8]) -> Result<Vec<u8>, IngestError> {
        let is_closed = Cell::new(false);
        let mut from = ClosableBytes::new(bytes, &is_closed);
        let file = entry.with_reader(&mut from, ZipReadOptions::new());
        let mut file = self.budget.metered(file.map_err(|_| damaged())?);
        let read = self.read_member(&mut file);
        is_closed.set(true);
        read
    }

    fn gzip(&mut self, at: &MemberPath, bytes: &[u8], depth: usize) -> Result<(), IngestError> {
        let mut unpacked = self.budget.metered(MultiGzDecoder::new(bytes));
        let mut head = Vec::new();
        let peeked = (&mut unpacked).take(512).read_to_end(&mut head);
        peeked.map_err(|error| self.budget.classify_read_error(&error))?;
        let whole = head.as_slice().chain(unpacked);
        if super::is_tar(&head) {
            return self.tar(at, whole, depth);
        }
        self.budget.count_member()?;
        let name = if at.stem.is_empty() {
            "content"
        } else {
            &at.stem
        };
        let Some(place) = self.resolve_member(at, name) else {
            return Ok(());
        };
        let read = self.read_member(whole);
        self.member(&place, read, depth)
    }

    fn tar(&mut self, at: &MemberPath, bytes: impl Read, depth: usize) -> Result<(), IngestError> {
        let mut tar = tar::Archive::new(bytes);
        let entries = tar
            .entries()
            .map_err(|error| self.budget.classify_read_error(&error))?;
        for entry in entries {
            self.budget.count_member()?;
            let entry = entry.map_err(|error| self.budget.classify_read_error(&error))?;
            let kind = entry.header().entry_type();
            if kind.is_dir() || kind.is_pax_global_extensions() {
                continue;
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let Some(place) = self.resolve_member(at, &name) else {
                continue;
            };
            let read = if kind.is_symlink() || kind.is_hard_link() {
                Err(IngestError::Link)
            } else if kind.is_gnu_sparse() {
                // A sparse file expands to zeros that were never stored in the archive.
                Err(unsupported_storage("sparse file", &place.extension))
            } else if kind.is_file() || kind.is_contiguous() {
                let size = entry.size();
                let whole = |bytes: &Vec<u8>| bytes.len() as u64 == size;
                let read = self.read_member(entry);
                read.and_then(|bytes| Some(bytes).filter(whole).ok_or_else(damaged))
            } else {
                Err(IngestError::Special)
            };
            // The pages are not known yet, so a table is never left out.
            if !self.is_repeated_table(&place, &read, &[]) {
                self.member(&place, read, depth)?;
            }
        }
        Ok(())
    }

    /// Whether a member is a table of Notion all of whose rows have a page. Notes whether it may have the
    /// reader field.
    fn is_repeated_table(
        &mut self,
        at: &MemberPath,
        content: &Result<Vec<u8>, IngestError>,
        pages: &[&str],
    ) -> bool {
        let (_, file) = split_path(&at.path);
        if notion_table::page_folders(file).is_none() {
            return false;
        }
        let bytes = content.as_ref().ok();
        let table =
            bytes.and_then(|bytes| NotionTable::read(bytes, self.limits, &self.readers).ok());
        if self.readers.is_configured() {
            self.restricted.add_table(&at.path, table.as_ref());
        }
        !pages.is_empty()
            && table.is_some_and(|table| table.has_page_for_each_row(pages.iter().copied()))
    }

    /// Resolves a member name, or reports it as skipped and returns `None`.
    fn resolve_member(&mut self, at: &MemberPath, name: &str) -> Option<MemberPath> {
        match at.member(name, self.limits) {
            Ok(place) => place,
            Err(reason) => {
                self.skip(&at.display_name(name), reason);
                None
            }
        }
    }

    /// Reads the whole content of a member, up to the size limit of a single file. The size in the header is
    /// not trusted.
    fn read_member(&self, from: impl Read) -> Result<Vec<u8>, IngestError> {
        let limit = self.limits.max_file_bytes;
        let mut bytes = Vec::new();
        let read = from.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| self.budget.classify_read_error(&error))?;
        if bytes.len() as u64 > limit {
            return Err(IngestError::TooLarge {
                bytes: bytes.len() as u64,
                limit,
            });
        }
        Ok(bytes)
    }

    /// Parses a member, which may itself be an archive. A member that fails costs only itself, unless the
    /// budget of the whole archive is spent.
    fn member(
        &mut self,
        at: &MemberPath,
        content: Result<Vec<u8>, IngestError>,
        depth: usize,
    ) -> Result<(), IngestError> {
        let read = content.and_then(|bytes| match super::detect_archive_kind(&bytes) {
            Some(_) if depth >= self.limits.max_nested_archives => {
                Err(IngestError::TooMuchInside {
                    limit: self.limits.max_nested_archives as u64,
                })
            }
            Some(kind) => self.archive(at, &bytes, kind, depth + 1),
            None => self.file(at, &bytes),
        });
        match read {
            Err(reason) if self.budget.is_exhausted() => Err(reason),
            Err(reason) => {
                self.skip(&at.path, reason);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn file(&mut self, at: &MemberPath, bytes: &[u8]) -> Result<(), IngestError> {
        let head = bytes.get(..HEAD_BYTES).unwrap_or(bytes);
        let format = detect(head, &at.extension)?;
        let parsed = (format.parse)(&ParserInput {
            id: &at.id,
            path: &at.path,
            stem: &at.stem,
            bytes,
            sha256: &sha256(bytes),
            limits: self.limits,
            options: self.options,
            folder_context: &FolderContext::NONE,
            sink: None,
            ids: IdPass::Own,
        })?;
        self.parsed.documents.extend(parsed.documents);
        for skipped in parsed.skipped {
            self.skipped.push(skipped);
        }
        for warning in parsed.warnings {
            self.warnings.push(warning);
        }
        Ok(())
    }

    fn skip(&mut self, path: &str, reason: IngestError) {
        self.skipped.push(SkippedItem::new(path, None, reason));
    }
}

type ZipEntries<'a> = ZipIterable<Cursor<&'a [u8]>>;

pub(super) fn open_zip(bytes: &[u8]) -> Result<ZipEntries<'_>, IngestError> {
    ZipIterable::try_new(Cursor::new(bytes), Config::default()).map_err(|_| damaged())
}

/// The member names of a zip, up to the member limit. A damaged entry ends them; it is reported when the members
/// are read.
fn names(zip: &mut ZipEntries<'_>, max_names: usize) -> BTreeSet<String> {
    let entries = zip.files().into_iter().flatten().map_while(Result::ok);
    let names = entries.take(max_names).map(|entry| entry_name(&entry));
    names.collect()
}

/// The file names, without extension, of the Markdown pages beside a table of a Notion export.
fn pages_beside<'n>(name: &str, names: &'n BTreeSet<String>) -> Vec<&'n str> {
    let (folder, file) = split_path(name);
    let folders: BTreeSet<_> = notion_table::page_folders(file)
        .into_iter()
        .flatten()
        .map(|pages| format!("{folder}{pages}/"))
        .collect();
    let mut pages = Vec::new();
    for folder in &folders {
        let inside = names.range(folder.clone()..);
        let inside = inside.map_while(|name| name.strip_prefix(folder));
        let files = inside.filter(|name| !name.contains('/'));
        pages.extend(files.filter_map(|name| name.strip_suffix(".md")));
    }
    pages
}
