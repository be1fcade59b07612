//! JavaScript source into tokens.

/// Words after which a `/` begins a regular expression.
const BEFORE_EXPRESSION: [&str; 15] = [
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
/// Words whose parentheses are followed by a statement.
const CONTROL: [&str; 5] = ["if", "while", "for", "with", "switch"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An identifier or a keyword.
    Word(&'a str),
    /// A string, or a template literal up to its first placeholder, as it stands in the source.
    Text {
        value: &'a str,
        /// Whether a placeholder follows.
        is_open: bool,
    },
    Number,
    Regex,
    /// One character of punctuation.
    Mark(u8),
}

/// What an open parenthesis or brace belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Whether it stands behind a word such as `if`.
    Parenthesis {
        is_control: bool,
        is_catch: bool,
    },
    Bracket,
    Block,
    Function,
    Object,
    Try,
    /// A placeholder of a template literal.
    Placeholder,
}

pub(super) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    /// Each with whether a `try` stands around it in the same function.
    scopes: Vec<(Scope, bool)>,
    last: Option<Token<'a>>,
    before_last: Option<Token<'a>>,
    /// What the parenthesis or brace was that the last token closed.
    closed: Option<Scope>,
    /// Whether the two last marks stand side by side, as in `++`.
    is_adjacent: bool,
    /// Up to here no regular expression ends, so that none is looked for twice.
    no_regex_until: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            scopes: Vec::new(),
            last: None,
            before_last: None,
            closed: None,
            is_adjacent: false,
            no_regex_until: 0,
        }
    }

    /// Whether a `try` stands around the last token, in the same function.
    pub(super) fn is_tried(&self) -> bool {
        self.scopes.last().is_some_and(|(_, is_tried)| *is_tried)
    }

    /// Whether something is added to the text that was the last token: `"a" + b` or `"a".concat(b)`.
    pub(super) fn is_joined(&mut self) -> bool {
        self.skip_blanks();
        matches!(self.byte(0), Some(b'+' | b'.'))
    }

    pub(super) fn next_token(&mut self) -> Option<Token<'a>> {
        let started = self.at;
        self.skip_blanks();
        let byte = self.byte(0)?;
        let token = match byte {
            b'"' | b'\'' => self.string(byte),
            b'`' => {
                self.at += 1;
                let (value, is_open) = self.template();
                Token::Text { value, is_open }
            }
            b'0'..=b'9' => self.number(),
            b'/' if self.begins_regex() && self.regex() => Token::Regex,
            b'}' if matches!(self.scopes.last(), Some((Scope::Placeholder, _))) => {
                self.scopes.pop();
                self.at += 1;
                self.template();
                // The literal as a whole is a value, so that what follows it is an operator.
                Token::Number
            }
            _ if is_word(byte) => self.word(),
            _ => self.mark(byte),
        };
        self.is_adjacent = started == self.at.saturating_sub(1);
        self.before_last = self.last.replace(token);
        Some(token)
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

    fn string(&mut self, quote: u8) -> Token<'a> {
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
        Token::Text {
            value,
            is_open: false,
        }
    }

    /// The rest of a template literal up to its end or to a placeholder, and whether it was a placeholder.
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
                    self.open(Scope::Placeholder);
                    return (value, true);
                }
                _ => self.at += 1,
            }
        }
        (self.slice(from, self.source.len()), true)
    }

    fn number(&mut self) -> Token<'a> {
        while self
            .byte(0)
            .is_some_and(|byte| is_word(byte) || byte == b'.')
        {
            self.at += 1;
        }
        Token::Number
    }

    fn word(&mut self) -> Token<'a> {
        let from = self.at;
        while self.byte(0).is_some_and(is_word) {
            self.at += 1;
        }
        Token::Word(self.slice(from, self.at))
    }

    fn mark(&mut self, byte: u8) -> Token<'a> {
        match byte {
            b'(' => self.open(Scope::Parenthesis {
                is_control: self.follows(&CONTROL),
                is_catch: self.follows(&["catch"]),
            }),
            b'[' => self.open(Scope::Bracket),
            b'{' => self.open(self.brace()),
            b')' | b']' | b'}' => self.closed = self.scopes.pop().map(|(scope, _)| scope),
            _ => {}
        }
        self.at += 1;
        Token::Mark(byte)
    }

    fn open(&mut self, scope: Scope) {
        let is_tried = match scope {
            Scope::Try => true,
            // What a function does happens when it is called, which may be elsewhere.
            Scope::Function => false,
            _ => self.is_tried(),
        };
        self.scopes.push((scope, is_tried));
    }

    /// Whether the last token is one of these words, and no member by that name.
    fn follows(&self, words: &[&str]) -> bool {
        matches!(self.last, Some(Token::Word(word)) if words.contains(&word))
            && self.before_last != Some(Token::Mark(b'.'))
    }

    /// What a brace begins here.
    fn brace(&self) -> Scope {
        match self.last {
            Some(Token::Word("try")) if self.before_last != Some(Token::Mark(b'.')) => Scope::Try,
            Some(Token::Word("else" | "do" | "finally" | "catch")) => Scope::Block,
            None | Some(Token::Mark(b';' | b'{' | b'}')) => Scope::Block,
            Some(Token::Mark(b')')) => match self.closed {
                Some(Scope::Parenthesis {
                    is_control: false,
                    is_catch: false,
                }) => Scope::Function,
                _ => Scope::Block,
            },
            // An arrow, as in `() => {`.
            Some(Token::Mark(b'>')) if self.before_last == Some(Token::Mark(b'=')) => {
                Scope::Function
            }
            _ => Scope::Object,
        }
    }

    /// Whether a `/` here begins a regular expression rather than divides.
    fn begins_regex(&self) -> bool {
        match self.last {
            None => true,
            Some(Token::Word(_)) => self.follows(&BEFORE_EXPRESSION),
            Some(Token::Number | Token::Regex | Token::Text { .. }) => false,
            Some(Token::Mark(b')')) => matches!(
                self.closed,
                Some(Scope::Parenthesis {
                    is_control: true,
                    ..
                })
            ),
            Some(Token::Mark(b']')) => false,
            Some(Token::Mark(b'}')) => !matches!(self.closed, Some(Scope::Object)),
            Some(Token::Mark(mark @ (b'+' | b'-'))) => {
                !(self.is_adjacent && self.before_last == Some(Token::Mark(mark)))
            }
            Some(Token::Mark(_)) => true,
        }
    }

    /// Takes the regular expression that begins here; false, and nothing taken, where none ends on this line.
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

/// Bytes of words; everything beyond ASCII may stand in a name.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}
