//! Detection of misplaced front matter that may hold the access control field: after a comment or heading, in
//! unsupported fences, inside a comment, after front matter that was parsed, in a header without fences, or
//! in an exported object of MDX.
//!
//! The author meant to restrict the document, so it fails closed: nobody may read it until the field is moved
//! to where it is parsed. A line counts if it begins with the field name and a colon or an equals sign, also
//! in a list, in bold or in quotes, and if text before it looks like the start of front matter. Without that
//! second condition it is a sentence: "Allowed: dogs on a leash".

use docent_unicode::truncate_bytes;

use crate::reader_field::{ReaderFault, ReaderField, ReaderKeys};

use super::bare_header::BareHeader;
use super::export_block::ExportBlock;
use super::{looks_like_keys, split_at_fence};

/// How many bytes at the start of a text are searched. A block that the first line opens and nothing closes
/// is searched to the end of the text.
const MAX_SCAN_BYTES: usize = 64 * 1024;

/// Where the search for the field starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    File,
    /// After front matter that was parsed and does not contain the field.
    AfterFrontMatter,
}

/// Checks a text without parseable front matter: malformed if something in it looks like front matter and may
/// name the access control field, otherwise absent.
pub(crate) fn unread(text: &str, readers: &ReaderKeys) -> ReaderField {
    malformed_if(
        readers.is_configured()
            && (is_unread_at_start(text, readers) || names(text, readers, Start::File)),
    )
}

/// Checks the text after front matter that does not contain the field.
pub(crate) fn unread_behind(body: &str, readers: &ReaderKeys) -> ReaderField {
    malformed_if(readers.is_configured() && names(body, readers, Start::AfterFrontMatter))
}

/// Checks the opening block of source code. Rules and comments further down are code.
pub(crate) fn unread_in_code(code: &str, readers: &ReaderKeys) -> ReaderField {
    if !readers.is_configured() {
        return ReaderField::Absent;
    }
    let mut lines = code.lines().skip_while(|line| {
        line.trim().is_empty() || line.starts_with("#!") || line.starts_with("<?")
    });
    let first = lines.next().unwrap_or_default();
    let is_comment = first.trim_start().starts_with("<!--");
    if !is_comment && !is_fence(first) && !FENCES.iter().any(|fence| first.starts_with(fence)) {
        return ReaderField::Absent;
    }
    let is_end = |line: &str| match is_comment {
        true => line.contains("-->"),
        false => is_fence(line),
    };
    let mut block = lines.take_while(|line| !is_end(line));
    malformed_if(
        (is_comment && readers.are_assigned_in_line(first))
            || block.any(|line| readers.begin(line)),
    )
}

/// Checks configuration files such as YAML, TOML and INI, which are indexed as text. Any of their lines may
/// be a key.
pub(crate) fn unread_in_data(text: &str, readers: &ReaderKeys) -> ReaderField {
    malformed_if(
        readers.is_configured() && text.lines().any(|line| readers.are_assigned_in_line(line)),
    )
}

fn malformed_if(is_doubtful: bool) -> ReaderField {
    match is_doubtful {
        true => ReaderField::Malformed(ReaderFault::FrontMatter),
        false => ReaderField::Absent,
    }
}

/// The opening fences of front matter, in every language that some program supports.
const FENCES: [&str; 6] = ["---", "+++", ";;;", "```", "~~~", "{"];

/// Whether the first non-blank line opens a block that may contain the access control field.
fn is_unread_at_start(text: &str, readers: &ReaderKeys) -> bool {
    let start = text.trim_start();
    let (first, after) = start.split_once('\n').unwrap_or((start, ""));
    let is_fenced = FENCES.iter().any(|fence| start.starts_with(fence));
    let ends: &[&str] = match first.trim_end() {
        "---" => &["---", "..."],
        "+++" => &["+++"],
        _ => &[],
    };
    let block = split_at_fence(after, ends, MAX_SCAN_BYTES).map(|(block, _)| block);
    start.len() < text.len() && block.is_some_and(looks_like_keys)
        || is_fenced && readers.appears_in(block.unwrap_or(truncate_bytes(start, MAX_SCAN_BYTES)))
}

/// Whether a line contains the field after something that looks like the start of front matter.
fn names(text: &str, readers: &ReaderKeys, start: Start) -> bool {
    let text = text.trim_start();
    let mut state = LineState::new(start);
    let mut at = 0;
    while let Some(line) = line_at(text, at) {
        if at > MAX_SCAN_BYTES && !state.is_in_block() {
            return false;
        }
        if state.may_open_code(line) {
            match end_of_code(text, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => state.has_open_code = true,
            }
        }
        at += line.len();
        if state.process_line(line, readers) {
            return true;
        }
    }
    false
}

/// The line that begins at this offset, line ending included.
fn line_at(text: &str, at: usize) -> Option<&str> {
    text.get(at..)?.split_inclusive('\n').next()
}

/// The offset after the code block that opens here, if it is closed within the search window.
fn end_of_code(text: &str, at: usize) -> Option<usize> {
    let open = line_at(text, at)?;
    let trimmed = open.trim_start();
    let mark = trimmed.chars().next()?;
    let length = trimmed.chars().take_while(|c| *c == mark).count();
    let mut at = at + open.len();
    let max_end = at + MAX_SCAN_BYTES;
    while let Some(line) = line_at(text, at).filter(|_| at <= max_end) {
        at += line.len();
        let trimmed = line.trim();
        if trimmed.chars().all(|c| c == mark) && trimmed.chars().count() >= length {
            return Some(at);
        }
    }
    None
}

