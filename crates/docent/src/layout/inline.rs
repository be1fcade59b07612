//! Inline Markdown parser: splits text into styled spans for emphasis, code, web links and search matches.
//!
//! Delimiters are removed only where they form pairs around words. Documents are often not Markdown, so in
//! `2 * 3 * 4`, `snake_case` and `__init__` nothing is emphasised and every character stays.

use std::ops::Range;

use serde::Serialize;

/// How far the parser looks for a closing delimiter, in bytes. It bounds the work for text full of openers.
const MAX_REACH: usize = 2_000;
/// The nesting limit of styles.
const MAX_DEPTH: usize = 4;
/// The longest URL that becomes a link, in bytes.
const MAX_ADDRESS: usize = 2_000;

/// A run of text with one style, as the widgets and the document pages render it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TextSpan {
    text: String,
    #[serde(skip_serializing_if = "is_off")]
    pub(crate) mark: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub(crate) em: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub(crate) strong: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub(crate) code: bool,
    /// An `http` or `https` URL; other schemes never become links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) href: Option<String>,
}

fn is_off(flag: &bool) -> bool {
    !flag
}

impl TextSpan {
    pub(crate) fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Parses a part of a text into styled spans. `marks` are the ranges of search matches.
pub(crate) fn spans(text: &str, range: Range<usize>, marks: &[Range<usize>]) -> Vec<TextSpan> {
    let mut reader = InlineParser {
        text,
        marks,
        spans: Vec::new(),
    };
    reader.walk(range, &TextSpan::default(), 0);
    reader.spans
}

/// Spans for text that is not Markdown: only matches are marked, and every character stays.
pub(super) fn plain(text: &str, range: Range<usize>, marks: &[Range<usize>]) -> Vec<TextSpan> {
    let mut reader = InlineParser {
        text,
        marks,
        spans: Vec::new(),
    };
    reader.push(range, &TextSpan::default());
    reader.spans
}

struct InlineParser<'t> {
    text: &'t str,
    marks: &'t [Range<usize>],
    spans: Vec<TextSpan>,
}

/// A recognised inline element: where it ends, the part of it that is shown, and the style of that part.
struct InlineMatch {
    end: usize,
    inner: Range<usize>,
    style: TextSpan,
    /// Whether the content may contain nested elements.
    is_open: bool,
}

