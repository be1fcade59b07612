//! Recognizes a header of `key: value` lines without fences, as MultiMarkdown and Pelican write it at the start
//! of a text.

use crate::reader_field::ReaderKeys;

/// The most characters of a key; what stands before the colon of a longer line is a sentence.
const MAX_KEY_CHARS: usize = 64;

/// A header has at least this many keys. A single line is a sentence: "Allowed: dogs on a leash".
const MIN_KEYS: usize = 2;

/// The lines of a text as far as they may be a header.
#[derive(Debug)]
pub(super) enum BareHeader {
    /// No line of content was seen yet.
    Before,
    /// All lines so far are keys, or continue the value of one.
    Open {
        keys: usize,
        is_named: bool,
    },
    Over,
}

impl BareHeader {
    pub(super) fn new(may_begin: bool) -> Self {
        match may_begin {
            true => Self::Before,
            false => Self::Over,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    pub(super) fn end(&mut self) {
        *self = Self::Over;
    }

    /// Ends the header at a blank line. Blank lines above it do not count.
    pub(super) fn end_if_open(&mut self) {
        if self.is_open() {
            self.end();
        }
    }

    /// Processes the next line of content; true once the lines are a header with the access control field.
    pub(super) fn process_line(&mut self, line: &str, readers: &ReaderKeys) -> bool {
        let (keys, is_named) = match self {
            Self::Before => (0, false),
            Self::Open { keys, is_named } => (*keys, *is_named),
            Self::Over => return false,
        };
        let is_key = is_key_line(line);
        if !is_key && (keys == 0 || !continues_value(line)) {
            self.end();
            return false;
        }
        let keys = keys + usize::from(is_key);
        let is_named = is_named || readers.begin(line);
        *self = Self::Open { keys, is_named };
        keys >= MIN_KEYS && is_named
    }
}

/// Whether a line begins with a short key and a colon, also in bold or in quotes.
fn is_key_line(line: &str) -> bool {
    let line = line.trim().trim_start_matches(['*', '_', '"', '\'', '`']);
    let Some((key, value)) = line.split_once([':', '：']) else {
        return false;
    };
    key.starts_with(char::is_alphanumeric)
        && key.chars().nth(MAX_KEY_CHARS).is_none()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || " -_.*\"'`".contains(c))
        && !value.starts_with("//")
}

/// Whether a line continues the value above it: it is indented, or an element of a list.
fn continues_value(line: &str) -> bool {
    line.starts_with([' ', '\t', '-', '*', '+'])
}
