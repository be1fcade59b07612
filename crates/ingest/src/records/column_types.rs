//! Column type inference for tables whose cells are all text.
//!
//! A column is numeric, a date, boolean or a list only if every sampled cell is. A guess about a single cell
//! would turn codes into numbers and months into days.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Raw};

use crate::clean::{clean_line, truncate_chars};
use crate::dates::{self, DateOrder};
use crate::fields::list_syntax::ListSyntax;
use crate::reader_field::{self, ReaderKeys};
use crate::records::KEYS;
use crate::records::epoch_unit::EpochUnit;
use crate::records::number_format::{self, NumberFormat};

/// The most characters of a column name. It leaves room for the number that makes a name unique, since field
/// names may be a little longer. It is generous, because surveys use whole questions as headers.
const MAX_NAME_CHARS: usize = 120;

/// A column of a table: its unique name and the type inferred for its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumn {
    name: String,
    kind: ColumnType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Text,
    Number(NumberFormat),
    /// Booleans, written as `true` and `false` or as `yes` and `no`.
    Bool,
    Day(DateOrder),
    /// Moments counted from 1970 on, as programs store them.
    Epoch(EpochUnit),
    List(ListSyntax),
    /// The access control field: it is kept as written, and an empty cell is kept as well, because empty and
    /// absent mean different things to the permission check.
    Readers,
}

/// Infers the columns of a table from its first rows, and whether the first row is a header.
pub(crate) fn infer_columns(rows: &[Vec<&str>], readers: &ReaderKeys) -> (Vec<TableColumn>, bool) {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let column = |index: usize, skip: usize| -> Vec<&str> {
        let cells = rows.iter().skip(skip).filter_map(|row| row.get(index));
        cells
            .map(|cell| cell.trim())
            .filter(|cell| !cell.is_empty())
            .collect()
    };
    let header: Vec<&str> = rows
        .first()
        .map(|row| row.iter().map(|cell| cell.trim()).collect())
        .unwrap_or_default();
    let has_typed_body = || {
        (0..header.len()).any(|index| {
            !matches!(
                ColumnType::infer_type("", &column(index, 1)),
                ColumnType::Text | ColumnType::List(_)
            )
        })
    };
    // A row with the access control field counts as a header, however little it looks like one. Otherwise the
    // column would get a made-up name, and the permissions of every row below would be lost.
    let has_header = header.iter().any(|name| readers.covers_key(name))
        || (rows.len() > 1 && is_header(&header, has_typed_body));
    // A header fixes the width; cells beyond it are handled row by row.
    let (width, skip) = if has_header {
        (header.len(), 1)
    } else {
        (width, 0)
    };
    let mut columns: Vec<TableColumn> = Vec::with_capacity(width);
    let mut used = UniqueNames::default();
    for index in 0..width {
        let name = header
            .get(index)
            .filter(|_| has_header)
            .map(|cell| clean_line(cell));
        let name = name.filter(|name| !name.is_empty());
        let mut name = name.unwrap_or_else(|| format!("column {}", index + 1));
        if has_header && readers.covers_key(&name) {
            let kind = ColumnType::Readers;
            columns.push(TableColumn { name, kind });
            continue;
        }
        truncate_chars(&mut name, MAX_NAME_CHARS);
        let name = used.make_unique(&name);
        let kind = ColumnType::infer_type(&name, &column(index, skip));
        columns.push(TableColumn { name, kind });
    }
    (columns, has_header)
}

/// Deduplicates column names: a name that occurs again gets a numeric suffix, so that no cell overwrites
/// another.
#[derive(Default)]
pub(crate) struct UniqueNames {
    taken: HashSet<String>,
    /// The last suffix of each name. Without it a header that repeats one name a thousand times would count
    /// from one each time, in quadratic time.
    last_suffix: HashMap<String, usize>,
}

