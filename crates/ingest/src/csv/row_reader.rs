//! A long text into the rows of a table, one after the other, of which no more than a window is held. A quote
//! that is opened and never closed would swallow all rows behind it, and one that is closed by a stray quote
//! some rows further on all rows between; then the line with the quote is a bad row, and reading begins anew on
//! the next line. After many of those a quote is a character like any other, because looking for its end again
//! and again would take too long, and giving up would lose rows.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::quotes::{QuoteEnd, quote_end};
use crate::error::IngestError;
use crate::line_counter::LineCounter;
use crate::text_stream::TextStream;

/// How often reading may begin anew behind a quote that never ends.
const MOST_RESTARTS: usize = 64;

/// Bytes that may be read again behind quotes that a stray one closes. They are often close to each other, so that
/// their number says little about how long it takes.
const MOST_RESCANNED: usize = 32 * 1024 * 1024;

/// The least bytes in which a row must end, however short rows have to be: its beginning is kept until then.
const MIN_WINDOW_BYTES: usize = 4 * 1024 * 1024;

/// What was read and is no longer needed is let go of from this size on.
const COMPACT_AT_BYTES: usize = 1024 * 1024;

/// The cells of one row.
#[derive(Debug, Clone, Default)]
pub(super) struct CsvCells {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl CsvCells {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all cells together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| {
            let cell = self.bytes.get(start..*end).unwrap_or_default();
            // Cells are parts of a text cut at ASCII characters, so they are texts.
            std::str::from_utf8(cell).unwrap_or_default()
        })
    }
}

pub(super) struct CsvRow {
    /// Counted from 1.
    pub line: u64,
    pub cells: Result<CsvCells, IngestError>,
    /// Whether it has quotes that were read like any other character, so that cells may be cut in two.
    pub has_bare_quotes: bool,
}

pub(super) struct CsvRowReader<'r> {
    from: TextStream<'r>,
    window: Vec<u8>,
    /// No more will come.
    ended: bool,
    /// Where in the window the next row begins.
    at: usize,
    /// Where the parser is.
    scanned: usize,
    lines: LineCounter,
    delimiter: u8,
    parser: Reader,
    restarts: usize,
    rescanned: usize,
    most: usize,
}

impl<'r> CsvRowReader<'r> {
    /// The rows of a text. One that does not end within four times `longest` bytes never does.
    pub(super) fn new(from: TextStream<'r>, longest: usize) -> Self {
        Self {
            from,
            window: Vec::new(),
            ended: false,
            at: 0,
            scanned: 0,
            lines: LineCounter::default(),
            delimiter: b',',
            parser: parser(b',', true),
            restarts: 0,
            rescanned: 0,
            most: longest.saturating_mul(4).max(MIN_WINDOW_BYTES),
        }
    }

    /// The beginning of the text, so much of it as there is, and whether there is more.
    pub(super) fn peek_start(&mut self, bytes: usize) -> Result<(&str, bool), IngestError> {
        while self.window.len() < bytes && !self.ended {
            self.ended = !self.from.fill(&mut self.window)?;
        }
        let head = self.window.get(..bytes).unwrap_or(&self.window);
        // A cut may go through a character.
        let text = match std::str::from_utf8(head) {
            Ok(text) => text,
            Err(error) => {
                let good = head.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(good).unwrap_or_default()
            }
        };
        Ok((text, self.window.len() > bytes || !self.ended))
    }

    /// Leaves out a first line of so many bytes.
    pub(super) fn skip_line(&mut self, bytes: usize) {
        self.advance_to(bytes);
    }

    pub(super) fn set_delimiter(&mut self, delimiter: u8) {
        self.delimiter = delimiter;
        self.parser = parser(delimiter, true);
    }

