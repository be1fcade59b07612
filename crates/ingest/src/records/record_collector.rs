//! Turns the records of any tabular or list format into one document each, so that a record is the same
//! document whether it came as a line of JSON, a table row or a cell range. A bad record is skipped and
//! does not affect the other ones.

use docent_search::{AllowedReaders, DocId, Document};
use serde_json::{Map, Value as Raw};

use crate::clean::{clean_line, truncate_chars};
use crate::digest::sha256;
use crate::error::bounded_report::{BoundedReport, ReportItem as _};
use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::exports::bibliography;
use crate::fields::metadata::{
    CompleteText, ExtractedMetadata, KeyMapping, extract_metadata_without_readers,
};
use crate::file_name::title_from_name;
use crate::limits::Limits;
use crate::parser::{IdPass, ParsedFile, ParserInput};
use crate::reader_field::{ParsedDocument, ReaderFault, ReaderField, ReaderKeys};
use crate::records::record_ids::{IdScan, parse_document_id, take_own_id};
use crate::single_document::BuiltDocument;
use crate::source_path::{percent_encode, truncate_id};

/// The meaning of well-known columns, the same for every format of records.
pub(crate) const KEYS: KeyMapping = KeyMapping {
    title: &["title", "name", "subject"],
    text: &["text", "content", "body"],
    url: &["url", "link"],
};

/// The position of a record in its file, used in reports, ids and generated titles.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RecordLocation<'a> {
    /// A line of the file, counted from 1.
    Line(u64),
    /// A row of the only table of the file, or an element of a list, counted from 1.
    Row(u64),
    /// A row of one of several tables.
    Table {
        table: &'a str,
        row: u64,
        /// The row's key, such as its primary key; without one its number identifies it within the table.
        key: Option<&'a str>,
        /// Whether it is the only table, so that the records' own ids are enough to identify them.
        sole: bool,
    },
}

impl RecordLocation<'_> {
    fn number(self) -> u64 {
        match self {
            Self::Line(number) | Self::Row(number) | Self::Table { row: number, .. } => number,
        }
    }

    /// Whether records here may use their own ids. The tables of one file may use the same ids, so with
    /// several tables a row's id includes its table.
    fn has_own_ids(self) -> bool {
        !matches!(self, Self::Table { sole: false, .. })
    }

    /// The part of a document's id after the `#`.
    fn fragment(self) -> String {
        match self {
            Self::Line(number) | Self::Row(number) => format!("L{number}"),
            Self::Table {
                table, row, key, ..
            } => {
                let table = percent_encode(table.as_bytes());
                match key {
                    Some(key) => format!("{table}/{}", percent_encode(key.as_bytes())),
                    None => format!("{table}/{row}"),
                }
            }
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Line(number) => format!("line {number}"),
            Self::Row(row)
            | Self::Table {
                row, sole: true, ..
            } => format!("row {row}"),
            Self::Table {
                table, row, key, ..
            } => match key {
                Some(key) => clean_line(&format!("{table} {key}")),
                None => clean_line(&format!("{table}, row {row}")),
            },
        }
    }
}

/// Collects the documents of one file of records, and what was skipped in it.
pub(crate) struct RecordCollector<'a> {
    input: &'a ParserInput<'a>,
    readers: ReaderKeys,
    /// The reader field of the file as a whole, which applies to records without one of their own.
    file_readers: ReaderField,
    /// Whether the readers of the next records are in doubt, in which case they fail closed.
    are_doubted: bool,
    documents: Vec<ParsedDocument>,
    skipped: BoundedReport<SkippedItem>,
    warnings: BoundedReport<IngestWarning>,
    seen: usize,
    /// Documents built so far, whether they are kept here or were handed to the sink.
    built: usize,
    bytes: u64,
    full: bool,
    /// Present in the first pass, which only checks ids.
    scan: Option<IdScan>,
}

impl<'a> RecordCollector<'a> {
    pub(crate) fn new(input: &'a ParserInput<'a>) -> Self {
        Self {
            input,
            readers: ReaderKeys::for_input(input),
            file_readers: ReaderField::Absent,
            are_doubted: false,
            documents: Vec::new(),
            skipped: BoundedReport::new(input.limits.max_reported),
            warnings: BoundedReport::new(input.limits.max_reported),
            seen: 0,
            built: 0,
            bytes: 0,
            full: false,
            scan: (input.ids == IdPass::Scan).then(IdScan::new),
        }
    }

