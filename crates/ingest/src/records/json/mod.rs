//! JSON parser: a list of objects becomes one document per object, wherever in the file the list stands; any
//! other object becomes a single document. Lists are streamed element by element.

mod flatten;
mod geojson;
mod members;
mod record_value;
mod wrapper;

use std::io::{BufReader, Read};

use docent_search::DocId;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Raw};

use crate::clean::clean_line;
use crate::decoding::decode_text;
use crate::digest::sha256;
use crate::error::bounded_report::ReportItem as _;
use crate::error::{IngestError, IngestWarning};
use crate::fields::field_overflow::FieldOverflow;
use crate::fields::metadata::{ExtractedMetadata, extract_metadata};
use crate::formats::file_format::{FileFormat, no_signature};
use crate::formats::{code, notebook};
use crate::parser::{IdPass, ParsedFile, ParserInput};
use crate::reader_field::{self, ReaderFault, ReaderField, ReaderKeys};
use crate::records::column_types::UniqueNames;
use crate::records::jsonl;
use crate::records::record_ids::{take_own_id, two_pass};
use crate::records::{KEYS, RecordCollector, RecordLocation};
use crate::single_document;

pub(crate) use members::{JsonMember, array_elements, object_members};
use record_value::RecordMembers;
pub(crate) use record_value::parse as parse_record;
use wrapper::{RecordList, Wrapper};

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "json",
    kind: "json",
    extensions: &["json", "geojson"],
    has_signature: no_signature,
    parse,
    stream: Some(stream),
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    code::refuse_lock_file(input)?;
    let text = decode_text(input.bytes)?;
    let text = text.trim();
    match text.as_bytes().first() {
        None => Err(IngestError::Empty),
        Some(b'[') if holds_objects(text) => records(input, text),
        Some(b'[') => one_document(input, text, &[]),
        Some(b'{') => object(input, text),
        Some(_) => Err(IngestError::NotAnObject),
    }
}

/// The bytes at the start of a file that reveal a list of objects. White space may precede the list, and a formatted
/// file has some between the bracket and the first object. A file that begins otherwise is read as a whole, with a
/// smaller limit.
const HEAD: u64 = 4 * 1024;

/// Parses JSON from a stream. Only a top-level list of objects can be streamed; anything else has to be read
/// to its end before its structure is known.
pub(crate) fn stream(
    input: &ParserInput<'_>,
    from: &mut dyn Read,
) -> Result<ParsedFile, IngestError> {
    let mut head = Vec::new();
    let peeked = (&mut *from).take(HEAD).read_to_end(&mut head);
    peeked.map_err(|error| IngestError::from_io(&error))?;
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&head);
    let start = text.trim_ascii_start();
    let inside = start.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    if inside.is_some_and(|inside| inside.starts_with(b"{")) {
        code::refuse_lock_file(input)?;
        return stream_list(input, start.chain(from));
    }
    if input.ids == IdPass::Scan {
        // The scan pass has nothing to do here: a file that is read as a whole does both passes itself.
        return Ok(ParsedFile::default());
    }
    read_whole(input, head, from)
}

fn read_whole(
    input: &ParserInput<'_>,
    mut bytes: Vec<u8>,
    from: &mut dyn Read,
) -> Result<ParsedFile, IngestError> {
    let limit = input.limits.max_file_bytes;
    let rest = from.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    rest.map_err(|error| IngestError::from_io(&error))?;
    if bytes.len() as u64 > limit {
        let bytes = bytes.len() as u64;
        return Err(IngestError::TooLarge { bytes, limit });
    }
    parse(&ParserInput {
        bytes: &bytes,
        sha256: &sha256(&bytes),
        ..*input
    })
}

/// Streams a list element by element.
fn stream_list(input: &ParserInput<'_>, from: impl Read) -> Result<ParsedFile, IngestError> {
    let mut records = RecordCollector::new(input);
    let mut number = 0;
    let outcome = members::stream_array_elements(BufReader::new(from), |raw: &RawValue| {
        number += 1;
        let place = RecordLocation::Row(number);
        record(&mut records, place, raw, &ReadRecord::PLAIN)
    });
    finish(records, number, outcome)
}

