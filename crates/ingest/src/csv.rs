//! Tables of comma or otherwise separated values into one document a row. The delimiter, the header and
//! the kind of every column are found by looking at the first rows.

use csv::{ByteRecord, Position, Reader, ReaderBuilder};
use serde_json::{Map, Value as Raw};

use crate::columns::{self, Column};
use crate::error::Reason;
use crate::format::{Format, Input, Parsed, begins_with_anything};
use crate::records::{Place, Records};
use crate::text::characters;

pub(crate) const FORMAT: Format = Format {
    name: "csv",
    extensions: &["csv", "tsv", "tab", "psv"],
    begins: begins_with_anything,
    parse,
};

/// The delimiters that are looked for, the likelier first.
const DELIMITERS: &[u8] = b",;\t|";

/// Rows that are looked at before the first is read.
const SAMPLE_ROWS: usize = 1_000;

/// Cells that are looked at before the first row is read; they are all held at once.
const SAMPLE_CELLS: usize = 500_000;

/// Bytes that are looked at to find the delimiter.
const SAMPLE_BYTES: usize = 256 * 1024;

/// How often reading may begin anew behind a quote that never ends.
const MOST_RESTARTS: usize = 64;

fn parse(input: &Input<'_>) -> Result<Parsed, Reason> {
    let text = characters(input.bytes)?;
    let (delimiter, skipped_lines, body) = match separator_line(&text) {
        Some((delimiter, body)) => (delimiter, 1, body),
        None => (sniff(&text), 0, text.as_str()),
    };
    let head = Head::find(body, delimiter, input.limits.max_columns)?;
    let mut records = Records::new(input);
    for found in Rows::new(body, delimiter).skip(head.rows) {
        let place = Place::Line(found.line + skipped_lines);
        let cells = found.cells.map(|cells| Cells { cells, head: &head });
        if cells.as_ref().is_ok_and(|cells| cells.are_blank()) {
            continue;
        }
        if !records.begin(place) {
            break;
        }
        let keys = cells.and_then(|cells| cells.keys(input));
        match keys {
            Ok(keys) => records.add(place, keys, None),
            Err(reason) => records.skip(place, reason),
        }
    }
    records.finish()
}

/// The line `sep=;` with which spreadsheets are told the delimiter, and what follows it.
fn separator_line(text: &str) -> Option<(u8, &str)> {
    let rest = text.strip_prefix("sep=").or(text.strip_prefix("SEP="))?;
    let (delimiter, rest) = (*rest.as_bytes().first()?, rest.get(1..)?);
    let body = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n'))?;
    delimiter.is_ascii().then_some((delimiter, body))
}

/// The delimiter that cuts most rows into as many cells as the first, and into more than one.
fn sniff(text: &str) -> u8 {
    let sample = text
        .as_bytes()
        .get(..SAMPLE_BYTES)
        .unwrap_or(text.as_bytes());
    let score = |delimiter: u8| {
        let mut widths: Vec<usize> = Rows::new_bytes(sample, delimiter)
            .take(100)
            .filter_map(|row| row.cells.ok())
            .map(|cells| cells.len())
            .collect();
        // The last row of a sample may be cut.
        if sample.len() < text.len() {
            widths.pop();
        }
        let widest = most_common(&widths)?;
        if widest < 2 {
            return None;
        }
        let same = widths.iter().filter(|width| **width == widest).count();
        Some((same * 100 / widths.len().max(1), widest))
    };
    let best = DELIMITERS
        .iter()
        .rev()
        .filter_map(|&delimiter| Some((score(delimiter)?, delimiter)))
        .max_by_key(|(score, _)| *score);
    best.map_or(b',', |(_, delimiter)| delimiter)
}

/// The width that most rows have, ties going to the first.
fn most_common(widths: &[usize]) -> Option<usize> {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for &width in widths {
        match counts.iter_mut().find(|(known, _)| *known == width) {
            Some((_, count)) => *count += 1,
            None => counts.push((width, 1)),
        }
    }
    let best = counts.iter().map(|(_, count)| *count).max()?;
    let first = counts.into_iter().find(|(_, count)| *count == best)?;
    Some(first.0)
}