    /// Counts one more record. Returns `false` when no more are accepted; the parser then stops.
    pub(crate) fn begin(&mut self, location: RecordLocation<'_>) -> bool {
        if self.full || self.scan.as_ref().is_some_and(IdScan::is_decided) {
            return false;
        }
        self.seen += 1;
        if self.seen > self.input.limits.max_records {
            self.full = true;
            let limit = self.input.limits.max_records;
            self.skip(location, IngestError::TooManyRecords { limit });
        }
        !self.full
    }

    /// Turns one record's keys and values into a document. `hash` is the checksum of the bytes that the
    /// record came from if they are contiguous; otherwise the checksum covers the keys and values.
    pub(crate) fn add(
        &mut self,
        location: RecordLocation<'_>,
        mut keys: Map<String, Raw>,
        hash: Option<String>,
    ) {
        if let Some(scan) = &mut self.scan {
            // A record without values yields no document and needs no id.
            if keys.values().all(Raw::is_null) {
                return;
            }
            return match location.has_own_ids() {
                true => scan.observe(location.number(), &bibliography::normalize_reference(keys)),
                false => scan.observe_without_id(),
            };
        }
        self.readers.mark_inner(&mut keys);
        self.give_readers(&mut keys);
        match document(self.input, &self.readers, location, keys, hash) {
            Ok(built) => {
                if let Err(reason) = self.emit(built.document) {
                    return self.skip(location, reason);
                }
                if let Some(reason) = built.lost {
                    self.skip(location, reason);
                }
                for reason in built.warnings {
                    self.warn(location, reason);
                }
            }
            Err(reason) => self.skip(location, reason),
        }
    }

    /// Adds a document that is not a record, such as a sheet of notes between tables.
    pub(crate) fn add_document(&mut self, mut document: ParsedDocument) {
        if self.scan.is_some() {
            return;
        }
        let mut keys = Map::new();
        self.give_readers(&mut keys);
        if !keys.is_empty() {
            let hash = format!("{} {}", document.hash, record_hash(&keys));
            document.document.hash = sha256(hash.as_bytes());
            document.readers = self.readers.take(&mut keys);
        }
        if let Err(reason) = self.emit(document) {
            self.skipped
                .push(SkippedItem::new(self.input.path, None, reason));
        }
    }

    /// Sets the readers of the file, which apply to every record that names none.
    pub(crate) fn set_file_readers(&mut self, readers: ReaderField) {
        self.file_readers = readers;
    }

    /// Starts or stops closing the records that follow, because their readers may be named in a place that
    /// cannot be read.
    pub(crate) fn doubt_readers(&mut self, are_doubted: bool) {
        self.are_doubted = are_doubted && self.readers.is_configured();
    }

    /// Adds one record that nobody may read, because its cells may have shifted against the header.
    pub(crate) fn add_doubted(&mut self, location: RecordLocation<'_>, keys: Map<String, Raw>) {
        let before = self.are_doubted;
        self.doubt_readers(true);
        self.add(location, keys, None);
        self.are_doubted = before;
    }

    /// Adds inherited readers to the record itself, so that its checksum covers them. The checksum decides
    /// whether the record is indexed again.
    fn give_readers(&self, keys: &mut Map<String, Raw>) {
        if self.are_doubted {
            self.readers.mark(keys, ReaderFault::Misplaced);
        } else {
            self.readers.inherit(&self.file_readers, keys);
        }
    }

    /// Hands a document to the sink, or keeps it if there is none.
    fn emit(&mut self, document: ParsedDocument) -> Result<(), IngestError> {
        let sink = self.input.sink;
        self.bytes += document.bytes() as u64;
        let limit = self.input.limits.max_unpacked_bytes;
        // Formats that stream row by row cannot expand, so the size of the file bounds them.
        if self.bytes > limit && !sink.is_some_and(|sink| sink.is_streaming()) {
            self.full = true;
            return Err(IngestError::TooMuchInside { limit });
        }
        self.built += 1;
        match sink {
            Some(sink) => self.full |= !sink.put(document),
            None => self.documents.push(document),
        }
        Ok(())
    }

