//! JavaScript lexer: turns source into tokens, and tells regular expressions from divisions.
//!
//! The difference decides what is code: a `/` that is read wrongly would turn strings into code, or the reverse, up to
//! the next one. So the lexer keeps the last few tokens and a stack of scopes. Its time is linear in the source.

use super::functions::{CodeLocation, FunctionTable};
use super::scopes::{Opener, Scope, Scopes};

/// Keywords after which a `/` begins a regular expression.
pub(super) const BEFORE_EXPRESSION: [&str; 15] = [
    "return",
    "typeof",
    "case",
    "in",
    "of",
    "delete",
    "void",
    "throw",
    "new",
    "instanceof",
    "do",
    "else",
    "yield",
    "await",
    "default",
];
/// The number of recent tokens that are kept: enough to tell what a call loads, or how a function is named.
const MAX_RECENT: usize = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsToken<'a> {
    /// An identifier or a keyword.
    Word(&'a str),
    /// A string, or a template literal up to its first placeholder, with escapes as in the source; `is_open` says that
    /// a placeholder follows.
    Text {
        value: &'a str,
        is_open: bool,
    },
    Number,
    Regex,
    Mark(u8),
}

pub(super) struct JsLexer<'a> {
    source: &'a str,
    at: usize,
    scopes: Scopes<'a>,
    /// The most recent tokens, the latest at the end.
    recent: Vec<JsToken<'a>>,
    /// Whether no white space separates the two last marks, as in `++`.
    is_adjacent: bool,
    begins_line: bool,
    /// The offset up to which no regular expression ends, so that a scan never repeats and stays linear.
    no_regex_until: usize,
}