/// The state of the line scanner. It models what the lines so far may have opened: fences, a comment, a
/// paragraph that a closing fence would turn into front matter.
struct LineState {
    /// The number of fence lines so far, between which front matter may stand.
    fences: usize,
    /// Whether only comments and attributes were seen so far.
    is_top: bool,
    /// Whether a fence after this paragraph would make it front matter: it is the first one of the file, or a
    /// rule precedes it.
    may_be_block: bool,
    /// Whether this paragraph contains the field.
    is_named: bool,
    /// Whether the lines up to the next blank one may be front matter.
    until_blank: bool,
    in_comment: bool,
    /// Whether the previous line was prose, which a rule below turns into a heading (setext).
    after_prose: bool,
    /// Whether an unclosed code block was seen, after which no other one is searched for.
    has_open_code: bool,
    header: BareHeader,
    export: Option<ExportBlock>,
}

impl LineState {
    fn new(start: Start) -> Self {
        Self {
            fences: 0,
            is_top: start == Start::File,
            may_be_block: start == Start::File,
            is_named: false,
            until_blank: start == Start::AfterFrontMatter,
            in_comment: false,
            after_prose: false,
            has_open_code: false,
            header: BareHeader::new(start == Start::File),
            export: None,
        }
    }

    /// Whether the search goes on past its window, because an unclosed block extends to the end of the text.
    fn is_in_block(&self) -> bool {
        self.fences == 1 || self.header.is_open() || self.export.is_some()
    }

    /// Whether a line opens a code block within prose, which is an example and not front matter.
    fn may_open_code(&self, line: &str) -> bool {
        let is_prose = !self.is_top && !self.in_comment && self.export.is_none();
        is_code_mark(line) && is_prose && !self.has_open_code
    }

    /// Processes one line; true if it contains the field in a place that counts.
    fn process_line(&mut self, raw: &str, readers: &ReaderKeys) -> bool {
        if let Some(export) = self.next_export(raw) {
            self.is_top = false;
            self.header.end();
            self.export = export.is_open().then_some(export);
            return ExportBlock::names_field(raw, readers);
        }
        let line = raw.trim();
        if line.is_empty() {
            self.header.end_if_open();
            self.may_be_block &= self.until_blank || self.is_top;
            (self.until_blank, self.is_named, self.after_prose) = (false, false, false);
            return false;
        }
        if self.in_comment || is_comment(line) {
            return self.process_comment(line, readers);
        }
        if is_attribute(line, readers) {
            return true;
        }
        self.is_top = false;
        if is_fence(line) || is_code_mark(line) {
            self.header.end();
            return self.process_fence();
        }
        if self.header.process_line(raw, readers) {
            return true;
        }
        let is_named = readers.are_assigned_in_line(line);
        self.is_named |= is_named;
        self.after_prose = !line.starts_with(['#', '%']);
        is_named && (self.fences > 0 || self.until_blank)
    }

    /// The exported object that this line opens or continues.
    fn next_export(&mut self, raw: &str) -> Option<ExportBlock> {
        match self.export.take() {
            Some(mut export) => {
                export.process_line(raw);
                Some(export)
            }
            None if self.in_comment => None,
            None => ExportBlock::open(raw),
        }
    }

    fn process_comment(&mut self, line: &str, readers: &ReaderKeys) -> bool {
        let (inside, behind) = line.rsplit_once("-->").unwrap_or((line, ""));
        self.in_comment = match line.contains("-->") {
            true => behind.contains("<!--"),
            false => self.in_comment || line.contains("<!--"),
        };
        inside
            .split("<!--")
            .any(|inside| readers.are_assigned_in_line(inside))
    }

    fn process_fence(&mut self) -> bool {
        if self.is_named && self.may_be_block {
            return true;
        }
        if self.after_prose && self.fences == 0 {
            // The underline of a setext heading. Only text that follows directly, or ends at a fence, may be
            // front matter.
            (self.until_blank, self.may_be_block) = (true, true);
        } else {
            self.fences += 1;
        }
        (self.is_named, self.after_prose) = (false, false);
        false
    }
}

fn is_code_mark(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn is_comment(line: &str) -> bool {
    line.starts_with("[//]:") || line.starts_with("[comment]:") || line.contains("<!--")
}

/// Whether a line consists only of separator characters: three dashes, and what people and programs turn them
/// into.
fn is_fence(line: &str) -> bool {
    /// Word processors replace two or three dashes by one of these.
    const WIDE: &str = "–—―…⸺⸻";
    const NARROW: &str = "-+*=~;_.`‐‑‒−─━－﹣﹘＝＋＊";
    let line = line.trim().trim_start_matches(['>', '\\', ' ', '\t']);
    let marks = || line.chars().filter(|c| !c.is_whitespace());
    let is_mark = |c: char| WIDE.contains(c) || NARROW.contains(c);
    line.len() <= 1_024
        && marks().all(is_mark)
        && (marks().any(|c| WIDE.contains(c)) || marks().nth(1).is_some())
}

/// Whether a line is a document attribute with the field. reStructuredText and AsciiDoc write `:allowed: hr`,
/// Org writes `#+ALLOWED: hr`, and neither needs a fence.
fn is_attribute(line: &str, readers: &ReaderKeys) -> bool {
    let rest = line.strip_prefix("#+").or(line.strip_prefix(':'));
    rest.is_some_and(|rest| !rest.starts_with(':') && readers.begin(rest))
}
