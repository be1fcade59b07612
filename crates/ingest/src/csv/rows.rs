//! A long text into the rows of a table, one after the other, of which no more than a window is held. A quote
//! that is opened and never closed would swallow all rows behind it; then the line with the quote is a bad
//! row, and reading begins anew on the next line.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::error::Reason;
use crate::stream::Stream;

/// How often reading may begin anew behind a quote that never ends.
const MOST_RESTARTS: usize = 64;

/// The least bytes in which a row must end, however short rows have to be: its beginning is kept until then.
const LEAST_WINDOW: usize = 4 * 1024 * 1024;

/// What was read and is no longer needed is let go of from this size on.
const SPENT: usize = 1024 * 1024;

/// The cells of one row.
#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
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

pub(super) struct Row {
    /// Counted from 1.
    pub line: u64,
    pub cells: Result<Cells, Reason>,
}

pub(super) struct Rows<'r> {
    from: Stream<'r>,
    window: Vec<u8>,
    /// No more will come.
    ended: bool,
    /// Where in the window the next row begins.
    at: usize,
    /// Where the parser is.
    scanned: usize,
    line: u64,
    parser: Reader,
    restarts: usize,
    most: usize,
}

impl<'r> Rows<'r> {
    /// The rows of a text. One that does not end within four times `longest` bytes never does.
    pub(super) fn new(from: Stream<'r>, longest: usize) -> Self {
        Self {
            from,
            window: Vec::new(),
            ended: false,
            at: 0,
            scanned: 0,
            line: 1,
            parser: parser(b','),
            restarts: 0,
            most: longest.saturating_mul(4).max(LEAST_WINDOW),
        }
    }

    /// The beginning of the text, so much of it as there is, and whether there is more.
    pub(super) fn head(&mut self, bytes: usize) -> Result<(&str, bool), Reason> {
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
        (self.at, self.scanned) = (bytes, bytes);
        self.line += 1;
    }

    pub(super) fn cut_at(&mut self, delimiter: u8) {
        self.parser = parser(delimiter);
    }

    /// The next row, or nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<Row>, Reason> {
        self.let_go();
        if !self.begin()? {
            return Ok(None);
        }
        let mut cells = Cells::default();
        let is_whole = self.scan(&mut cells)?;
        let line = self.line;
        let may_restart = self.restarts < MOST_RESTARTS;
        if !is_whole || (may_restart && self.is_open()) {
            if !may_restart {
                // Going on would look at every byte again and again.
                self.at = self.window.len();
                self.scanned = self.at;
                self.ended = true;
            }
            self.restart();
            let what = "a quote is never closed";
            return Ok(Some(Row {
                line,
                cells: Err(Reason::Damaged { what: what.into() }),
            }));
        }
        if cells.len() == 0 {
            return Ok(None);
        }
        self.line += newlines(self.window.get(self.at..self.scanned).unwrap_or_default());
        self.at = self.scanned;
        Ok(Some(Row {
            line,
            cells: Ok(cells),
        }))
    }

    /// Goes to where a row begins, past empty lines; false at the end.
    fn begin(&mut self) -> Result<bool, Reason> {
        loop {
            let rest = self.window.get(self.at..).unwrap_or_default();
            let blank = rest
                .iter()
                .take_while(|byte| b"\r\n".contains(byte))
                .count();
            self.line += newlines(rest.get(..blank).unwrap_or_default());
            self.at += blank;
            self.scanned = self.at;
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
    fn scan(&mut self, cells: &mut Cells) -> Result<bool, Reason> {
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
    fn is_open(&self) -> bool {
        let at_end = self.ended && self.scanned == self.window.len();
        let row = || self.window.get(self.at..).unwrap_or_default();
        at_end
            && memchr::memchr(b'\n', row().trim_ascii_end()).is_some()
            && !memchr::memchr_iter(b'"', row()).count().is_multiple_of(2)
    }

    /// Begins anew behind the first line of the row.
    fn restart(&mut self) {
        self.restarts += 1;
        let rest = self.window.get(self.at..).unwrap_or_default();
        let next = memchr::memchr(b'\n', rest).map_or(self.window.len(), |end| self.at + end + 1);
        self.line += 1;
        (self.at, self.scanned) = (next, next);
        self.parser.reset();
    }

    fn let_go(&mut self) {
        if self.at >= SPENT {
            self.window.drain(..self.at);
            (self.at, self.scanned) = (0, 0);
        }
    }
}

fn parser(delimiter: u8) -> Reader {
    ReaderBuilder::new().delimiter(delimiter).build()
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
