//! Ids for the records of one file: the records' own `id` values if all of them are usable and unique, and
//! row numbers otherwise.
//!
//! This takes two passes. The first one looks only at ids and stops at the first record without one or with
//! a repeated one; the second one builds the documents. A row's id therefore depends on its file as a whole
//! and never on the rows before it.

use std::collections::HashSet;

use docent_search::{DocId, SearchError};
use serde_json::{Map, Value as Raw};

use crate::clean::{clean, truncate_chars};
use crate::digest::sha256;
use crate::error::bounded_report::ReportItem as _;
use crate::error::{IngestError, IngestWarning};
use crate::fields::metadata::find;
use crate::parser::{IdPass, ParsedFile, ParserInput};

/// The most ids of one file that are compared: 64-bit hashes in a hash set, at most 75 MB. Files with more records are
/// numbered, which costs the records their own ids but loses no row.
const MOST_IDS: usize = 4_000_000;

/// Characters of an id quoted in a report.
const MAX_SHOWN_CHARS: usize = 60;

/// Parses records twice, first for their ids and then for their documents.
pub(crate) fn two_pass(
    input: &ParserInput<'_>,
    read: impl Fn(&ParserInput<'_>) -> Result<ParsedFile, IngestError>,
) -> Result<ParsedFile, IngestError> {
    let scan = read(&ParserInput {
        ids: IdPass::Scan,
        sink: None,
        ..*input
    });
    let mut parsed = read(&ParserInput {
        ids: IdPass::from_scan(&scan),
        ..*input
    })?;
    parsed.prepend_warnings(scan);
    Ok(parsed)
}

/// The first pass over the ids of a file. `outcome` is set once it is certain that the ids cannot be used.
#[derive(Debug)]
pub(crate) struct IdScan {
    unique: UniqueIds,
    records: u64,
    outcome: Option<IdScanOutcome>,
}

#[derive(Debug)]
enum IdScanOutcome {
    /// The records have no ids at all.
    Absent,
    /// Some records have ids, but from this line on they do not identify records, for the reason given.
    Unusable(u64, String),
}

impl IdScan {
    pub(crate) fn new() -> Self {
        Self {
            unique: UniqueIds::new(MOST_IDS),
            records: 0,
            outcome: None,
        }
    }

    /// Whether no further record can change the outcome.
    pub(crate) fn is_decided(&self) -> bool {
        self.outcome.is_some()
    }

    /// Checks the id of the next record.
    pub(crate) fn observe(&mut self, line: u64, keys: &Map<String, Raw>) {
        self.records += 1;
        let why = match own_id(keys) {
            Ok(None) if self.records == 1 => {
                self.outcome = Some(IdScanOutcome::Absent);
                return;
            }
            Ok(None) => "this record has none".to_owned(),
            Err(IngestError::BadId { why }) => format!("this one cannot be used: {why}"),
            Err(other) => other.to_string(),
            Ok(Some((_, id))) => match self.unique.add(id.as_str()) {
                Ok(()) => return,
                Err(why) => why,
            },
        };
        self.outcome = Some(IdScanOutcome::Unusable(line, why));
    }

    /// Records of this kind have no id key.
    pub(crate) fn observe_without_id(&mut self) {
        self.outcome.get_or_insert(IdScanOutcome::Absent);
    }

    pub(crate) fn finish(self, path: &str) -> ParsedFile {
        let mut parsed = ParsedFile {
            numbered: self.outcome.is_some(),
            ..ParsedFile::default()
        };
        if let Some(IdScanOutcome::Unusable(line, why)) = self.outcome {
            let reason = IngestError::NumberedRows { why };
            parsed
                .warnings
                .push(IngestWarning::new(path, Some(line), reason));
        }
        parsed
    }
}

/// A bounded uniqueness check that keeps 64 bits of each id's SHA-256. Two ids with the same bits count as
/// a duplicate; such a collision costs a file its ids but never a row.
#[derive(Debug)]
pub(crate) struct UniqueIds {
    seen: HashSet<u64>,
    most: usize,
}

impl UniqueIds {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            seen: HashSet::new(),
            most,
        }
    }

    /// A check with the limit that applies to the keys of one table.
    pub(crate) fn for_table() -> Self {
        Self::new(MOST_IDS)
    }

    /// Adds an id, or returns why the ids do not identify the records.
    pub(crate) fn add(&mut self, id: &str) -> Result<(), String> {
        if self.seen.len() >= self.most {
            return Err(format!("there are more than {} to compare", self.most));
        }
        let digest = sha256(id.as_bytes());
        let bits = digest.get(..16).unwrap_or_default();
        let bits = u64::from_str_radix(bits, 16).unwrap_or_default();
        if self.seen.insert(bits) {
            return Ok(());
        }
        let mut shown = id.to_owned();
        truncate_chars(&mut shown, MAX_SHOWN_CHARS);
        Err(format!("`{shown}` repeats"))
    }
}