fn object(input: &ParserInput<'_>, text: &str) -> Result<ParsedFile, IngestError> {
    let (entries, rest) = object_members(text)?;
    if !rest.trim().is_empty() {
        // Concatenated objects are JSON Lines under another extension.
        return jsonl::parse(input);
    }
    let has = |name: &str| entries.iter().any(|entry| entry.is(name));
    if has("nbformat") && (has("cells") || has("worksheets")) {
        return notebook::parse_members(input, &entries);
    }
    if geojson::is_of_type(&entries, "Feature") && has("properties") {
        return one_feature(input, text);
    }
    match wrapper::find(&entries, &ReaderKeys::for_input(input)) {
        Some(wrapper) => wrapped_records(input, &wrapper),
        None => one_document(input, text, &entries),
    }
}

/// Whether a value is a list that contains an object. It counts as a list of records even if other elements
/// come first: as plain text, the access control fields of its records would be lost.
fn holds_objects(raw: &str) -> bool {
    let mut found = false;
    let is_list = raw.starts_with('[');
    // Malformed JSON is reported by the caller that parses it.
    let _malformed = is_list.then(|| {
        array_elements(raw, |element| {
            found = element.get().starts_with('{');
            !found
        })
    });
    found
}

/// Parses an element of at most so many bytes into the keys of a record.
type ReadKeys = fn(&str, usize, &ReaderKeys) -> Result<Map<String, Raw>, IngestError>;

/// How the records of a list are parsed.
struct ReadRecord {
    keys: ReadKeys,
    /// The access control field for records that have none of their own.
    inherited: ReaderField,
}

impl ReadRecord {
    const PLAIN: Self = Self {
        keys: plain_record,
        inherited: ReaderField::Absent,
    };
}

fn plain_record(
    raw: &str,
    limit: usize,
    readers: &ReaderKeys,
) -> Result<Map<String, Raw>, IngestError> {
    let mut keys = jsonl::parse_object(raw.as_bytes(), limit)?;
    readers.mark_unread(raw, &mut keys);
    Ok(keys)
}

fn records(input: &ParserInput<'_>, list: &str) -> Result<ParsedFile, IngestError> {
    two_pass(input, |input| {
        let mut records = RecordCollector::new(input);
        let mut number = 0;
        let outcome = array_elements(list, |raw| {
            number += 1;
            record(
                &mut records,
                RecordLocation::Row(number),
                raw,
                &ReadRecord::PLAIN,
            )
        });
        finish(records, number, outcome)
    })
}

/// Parses the records of every list in a wrapper object. Records of the main list may have ids of their own;
/// those of the other lists are named after their list, so that they cannot collide with them.
fn wrapped_records(
    input: &ParserInput<'_>,
    wrapper: &Wrapper<'_>,
) -> Result<ParsedFile, IngestError> {
    let mut parsed = two_pass(input, |input| {
        let mut records = RecordCollector::new(input);
        let mut names = UniqueNames::default();
        for list in &wrapper.lists {
            let table = names.make_unique(&list.name);
            if input.ids == IdPass::Scan && !list.is_main {
                continue;
            }
            add_list(&mut records, list, &table, &wrapper.readers)?;
        }
        records.finish()
    })?;
    if !wrapper.beside.is_empty() {
        let names = wrapper.beside.join("`, `");
        let reason = IngestError::BesideRecords { names };
        parsed
            .warnings
            .push(IngestWarning::new(input.path, None, reason));
    }
    Ok(parsed)
}

fn add_list(
    records: &mut RecordCollector<'_>,
    list: &RecordList<'_>,
    table: &str,
    inherited: &ReaderField,
) -> Result<(), IngestError> {
    let read = ReadRecord {
        keys: if list.is_geo {
            geojson::feature_record
        } else {
            plain_record
        },
        inherited: inherited.clone(),
    };
    let mut row = 0;
    array_elements(list.raw.get(), |raw| {
        row += 1;
        let place = match list.is_main {
            true => RecordLocation::Row(row),
            false => RecordLocation::Table {
                table,
                row,
                key: None,
                sole: false,
            },
        };
        record(records, place, raw, &read)
    })
}

/// Adds one element as a record; false once the record limit is reached.
fn record(
    records: &mut RecordCollector<'_>,
    place: RecordLocation<'_>,
    raw: &RawValue,
    read: &ReadRecord,
) -> bool {
    if !records.begin(place) {
        return false;
    }
    let limit = records.limits().max_line_bytes;
    match (read.keys)(raw.get(), limit, records.reader_keys()) {
        Ok(mut keys) => {
            records.reader_keys().inherit(&read.inherited, &mut keys);
            records.add(place, keys, Some(sha256(raw.get().as_bytes())));
        }
        // A `null` element holds no data, so none is lost.
        Err(IngestError::NotAnObject) if raw.get() == "null" => {
            records.skip(place, IngestError::Empty);
        }
        Err(reason) => records.skip(place, reason),
    }
    true
}

