//! Cells that are all text into typed values, column by column: a column is numbers, days, yes-or-no or
//! lists only when every cell that was looked at is, because a guess about one cell alone turns codes into
//! numbers and months into days.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Raw};

use crate::clean::{clean_line, truncate_chars};
use crate::dates::{self, DateOrder};
use crate::list_syntax::ListSyntax;
use crate::number_format::{self, NumberFormat};
use crate::reader_field::{self, ReaderKeys};
use crate::records::KEYS;

/// Characters of a column's name, with room for a number behind it; fields may have a few more. Surveys head
/// their columns with whole questions.
const MAX_NAME_CHARS: usize = 120;

/// One column: its name and what its cells are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumn {
    name: String,
    kind: ColumnType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Text,
    Number(NumberFormat),
    /// `true` and `false`, or `yes` and `no`.
    Bool,
    Day(DateOrder),
    List(ListSyntax),
    /// Who may read the row: kept as it is written, and where nothing is written too.
    Readers,
}

/// The columns of a table by its first rows, and whether the very first names them.
pub(crate) fn infer_columns(rows: &[Vec<&str>], readers: &ReaderKeys) -> (Vec<TableColumn>, bool) {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let column = |at: usize, skip: usize| -> Vec<&str> {
        let cells = rows.iter().skip(skip).filter_map(|row| row.get(at));
        cells
            .map(|cell| cell.trim())
            .filter(|cell| !cell.is_empty())
            .collect()
    };
    let head: Vec<&str> = rows
        .first()
        .map(|row| row.iter().map(|cell| cell.trim()).collect())
        .unwrap_or_default();
    let body_is_typed = || {
        (0..head.len()).any(|at| {
            !matches!(
                ColumnType::infer_type("", &column(at, 1)),
                ColumnType::Text | ColumnType::List(_)
            )
        })
    };
    // A row that names the readers' field is a header, whatever else it looks like: were it not, nobody would
    // know who may read the rows below it.
    let has_header = head.iter().any(|name| readers.covers_key(name))
        || (rows.len() > 1 && is_header(&head, body_is_typed));
    // Only what the header names is a column; wider rows are dealt with row by row.
    let (width, skip) = if has_header {
        (head.len(), 1)
    } else {
        (width, 0)
    };
    let mut columns: Vec<TableColumn> = Vec::with_capacity(width);
    let mut taken = UniqueNames::default();
    for at in 0..width {
        let name = head
            .get(at)
            .filter(|_| has_header)
            .map(|cell| clean_line(cell));
        let name = name.filter(|name| !name.is_empty());
        let mut name = name.unwrap_or_else(|| format!("column {}", at + 1));
        if has_header && readers.covers_key(&name) {
            let kind = ColumnType::Readers;
            columns.push(TableColumn { name, kind });
            continue;
        }
        truncate_chars(&mut name, MAX_NAME_CHARS);
        let name = taken.make_unique(&name);
        let kind = ColumnType::infer_type(&name, &column(at, skip));
        columns.push(TableColumn { name, kind });
    }
    (columns, has_header)
}

/// Names of columns, each given once: what stands twice in a header gets a number, so that no cell takes the
/// place of another.
#[derive(Default)]
pub(crate) struct UniqueNames {
    taken: HashSet<String>,
    /// How often a name was asked for, so that a header of one name does not count from one each time.
    times: HashMap<String, usize>,
}