    /// The next row, or nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<CsvRow>, IngestError> {
        self.discard_consumed();
        if !self.skip_blank_lines()? {
            return Ok(None);
        }
        let mut cells = CsvCells::default();
        let is_whole = self.scan(&mut cells)?;
        let line = self.lines.line();
        let has_quotes = self.has_quote();
        let reads_quotes = self.reads_quotes();
        let has_bare_quotes = has_quotes && !reads_quotes;
        let has_quotes = has_quotes && reads_quotes;
        let cells = if !is_whole && !has_quotes {
            self.skip_long_line()?;
            let limit = self.most;
            Err(IngestError::LineTooLong { limit })
        } else if !is_whole || (has_quotes && self.has_unclosed_quote()) {
            self.restarts += 1;
            self.resync_after_quote();
            let what = "a quote is never closed";
            Err(IngestError::Damaged { what: what.into() })
        } else if has_quotes && self.quote_end() == QuoteEnd::Torn {
            self.rescanned += self.scanned - self.at;
            self.resync_after_quote();
            let what = "text follows the closing quote of a cell of several lines";
            Err(IngestError::Damaged { what: what.into() })
        } else if cells.len() == 0 {
            return Ok(None);
        } else {
            self.advance_to(self.scanned);
            Ok(cells)
        };
        Ok(Some(CsvRow {
            line,
            cells,
            has_bare_quotes,
        }))
    }

    /// Goes to where a row begins, past empty lines; false at the end.
    fn skip_blank_lines(&mut self) -> Result<bool, IngestError> {
        loop {
            let rest = self.window.get(self.at..).unwrap_or_default();
            let blank = rest
                .iter()
                .take_while(|byte| b"\r\n".contains(byte))
                .count();
            self.advance_to(self.at + blank);
            if self.at < self.window.len() {
                return Ok(true);
            }
            if self.ended {
                return Ok(false);
            }
            self.ended = !self.from.fill(&mut self.window)?;
        }
    }

    /// Reads the cells of one row; false when it does not end.
    fn scan(&mut self, cells: &mut CsvCells) -> Result<bool, IngestError> {
        let (mut bytes, mut ends) = (0, 0);
        cells.bytes.resize(512, 0);
        cells.ends.resize(16, 0);
        loop {
            if self.scanned == self.window.len() && !self.ended {
                if self.window.len() - self.at >= self.most {
                    return Ok(false);
                }
                self.ended = !self.from.fill(&mut self.window)?;
                continue;
            }
            let (result, read, written, ended) = self.parser.read_record(
                self.window.get(self.scanned..).unwrap_or_default(),
                cells.bytes.get_mut(bytes..).unwrap_or_default(),
                cells.ends.get_mut(ends..).unwrap_or_default(),
            );
            self.scanned += read;
            bytes += written;
            ends += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => cells.bytes.resize(2 * cells.bytes.len(), 0),
                ReadRecordResult::OutputEndsFull => cells.ends.resize(2 * cells.ends.len(), 0),
                ReadRecordResult::Record | ReadRecordResult::End => {
                    cells.bytes.truncate(bytes);
                    cells.ends.truncate(ends);
                    return Ok(true);
                }
            }
        }
    }

    /// Whether the row opened a quote that the text does not close.
    fn has_unclosed_quote(&self) -> bool {
        let at_end = self.ended && self.scanned == self.window.len();
        let row = self.window.get(self.at..).unwrap_or_default();
        at_end
            && memchr::memchr2(b'\r', b'\n', row.trim_ascii_end()).is_some()
            && self.quote_end() == QuoteEnd::Open
    }

    fn quote_end(&self) -> QuoteEnd {
        let row = self.window.get(self.at..self.scanned).unwrap_or_default();
        quote_end(row, self.delimiter)
    }

    fn has_quote(&self) -> bool {
        let row = self.window.get(self.at..self.scanned).unwrap_or_default();
        memchr::memchr(b'"', row).is_some()
    }

    /// Begins anew behind the first line of the row.
    fn resync_after_quote(&mut self) {
        let end = self.line_end();
        self.advance_to(end.map_or(self.window.len(), |end| end + 1));
        self.parser = parser(self.delimiter, self.reads_quotes());
    }

    fn reads_quotes(&self) -> bool {
        self.restarts < MOST_RESTARTS && self.rescanned < MOST_RESCANNED
    }

    /// Goes behind a line that is too long to be held.
    fn skip_long_line(&mut self) -> Result<(), IngestError> {
        let end = loop {
            if let Some(end) = self.line_end() {
                break end + 1;
            }
            self.advance_to(self.window.len());
            self.discard_consumed();
            if self.ended {
                break self.at;
            }
            self.ended = !self.from.fill(&mut self.window)?;
        };
        self.advance_to(end);
        self.parser.reset();
        Ok(())
    }

    /// Where the line ends that the next row begins with, as far as it is here.
    fn line_end(&self) -> Option<usize> {
        let rest = self.window.get(self.at..).unwrap_or_default();
        memchr::memchr2(b'\r', b'\n', rest).map(|end| self.at + end)
    }

    /// The next row begins here.
    fn advance_to(&mut self, next: usize) {
        let passed = self.window.get(self.at..next).unwrap_or_default();
        self.lines.advance(passed);
        (self.at, self.scanned) = (next, next);
    }

    fn discard_consumed(&mut self) {
        if self.at >= COMPACT_AT_BYTES {
            self.window.drain(..self.at);
            (self.at, self.scanned) = (0, 0);
        }
    }
}

fn parser(delimiter: u8, quoting: bool) -> Reader {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .quoting(quoting)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quotes so far from each other that no window holds two of them: each costs its line, until a quote
    /// is a character like any other and costs nothing.
    #[test]
    fn no_row_is_lost_behind_many_open_quotes() {
        // More than is read at once.
        let apart = "Tarn,1\n".repeat(12_000);
        let text = format!("Ellin,\"x\n{apart}").repeat(MOST_RESTARTS + 2);
        let mut bytes = text.as_bytes();
        let mut rows = CsvRowReader::new(TextStream::text(&mut bytes), 1);
        rows.most = 100;
        let (mut whole, mut damaged, mut lines) = (0, 0, Vec::new());
        while let Some(row) = rows.next().unwrap() {
            lines.push(row.line);
            match row.cells {
                Ok(_) => whole += 1,
                Err(reason) => {
                    assert_eq!(reason.code(), "damaged");
                    damaged += 1;
                }
            }
        }
        let all = 12_001 * (MOST_RESTARTS as u64 + 2);
        assert_eq!((whole + damaged, damaged), (all, MOST_RESTARTS as u64));
        assert_eq!(lines, (1..=all).collect::<Vec<_>>());
    }
}