    /// The names of the reader field that apply to this file.
    pub(crate) fn reader_keys(&self) -> &ReaderKeys {
        &self.readers
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.input.limits
    }

    /// How many documents have been built.
    pub(crate) fn document_count(&self) -> usize {
        self.built
    }

    pub(crate) fn skip(&mut self, location: RecordLocation<'_>, reason: IngestError) {
        let path = self.path(location);
        self.skipped
            .push(SkippedItem::new(&path, Some(location.number()), reason));
    }

    pub(crate) fn warn(&mut self, location: RecordLocation<'_>, reason: IngestError) {
        let path = self.path(location);
        self.warnings
            .push(IngestWarning::new(&path, Some(location.number()), reason));
    }

    /// Reports a whole part of the file that yields no records.
    pub(crate) fn skip_part(&mut self, part: &str, reason: IngestError) {
        let path = format!("{}#{}", self.input.path, clean_line(part));
        self.skipped.push(SkippedItem::new(&path, None, reason));
    }

    fn path(&self, location: RecordLocation<'_>) -> String {
        match location {
            RecordLocation::Table { table, .. } => {
                format!("{}#{}", self.input.path, clean_line(table))
            }
            RecordLocation::Line(_) | RecordLocation::Row(_) => self.input.path.to_owned(),
        }
    }

    /// Finishes the file. A file without documents and without problems is empty.
    pub(crate) fn finish(self) -> Result<ParsedFile, IngestError> {
        let path = self.input.path;
        if let Some(scan) = self.scan {
            return Ok(scan.finish(path));
        }
        let skipped = self.skipped.finish(path);
        if self.built == 0 && skipped.is_empty() {
            return Err(IngestError::Empty);
        }
        Ok(ParsedFile {
            documents: self.documents,
            skipped,
            warnings: self.warnings.finish(path),
            numbered: self.input.ids == IdPass::Numbered,
        })
    }
}

fn document(
    input: &ParserInput<'_>,
    readers: &ReaderKeys,
    location: RecordLocation<'_>,
    mut keys: Map<String, Raw>,
    hash: Option<String>,
) -> Result<BuiltDocument, IngestError> {
    let hash = hash.unwrap_or_else(|| record_hash(&keys));
    // Take out the reader field before anything else sees the keys, because it must not become part of the
    // document.
    let readers = readers.take(&mut keys);
    let mut keys = bibliography::normalize_reference(keys);
    let own_id = match input.ids {
        // An id that turns out unusable, because the file changed between the passes, must not cost a row.
        IdPass::Own if location.has_own_ids() => take_own_id(&mut keys).unwrap_or_default(),
        IdPass::Own | IdPass::Numbered | IdPass::Scan => None,
    };
    let mut metadata = extract_metadata_without_readers(keys, &KEYS, input.limits);
    if own_id.is_none() && metadata.is_empty() {
        return Err(IngestError::Empty);
    }
    let title = metadata.title.take();
    let title =
        title.unwrap_or_else(|| fallback_title(input, &metadata, own_id.as_ref(), location));
    let own_text = metadata.text.take();
    let CompleteText { text, lost } = metadata.complete_text(own_text, input)?;
    let id = match own_id {
        Some(id) => id,
        None => parse_document_id(&truncate_id(format!(
            "{}#{}",
            input.id,
            location.fragment()
        )))?,
    };
    let document = Document {
        id,
        title,
        text,
        url: metadata.url,
        date: metadata.date,
        fields: metadata.fields,
        source: input.path.to_owned(),
        hash,
        readers: AllowedReaders::Everyone,
    };
    Ok(BuiltDocument {
        document: ParsedDocument { document, readers },
        lost,
        warnings: metadata.warnings,
    })
}

fn record_hash(keys: &Map<String, Raw>) -> String {
    let bytes = serde_json::to_vec(keys).unwrap_or_default();
    sha256(&bytes)
}