fn finish(
    mut records: RecordCollector<'_>,
    number: u64,
    outcome: Result<(), IngestError>,
) -> Result<ParsedFile, IngestError> {
    if let Err(reason) = outcome {
        if number == 0 {
            return Err(reason);
        }
        records.skip(RecordLocation::Row(number + 1), reason);
    }
    records.finish()
}

/// Parses a file that holds a single GeoJSON feature.
fn one_feature(input: &ParserInput<'_>, text: &str) -> Result<ParsedFile, IngestError> {
    let readers = ReaderKeys::for_input(input);
    let keys = geojson::feature_record(text, input.limits.max_line_bytes, &readers)?;
    let (id, mut facts) = id_and_facts(input, keys);
    let text = facts.text.take();
    single_document::build_document_with_id(input, id, text, facts)
}

/// Parses an object as a single document: its members become fields, and all of it the text.
fn one_document(
    input: &ParserInput<'_>,
    text: &str,
    entries: &[JsonMember<'_>],
) -> Result<ParsedFile, IngestError> {
    let readers = ReaderKeys::for_input(input);
    let limit = input.limits.max_text_chars;
    let is_hidden = |name: &str| readers.hides_key(name);
    let lines = flatten::flatten_to_lines("", text, limit, &is_hidden)?;
    if lines.trim().is_empty() {
        return Err(IngestError::Empty);
    }
    let (mut keys, left_out) = members_within_limit(entries, input.limits.max_line_bytes, &readers);
    readers.mark_unread(text, &mut keys);
    // The members beyond the limit may include the access control field.
    let has_more_members = entries.len() >= members::MAX_MEMBERS;
    if has_more_members {
        readers.mark(&mut keys, ReaderFault::Misplaced);
    }
    let (id, mut facts) = id_and_facts(input, keys);
    let text = match facts.text.take() {
        Some(text) if !has_more_members => {
            let is_hidden = |name: &str| is_hidden(name) || input.options.hides(input.path, name);
            for entry in left_out {
                let (name, raw) = (clean_line(&entry.name), entry.raw.get());
                let lines = flatten::flatten_to_lines(&name, raw, limit, &is_hidden)?;
                let lines = lines.trim_end().to_owned();
                facts.overflow.push("", lines, None, limit);
            }
            text
        }
        _ => {
            // The lines hold every value already.
            facts.overflow = FieldOverflow::default();
            lines
        }
    };
    single_document::build_document_with_id(input, id, Some(text), facts)
}

fn id_and_facts(
    input: &ParserInput<'_>,
    mut keys: Map<String, Raw>,
) -> (Option<DocId>, ExtractedMetadata) {
    let (id, bad_id) = match take_own_id(&mut keys) {
        Ok(id) => (id, None),
        Err(reason) => (None, Some(reason)),
    };
    let mut facts = extract_metadata(keys, &KEYS, input);
    facts.warnings.splice(0..0, bad_id);
    (id, facts)
}

/// The members of an object that together fit into the limit of one record, and the other ones.
fn members_within_limit<'e, 'a>(
    entries: &'e [JsonMember<'a>],
    limit: usize,
    readers: &ReaderKeys,
) -> (Map<String, Raw>, Vec<&'e JsonMember<'a>>) {
    let mut left = limit;
    let (mut members, mut named) = (RecordMembers::default(), Map::new());
    let mut left_out = Vec::new();
    for entry in entries {
        let raw = entry.raw.get();
        if readers.covers_key(&entry.name) {
            // The access control field is always kept. One too long to be parsed counts as malformed.
            let value = Some(raw).filter(|raw| raw.len() <= limit);
            let value = value.and_then(|raw| serde_json::from_str(raw).ok());
            let value = value.unwrap_or_default();
            reader_field::insert_keeping_duplicates(&mut named, &entry.name, value);
            continue;
        }
        if raw.len() <= left
            && let Ok(value) = parse_record(raw.as_bytes())
        {
            left -= raw.len();
            members.insert(entry.name.clone(), value);
        } else {
            left_out.push(entry);
        }
    }
    let mut keys = members.finish();
    keys.extend(named);
    (keys, left_out)
}

#[cfg(test)]
mod tests;