impl UniqueNames {
    /// The name, or with the first free number behind it.
    pub(crate) fn make_unique(&mut self, name: &str) -> String {
        let times = self.times.entry(name.to_owned()).or_default();
        loop {
            *times += 1;
            let numbered = if *times == 1 {
                name.to_owned()
            } else {
                format!("{name} {times}")
            };
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// Whether a cell is a number, a day or yes-or-no, and so no name.
pub(crate) fn is_value(cell: &str) -> bool {
    let cell = cell.trim();
    !cell.is_empty()
        && !matches!(
            ColumnType::infer_type("", &[cell]),
            ColumnType::Text | ColumnType::List(_)
        )
}

/// A header names things. A row with numbers or days in it is a record, unless the numbers are years in
/// order; a row that names nothing twice and leaves nothing out is a header, and a row that does is one
/// only above cells of another kind.
fn is_header(head: &[&str], body_is_typed: impl Fn() -> bool) -> bool {
    let values: Vec<_> = head.iter().filter(|cell| is_value(cell)).collect();
    if !values.is_empty() && (values.len() == head.len() || !are_years(&values)) {
        return false;
    }
    // Values with blanks between them are one long cell, and no name.
    if matches!(head, [one] if one.chars().nth(MAX_NAME_CHARS).is_some()) {
        return false;
    }
    // The cell above row numbers is often left empty.
    let named = head.iter().skip(1).all(|cell| !cell.is_empty());
    let mut names: Vec<_> = head.iter().map(|name| name.to_lowercase()).collect();
    names.sort();
    names.dedup();
    (named && names.len() == head.len()) || body_is_typed()
}

/// Years that follow each other: every one, or every fifth or tenth.
fn are_years(values: &[&&str]) -> bool {
    let years: Vec<i32> = values.iter().filter_map(|text| text.parse().ok()).collect();
    let mut steps = years.windows(2).map(|pair| match pair {
        [a, b] => b - a,
        _ => 0,
    });
    let Some(step) = steps.next() else {
        return false;
    };
    years.len() == values.len()
        && years.iter().all(|year| (1500..2200).contains(year))
        && [1, 5, 10].contains(&step)
        && steps.all(|other| other == step)
}

impl TableColumn {
    pub(crate) fn names_readers(&self) -> bool {
        self.kind == ColumnType::Readers
    }

    /// Puts one cell of this column into the keys of a record. A cell that is not of the column's kind
    /// after all stays text.
    pub(crate) fn put(&self, cell: &str, keys: &mut Map<String, Raw>) {
        let cell = cell.trim();
        if self.names_readers() {
            return reader_field::insert_keeping_duplicates(
                keys,
                &self.name,
                Raw::String(cell.to_owned()),
            );
        }
        if cell.is_empty() || (self.kind != ColumnType::Text && is_missing(cell)) {
            return;
        }
        let value = match self.kind {
            ColumnType::Text | ColumnType::Readers => None,
            ColumnType::Number(style) => number_format::parse_number(cell, style).map(Raw::Number),
            ColumnType::Bool => as_bool(cell).map(Raw::Bool),
            ColumnType::Day(order) => {
                if let Some(moment) = dates::parse_in_order(cell, order) {
                    return put_date_and_time(keys, &self.name, moment);
                }
                None
            }
            ColumnType::List(lists) => lists.parse_list(cell),
        };
        let value = value.unwrap_or_else(|| Raw::String(cell.to_owned()));
        keys.insert(self.name.clone(), value);
    }
}

/// A day and a time of day become two fields, so that the day can be compared and nothing is lost.
pub(crate) fn put_date_and_time(
    keys: &mut Map<String, Raw>,
    name: &str,
    moment: dates::DateAndTime,
) {
    keys.insert(name.to_owned(), Raw::String(moment.day));
    if let Some(time) = moment.time {
        keys.entry(format!("{name}.time"))
            .or_insert(Raw::String(time));
    }
}

impl ColumnType {
    /// What all these cells are; none of them is empty.
    fn infer_type(name: &str, cells: &[&str]) -> Self {
        let cells: Vec<&str> = cells
            .iter()
            .copied()
            .filter(|cell| !is_missing(cell))
            .collect();
        if cells.is_empty() || stays_text(name) {
            return Self::Text;
        }
        if cells.iter().all(|cell| as_bool(cell).is_some()) && is_boolean_column(&cells) {
            return Self::Bool;
        }
        if let Some(order) = DateOrder::infer_order(&cells) {
            return Self::Day(order);
        }
        if !is_identifier_column(name)
            && let Some(style) = NumberFormat::infer_format(&cells)
        {
            return Self::Number(style);
        }
        ListSyntax::infer_syntax(name, &cells).map_or(Self::Text, Self::List)
    }
}

/// What programs write where there is nothing.
fn is_missing(cell: &str) -> bool {
    ["NULL", "NA", "N/A", "NaN", "None", "\\N", "-"]
        .iter()
        .any(|word| cell.eq_ignore_ascii_case(word))
}

/// Ids, titles, texts and addresses are not for counting.
fn stays_text(name: &str) -> bool {
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    let mut keys = KEYS.title.iter().chain(KEYS.text).chain(KEYS.url);
    name.eq_ignore_ascii_case("id") || keys.any(is)
}

/// Columns of digits that name something: nobody adds them up, and leading zeros count.
fn is_identifier_column(name: &str) -> bool {
    const CODES: &[&str] = &[
        "phone",
        "telephone",
        "tel",
        "mobile",
        "fax",
        "zip",
        "zipcode",
        "postcode",
        "postal",
        "plz",
        "isbn",
        "issn",
        "ean",
        "gtin",
        "upc",
        "iban",
        "bic",
        "ssn",
        "vat",
        "account",
    ];
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    words.any(|word| CODES.iter().any(|code| word.eq_ignore_ascii_case(code)))
}

fn as_bool(cell: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| cell.eq_ignore_ascii_case(word));
    if is(&["true", "yes"]) {
        Some(true)
    } else {
        is(&["false", "no"]).then_some(false)
    }
}

/// `NO` alone is a country as well; `yes` beside it says what is meant.
fn is_boolean_column(cells: &[&str]) -> bool {
    let has = |word: &str| cells.iter().any(|cell| cell.eq_ignore_ascii_case(word));
    let words = has("yes") || has("no");
    if words { has("yes") && has("no") } else { true }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a column of these cells gives, one JSON object a cell.
    fn check(name: &str, cells: &[&str], expect: &[&str]) {
        let mut rows = vec![vec![name, "other"]];
        rows.extend(cells.iter().map(|cell| vec![*cell, "words"]));
        let (columns, has_header) = infer_columns(&rows, &ReaderKeys::default());
        assert!(has_header, "{name}: {cells:?}");
        let show = |cell: &&str| {
            let mut keys = Map::new();
            columns[0].put(cell, &mut keys);
            Raw::Object(keys).to_string()
        };
        let found: Vec<_> = cells.iter().map(show).collect();
        assert_eq!(found, expect, "{name}: {cells:?}");
    }

    #[test]
    fn numbers_are_numbers_and_codes_are_not() {
        check(
            "n",
            &["1", "-2.5", "", "NA", "3e2"],
            &[r#"{"n":1}"#, r#"{"n":-2.5}"#, "{}", "{}", r#"{"n":300.0}"#],
        );
        check("n", &["12", "007"], &[r#"{"n":"12"}"#, r#"{"n":"007"}"#]);
        check(
            "n",
            &["+4912345", "12"],
            &[r#"{"n":"+4912345"}"#, r#"{"n":"12"}"#],
        );
        check("Phone no.", &["5550123"], &[r#"{"Phone no.":"5550123"}"#]);
        check("id", &["1", "2"], &[r#"{"id":"1"}"#, r#"{"id":"2"}"#]);
        check("n", &["1", "x"], &[r#"{"n":"1"}"#, r#"{"n":"x"}"#]);
        check("n", &["NA", ""], &[r#"{"n":"NA"}"#, "{}"]);
    }

    #[test]
    fn booleans_need_both_words() {
        check(
            "b",
            &["true", "FALSE"],
            &[r#"{"b":true}"#, r#"{"b":false}"#],
        );
        check("b", &["true"], &[r#"{"b":true}"#]);
        check("b", &["Yes", "no"], &[r#"{"b":true}"#, r#"{"b":false}"#]);
        check("country", &["NO", "NO"], &[r#"{"country":"NO"}"#; 2]);
    }

    #[test]
    fn days_and_times_are_kept_apart() {
        check(
            "d",
            &["31/01/2024", "02/03/2024"],
            &[r#"{"d":"2024-01-31"}"#, r#"{"d":"2024-03-02"}"#],
        );
        check(
            "d",
            &["01/02/2024", "02/03/2024"],
            &[r#"{"d":"01/02/2024"}"#, r#"{"d":"02/03/2024"}"#],
        );
        check(
            "d",
            &["2024-03-12T10:30:00Z", "2024-03-13 00:00:00"],
            &[
                r#"{"d":"2024-03-12","d.time":"10:30:00Z"}"#,
                r#"{"d":"2024-03-13"}"#,
            ],
        );
    }

    #[test]
    fn a_cell_of_another_kind_stays_text() {
        let rows = vec![vec!["n", "m"], vec!["1", "x"], vec!["2", "y"]];
        let (columns, _) = infer_columns(&rows, &ReaderKeys::default());
        let mut keys = Map::new();
        columns[0].put("two", &mut keys);
        assert_eq!(Raw::Object(keys).to_string(), r#"{"n":"two"}"#);
    }

    fn check_header(rows: &[&str], expect: Option<&[&str]>) {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(',').collect()).collect();
        let (columns, has_header) = infer_columns(&rows, &ReaderKeys::default());
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        match expect {
            Some(expect) => assert_eq!((names.as_slice(), has_header), (expect, true), "{rows:?}"),
            None => assert!(!has_header && names[0] == "column 1", "{rows:?}"),
        }
    }

    #[test]
    fn headers_are_told_from_records() {
        check_header(&["vessel,port", "Orrin,Ellin"], Some(&["vessel", "port"]));
        check_header(&["vessel,1998", "Orrin,1999"], None);
        check_header(
            &["region,2019,2020", "Lowmere,5,6"],
            Some(&["region", "2019", "2020"]),
        );
        check_header(&["vessel,1998,2004", "Orrin,1999,2011"], None);
        check_header(&["1,2", "3,4"], None);
        check_header(&["x,x,n", "a,b,1"], Some(&["x", "x 2", "n"]));
        check_header(&["x,x", "a,b"], None);
        check_header(&[",vessel", "0,Orrin"], Some(&["column 1", "vessel"]));
        check_header(&["2024-03-12,Orrin", "2024-03-13,Tarn"], None);
        check_header(&["only,row"], None);
    }
}