impl<'a> JsLexer<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            scopes: Scopes::default(),
            recent: Vec::with_capacity(MAX_RECENT + 1),
            is_adjacent: false,
            begins_line: false,
            no_regex_until: 0,
        }
    }

    pub(super) fn location(&self) -> CodeLocation {
        self.scopes.location()
    }

    /// The number of open parentheses, brackets and braces.
    pub(super) fn depth(&self) -> usize {
        self.scopes.depth()
    }

    /// The rest of the source after white space and comments.
    pub(super) fn rest(&mut self) -> &'a str {
        let end = self.at;
        self.skip_blanks();
        let rest = self.source.get(self.at..).unwrap_or_default();
        self.at = end;
        rest
    }

    /// The tokens before the last one, the latest at the end.
    pub(super) fn before(&self) -> &[JsToken<'a>] {
        let end = self.recent.len().saturating_sub(1);
        self.recent.get(..end).unwrap_or_default()
    }

    pub(super) fn into_functions(self) -> FunctionTable<'a> {
        self.scopes.functions
    }

    /// Whether the last token begins a statement that runs whenever its function does: not in a branch or loop, and not
    /// part of another expression. `false` in doubt.
    pub(super) fn begins_plain_statement(&self) -> bool {
        use JsToken::{Mark, Word};
        if !self.scopes.is_plain() {
            return false;
        }
        let is_control = matches!(
            self.scopes.closed(),
            Some(Scope::Parenthesis(Opener::Control))
        );
        match self.before() {
            [] | [Word("await" | "void")] => true,
            [.., Mark(b';' | b'{' | b'}')] => true,
            [.., Mark(b';' | b'{' | b'}'), Word("await" | "void")] => true,
            [.., Word("const" | "let" | "var"), Word(_), Mark(b'=')] => true,
            [
                ..,
                Word("const" | "let" | "var"),
                Word(_),
                Mark(b'='),
                Word("await"),
            ] => true,
            [.., Mark(b')')] => self.begins_line && !is_control,
            [.., Mark(b']') | JsToken::Text { .. } | JsToken::Number] => self.begins_line,
            _ => false,
        }
    }

    /// Whether the string that was the last token is continued at run time: `"a" + b` or `"a".concat(b)`.
    pub(super) fn is_joined(&mut self) -> bool {
        self.rest().starts_with(['+', '.'])
    }

    pub(super) fn next_token(&mut self) -> Option<JsToken<'a>> {
        let started = self.at;
        self.skip_blanks();
        let byte = self.byte(0)?;
        self.begins_line = self.slice(started, self.at).contains('\n');
        if self.ends_arrow(byte) {
            self.scopes.close_arrows();
        }
        if !matches!(byte, b')' | b'}' | b']') {
            self.scopes.pass();
        }
        let token = match byte {
            b'"' | b'\'' => self.string(byte),
            b'`' => {
                self.at += 1;
                let (value, is_open) = self.template();
                JsToken::Text { value, is_open }
            }
            b'0'..=b'9' => self.number(),
            b'/' if self.begins_regex() && self.regex() => JsToken::Regex,
            b'}' if self.scopes.is_in_placeholder() => {
                self.at += 1;
                self.scopes.close("");
                self.template();
                // The literal as a whole is a value, so a `/` after it divides.
                JsToken::Number
            }
            _ if is_word(byte) => self.word(),
            _ => self.mark(byte),
        };
        self.is_adjacent = started == self.at.saturating_sub(1);
        if self.recent.len() == MAX_RECENT {
            self.recent.remove(0);
        }
        self.recent.push(token);
        Some(token)
    }

    /// Whether the expression body of an arrow function ends before this byte.
    fn ends_arrow(&self, byte: u8) -> bool {
        if !self.scopes.is_in_arrow() {
            return false;
        }
        match byte {
            b',' | b';' | b'}' => true,
            // A new line ends the statement, unless the next token can continue the expression.
            _ if self.begins_line && (is_word(byte) || matches!(byte, b'"' | b'\'')) => {
                match self.recent.last() {
                    Some(JsToken::Word(word)) => !BEFORE_EXPRESSION.contains(word),
                    Some(JsToken::Mark(mark)) => matches!(mark, b')' | b']' | b'}'),
                    Some(_) => true,
                    None => false,
                }
            }
            _ => false,
        }
    }

    /// The token that is `count` tokens before the latest.
    fn back(&self, count: usize) -> Option<JsToken<'a>> {
        let at = self.recent.len().checked_sub(count + 1)?;
        self.recent.get(at).copied()
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.source.get(self.at..).unwrap_or_default();
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = self.source.get(self.at..).unwrap_or_default();
            let end = if rest.starts_with("//") {
                rest.find(['\n', '\u{2028}', '\u{2029}'])
            } else if let Some(comment) = rest.strip_prefix("/*") {
                comment.find("*/").map(|end| end + 4)
            } else {
                return;
            };
            self.at += end.unwrap_or(rest.len());
        }
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.source.get(from..to).unwrap_or_default()
    }

    fn string(&mut self, quote: u8) -> JsToken<'a> {
        self.at += 1;
        let from = self.at;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\\' => self.at += 2,
                _ if byte == quote || byte == b'\n' => break,
                _ => self.at += 1,
            }
        }
        let value = self.slice(from, self.at.min(self.source.len()));
        self.at += 1;
        JsToken::Text {
            value,
            is_open: false,
        }
    }

    /// Reads a template literal up to its end or to a placeholder; the flag says that it was a placeholder.
    fn template(&mut self) -> (&'a str, bool) {
        let from = self.at;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    return (self.slice(from, self.at - 1), false);
                }
                b'$' if self.byte(1) == Some(b'{') => {
                    let value = self.slice(from, self.at);
                    self.at += 2;
                    self.scopes.open(Scope::Placeholder, None);
                    return (value, true);
                }
                _ => self.at += 1,
            }
        }
        (self.slice(from, self.source.len()), true)
    }

    fn number(&mut self) -> JsToken<'a> {
        while self
            .byte(0)
            .is_some_and(|byte| is_word(byte) || byte == b'.')
        {
            self.at += 1;
        }
        JsToken::Number
    }

    fn word(&mut self) -> JsToken<'a> {
        let from = self.at;
        while self.byte(0).is_some_and(is_word) {
            self.at += 1;
        }
        JsToken::Word(self.slice(from, self.at))
    }

    fn mark(&mut self, byte: u8) -> JsToken<'a> {
        let is_arrow = byte == b'>'
            && self.back(0) == Some(JsToken::Mark(b'='))
            && self.slice(self.at.saturating_sub(1), self.at) == "=";
        match byte {
            b'(' => self.scopes.open_parenthesis(&self.recent),
            b'[' => self.scopes.open(Scope::Bracket, None),
            b'{' => self.scopes.open_brace(&self.recent),
            _ => {}
        }
        self.at += 1;
        match byte {
            b')' | b']' | b'}' => {
                let rest = self.rest();
                self.scopes.close(rest);
            }
            b'>' if is_arrow && !self.rest().starts_with('{') => {
                let mut before = self.recent.clone();
                before.push(JsToken::Mark(byte));
                self.scopes.open_arrow(&before);
            }
            _ => {}
        }
        JsToken::Mark(byte)
    }

    /// Whether a `/` here begins a regular expression and is no division.
    fn begins_regex(&self) -> bool {
        let Some(last) = self.back(0) else {
            return true;
        };
        match last {
            JsToken::Word(word) => {
                BEFORE_EXPRESSION.contains(&word) && self.back(1) != Some(JsToken::Mark(b'.'))
            }
            JsToken::Number | JsToken::Regex | JsToken::Text { .. } | JsToken::Mark(b']') => false,
            JsToken::Mark(b')') => matches!(
                self.scopes.closed(),
                Some(Scope::Parenthesis(Opener::Control))
            ),
            JsToken::Mark(b'}') => self.scopes.closed() != Some(Scope::Object),
            JsToken::Mark(mark @ (b'+' | b'-')) => {
                !(self.is_adjacent && self.back(1) == Some(JsToken::Mark(mark)))
            }
            JsToken::Mark(_) => true,
        }
    }

    /// Consumes the regular expression that begins here; false, with nothing consumed, where none ends on this line.
    fn regex(&mut self) -> bool {
        if self.at < self.no_regex_until {
            return false;
        }
        let bytes = self.source.as_bytes();
        let mut at = self.at + 1;
        let mut in_class = false;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 1,
                b'\n' => break,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    at += 1;
                    // Its flags.
                    while bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
                        at += 1;
                    }
                    self.at = at;
                    return true;
                }
                _ => {}
            }
            at += 1;
        }
        self.no_regex_until = at;
        false
    }
}

/// Whether a byte may be part of a word. Every byte beyond ASCII may, and `#` begins private names such as `#fetch`.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || byte >= 0x80
}
