//! Query scanner: a cursor over the query that takes blanks, words, quoted text and parenthesised text.

use std::ops::Range;

use crate::analysis::extends_previous;

/// Opening and closing quotation marks. A mark is accepted on either side only where languages use it that way, as
/// in German and Swedish.
const QUOTES: [(&[char], &[char]); 4] = [
    (&['"'], &['"']),
    (&['“', '”', '„', '‟'], &['”', '“']),
    (&['«'], &['»']),
    (&['「'], &['」']),
];

/// A cursor over the query. `steps` counts the visited characters, so that a test can show that the work is linear.
/// `is_exhausted` remembers, for each kind of quote and last for the parenthesis, that no closing mark is left in
/// the text; without it, many opening marks would each search the whole rest (quadratic time).
pub(super) struct QueryScanner<'q> {
    text: &'q str,
    at: usize,
    steps: usize,
    is_exhausted: [bool; QUOTES.len() + 1],
}

impl<'q> QueryScanner<'q> {
    pub(super) fn new(text: &'q str) -> Self {
        Self {
            text,
            at: 0,
            steps: 0,
            is_exhausted: [false; QUOTES.len() + 1],
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Moves the cursor back, after an attempt that did not match.
    pub(super) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn slice(&self, span: Range<usize>) -> &'q str {
        self.text.get(span).unwrap_or_default()
    }

    pub(super) fn rest(&self) -> &'q str {
        self.slice(self.at..self.text.len())
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn previous(&self) -> Option<char> {
        self.slice(0..self.at).chars().next_back()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        self.steps += 1;
        Some(c)
    }

    /// Consumes `c` if it is next; returns whether it did.
    pub(super) fn eat(&mut self, c: char) -> bool {
        self.peek() == Some(c) && self.bump().is_some()
    }

    /// Skips blanks; returns whether anything is left.
    pub(super) fn skip_blanks(&mut self) -> bool {
        self.take_while(is_blank);
        self.peek().is_some()
    }

    pub(super) fn take_while(&mut self, mut accepts: impl FnMut(char) -> bool) -> &'q str {
        let start = self.at;
        while self.peek().is_some_and(&mut accepts) {
            self.bump();
        }
        self.slice(start..self.at)
    }

    /// Takes the quoted text that begins here, if it has a closing mark.
    pub(super) fn quoted(&mut self) -> Option<&'q str> {
        let open = self.peek()?;
        let kind = QUOTES.iter().position(|(opens, _)| opens.contains(&open))?;
        let (_, closes) = QUOTES.get(kind)?;
        let start = self.at;
        self.bump();
        let inner = self.until_close(kind, closes);
        if inner.is_none() {
            self.at = start;
        }
        inner
    }

    /// Takes the parenthesised text that begins here, if it has a closing parenthesis.
    pub(super) fn parenthesised(&mut self) -> Option<&'q str> {
        let start = self.at;
        if !self.eat('(') {
            return None;
        }
        let inner = self.until_close(QUOTES.len(), &[')']);
        if inner.is_none() {
            self.at = start;
        }
        inner
    }

    fn until_close(&mut self, kind: usize, closes: &[char]) -> Option<&'q str> {
        let is_exhausted = self.is_exhausted.get_mut(kind)?;
        if *is_exhausted {
            return None;
        }
        let rest = self.text.get(self.at..)?;
        let Some(end) = rest.find(closes) else {
            self.steps += rest.len();
            *is_exhausted = true;
            return None;
        };
        self.steps += end;
        let inner = rest.get(..end);
        self.at += end;
        self.bump();
        inner
    }

    /// Takes everything up to the next blank or a character of `stops`. With `in_group`, it also stops before a
    /// closing parenthesis that it did not open itself.
    pub(super) fn run(&mut self, stops: &[char], in_group: bool) -> &'q str {
        let mut open = 0_usize;
        self.take_while(|c| {
            let ends = match c {
                '(' => {
                    open += 1;
                    false
                }
                ')' if open > 0 => {
                    open -= 1;
                    false
                }
                ')' => in_group,
                _ => is_blank(c),
            };
            !ends && !stops.contains(&c)
        })
    }

    /// Takes the characters that may be a field name.
    pub(super) fn name(&mut self) -> &'q str {
        self.take_while(is_name_char)
    }
}

/// Whether a character separates words: white space, control characters, and the invisible direction marks that
/// come along when text is copied.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

pub(super) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || (extends_previous(c) && !is_blank(c))
}

/// Whether a character is an opening or closing quotation mark.
pub(super) fn is_quote(c: char) -> bool {
    let mut pairs = QUOTES.iter();
    pairs.any(|(opens, closes)| opens.contains(&c) || closes.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_need_an_end() {
        let cases = [
            ("\"a b\" c", Some("a b")),
            ("“a b” c", Some("a b")),
            ("„a b“ c", Some("a b")),
            ("”a b” c", Some("a b")),
            ("«a b» c", Some("a b")),
            ("「a b」", Some("a b")),
            ("\"\"", Some("")),
            ("\"a b", None),
            ("“a b\"", None),
            ("a \"b\"", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let mut scan = QueryScanner::new(text);
            assert_eq!(scan.quoted(), expected, "{text}");
            assert!(expected.is_some() || scan.at() == 0);
        }
    }

    #[test]
    fn a_failed_search_for_a_closing_mark_is_not_repeated() {
        let text = "“".to_owned() + &"„".repeat(1_000);
        let mut scan = QueryScanner::new(&text);
        scan.bump();
        while scan.peek().is_some() {
            assert_eq!(scan.quoted(), None);
            scan.bump();
        }
        assert!(scan.steps() < 6_500, "{}", scan.steps());
    }

    #[test]
    fn runs_end_at_blanks_and_stops() {
        let cases = [
            ("a,b c", ",", false, "a"),
            ("f(x)) c", "", true, "f(x)"),
            ("f(x)) c", "", false, "f(x))"),
            ("a\u{202C}b", "", false, "a"),
            ("a\0b", "", false, "a"),
            ("", "", true, ""),
        ];
        for (text, stops, in_group, expected) in cases {
            let stops: Vec<char> = stops.chars().collect();
            assert_eq!(
                QueryScanner::new(text).run(&stops, in_group),
                expected,
                "{text}"
            );
        }
    }
}