impl UniqueNames {
    /// Returns the name itself, or the name with the first unused number appended.
    pub(crate) fn make_unique(&mut self, name: &str) -> String {
        let suffix = self.last_suffix.entry(name.to_owned()).or_default();
        loop {
            *suffix += 1;
            let numbered = if *suffix == 1 {
                name.to_owned()
            } else {
                format!("{name} {suffix}")
            };
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// Whether a cell holds a number, a date or a boolean, and so cannot be a column name.
pub(crate) fn is_value(cell: &str) -> bool {
    let cell = cell.trim();
    !cell.is_empty()
        && !matches!(
            ColumnType::infer_type("", &[cell]),
            ColumnType::Text | ColumnType::List(_)
        )
}

/// Decides whether the first row is a header. A row with numbers or dates is a record, unless the numbers are
/// consecutive years. A row of unique, non-empty names is a header; one with gaps or duplicates is a header
/// only above cells of another type.
fn is_header(head: &[&str], has_typed_body: impl Fn() -> bool) -> bool {
    let values: Vec<_> = head.iter().filter(|cell| is_value(cell)).collect();
    if !values.is_empty() && (values.len() == head.len() || !are_years(&values)) {
        return false;
    }
    // A single very long cell is a line of space-separated values and not a name.
    if matches!(head, [one] if one.chars().nth(MAX_NAME_CHARS).is_some()) {
        return false;
    }
    // The header cell above a column of row numbers is often left empty.
    let named = head.iter().skip(1).all(|cell| !cell.is_empty());
    let mut names: Vec<_> = head.iter().map(|name| name.to_lowercase()).collect();
    names.sort();
    names.dedup();
    (named && names.len() == head.len()) || has_typed_body()
}

/// Whether these are years in steps of one, five or ten, as time series have in their header.
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

    /// Parses one cell and inserts it into the record. A cell that does not match the inferred type stays
    /// text, and nothing is dropped.
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
            ColumnType::Number(format) => {
                number_format::parse_number(cell, format).map(Raw::Number)
            }
            ColumnType::Bool => as_bool(cell).map(Raw::Bool),
            ColumnType::Day(date_order) => {
                if let Some(moment) = dates::parse_in_order(cell, date_order) {
                    return put_date_and_time(keys, &self.name, moment);
                }
                None
            }
            ColumnType::Epoch(unit) => {
                if let Some(moment) = unit.parse(cell) {
                    return put_date_and_time(keys, &self.name, moment);
                }
                None
            }
            ColumnType::List(syntax) => syntax.parse_list(cell),
        };
        let value = value.unwrap_or_else(|| Raw::String(cell.to_owned()));
        keys.insert(self.name.clone(), value);
    }
}

/// Stores date and time as two fields: the date alone can be filtered and sorted, and the time is not lost.
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
    /// The most specific type that all cells of a column share. Missing values such as `NULL` do not count.
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
        if let Some(unit) = EpochUnit::infer_unit(name, &cells) {
            return Self::Epoch(unit);
        }
        if !is_identifier_column(name)
            && let Some(style) = NumberFormat::infer_format(&cells)
        {
            return Self::Number(style);
        }
        ListSyntax::infer_syntax(name, &cells).map_or(Self::Text, Self::List)
    }
}

/// Whether a cell is a placeholder for a missing value, as databases and statistics programs write it.
fn is_missing(cell: &str) -> bool {
    ["NULL", "NA", "N/A", "NaN", "None", "\\N", "-"]
        .iter()
        .any(|word| cell.eq_ignore_ascii_case(word))
}

/// Whether a column is text by its role: ids, titles, bodies and URLs are never converted.
fn stays_text(name: &str) -> bool {
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    let mut keys = KEYS.title.iter().chain(KEYS.text).chain(KEYS.url);
    name.eq_ignore_ascii_case("id") || keys.any(is)
}

/// Whether a column holds identifiers made of digits, such as phone numbers: their leading zeros matter.
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

/// Whether a column of `yes` and `no` is boolean. `NO` alone is also the code of Norway, so both words must
/// occur.
fn is_boolean_column(cells: &[&str]) -> bool {
    let has = |word: &str| cells.iter().any(|cell| cell.eq_ignore_ascii_case(word));
    let words = has("yes") || has("no");
    if words { has("yes") && has("no") } else { true }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders a column of these cells, one JSON object per cell.
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
    fn counts_of_seconds_are_dates_where_the_name_says_so() {
        let seconds = ["1710239405", "", "1710201600"];
        let dates = [
            r#"{"created_at":"2024-03-12","created_at.time":"10:30:05"}"#,
            "{}",
            r#"{"created_at":"2024-03-12"}"#,
        ];
        check("created_at", &seconds, &dates);
        let numbers = [r#"{"votes":1710239405}"#, "{}", r#"{"votes":1710201600}"#];
        check("votes", &seconds, &numbers);
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