/// The generated title of a record: none if it has a text, and otherwise the file's name with the record's
/// id or position.
fn fallback_title(
    input: &ParserInput<'_>,
    metadata: &ExtractedMetadata,
    id: Option<&DocId>,
    location: RecordLocation<'_>,
) -> String {
    let mut title = match (&metadata.text, id) {
        (Some(_), _) => String::new(),
        (None, Some(id)) => format!("{} {id}", title_from_name(input)),
        (None, None) => format!("{}, {}", title_from_name(input), location.describe()),
    };
    truncate_chars(&mut title, input.limits.max_title_chars);
    title
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::tests::with_input;
    use serde_json::json;

    fn add_all(
        limits: &Limits,
        rows: &[(RecordLocation<'_>, Raw)],
    ) -> Result<Vec<String>, IngestError> {
        with_input("boats.db", b"", limits, |input| {
            let mut records = RecordCollector::new(input);
            for (location, raw) in rows {
                if !records.begin(*location) {
                    break;
                }
                let Raw::Object(map) = raw else {
                    panic!("not an object")
                };
                records.add(*location, map.clone(), None);
            }
            let parsed = records.finish()?;
            let documents = parsed
                .documents
                .iter()
                .map(|d| format!("{}|{}|{}", d.id, d.title, d.text));
            let skipped = parsed.skipped.iter().map(|s| {
                let line = s.line.unwrap_or(0);
                format!("{}:{line}:{}", s.path, s.reason.code())
            });
            Ok(documents.chain(skipped).collect())
        })
    }

    fn table<'a>(table: &'a str, row: u64, key: Option<&'a str>) -> RecordLocation<'a> {
        RecordLocation::Table {
            table,
            row,
            key,
            sole: false,
        }
    }

    #[test]
    fn rows_of_tables_are_named_after_table_and_key() {
        let found = add_all(
            &Limits::default(),
            &[
                (
                    table("Old hulls", 2, None),
                    json!({"id": 7, "make": "Orrin"}),
                ),
                (table("hulls", 3, Some("a/b#p2")), json!({"make": "Orrin"})),
                (
                    table("hulls", 4, None),
                    json!({"name": "Skerry", "text": "x"}),
                ),
                (table("hulls", 5, None), json!({"make": null})),
                (RecordLocation::Row(6), json!({"id": 7, "make": "Tarn"})),
                (RecordLocation::Row(7), json!({"make": "Tarn"})),
            ],
        );
        assert_eq!(
            found.unwrap(),
            [
                "boats.db#Old%20hulls/2|Boats, Old hulls, row 2|id: 7\nmake: Orrin\n",
                "boats.db#hulls/a%2Fb%23p2|Boats, hulls a/b#p2|make: Orrin\n",
                "boats.db#hulls/4|Skerry|x",
                "7|Boats 7|make: Tarn\n",
                "boats.db#L7|Boats, row 7|make: Tarn\n",
                "boats.db#hulls:5:empty",
            ]
        );
    }

    #[test]
    fn all_documents_together_end_at_their_bound() {
        let row = json!({"text": "0123456789"});
        let rows = [1, 2, 3].map(|n| (RecordLocation::Row(n), row.clone()));
        // Size of one document: text, id, source and checksum.
        let one = 10 + "boats.db#L1".len() + "boats.db".len() + 64;
        let limits = |bytes: usize| Limits {
            max_unpacked_bytes: bytes as u64,
            ..Limits::default()
        };
        assert_eq!(add_all(&limits(3 * one), &rows).unwrap().len(), 3);
        assert_eq!(
            add_all(&limits(3 * one - 1), &rows).unwrap().pop().unwrap(),
            "boats.db:3:too-much-inside"
        );
        let found = add_all(&limits(2 * one - 1), &rows).unwrap();
        assert_eq!(found.len(), 2, "reading ends there: {found:?}");
    }

    #[test]
    fn a_hash_tells_records_apart() {
        with_input("a.csv", b"", &Limits::default(), |input| {
            let mut records = RecordCollector::new(input);
            for raw in [json!({"a": 1}), json!({"a": "1"}), json!({"a": 1})] {
                records.add(
                    RecordLocation::Row(1),
                    raw.as_object().unwrap().clone(),
                    None,
                );
            }
            let hashes: Vec<_> = records.documents.iter().map(|d| d.hash.clone()).collect();
            assert_ne!(hashes[0], hashes[1]);
            assert_eq!(hashes[0], hashes[2]);
        });
    }
}