/// What stands above the records: the names of the columns and what their cells are.
struct Head {
    columns: Vec<Column>,
    /// The rows above the first record.
    rows: usize,
}

impl Head {
    fn find(body: &str, delimiter: u8, limit: usize) -> Result<Self, Reason> {
        let mut sample = Vec::new();
        let mut seen = 0;
        for row in Rows::new(body, delimiter).take(SAMPLE_ROWS) {
            // A bad row keeps its place, so that rows are counted alike here and when they are read.
            let cells = row.cells.unwrap_or_default();
            if cells.len() > limit {
                return Err(Reason::TooManyColumns { limit });
            }
            seen += cells.len();
            sample.push(cells);
            // Two rows tell a header, so a table of any width is looked at that far.
            if seen > SAMPLE_CELLS && sample.len() > 1 {
                break;
            }
        }
        let widths: Vec<_> = sample.iter().map(ByteRecord::len).collect();
        let width = most_common(&widths).ok_or(Reason::Empty)?;
        let is_title = |cells: &ByteRecord| {
            cells
                .iter()
                .filter(|cell| !cell.trim_ascii().is_empty())
                .count()
                < 2
                && width > 1
        };
        // A title and blank lines may stand above the header.
        let above = sample
            .iter()
            .take(20)
            .take_while(|row| is_title(row))
            .count();
        let above = if above == sample.len().min(20) {
            0
        } else {
            above
        };
        let table: Vec<Vec<&str>> = sample
            .iter()
            .skip(above)
            .map(|row| row.iter().map(as_text).collect())
            .collect();
        let (columns, has_header) = columns::of_table(&table);
        Ok(Self {
            columns,
            rows: above + usize::from(has_header),
        })
    }
}

/// Cells are parts of a text cut at ASCII characters, so they are texts.
fn as_text(cell: &[u8]) -> &str {
    std::str::from_utf8(cell).unwrap_or_default()
}

/// One row below the header.
struct Cells<'a> {
    cells: ByteRecord,
    head: &'a Head,
}

impl Cells<'_> {
    fn are_blank(&self) -> bool {
        self.cells.iter().all(|cell| cell.trim_ascii().is_empty())
    }

    fn keys(&self, input: &Input<'_>) -> Result<Map<String, Raw>, Reason> {
        if self.cells.len() > input.limits.max_columns {
            let limit = input.limits.max_columns;
            return Err(Reason::TooManyColumns { limit });
        }
        if self.cells.as_slice().len() > input.limits.max_line_bytes {
            let limit = input.limits.max_line_bytes;
            return Err(Reason::LineTooLong { limit });
        }
        let mut keys = Map::new();
        let mut columns = self.head.columns.iter();
        for (at, cell) in self.cells.iter().enumerate() {
            let text = as_text(cell);
            match columns.next() {
                Some(column) => column.put(text, &mut keys),
                // A row may be wider than the header.
                None if text.trim().is_empty() => {}
                None => {
                    keys.insert(format!("column {}", at + 1), Raw::String(text.to_owned()));
                }
            }
        }
        Ok(keys)
    }
}

/// The rows of a text. A quote that is opened and never closed would swallow all rows behind it; then
/// the line with the quote is a bad row, and reading begins anew on the next line.
struct Rows<'a> {
    text: &'a [u8],
    reader: Reader<&'a [u8]>,
    delimiter: u8,
    /// Where in the text the reader began, in bytes and lines.
    from: (usize, u64),
    restarts: usize,
}

struct Row {
    /// Counted from 1.
    line: u64,
    cells: Result<ByteRecord, Reason>,
}

impl<'a> Rows<'a> {
    fn new(text: &'a str, delimiter: u8) -> Self {
        Self::new_bytes(text.as_bytes(), delimiter)
    }

