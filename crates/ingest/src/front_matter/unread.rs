//! Front matter that is not read as such: behind a comment or a heading, between marks of another kind, in a
//! comment, behind front matter that is read. Its author meant to say who may read the document, so that the
//! document is for nobody until it is written where it is read.
//!
//! A line counts that begins with the field's name and a colon or an equals sign, in a list, in bold or in quotes
//! too, if something before it looks like the start of front matter. Without that it is a sentence: "Allowed:
//! dogs on a leash".

use crate::reader_field::{ReaderFault, ReaderField, ReaderKeys};

use super::{looks_like_keys, prefix_within, split_at_fence};

/// Bytes at the start of a text that are searched. A block that the first line opens and none closes is searched
/// to the end of the text.
const MOST_UNREAD: usize = 64 * 1024;

/// What is known about a text before its first line is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    File,
    /// Front matter that was read and does not have the field.
    Behind,
}

/// What a text without front matter that can be read says about its readers: nothing, unless something in it
/// looks like front matter and may name them.
pub(crate) fn unread(text: &str, readers: &ReaderKeys) -> ReaderField {
    doubt(
        readers.is_configured()
            && (is_unread_at_start(text, readers) || names(text, readers, Start::File)),
    )
}

/// The same for what follows front matter without the field.
pub(crate) fn unread_behind(body: &str, readers: &ReaderKeys) -> ReaderField {
    doubt(readers.is_configured() && names(body, readers, Start::Behind))
}

/// The same for source code: a block that opens it. Rules and comments further down are code.
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
    doubt((is_comment && says_readers(first, readers)) || block.any(|line| is_said(line, readers)))
}

/// The same for data and settings, such as YAML, TOML and INI files, which are read as text: there every line may
/// be a key.
pub(crate) fn unread_in_data(text: &str, readers: &ReaderKeys) -> ReaderField {
    doubt(readers.is_configured() && text.lines().any(|line| says_readers(line, readers)))
}

fn doubt(is_doubtful: bool) -> ReaderField {
    match is_doubtful {
        true => ReaderField::Malformed(ReaderFault::FrontMatter),
        false => ReaderField::Absent,
    }
}

/// How front matter begins, in every language that some program reads.
const FENCES: [&str; 6] = ["---", "+++", ";;;", "```", "~~~", "{"];

/// Whether the first line that is not blank opens a block that may name readers.
fn is_unread_at_start(text: &str, readers: &ReaderKeys) -> bool {
    let start = text.trim_start();
    let (first, after) = start.split_once('\n').unwrap_or((start, ""));
    let is_fenced = FENCES.iter().any(|fence| start.starts_with(fence));
    let ends: &[&str] = match first.trim_end() {
        "---" => &["---", "..."],
        "+++" => &["+++"],
        _ => &[],
    };
    let block = split_at_fence(after, ends, MOST_UNREAD).map(|(block, _)| block);
    start.len() < text.len() && block.is_some_and(looks_like_keys)
        || is_fenced && readers.appears_in(block.unwrap_or(prefix_within(start, MOST_UNREAD)))
}

