//! Rows of any file of records into one document each, so that a record is the same document whether it
//! came as a line of JSON, a row of a table or a cell range. A bad row costs only itself.

use docent_search::{AllowedReaders, DocId, Document};
use serde_json::{Map, Value as Raw};

use crate::bounded_report::{BoundedReport, ReportItem as _};
use crate::clean::{clean_line, truncate_chars};
use crate::digest::sha256;
use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::exports::bibliography;
use crate::file_entry::{percent_encode, truncate_id};
use crate::format::{ParsedFile, ParserInput};
use crate::limits::Limits;
use crate::metadata::{ExtractedMetadata, KeyMapping, extract_metadata_without_readers};
use crate::reader_field::{ParsedDocument, ReaderFault, ReaderField, ReaderKeys};
use crate::record_ids::{IdPass, IdScan, parse_document_id, take_own_id};
use crate::text::title_from_name;

/// Which columns mean what in every format of records.
pub(crate) const KEYS: KeyMapping = KeyMapping {
    title: &["title", "name", "subject"],
    text: &["text", "content", "body"],
    url: &["url", "link"],
};

/// Where a record stands in its file: what reports, ids and made-up titles call it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RecordLocation<'a> {
    /// A line of the file, counted from 1.
    Line(u64),
    /// A row of the only table of the file, or an element of a list, counted from 1.
    Row(u64),
    /// A row of one of several tables.
    Table {
        /// The table's name.
        table: &'a str,
        /// The row, counted from 1.
        row: u64,
        /// What tells the row apart inside its table; the row's number where nothing better does.
        key: Option<&'a str>,
        /// Whether it is the only table, so that the ids of its own records are enough.
        sole: bool,
    },
}

impl RecordLocation<'_> {
    fn number(self) -> u64 {
        match self {
            Self::Line(number) | Self::Row(number) | Self::Table { row: number, .. } => number,
        }
    }

    /// Whether records here may be called by an id of their own. Tables of one file count their rows alike,
    /// so that a row's id names its table too.
    fn has_own_ids(self) -> bool {
        !matches!(self, Self::Table { sole: false, .. })
    }

    /// What follows the `#` of an id.
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