    fn new_bytes(text: &'a [u8], delimiter: u8) -> Self {
        Self {
            text,
            reader: reader(text, delimiter),
            delimiter,
            from: (0, 0),
            restarts: 0,
        }
    }

    /// Where a row begins in the text, in bytes and lines; the reader counts blank lines to the row below.
    fn start(&self, at: &Position) -> Option<(usize, u64)> {
        let from = self.from.0 + usize::try_from(at.byte()).ok()?;
        let rest = self.text.get(from..)?;
        let blank = rest
            .iter()
            .take_while(|byte| b"\r\n".contains(byte))
            .count();
        let lines = rest
            .iter()
            .take(blank)
            .filter(|byte| **byte == b'\n')
            .count();
        Some((from + blank, self.from.1 + at.line() + lines as u64))
    }

    /// Begins anew behind the first line of the row that began at `start`.
    fn restart(&mut self, start: usize, line: u64) {
        self.restarts += 1;
        let rest = self.text.get(start..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n');
        let next = end.map_or(self.text.len(), |end| start + end + 1);
        self.from = (next, line);
        let rest = self.text.get(next..).unwrap_or_default();
        self.reader = reader(rest, self.delimiter);
    }

    /// Whether the row at `start` opened a quote that the text does not close.
    fn is_open(&self, start: usize) -> bool {
        let at_end = self.reader.is_done()
            || self.reader.position().byte() as usize + self.from.0 >= self.text.len();
        let row = self.text.get(start..).unwrap_or_default();
        let quotes = || row.iter().filter(|byte| **byte == b'"').count();
        at_end && row.trim_ascii_end().contains(&b'\n') && !quotes().is_multiple_of(2)
    }
}

fn reader(text: &[u8], delimiter: u8) -> Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text)
}