/// The record's own id and its key. The id must round-trip through clients unchanged, so it is used exactly
/// as it is or not at all.
pub(crate) fn own_id(map: &Map<String, Raw>) -> Result<Option<(String, DocId)>, IngestError> {
    let Some((key, raw)) = find(map, &["id"], |raw| Some(raw.clone())) else {
        return Ok(None);
    };
    let text = match raw {
        Raw::Null => return Ok(None),
        Raw::String(text) => text,
        // From here on, two different numbers may be read as the same one.
        Raw::Number(number)
            if number.is_f64() && number.as_f64().is_none_or(|n| n.abs() >= 9e15) =>
        {
            return Err(bad_id("it is too large a number to be exact"));
        }
        Raw::Number(number) => number.to_string(),
        _ => return Err(bad_id("it is neither text nor a number")),
    };
    if clean(&text) != text {
        return Err(bad_id("it holds a control or invisible character"));
    }
    if is_page_id(&text) {
        return Err(bad_id("it ends like the id of a continuation page"));
    }
    parse_document_id(&text).map(|id| Some((key, id)))
}

/// Removes the record's own id from its keys. An unusable id stays where it is.
pub(crate) fn take_own_id(map: &mut Map<String, Raw>) -> Result<Option<DocId>, IngestError> {
    let found = own_id(map)?;
    Ok(found.map(|(key, id)| {
        // `shift_remove` keeps the order of the fields; a plain `remove` would move the last field into the
        // gap.
        map.shift_remove(&key);
        id
    }))
}

pub(crate) fn parse_document_id(text: &str) -> Result<DocId, IngestError> {
    DocId::parse(text).map_err(|error| match error {
        SearchError::Id { reason } => bad_id(reason),
        other => bad_id(&other.to_string()),
    })
}

fn bad_id(why: &str) -> IngestError {
    IngestError::BadId {
        why: why.to_owned(),
    }
}

/// Pages of long documents have the ids `<id>#p2` and so on, so no document may have such an id.
pub(crate) fn is_page_id(id: &str) -> bool {
    let digits = |tail: &str| !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
    id.rsplit_once("#p").is_some_and(|(_, tail)| digits(tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `own`, or `numbered` with the line and the reason if a warning gives them.
    fn scanned(records: &[Raw]) -> String {
        let mut scan = IdScan::new();
        for (line, record) in (1..).zip(records) {
            if scan.is_decided() {
                break;
            }
            scan.observe(line, record.as_object().unwrap());
        }
        let parsed = scan.finish("a.jsonl");
        match (parsed.numbered, parsed.warnings.first()) {
            (false, None) => "own".to_owned(),
            (true, None) => "numbered".to_owned(),
            (_, Some(IngestWarning { line, reason, .. })) => {
                let IngestError::NumberedRows { why } = reason else {
                    panic!("{reason:?}")
                };
                format!("numbered since {}: {why}", line.unwrap())
            }
        }
    }

    #[test]
    fn ids_count_only_where_every_record_has_one_of_its_own() {
        let check = |records: &[Raw], expect: &str| assert_eq!(scanned(records), expect);
        check(&[], "own");
        check(&[json!({"id": 1}), json!({"ID": "a"})], "own");
        check(&[json!({"a": 1}), json!({"id": 1})], "numbered");
        check(
            &[json!({"id": "x"}), json!({"id": "y"}), json!({"id": "x"})],
            "numbered since 3: `x` repeats",
        );
        // Different as JSON, and the same to a client.
        check(
            &[json!({"id": 1}), json!({"id": "1"})],
            "numbered since 2: `1` repeats",
        );
        for absent in [json!({"a": 1}), json!({"id": null})] {
            let expect = "numbered since 2: this record has none";
            check(&[json!({"id": 1}), absent], expect);
        }
        let long = "a".repeat(docent_search::MAX_ID_BYTES + 1);
        for id in ["", "a\u{200B}", "a\nb", "x#p2", &long] {
            let found = scanned(&[json!({"id": 1}), json!({"id": id})]);
            assert!(found.starts_with("numbered since 2: this one"), "{found}");
        }
        for id in [json!({"a": 1}), json!([1]), json!(true), json!(1e16)] {
            let found = scanned(&[json!({"id": 1}), json!({"id": id})]);
            assert!(found.starts_with("numbered since 2: this one"), "{found}");
        }
    }

    #[test]
    fn ids_that_differ_in_anything_visible_differ() {
        let ids = ["a", "A", "á", "a\u{301}", "a b", "a  b", " a", "\u{ff41}"];
        let records: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        let mut known: Vec<_> = records
            .iter()
            .filter_map(|record| own_id(record.as_object().unwrap()).ok().flatten())
            .map(|(_, id)| id.to_string())
            .collect();
        known.sort();
        let count = known.len();
        known.dedup();
        assert_eq!(known.len(), count, "no two become the same: {known:?}");
    }

    #[test]
    fn comparing_ends_at_its_bound() {
        let mut unique = UniqueIds::new(2);
        assert_eq!(unique.add("a"), Ok(()));
        assert_eq!(unique.add("b"), Ok(()));
        let over = Err("there are more than 2 to compare".to_owned());
        assert_eq!(unique.add("c"), over);
        let mut unique = UniqueIds::new(2);
        let long = "é".repeat(100);
        assert_eq!(unique.add(&long), Ok(()));
        let shown = unique.add(&long).unwrap_err();
        assert!(shown.chars().count() < 80, "{shown}");
    }

    #[test]
    fn passes_go_over_the_wire() {
        for pass in [IdPass::Scan, IdPass::Own, IdPass::Numbered] {
            assert_eq!(IdPass::from_number(pass.number()), Some(pass));
        }
        assert_eq!(IdPass::from_number(3), None);
    }
}