/// Whether a line names the field behind something that looks like the start of front matter.
fn names(text: &str, readers: &ReaderKeys, start: Start) -> bool {
    let text = text.trim_start();
    let mut state = LineState::new(start);
    let mut at = 0;
    while let Some(line) = line_at(text, at) {
        // A block that is never closed goes on to the end of the text.
        if at > MOST_UNREAD && state.fences != 1 {
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
        if state.see(line.trim(), readers) {
            return true;
        }
    }
    false
}

/// The line that begins at a byte, with its end.
fn line_at(text: &str, at: usize) -> Option<&str> {
    text.get(at..)?.split_inclusive('\n').next()
}

/// Where the line after a block of code begins that opens here, if it is closed near enough.
fn end_of_code(text: &str, at: usize) -> Option<usize> {
    let open = line_at(text, at)?;
    let shown = open.trim_start();
    let mark = shown.chars().next()?;
    let length = shown.chars().take_while(|c| *c == mark).count();
    let mut at = at + open.len();
    let most = at + MOST_UNREAD;
    while let Some(line) = line_at(text, at).filter(|_| at <= most) {
        at += line.len();
        let shown = line.trim();
        if shown.chars().all(|c| c == mark) && shown.chars().count() >= length {
            return Some(at);
        }
    }
    None
}

/// What the lines so far have opened.
struct LineState {
    /// Lines between which front matter may stand.
    fences: usize,
    /// Whether nothing but comments came so far.
    is_top: bool,
    /// Whether a fence at the end of this paragraph would make front matter of it: it is the first of the file, or a
    /// rule came before.
    may_be_block: bool,
    /// Whether this paragraph named the field.
    is_named: bool,
    /// Whether what comes before the next blank line may be front matter.
    until_blank: bool,
    in_comment: bool,
    /// Whether the line before was a sentence, which a rule below it makes a heading.
    below_words: bool,
    /// Whether a block of code was not closed, so that no other is looked for.
    has_open_code: bool,
}

impl LineState {
    fn new(start: Start) -> Self {
        Self {
            fences: 0,
            is_top: start == Start::File,
            may_be_block: start == Start::File,
            is_named: false,
            until_blank: start == Start::Behind,
            in_comment: false,
            below_words: false,
            has_open_code: false,
        }
    }

    /// Whether a line opens a block of code between sentences, which is an example and no front matter.
    fn may_open_code(&self, line: &str) -> bool {
        is_code_mark(line) && !self.is_top && !self.in_comment && !self.has_open_code
    }

    /// Looks at a line without blanks around it; true where it names the field and that counts.
    fn see(&mut self, line: &str, readers: &ReaderKeys) -> bool {
        if line.is_empty() {
            self.may_be_block &= self.until_blank || self.is_top;
            (self.until_blank, self.is_named, self.below_words) = (false, false, false);
            return false;
        }
        if self.in_comment || is_comment(line) {
            return self.see_comment(line, readers);
        }
        if is_attribute(line, readers) {
            return true;
        }
        self.is_top = false;
        if is_fence(line) || is_code_mark(line) {
            return self.see_fence();
        }
        let is_named = says_readers(line, readers);
        self.is_named |= is_named;
        self.below_words = !line.starts_with(['#', '%']);
        is_named && (self.fences > 0 || self.until_blank)
    }

    fn see_comment(&mut self, line: &str, readers: &ReaderKeys) -> bool {
        let (inside, behind) = line.rsplit_once("-->").unwrap_or((line, ""));
        self.in_comment = match line.contains("-->") {
            true => behind.contains("<!--"),
            false => self.in_comment || line.contains("<!--"),
        };
        inside
            .split("<!--")
            .any(|inside| says_readers(inside, readers))
    }

    fn see_fence(&mut self) -> bool {
        if self.is_named && self.may_be_block {
            return true;
        }
        if self.below_words && self.fences == 0 {
            // The rule below a heading; only what follows at once, or ends in a fence, may be front matter.
            (self.until_blank, self.may_be_block) = (true, true);
        } else {
            self.fences += 1;
        }
        (self.is_named, self.below_words) = (false, false);
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

/// Whether a line consists of a mark that separates things: three dashes, and whatever people and programs
/// make of them.
fn is_fence(line: &str) -> bool {
    /// A word processor makes one of these of two or three dashes.
    const WIDE: &str = "–—―…⸺⸻";
    const NARROW: &str = "-+*=~;_.`‐‑‒−─━－﹣﹘＝＋＊";
    let line = line.trim().trim_start_matches(['>', '\\', ' ', '\t']);
    let marks = || line.chars().filter(|c| !c.is_whitespace());
    let is_mark = |c: char| WIDE.contains(c) || NARROW.contains(c);
    line.len() <= 1_024
        && marks().all(is_mark)
        && (marks().any(|c| WIDE.contains(c)) || marks().nth(1).is_some())
}

/// `:allowed: hr` of reStructuredText and AsciiDoc, and `#+ALLOWED: hr` of Org: attributes of a document that
/// need no fence.
fn is_attribute(line: &str, readers: &ReaderKeys) -> bool {
    let rest = line.strip_prefix("#+").or(line.strip_prefix(':'));
    rest.is_some_and(|rest| !rest.starts_with(':') && is_said(rest, readers))
}

/// Whether some part of a line begins with the field's name and a mark.
fn says_readers(line: &str, readers: &ReaderKeys) -> bool {
    line.contains([':', '=', '：', '＝'])
        && line
            .split([',', ';', '{', '('])
            .any(|part| is_said(part, readers))
}

/// Whether a text begins with the field's name and a mark behind it, in a list, in bold or in quotes too.
pub(crate) fn is_said(text: &str, readers: &ReaderKeys) -> bool {
    /// Bytes of a name with what stands around it.
    const MOST: usize = 1_024;
    let is_around = |c: char| !c.is_alphanumeric();
    let text = prefix_within(text.trim_start(), MOST);
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let text = if digits.starts_with(['.', ')']) {
        digits
    } else {
        text
    };
    let text = text.trim_start_matches(is_around);
    let Some((name, _)) = text.split_once([':', '=', '：', '＝']) else {
        return false;
    };
    let name = name.split(['[', '(']).next().unwrap_or_default();
    readers.are_called(name.trim_end_matches(|c: char| "*_`~\"'”’»] \t-+?\\".contains(c)))
}