impl InlineParser<'_> {
    fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or_default()
    }

    fn walk(&mut self, range: Range<usize>, style: &TextSpan, depth: usize) {
        let (mut from, mut at) = (range.start, range.start);
        while at < range.end {
            // A backslash escapes the punctuation character after it.
            if self.byte(at) == b'\\'
                && at + 1 < range.end
                && self.byte(at + 1).is_ascii_punctuation()
            {
                self.push(from..at, style);
                from = at + 1;
                at += 2;
                continue;
            }
            let found = if depth < MAX_DEPTH {
                self.find(at, &range, style)
            } else {
                None
            };
            let Some(found) = found else {
                at += 1;
                continue;
            };
            self.push(from..at, style);
            if found.is_open {
                self.walk(found.inner, &found.style, depth + 1);
            } else {
                self.push(found.inner, &found.style);
            }
            (from, at) = (found.end, found.end);
        }
        self.push(from..range.end, style);
    }

    /// The inline element that begins at a byte, if there is one.
    fn find(&self, at: usize, range: &Range<usize>, style: &TextSpan) -> Option<InlineMatch> {
        match self.byte(at) {
            b'`' => self.code(at, range, style),
            b'*' | b'_' => self.emphasis(at, range, style),
            b'[' if style.href.is_none() => self.link(at, range, style),
            // Images are not loaded; their alternative text is shown as a link to them.
            b'!' if self.byte(at + 1) == b'[' && style.href.is_none() => {
                self.link(at + 1, range, style)
            }
            b'<' | b'h' if style.href.is_none() => self.address(at, range, style),
            _ => None,
        }
    }

    fn run(&self, at: usize, end: usize) -> usize {
        let byte = self.byte(at);
        (at..end).take_while(|at| self.byte(*at) == byte).count()
    }

    fn code(&self, at: usize, range: &Range<usize>, style: &TextSpan) -> Option<InlineMatch> {
        let run = self.run(at, range.end);
        let from = at + run;
        let mut close = from;
        let end = range.end.min(from + MAX_REACH);
        while close < end {
            if self.byte(close) != b'`' {
                close += 1;
                continue;
            }
            let other = self.run(close, range.end);
            if other == run {
                let words = self.slice(from..close);
                let inset = usize::from(words.starts_with(' ') && words.ends_with(' '));
                let inset = if words.trim().is_empty() { 0 } else { inset };
                return Some(InlineMatch {
                    end: close + run,
                    inner: from + inset..close - inset,
                    style: TextSpan {
                        code: true,
                        ..style.clone()
                    },
                    is_open: false,
                });
            }
            close += other;
        }
        None
    }

    /// Emphasis as in `*x*`, `_x_`, `**x**` and `***x***`: around words, not inside one.
    fn emphasis(&self, at: usize, range: &Range<usize>, style: &TextSpan) -> Option<InlineMatch> {
        let (mark, run) = (self.byte(at), self.run(at, range.end));
        let most = if mark == b'*' { 3 } else { 1 };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let before = at.checked_sub(1).map_or(b' ', |before| self.byte(before));
        let from = at + run;
        let is_opening = !is_word(before) && !self.byte(from).is_ascii_whitespace();
        if run > most || !is_opening {
            return None;
        }
        let mut close = from + 1;
        let end = range.end.min(from + MAX_REACH);
        while close < end {
            if self.byte(close) != mark || self.byte(close - 1) == b'\\' {
                close += 1;
                continue;
            }
            let other = self.run(close, range.end);
            let is_closing = !self.byte(close - 1).is_ascii_whitespace()
                && (close + other >= range.end || !is_word(self.byte(close + other)));
            // In `**a *b***` the last three delimiters close the inner pair first.
            if is_closing && (other == run || (other == 3 && run < 3)) {
                let close = close + (other - run);
                return Some(InlineMatch {
                    end: close + run,
                    inner: from..close,
                    style: TextSpan {
                        em: style.em || run != 2,
                        strong: style.strong || run >= 2,
                        ..style.clone()
                    },
                    is_open: true,
                });
            }
            close += other;
        }
        None
    }

    /// The ranges of the two parts of `[words](target)`.
    fn linked(&self, at: usize, range: &Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let end = range.end.min(at + MAX_REACH);
        let mut depth = 0usize;
        let mut close = at;
        while close < end {
            match self.byte(close) {
                b'\\' => close += 1,
                b'[' => depth += 1,
                b']' if depth == 1 => break,
                b']' => depth -= 1,
                _ => {}
            }
            close += 1;
        }
        if close >= end || self.byte(close + 1) != b'(' {
            return None;
        }
        let from = close + 2;
        let rest = self.slice(from..range.end.min(from + MAX_ADDRESS));
        // A URL may contain balanced parentheses.
        let mut open = 0usize;
        let to = rest.bytes().position(|byte| {
            match byte {
                b'(' => open += 1,
                b')' if open == 0 => return true,
                b')' => open -= 1,
                _ => {}
            }
            false
        })?;
        Some((at + 1..close, from..from + to))
    }

    fn link(&self, at: usize, range: &Range<usize>, style: &TextSpan) -> Option<InlineMatch> {
        let (words, place) = self.linked(at, range)?;
        let end = place.end + 1;
        let inner = if words.is_empty() {
            place.clone()
        } else {
            words
        };
        // A link title may follow the URL.
        let target = self.slice(place).split_whitespace().next()?;
        let target = target.trim_start_matches('<').trim_end_matches('>');
        let href = crate::links::is_web_url(target).then(|| target.to_owned());
        if href.is_none() && has_scheme(target) {
            return None;
        }
        Some(InlineMatch {
            end,
            inner,
            style: TextSpan {
                href,
                ..style.clone()
            },
            is_open: true,
        })
    }

    /// Autolinks: `<https://…>`, and a bare URL in the text.
    fn address(&self, at: usize, range: &Range<usize>, style: &TextSpan) -> Option<InlineMatch> {
        let is_bracketed = self.byte(at) == b'<';
        let from = at + usize::from(is_bracketed);
        let rest = self.slice(from..range.end);
        let before = at.checked_sub(1).map_or(b' ', |before| self.byte(before));
        if !(rest.starts_with("https://") || rest.starts_with("http://"))
            || before.is_ascii_alphanumeric()
        {
            return None;
        }
        let ends = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`' | '|');
        let length = rest.find(ends).unwrap_or(rest.len());
        let mut address = rest.get(..length)?;
        if !is_bracketed {
            address = address.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
            // An unbalanced closing parenthesis belongs to the sentence, not to the URL.
            while address.ends_with(')') && !address.contains('(') {
                address = address.trim_end_matches([')', '.', ',']);
            }
        }
        let to = from + address.len();
        if address.len() > MAX_ADDRESS
            || !crate::links::is_web_url(address)
            || (is_bracketed && self.byte(to) != b'>')
        {
            return None;
        }
        Some(InlineMatch {
            end: to + usize::from(is_bracketed),
            inner: from..to,
            style: TextSpan {
                href: Some(address.to_owned()),
                ..style.clone()
            },
            is_open: false,
        })
    }

    /// Adds a run of text, split where search matches begin and end.
    fn push(&mut self, range: Range<usize>, style: &TextSpan) {
        let mut at = range.start;
        let first = self.marks.partition_point(|mark| mark.end <= range.start);
        let marks = self.marks.iter().skip(first);
        let marks: Vec<_> = marks.take_while(|mark| mark.start < range.end).collect();
        for mark in marks {
            let (from, to) = (mark.start.max(at), mark.end.min(range.end));
            self.one(at..from, style, false);
            self.one(from..to, style, true);
            at = to.max(at);
        }
        self.one(at..range.end, style, false);
    }

    fn one(&mut self, range: Range<usize>, style: &TextSpan, mark: bool) {
        let text = self.slice(range);
        if !text.is_empty() {
            let span = TextSpan {
                text: text.to_owned(),
                mark,
                ..style.clone()
            };
            self.spans.push(span);
        }
    }
}

/// Whether a link target has a URL scheme, so that it is not a relative path; control characters count as one.
fn has_scheme(target: &str) -> bool {
    let before = target.split(['/', '?', '#']).next().unwrap_or_default();
    before.contains(':') || target.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, marks: &[Range<usize>]) -> String {
        let one = |span: &TextSpan| {
            let mut text = span.text.clone();
            for (is_on, name) in [
                (span.mark, "mark"),
                (span.code, "code"),
                (span.em, "em"),
                (span.strong, "strong"),
            ] {
                if is_on {
                    text = format!("<{name} {text}>");
                }
            }
            match &span.href {
                Some(href) => format!("<a {href} {text}>"),
                None => text,
            }
        };
        spans(text, 0..text.len(), marks).iter().map(one).collect()
    }

    #[test]
    fn pairs_around_words_are_read() {
        for (text, expected) in [
            ("a *b c* d", "a <em b c> d"),
            ("**b** _c_", "<strong b> <em c>"),
            ("***b***", "<strong <em b>>"),
            ("**a *b***", "<strong a ><strong <em b>>"),
            ("*a **b***", "<em a ><strong <em b>>"),
            ("*a\nb*", "<em a\nb>"),
            ("これは*重要*です", "これは<em 重要>です"),
            ("`a*b*` ``c`d`` ` `", "<code a*b*> <code c`d> <code  >"),
            ("\\*a\\* \\\\", "*a* \\"),
            (
                "[a *b*](https://x.example/a_(b) \"t\")",
                "<a https://x.example/a_(b) a ><a https://x.example/a_(b) <em b>>",
            ),
            ("[a](../b.md#c) ![d](e.png) ![](f.png)", "a d f.png"),
            (
                "![a](https://x.example/a.png)",
                "<a https://x.example/a.png a>",
            ),
            (
                "see https://x.example/a_b_c. <http://y.example>",
                "see <a https://x.example/a_b_c https://x.example/a_b_c>. <a http://y.example http://y.example>",
            ),
            (
                "(https://x.example/a)",
                "(<a https://x.example/a https://x.example/a>)",
            ),
        ] {
            assert_eq!(rendered(text, &[]), expected, "{text}");
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for text in [
            "2 * 3 * 4",
            "2*3*4",
            "snake_case_name",
            "__init__",
            "*",
            "**",
            "* a *",
            "`a",
            "[a]",
            "[a](",
            "a]b(c)",
            "[x](javascript:alert(1))",
            "[x](data:text/html,x)",
            "![x](javascript:y)",
            "<script>",
            "<b>x</b>",
            "xhttps://a.example",
            "https://",
            "[x](\u{1}b)",
            "****a****",
        ] {
            assert_eq!(rendered(text, &[]), text, "{text}");
        }
    }

    #[test]
    fn matches_stay_marked_inside() {
        let text = "a **big ferry** and [ferry](https://x.example)";
        let marks: Vec<_> = text
            .match_indices("ferry")
            .map(|(at, word)| at..at + word.len())
            .collect();
        assert_eq!(
            rendered(text, &marks),
            "a <strong big ><strong <mark ferry>> and <a https://x.example <mark ferry>>"
        );
        let over = rendered("*a* b", std::slice::from_ref(&(0..4)));
        assert_eq!(over, "<em <mark a>><mark  >b");
    }

    #[test]
    fn looks_have_bounds() {
        let far =
            |count: usize| rendered(&format!("*{}*", "a".repeat(count)), &[]).starts_with("<em");
        assert!(far(MAX_REACH - 1) && !far(MAX_REACH));
        let long = |count: usize| {
            rendered(&format!("https://a.example/{}", "a".repeat(count)), &[]).starts_with("<a")
        };
        assert!(long(MAX_ADDRESS - 18) && !long(MAX_ADDRESS - 17));
        let deep = |count: usize| {
            let text = "[".repeat(count) + "a" + &"](b)".repeat(count);
            rendered(&text, &[])
        };
        assert_eq!(deep(MAX_DEPTH), "a");
        assert_eq!(deep(MAX_DEPTH + 1), "[a](b)");
    }
}