impl Iterator for Rows<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let mut cells = ByteRecord::new();
        // Reading from memory into bytes has no errors left.
        if !self.reader.read_byte_record(&mut cells).unwrap_or(false) {
            return None;
        }
        let (start, line) = self.start(cells.position()?)?;
        if self.restarts < MOST_RESTARTS && self.is_open(start) {
            self.restart(start, line);
            let what = "a quote is never closed";
            return Some(Row {
                line,
                cells: Err(Reason::Damaged { what: what.into() }),
            });
        }
        Some(Row {
            line,
            cells: Ok(cells),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::with_input;
    use crate::limits::Limits;

    /// `id {fields}` for a document, `line:code` for what was left out.
    fn show(bytes: &[u8], limits: &Limits) -> Vec<String> {
        let parsed = match with_input("t.csv", bytes, limits, parse) {
            Ok(parsed) => parsed,
            Err(reason) => return vec![reason.code().to_owned()],
        };
        let documents = parsed.documents.iter().map(|d| {
            let title = (!d.title.starts_with("T, ")).then_some(d.title.as_str());
            let fields = d
                .fields
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let id = d.id.as_str().to_owned();
            let parts: Vec<_> = [id]
                .into_iter()
                .chain(title.map(str::to_owned))
                .chain(fields)
                .collect();
            parts.join(" | ")
        });
        let skipped = parsed
            .skipped
            .iter()
            .map(|s| format!("{}:{}", s.line.unwrap_or(0), s.reason.code()));
        documents.chain(skipped).collect()
    }

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(show(text.as_bytes(), &Limits::default()), expect, "{text}");
    }

    #[test]
    fn delimiters_are_found() {
        for mark in [',', ';', '\t', '|'] {
            let text = "port,berths\nEllin,4\nTarn,7\n".replace(',', &mark.to_string());
            check(
                &text,
                &[
                    "t.csv#L2 | port=Ellin | berths=4",
                    "t.csv#L3 | port=Tarn | berths=7",
                ],
            );
        }
        check(
            "port;depth\nEllin;4,5\nTarn;7,25\n",
            &[
                "t.csv#L2 | port=Ellin | depth=4.5",
                "t.csv#L3 | port=Tarn | depth=7.25",
            ],
        );
        check(
            "sep=|\nport|note\nEllin|a,b,c\n",
            &["t.csv#L3 | port=Ellin | note=a,b,c"],
        );
        check("port\nEllin\n", &["t.csv#L2 | port=Ellin"]);
    }

    #[test]
    fn quotes_hold_delimiters_newlines_and_quotes() {
        check(
            "port,note\nEllin,\"a, \"\"b\"\"\nc\"\nTarn,d\n",
            &[
                "t.csv#L2 | port=Ellin | note=a, \"b\"\nc",
                "t.csv#L4 | port=Tarn | note=d",
            ],
        );
    }

    #[test]
    fn ragged_and_blank_rows_are_read() {
        check(
            "a,b,c\r\n1,x\r\n\r\n,,\r\n2,y,z,more,\r\n",
            &[
                "t.csv#L2 | a=1 | b=x",
                "t.csv#L5 | a=2 | b=y | c=z | column 4=more",
            ],
        );
        check(
            "Ferries of Lowmere,,\n\nport,berths,x\nEllin,4,y\n",
            &["t.csv#L4 | port=Ellin | berths=4 | x=y"],
        );
    }

    #[test]
    fn records_keep_their_ids_titles_and_texts() {
        check(
            "ID,Title,body,tier\n007,One,words,1\n8,Two,,2\nx#p2,Three,w,3\n",
            &["007 | One | tier=1", "8 | Two | tier=2", "4:bad-id"],
        );
    }

    #[test]
    fn a_quote_without_end_costs_its_line() {
        check(
            "port,note\nEllin,\"open\nTarn,x\nOrrin,y\n",
            &[
                "t.csv#L3 | port=Tarn | note=x",
                "t.csv#L4 | port=Orrin | note=y",
                "2:damaged",
            ],
        );
        // Every restart finds another open quote, and their number is bounded.
        let many = format!("port,note\n{}", "E,\"x\nT,\"\"\"y\n".repeat(500));
        assert!(show(many.as_bytes(), &Limits::default()).len() <= 1_000);
    }

    #[test]
    fn encodings_are_found() {
        let text = "port,höhe\nEllin,4\n";
        let expect = ["t.csv#L2 | port=Ellin | höhe=4"];
        check(&format!("\u{FEFF}{text}"), &expect);
        let utf16: Vec<_> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(show(&utf16, &Limits::default()), expect);
        let latin = encoding_rs::WINDOWS_1252.encode(text).0;
        assert_eq!(show(&latin, &Limits::default()), expect);
    }

    #[test]
    fn every_bound_holds() {
        let with = |limits: Limits, text: &str| show(text.as_bytes(), &limits);
        let columns = |max_columns| Limits {
            max_columns,
            ..Limits::default()
        };
        let wide = format!("{}\n{}\n", ["a"; 3].join(","), ["1"; 3].join(","));
        assert_eq!(with(columns(3), &wide).len(), 1);
        assert_eq!(with(columns(2), &wide), ["too-many-columns"]);
        let million = ",".repeat(1_000_000);
        assert_eq!(
            show(million.as_bytes(), &Limits::default()),
            ["too-many-columns"]
        );
        let late = format!("a,b\n{}1,2,3\n", "1,2\n".repeat(SAMPLE_ROWS));
        assert_eq!(
            with(columns(2), &late).pop().unwrap(),
            "1002:too-many-columns"
        );
        let line = Limits {
            max_line_bytes: 4,
            ..Limits::default()
        };
        assert_eq!(
            with(line, "a,b\n12,34\n12,345\n"),
            ["t.csv#L2 | a=12 | b=34", "3:line-too-long"]
        );
        let records = Limits {
            max_records: 1,
            ..Limits::default()
        };
        assert_eq!(
            with(records, "a,b\n1,2\n3,4\n"),
            ["t.csv#L2 | a=1 | b=2", "3:too-many-records"]
        );
        check("", &["empty"]);
        check("a,b\n", &["t.csv#L1 | column 1=a | column 2=b"]);
    }
}
