//! The lines of a text into paragraphs, headings, lists, quotes and code, its matches marked. Only the layout of
//! Markdown is read, line by line; nothing in a text can become more than that.

use std::fmt::Write as _;
use std::ops::Range;

use docent_search::Marker;

use super::html::escape;
use crate::tools::shown::{heading, is_fence};

/// Writes passages one after the other; code may reach from one into the next.
pub(super) struct Writer<'m> {
    marker: &'m Marker,
    fenced: bool,
}

/// What is open while lines are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Paragraph,
    Quote,
    Bullets,
    Numbers,
}

impl Open {
    fn tag(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Paragraph => Some("p"),
            Self::Quote => Some("blockquote"),
            Self::Bullets => Some("ul"),
            Self::Numbers => Some("ol"),
        }
    }
}

impl<'m> Writer<'m> {
    pub(super) const fn new(marker: &'m Marker) -> Self {
        Self {
            marker,
            fenced: false,
        }
    }

    /// Writes one passage.
    pub(super) fn write(&mut self, text: &str, html: &mut String) {
        let marks = self.marker.marks(text);
        let marked = |range: Range<usize>| marked(text, range, &marks);
        let mut open = Open::Nothing;
        if self.fenced {
            html.push_str("<pre>");
        }
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let words = line.trim_end();
            let end = start + words.len();
            if is_fence(line) {
                turn(&mut open, Open::Nothing, html);
                html.push_str(if self.fenced { "</pre>\n" } else { "<pre>" });
                self.fenced = !self.fenced;
            } else if self.fenced {
                html.push_str(&marked(start..end));
                html.push('\n');
            } else if words.trim().is_empty() {
                turn(&mut open, Open::Nothing, html);
            } else if let Some((level, title)) = heading(line) {
                turn(&mut open, Open::Nothing, html);
                let skip = line.find(title).unwrap_or(0);
                let level = (level + 1).min(6);
                let title = marked(start + skip..start + skip + title.len());
                // Writing to a String cannot fail.
                let _ = writeln!(html, "<h{level}>{title}</h{level}>");
            } else if let Some((mark, number)) = item(words) {
                let list = if number.is_some() {
                    Open::Numbers
                } else {
                    Open::Bullets
                };
                turn(&mut open, list, html);
                // A list that begins with three is cited by its three.
                let value = number.map(|number| format!(" value=\"{number}\""));
                let value = value.unwrap_or_default();
                let _ = writeln!(html, "<li{value}>{}</li>", marked(start + mark..end));
            } else {
                let skip =
                    words.len() - words.strip_prefix('>').unwrap_or(words).trim_start().len();
                let kind = if words.starts_with('>') {
                    Open::Quote
                } else {
                    Open::Paragraph
                };
                let goes_on = open == kind;
                turn(&mut open, kind, html);
                if goes_on {
                    html.push('\n');
                }
                html.push_str(&marked(start + skip..end));
            }
        }
        turn(&mut open, Open::Nothing, html);
        if self.fenced {
            html.push_str("</pre>\n");
        }
    }
}

/// Closes what is open and opens what comes.
fn turn(open: &mut Open, next: Open, html: &mut String) {
    if *open == next {
        return;
    }
    if let Some(tag) = open.tag() {
        let _ = writeln!(html, "</{tag}>");
    }
    if let Some(tag) = next.tag() {
        let _ = write!(html, "<{tag}>");
    }
    *open = next;
}

/// How long the mark of a list's item is, and its number if it has one.
fn item(line: &str) -> Option<(usize, Option<u32>)> {
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    if let Some(words) = ["- ", "* ", "+ "]
        .iter()
        .find_map(|mark| rest.strip_prefix(mark))
    {
        return (!words.trim().is_empty()).then_some((indent + 2, None));
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest.get(..digits).filter(|_| (1..=4).contains(&digits))?;
    let after = rest.get(digits..)?;
    let is_item = after.starts_with(". ") || after.starts_with(") ");
    is_item.then_some((indent + digits + 2, number.parse().ok()))
}

/// A stretch of a text, escaped, with what of it is marked.
fn marked(text: &str, range: Range<usize>, marks: &[Range<usize>]) -> String {
    let mut html = String::new();
    let mut at = range.start;
    let piece = |from: usize, to: usize| escape(text.get(from..to).unwrap_or_default());
    let first = marks.partition_point(|mark| mark.end <= range.start);
    for mark in marks.iter().skip(first) {
        if mark.start >= range.end {
            break;
        }
        let (from, to) = (mark.start.max(at), mark.end.min(range.end));
        let _ = write!(html, "{}<mark>{}</mark>", piece(at, from), piece(from, to));
        at = to;
    }
    html.push_str(&piece(at, range.end));
    html
}

#[cfg(test)]
mod tests {
    use docent_search::{DocId, Document};

    use super::*;

    fn written(passages: &[&str], words: &str) -> String {
        let document = Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: passages.join("\n"),
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
        };
        let marker = Marker::new(&document, words);
        let mut writer = Writer::new(&marker);
        let mut html = String::new();
        for passage in passages {
            writer.write(passage, &mut html);
        }
        html.replace('\n', "")
    }

    #[test]
    fn lines_become_what_they_look_like() {
        for (text, expected) in [
            ("One.\ntwo", "<p>One.two</p>"),
            (
                "# A ferry #\ntext",
                "<h2>A <mark>ferry</mark></h2><p>text</p>",
            ),
            (
                "- a\n- b\n\n3. c",
                "<ul><li>a</li><li>b</li></ul><ol><li value=\"3\">c</li></ol>",
            ),
            ("> said\n> so", "<blockquote>saidso</blockquote>"),
            ("```\n# a < b\n```\nc", "<pre># a &lt; b</pre><p>c</p>"),
            ("", ""),
        ] {
            assert_eq!(written(&[text], "ferry"), expected, "{text}");
        }
    }

    #[test]
    fn code_goes_on_in_the_next_passage() {
        assert_eq!(
            written(&["```\na", "b\n```\nc"], ""),
            "<pre>a</pre><pre>b</pre><p>c</p>"
        );
    }
}
