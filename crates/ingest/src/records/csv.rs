//! Delimiter-separated tables (CSV, TSV and relatives): one document per row.
//!
//! The delimiter, the header and the column types are inferred from a sample of the first rows. The rest is
//! streamed, so that a table may be of any length.

mod delimiter;
mod header;
mod quotes;
mod row_reader;

use std::io::Read;

use self::delimiter::{separator_line, sniff};
use self::header::Head;
use self::row_reader::{CsvCells, CsvRow, CsvRowReader};
use crate::decoding::text_stream::TextStream;
use crate::error::IngestError;
use crate::formats::file_format::{FileFormat, no_signature};
use crate::limits::Limits;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::ReaderKeys;
use crate::records::reader_column::row_above_header;
use crate::records::record_ids::two_pass;
use crate::records::{RecordCollector, RecordLocation};

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "csv",
    kind: "csv",
    extensions: &["csv", "tsv", "tab", "psv"],
    has_signature: no_signature,
    parse,
    stream: Some(stream),
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

/// Rows in the sample from which the header and the column types are inferred. A type has to fit every row of the
/// sample, so a few rows are not enough: codes such as `007` or a missing value may come late. A thousand are read in a
/// moment.
const SAMPLE_ROWS: usize = 1_000;

/// Cells in the sample. All of them are held in memory at once, and a table may have thousands of columns, so the
/// number of rows alone says nothing about the memory that the sample takes.
const SAMPLE_CELLS: usize = 500_000;

/// Bytes of cell text in the sample.
const SAMPLE_ROW_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of the file in which the delimiter is searched for. The sample is split once for every candidate, and the rows
/// of nearly all tables are short enough that it holds far more of them than are compared.
const SAMPLE_BYTES: usize = 256 * 1024;

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    two_pass(input, |input| stream(input, &mut &*input.bytes))
}

/// Parses a table from a stream, one row at a time.
pub(crate) fn stream(
    input: &ParserInput<'_>,
    from: &mut dyn Read,
) -> Result<ParsedFile, IngestError> {
    let mut records = RecordCollector::new(input);
    let mut rows = open_rows(from, input.limits, records.reader_keys())?;
    let sample = sample(&mut rows, input.limits.max_columns)?;
    let head = Head::find(&sample, records.reader_keys())?;
    records.doubt_readers(head.hides_readers);
    for (at, row) in sample.iter().take(head.rows).enumerate() {
        let lost = match &row.cells {
            Ok(cells) if at < head.preamble => row_above_header(&cells.iter().collect::<Vec<_>>()),
            Ok(_) => None,
            Err(reason) => Some(reason.clone()),
        };
        if let Some(reason) = lost {
            records.skip(RecordLocation::Line(row.line), reason);
        }
    }
    let mut first = sample.into_iter().skip(head.rows);
    loop {
        let row = match first.next() {
            Some(row) => Some(row),
            None => rows.next()?,
        };
        let Some(row) = row else { break };
        if !add_row(&mut records, row, &head, input) {
            break;
        }
    }
    records.finish()
}

/// Shows the cells of every row as they are written, the header included. Fails at a damaged row.
pub(crate) fn visit_rows(
    from: &mut dyn Read,
    limits: &Limits,
    readers: &ReaderKeys,
    visit: &mut dyn FnMut(&[&str]),
) -> Result<(), IngestError> {
    let mut rows = open_rows(from, limits, readers)?;
    while let Some(row) = rows.next()? {
        let cells = row.cells?;
        visit(&cells.iter().collect::<Vec<_>>());
    }
    Ok(())
}

/// Begins to read a table, past the line that declares its delimiter.
fn open_rows<'r>(
    from: &'r mut dyn Read,
    limits: &Limits,
    readers: &ReaderKeys,
) -> Result<CsvRowReader<'r>, IngestError> {
    let mut rows = CsvRowReader::new(TextStream::text(from), limits.max_line_bytes);
    let (head, is_cut) = rows.peek_start(SAMPLE_BYTES)?;
    let (delimiter, bytes) = match separator_line(head) {
        Some((delimiter, bytes)) => (delimiter, Some(bytes)),
        None => (sniff(head, is_cut, readers)?, None),
    };
    rows.set_delimiter(delimiter);
    if let Some(bytes) = bytes {
        rows.skip_line(bytes);
    }
    Ok(rows)
}

