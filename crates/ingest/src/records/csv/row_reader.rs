//! Streaming CSV row reader with error recovery; it holds only a window of the text.
//!
//! An unclosed quote would swallow all rows after it, and one closed by a stray quote further down all rows
//! between. The line with the quote is then reported as a bad row, and parsing resynchronizes on the next
//! line. After too many recoveries quotes are treated as ordinary characters: searching for the end of each
//! again would take quadratic time, and giving up would lose rows.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::quotes::{QuoteEnd, quote_end};
use crate::decoding::text_stream::TextStream;
use crate::error::IngestError;
use crate::records::line_counter::LineCounter;

/// How often parsing may resynchronize after an unclosed quote before quotes become ordinary characters. A few unclosed
/// quotes are typing errors of single rows. A file with many of them uses the character for something else, such as
/// inches, and does not quote cells at all.
const MAX_RESYNCS: usize = 64;

/// Bytes that may be parsed twice after quotes closed by a stray one. Such quotes are often close together,
/// so that the number of recoveries alone would say little about the time they take.
const MAX_RESCANNED_BYTES: usize = 32 * 1024 * 1024;

/// The smallest window in which a row must end, whatever the row limit is. A quote without a partner makes a row
/// endless, and only its length shows that. With a low row limit, four times the limit would also end rows whose cells
/// are merely long.
const MIN_WINDOW_BYTES: usize = 4 * 1024 * 1024;

/// Consumed bytes are dropped from the window once there are this many of them. Dropping moves the rest of the window
/// to its front, so doing it after every row would copy the window thousands of times.
const COMPACT_AT_BYTES: usize = 1024 * 1024;

/// The cells of one row: one buffer for their bytes, and the offset at which each of them ends.
#[derive(Debug, Clone, Default)]
pub(super) struct CsvCells {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl CsvCells {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The total length of all cells, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| {
            let cell = self.bytes.get(start..*end).unwrap_or_default();
            // Cells are slices of valid UTF-8 cut at ASCII characters, so they are valid UTF-8 themselves.
            std::str::from_utf8(cell).unwrap_or_default()
        })
    }
}

/// One row: its cells, or why they could not be parsed.
pub(super) struct CsvRow {
    /// The line on which the row begins, counted from 1.
    pub line: u64,
    pub cells: Result<CsvCells, IngestError>,
    /// Whether quotes in it were treated as ordinary characters, so that a cell may have been split in two.
    pub has_bare_quotes: bool,
}

/// The state of the reader. `at` is where the next row begins in the window and `scanned` how far the parser
/// got in it; `ended` says that the stream has no more bytes.
pub(super) struct CsvRowReader<'r> {
    from: TextStream<'r>,
    window: Vec<u8>,
    ended: bool,
    at: usize,
    scanned: usize,
    lines: LineCounter,
    delimiter: u8,
    parser: Reader,
    resyncs: usize,
    rescanned_bytes: usize,
    max_row_bytes: usize,
}

impl<'r> CsvRowReader<'r> {
    /// Creates a reader. A row that does not end within four times `longest` bytes counts as endless and is
    /// skipped.
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
            resyncs: 0,
            rescanned_bytes: 0,
            max_row_bytes: longest.saturating_mul(4).max(MIN_WINDOW_BYTES),
        }
    }

    /// Peeks at the first bytes of the text; also says whether there is more.
    pub(super) fn peek_start(&mut self, bytes: usize) -> Result<(&str, bool), IngestError> {
        while self.window.len() < bytes && !self.ended {
            self.ended = !self.from.fill(&mut self.window)?;
        }
        let head = self.window.get(..bytes).unwrap_or(&self.window);
        // The cut may fall inside a multi-byte character.
        let text = match std::str::from_utf8(head) {
            Ok(text) => text,
            Err(error) => {
                let good = head.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(good).unwrap_or_default()
            }
        };
        Ok((text, self.window.len() > bytes || !self.ended))
    }

    /// Skips a first line of this many bytes.
    pub(super) fn skip_line(&mut self, bytes: usize) {
        self.advance_to(bytes);
    }

    pub(super) fn set_delimiter(&mut self, delimiter: u8) {
        self.delimiter = delimiter;
        self.parser = parser(delimiter, true);
    }

    /// Reads the next row; `None` at the end of the text.
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
            let limit = self.max_row_bytes;
            Err(IngestError::LineTooLong { limit })
        } else if !is_whole || (has_quotes && self.has_unclosed_quote()) {
            self.resyncs += 1;
            self.resync_after_quote();
            let what = "a quote is never closed";
            Err(IngestError::Damaged { what: what.into() })
        } else if has_quotes && self.quote_end() == QuoteEnd::Torn {
            self.rescanned_bytes += self.scanned - self.at;
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

    /// Advances to the start of the next row, past blank lines; false at the end of the text.
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

    /// Parses the cells of one row; false if the row does not end within the window.
    fn scan(&mut self, cells: &mut CsvCells) -> Result<bool, IngestError> {
        let (mut bytes, mut ends) = (0, 0);
        cells.bytes.resize(512, 0);
        cells.ends.resize(16, 0);
        loop {
            if self.scanned == self.window.len() && !self.ended {
                if self.window.len() - self.at >= self.max_row_bytes {
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

    /// Whether the row opens a quote that the rest of the text never closes.
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

    /// Error recovery: resumes parsing after the first line of the current row.
    fn resync_after_quote(&mut self) {
        let end = self.line_end();
        self.advance_to(end.map_or(self.window.len(), |end| end + 1));
        self.parser = parser(self.delimiter, self.reads_quotes());
    }

    fn reads_quotes(&self) -> bool {
        self.resyncs < MAX_RESYNCS && self.rescanned_bytes < MAX_RESCANNED_BYTES
    }

    /// Skips the rest of a line that is too long for the window.
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

    /// The end of the line with which the next row begins, if it is in the window already.
    fn line_end(&self) -> Option<usize> {
        let rest = self.window.get(self.at..).unwrap_or_default();
        memchr::memchr2(b'\r', b'\n', rest).map(|end| self.at + end)
    }

    /// Moves the start of the next row to this offset, and counts the lines passed.
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

    /// Unclosed quotes so far apart that no window holds two of them: each costs its line, until quotes
    /// become ordinary characters and cost nothing.
    #[test]
    fn no_row_is_lost_behind_many_open_quotes() {
        // More bytes than one read returns.
        let apart = "Tarn,1\n".repeat(12_000);
        let text = format!("Ellin,\"x\n{apart}").repeat(MAX_RESYNCS + 2);
        let mut bytes = text.as_bytes();
        let mut rows = CsvRowReader::new(TextStream::text(&mut bytes), 1);
        rows.max_row_bytes = 100;
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
        let all = 12_001 * (MAX_RESYNCS as u64 + 2);
        assert_eq!((whole + damaged, damaged), (all, MAX_RESYNCS as u64));
        assert_eq!(lines, (1..=all).collect::<Vec<_>>());
    }
}
