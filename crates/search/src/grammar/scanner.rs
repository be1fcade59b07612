//! Characters into the stretches a query is made of: blanks, words, what stands in quotes.

use std::ops::Range;

use crate::analysis::extends_previous;

/// Pairs of marks that quote. Either mark of a pair may end what the other has begun only where
/// both are in use that way, as in German and Swedish.
const QUOTES: [(&[char], &[char]); 4] = [
    (&['"'], &['"']),
    (&['“', '”', '„', '‟'], &['”', '“']),
    (&['«'], &['»']),
    (&['「'], &['」']),
];

/// A place in a query that moves on.
pub(super) struct QueryScanner<'q> {
    text: &'q str,
    at: usize,
    /// How many characters were looked at, so that a test can tell that it stays few.
    steps: usize,
    /// The quotes and, last, the parenthesis of which no closing mark is left in the text. Whoever
    /// searched in vain once need not search again.
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

    /// Goes back to a place that was left in vain.
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

    /// Takes `c` if it is next.
    pub(super) fn eat(&mut self, c: char) -> bool {
        self.peek() == Some(c) && self.bump().is_some()
    }

    /// Moves to the next character that is not blank; says whether there is one.
    pub(super) fn skip_blanks(&mut self) -> bool {
        self.take_while(is_blank);
        self.peek().is_some()
    }

    pub(super) fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> &'q str {
        let start = self.at;
        while self.peek().is_some_and(&mut wanted) {
            self.bump();
        }
        self.slice(start..self.at)
    }

    /// Takes what stands in quotes here, if what begins here ends somewhere.
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

    /// Takes what stands in parentheses here, if there is an end to them.
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

    /// Takes the run up to the next blank or character of `stops`. With `in_group`, it ends before
    /// a closing parenthesis that it does not open itself.
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

    /// Takes what may be the name of a field.
    pub(super) fn name(&mut self) -> &'q str {
        self.take_while(is_name_char)
    }
}

/// Whether a character parts words: white space, and what shows nothing but changes how the rest is
/// shown, which comes along when text is copied.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

pub(super) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || (extends_previous(c) && !is_blank(c))
}

/// Whether a character begins or ends a quotation.
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
    fn a_search_in_vain_is_not_repeated() {
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