/// Adds one row as a record; false once the record limit is reached.
fn add_row(
    records: &mut RecordCollector<'_>,
    row: CsvRow,
    head: &Head,
    input: &ParserInput<'_>,
) -> bool {
    let place = RecordLocation::Line(row.line);
    let is_blank = |cells: &CsvCells| cells.iter().all(|cell| cell.trim_ascii().is_empty());
    if row.cells.as_ref().is_ok_and(is_blank) {
        return true;
    }
    if !records.begin(place) {
        return false;
    }
    let is_other_header = |cells| head.is_other_header(cells, records.reader_keys());
    if row.cells.as_ref().is_ok_and(is_other_header) {
        records.doubt_readers(true);
    }
    let is_shifted = head.is_shifted(&row);
    match row.cells.and_then(|cells| head.keys(&cells, input)) {
        Ok(keys) if is_shifted => records.add_doubted(place, keys),
        Ok(keys) => records.add(place, keys, None),
        Err(reason) => records.skip(place, reason),
    }
    true
}

/// Reads the sample of rows from which header and types are inferred. The rows are not lost: they are the
/// first to be added as records.
fn sample(rows: &mut CsvRowReader<'_>, limit: usize) -> Result<Vec<CsvRow>, IngestError> {
    let mut sample: Vec<CsvRow> = Vec::new();
    let (mut cells, mut bytes) = (0, 0);
    // A header is recognized by comparing two rows, so at least two are read, however wide the table is.
    while sample.len() < 2
        || (sample.len() < SAMPLE_ROWS && cells <= SAMPLE_CELLS && bytes <= SAMPLE_ROW_BYTES)
    {
        let Some(row) = rows.next()? else { break };
        if let Ok(found) = &row.cells {
            if found.len() > limit {
                return Err(IngestError::TooManyColumns { limit });
            }
            cells += found.len();
            bytes += found.bytes();
        }
        sample.push(row);
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::tests::with_input;

    /// Renders each document as `id {fields}` and each skipped row as `line:code`.
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
    fn every_line_end_ends_a_row() {
        for end in ["\n", "\r", "\r\n"] {
            let rows: String = (1..=921).map(|n| format!("{n},\"a{end}b\"{end}")).collect();
            let found = show(
                format!("berth,note{end}{rows}").as_bytes(),
                &Limits::default(),
            );
            assert_eq!(found.len(), 921, "{end:?}");
            // Each row spans two lines, and a line ending inside quotes is kept.
            let last = found.last().unwrap();
            assert!(last.starts_with("t.csv#L1842 | berth=921"), "{last}");
        }
        check(
            "sep=;\rport;n\rEllin;1\nTarn;2\r\nOrrin;3\r\n\rSkerry;4",
            &[
                "t.csv#L3 | port=Ellin | n=1",
                "t.csv#L4 | port=Tarn | n=2",
                "t.csv#L5 | port=Orrin | n=3",
                "t.csv#L7 | port=Skerry | n=4",
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
        // A header in which only the second cell is filled, with no rows above it.
        check(
            "\"\",\"depth\"\n\"1\",0.5\n\"2\",0.7\n",
            &[
                "t.csv#L2 | column 1=1 | depth=0.5",
                "t.csv#L3 | column 1=2 | depth=0.7",
            ],
        );
        check(
            "\"\",\"Question\"\nV1,Do you row?\nV2,Do you sail?\n",
            &[
                "t.csv#L2 | column 1=V1 | Question=Do you row?",
                "t.csv#L3 | column 1=V2 | Question=Do you sail?",
            ],
        );
        check(
            "1,\n,2\n3,4\n",
            &[
                "t.csv#L1 | column 1=1",
                "t.csv#L2 | column 2=2",
                "t.csv#L3 | column 1=3 | column 2=4",
            ],
        );
    }

    #[test]
    fn records_keep_their_ids_titles_and_texts() {
        check(
            "ID,Title,body,tier\n007,One,words,1\n8,Two,,2\n",
            &["007 | One | tier=1", "8 | Two | tier=2"],
        );
        check(
            "ID,Title,body,tier\n007,One,words,1\nx#p2,Three,w,3\n",
            &[
                "t.csv#L2 | One | ID=007 | tier=1",
                "t.csv#L3 | Three | ID=x#p2 | tier=3",
            ],
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
        check(
            "port,note\rEllin,\"open\rTarn,x\rOrrin,y\r",
            &[
                "t.csv#L3 | port=Tarn | note=x",
                "t.csv#L4 | port=Orrin | note=y",
                "2:damaged",
            ],
        );
    }

    #[test]
    fn a_line_without_end_costs_itself() {
        let long = "x".repeat(9 * 1024 * 1024);
        let text = format!("port,n\nEllin,1\n{long}\r\nTarn,2\n{long}");
        assert_eq!(
            show(text.as_bytes(), &Limits::default()),
            [
                "t.csv#L2 | port=Ellin | n=1",
                "t.csv#L4 | port=Tarn | n=2",
                "3:line-too-long",
                "5:line-too-long",
            ]
        );
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
