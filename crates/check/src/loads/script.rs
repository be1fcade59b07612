//! JavaScript into the calls and imports that load something, run text as code, or need what the sandbox forbids.
//!
//! A tokenizer, not a parser: it tells code from strings, template literals, regular expressions and comments, and
//! knows just enough of the grammar to say what a `/` begins and whether a `try` stands around a call.

mod lexer;

use lexer::{Lexer, Token};

use super::{DocumentScan, LoadKind, LoadTrigger};

/// Objects whose members are the globals.
const GLOBALS: [&str; 4] = ["window", "self", "globalThis", "top"];
/// The most tokens before a text that say what it is for.
const LOOK_BACK: usize = 6;

/// A call of something that hosts forbid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptCall {
    pub name: &'static str,
    /// Whether a `try` stands around it, as in a probe for what the host allows.
    pub is_tried: bool,
}

pub(super) fn scan(script: &str, found: &mut DocumentScan) {
    let mut lexer = Lexer::new(script);
    let mut before: Vec<Token> = Vec::with_capacity(LOOK_BACK + 1);
    while let Some(token) = lexer.next_token() {
        if let Token::Text { value, is_open } = token {
            let is_open = is_open || lexer.is_joined();
            if let Some((kind, trigger)) = loading(&before) {
                let value = value.replace("\\/", "/");
                found.load(kind, trigger, &value, is_open);
            }
            if let [
                ..,
                Token::Word(name @ ("setTimeout" | "setInterval")),
                Token::Mark(b'('),
            ] = before.as_slice()
            {
                let name = if *name == "setTimeout" {
                    "setTimeout(\""
                } else {
                    "setInterval(\""
                };
                found.call(ScriptCall {
                    name,
                    is_tried: lexer.is_tried(),
                });
            }
        }
        if let Some(name) = forbidden(&before, token) {
            found.call(ScriptCall {
                name,
                is_tried: lexer.is_tried(),
            });
        }
        if before.len() == LOOK_BACK {
            before.remove(0);
        }
        before.push(token);
    }
}

/// What a text is loaded as, by the tokens before it.
fn loading(before: &[Token]) -> Option<(LoadKind, LoadTrigger)> {
    use Token::{Mark, Text, Word};
    let call = |kind| Some((kind, LoadTrigger::Call));
    match before {
        [.., Word("import" | "from")] if !is_member(before, 1) => {
            Some((LoadKind::Code, LoadTrigger::Document))
        }
        [.., Word("fetch"), Mark(b'(')] if is_global(before, 2) => call(LoadKind::Connection),
        [.., Word("import"), Mark(b'(')] if !is_member(before, 2) => call(LoadKind::Code),
        [.., Word("importScripts"), Mark(b'(')] if is_global(before, 2) => call(LoadKind::Code),
        [.., Mark(b'.'), Word("sendBeacon"), Mark(b'(')] => call(LoadKind::Connection),
        [.., Word("WebSocket" | "EventSource"), Mark(b'(')] if is_made(before) => {
            call(LoadKind::Connection)
        }
        [.., Word("Worker" | "SharedWorker"), Mark(b'(')] if is_made(before) => {
            call(LoadKind::Code)
        }
        [
            ..,
            Mark(b'.'),
            Word("open"),
            Mark(b'('),
            Text { value, .. },
            Mark(b','),
        ] if is_http_method(value) => call(LoadKind::Connection),
        [.., Mark(b'.'), Word("src"), Mark(b'=')] => {
            Some((LoadKind::Media, LoadTrigger::Assignment))
        }
        [
            ..,
            Word("setAttribute"),
            Mark(b'('),
            Text { value: "src", .. },
            Mark(b','),
        ] => Some((LoadKind::Media, LoadTrigger::Assignment)),
        _ => None,
    }
}

fn is_http_method(text: &str) -> bool {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.iter().any(|method| text.eq_ignore_ascii_case(method))
}

/// The token that stands `back` tokens and one more before the end.
fn earlier<'a>(before: &[Token<'a>], back: usize) -> Option<Token<'a>> {
    let at = before.len().checked_sub(back + 1)?;
    before.get(at).copied()
}

/// Whether the word `back` tokens before the end is a member of something.
fn is_member(before: &[Token], back: usize) -> bool {
    earlier(before, back) == Some(Token::Mark(b'.'))
}

/// Whether that word is a global: by itself, or a member of an object that holds the globals. A name after
/// `function` is a declaration.
fn is_global(before: &[Token], back: usize) -> bool {
    if is_member(before, back) {
        let owner = earlier(before, back + 1);
        return matches!(owner, Some(Token::Word(owner)) if GLOBALS.contains(&owner))
            && !is_member(before, back + 2);
    }
    earlier(before, back) != Some(Token::Word("function"))
}

/// Whether the constructor before the parenthesis at the end is called with `new`.
fn is_made(before: &[Token]) -> bool {
    let back = if is_member(before, 2) { 4 } else { 2 };
    is_global(before, 2) && earlier(before, back) == Some(Token::Word("new"))
}

/// A call or an access that ends with this token and that hosts forbid.
fn forbidden(before: &[Token], token: Token) -> Option<&'static str> {
    let Some(Token::Word(word)) = before.last().copied() else {
        return None;
    };
    match (word, token) {
        ("eval", Token::Mark(b'(')) if is_global(before, 1) => Some("eval("),
        ("Function", Token::Mark(b'(')) if earlier(before, 1) == Some(Token::Word("new")) => {
            Some("new Function(")
        }
        ("alert", Token::Mark(b'(')) if is_global(before, 1) => Some("alert("),
        ("confirm", Token::Mark(b'(')) if is_global(before, 1) => Some("confirm("),
        ("prompt", Token::Mark(b'(')) if is_global(before, 1) => Some("prompt("),
        ("localStorage", Token::Mark(b'.' | b'[')) if is_global(before, 1) => Some("localStorage."),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