/// The documents of one file of records, and what was left out of it.
pub(crate) struct RecordCollector<'a> {
    input: &'a ParserInput<'a>,
    readers: ReaderKeys,
    /// What the file as a whole says about readers; it counts for records that say nothing.
    file_readers: ReaderField,
    /// Whether records may have readers that nobody could find.
    are_doubted: bool,
    documents: Vec<ParsedDocument>,
    skipped: BoundedReport<SkippedItem>,
    warnings: BoundedReport<IngestWarning>,
    seen: usize,
    /// Documents that were made, whether they are still here or handed on.
    made: usize,
    bytes: u64,
    full: bool,
    /// There in a pass that only looks at ids.
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
            made: 0,
            bytes: 0,
            full: false,
            scan: (input.ids == IdPass::Scan).then(IdScan::new),
        }
    }

    /// Counts one more record, or says that no more fit; the reader then stops.
    pub(crate) fn begin(&mut self, place: RecordLocation<'_>) -> bool {
        if self.full || self.scan.as_ref().is_some_and(IdScan::is_decided) {
            return false;
        }
        self.seen += 1;
        if self.seen > self.input.limits.max_records {
            self.full = true;
            let limit = self.input.limits.max_records;
            self.skip(place, IngestError::TooManyRecords { limit });
        }
        !self.full
    }

    /// Turns the keys and values of one record into a document. The hash is that of the bytes the record
    /// came from, where they stand together; else it is made of the keys and values.
    pub(crate) fn add(
        &mut self,
        place: RecordLocation<'_>,
        mut keys: Map<String, Raw>,
        hash: Option<String>,
    ) {
        if let Some(scan) = &mut self.scan {
            // A record of nothing gives no document that would need an id.
            if keys.values().all(Raw::is_null) {
                return;
            }
            return match place.has_own_ids() {
                true => scan.observe(place.number(), &bibliography::normalize_reference(keys)),
                false => scan.observe_without_id(),
            };
        }
        self.give_readers(&mut keys);
        match document(self.input, &self.readers, place, (keys, hash)) {
            Ok((document, reasons)) => {
                if let Err(reason) = self.emit(document) {
                    return self.skip(place, reason);
                }
                for reason in reasons {
                    self.warn(place, reason);
                }
            }
            Err(reason) => self.skip(place, reason),
        }
    }

    /// One document that is no record, such as a sheet of notes between tables.
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

    /// The readers that the file names for all records that name none.
    pub(crate) fn set_file_readers(&mut self, readers: ReaderField) {
        self.file_readers = readers;
    }

    /// Closes the records that follow, or no longer: their readers may be named where nobody could find it.
    pub(crate) fn doubt_readers(&mut self, are_doubted: bool) {
        self.are_doubted = are_doubted && self.readers.is_configured();
    }

    /// Adds one record for nobody, because its cells may have moved against the header.
    pub(crate) fn add_doubted(&mut self, place: RecordLocation<'_>, keys: Map<String, Raw>) {
        let before = self.are_doubted;
        self.doubt_readers(true);
        self.add(place, keys, None);
        self.are_doubted = before;
    }

    /// Puts what stands beside a record into it, so that the hash covers it: by that it is decided whether the
    /// record is indexed again.
    fn give_readers(&self, keys: &mut Map<String, Raw>) {
        if self.are_doubted {
            self.readers.mark(keys, ReaderFault::Misplaced);
        } else {
            self.readers.inherit(&self.file_readers, keys);
        }
    }

    /// Hands a document on, or keeps it where nobody takes it.
    fn emit(&mut self, document: ParsedDocument) -> Result<(), IngestError> {
        let out = self.input.sink;
        self.bytes += document.bytes() as u64;
        let limit = self.input.limits.max_unpacked_bytes;
        // What is read row by row cannot unfold, so that all of it is bounded by its file.
        if self.bytes > limit && !out.is_some_and(|out| out.is_streaming()) {
            self.full = true;
            return Err(IngestError::TooMuchInside { limit });
        }
        self.made += 1;
        match out {
            Some(out) => self.full |= !out.put(document),
            None => self.documents.push(document),
        }
        Ok(())
    }

    /// The names of the field that says who may read a record.
    pub(crate) fn reader_keys(&self) -> &ReaderKeys {
        &self.readers
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.input.limits
    }

    /// How many documents there were.
    pub(crate) fn document_count(&self) -> usize {
        self.made
    }

    pub(crate) fn skip(&mut self, place: RecordLocation<'_>, reason: IngestError) {
        let path = self.path(place);
        self.skipped
            .push(SkippedItem::new(&path, Some(place.number()), reason));
    }

    pub(crate) fn warn(&mut self, place: RecordLocation<'_>, reason: IngestError) {
        let path = self.path(place);
        self.warnings
            .push(IngestWarning::new(&path, Some(place.number()), reason));
    }

    /// A whole part of the file that gives no records.
    pub(crate) fn skip_part(&mut self, part: &str, reason: IngestError) {
        let path = format!("{}#{}", self.input.path, clean_line(part));
        self.skipped.push(SkippedItem::new(&path, None, reason));
    }

    fn path(&self, place: RecordLocation<'_>) -> String {
        match place {
            RecordLocation::Table { table, .. } => {
                format!("{}#{}", self.input.path, clean_line(table))
            }
            RecordLocation::Line(_) | RecordLocation::Row(_) => self.input.path.to_owned(),
        }
    }

    /// Everything together; a file in which nothing at all was seen is empty.
    pub(crate) fn finish(self) -> Result<ParsedFile, IngestError> {
        let path = self.input.path;
        if let Some(scan) = self.scan {
            return Ok(scan.finish(path));
        }
        let skipped = self.skipped.finish(path);
        if self.made == 0 && skipped.is_empty() {
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
    place: RecordLocation<'_>,
    (mut keys, hash): (Map<String, Raw>, Option<String>),
) -> Result<(ParsedDocument, Vec<IngestError>), IngestError> {
    let hash = hash.unwrap_or_else(|| record_hash(&keys));
    // Before anything else looks at the keys: who may read a record is nothing to be made into something.
    let readers = readers.take(&mut keys);
    let mut keys = bibliography::normalize_reference(keys);
    let own_id = match input.ids {
        // An id that cannot be used after all, because the file was written meanwhile, costs no row either.
        IdPass::Own if place.has_own_ids() => take_own_id(&mut keys).unwrap_or_default(),
        IdPass::Own | IdPass::Numbered | IdPass::Scan => None,
    };
    let mut facts = extract_metadata_without_readers(keys, &KEYS, input.limits);
    if own_id.is_none() && facts.is_empty() {
        // What is there and cannot be kept is lost; what is not there is not.
        return Err(facts.warnings.pop().unwrap_or(IngestError::Empty));
    }
    let title = facts.title.take();
    let title = title.unwrap_or_else(|| fallback_title(input, &facts, own_id.as_ref(), place));
    let text = facts.text.take().unwrap_or_else(|| text_of_fields(&facts));
    let limit = input.limits.max_text_chars;
    if text.chars().nth(limit).is_some() {
        return Err(IngestError::TextTooLong { limit });
    }
    let id = match own_id {
        Some(id) => id,
        None => parse_document_id(&truncate_id(format!("{}#{}", input.id, place.fragment())))?,
    };
    let document = Document {
        id,
        title,
        text,
        url: facts.url,
        date: facts.date,
        fields: facts.fields,
        source: input.path.to_owned(),
        hash,
        readers: AllowedReaders::Everyone,
    };
    Ok((ParsedDocument { document, readers }, facts.warnings))
}

fn record_hash(keys: &Map<String, Raw>) -> String {
    let bytes = serde_json::to_vec(keys).unwrap_or_default();
    sha256(&bytes)
}

/// A record with a text needs no title of our making. One without is named after its file and which
/// record it is.
fn fallback_title(
    input: &ParserInput<'_>,
    facts: &ExtractedMetadata,
    id: Option<&DocId>,
    place: RecordLocation<'_>,
) -> String {
    let mut title = match (&facts.text, id) {
        (Some(_), _) => String::new(),
        (None, Some(id)) => format!("{} {id}", title_from_name(input)),
        (None, None) => format!("{}, {}", title_from_name(input), place.describe()),
    };
    truncate_chars(&mut title, input.limits.max_title_chars);
    title
}

/// A record without a text is read as the list of its fields.
pub(crate) fn text_of_fields(facts: &ExtractedMetadata) -> String {
    facts
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::with_input;
    use serde_json::json;

    fn add_all(
        limits: &Limits,
        rows: &[(RecordLocation<'_>, Raw)],
    ) -> Result<Vec<String>, IngestError> {
        with_input("boats.db", b"", limits, |input| {
            let mut records = RecordCollector::new(input);
            for (place, raw) in rows {
                if !records.begin(*place) {
                    break;
                }
                let Raw::Object(map) = raw else {
                    panic!("not an object")
                };
                records.add(*place, map.clone(), None);
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
        // Text, id, source and hash of one document.
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
