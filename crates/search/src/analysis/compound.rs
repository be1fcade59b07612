//! Compound splitting: names such as `readFile`, `read_file`, `HTTPServer`, `std::fs::read` or `notes/plan.md`
//! become one joined word and its parts, so that a query finds them by either.

use std::ops::Range;

use super::fold::{ScriptSpacing, fold, script};
use super::{MAX_TERM_CHARS, word_length};

/// The longest part after a full stop that still belongs to a compound, in bytes. `plan.md`, `node.js` and `U.S.`
/// are names; in `stream.flush`, and where a space was forgotten after a sentence, the two sides are separate
/// words.
const MAX_DOTTED_BYTES: usize = 3;

/// The end of the compound that begins with the word at `first`; `None` when nothing is joined to that word.
pub(super) fn end(text: &str, first: &Range<usize>) -> Option<usize> {
    let mut end = first.end;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let joint = joint(rest.as_bytes());
        let tail = rest.get(joint..).unwrap_or_default();
        if joint == 0 || !begins_with_a_letter(tail) {
            return (end > first.end).then_some(end);
        }
        end += joint + word_length(tail);
    }
}

fn begins_with_a_letter(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|c| script(c) == Some(ScriptSpacing::Spaced))
}

/// The length in bytes of the joiner at the beginning of a text; 0 when there is none.
fn joint(bytes: &[u8]) -> usize {
    match bytes {
        [b'_' | b'-' | b'/', ..] => 1,
        [b':', b':', ..] => 2,
        [b'.', tail @ ..] => {
            let part = tail.iter().take_while(|b| b.is_ascii_alphanumeric());
            usize::from(part.take(MAX_DOTTED_BYTES + 1).count() <= MAX_DOTTED_BYTES)
        }
        _ => 0,
    }
}

/// The length in bytes of the first part of a camel-case word; `None` for other words.
pub(super) fn first_part(word: &str) -> Option<usize> {
    let bytes = word.as_bytes();
    if bytes.len() > MAX_TERM_CHARS {
        return None;
    }
    // Fast path: most words have no capital but their first letter.
    bytes.get(1..)?.iter().find(|b| b.is_ascii_uppercase())?;
    if !word.is_ascii() {
        return None;
    }
    (1..bytes.len()).find(|at| begins_part(bytes, *at))
}

/// Whether a new camel-case part begins at a byte: `read|File`, `HTTP|Server`.
fn begins_part(bytes: &[u8], at: usize) -> bool {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    if !byte(at).is_ascii_uppercase() {
        return false;
    }
    if !byte(at - 1).is_ascii_uppercase() {
        return true;
    }
    // The plural of an acronym is no new part: `URLs`.
    let is_plural = byte(at + 1) == b's' && !byte(at + 2).is_ascii_lowercase();
    byte(at + 1).is_ascii_lowercase() && !is_plural
}

/// Appends the parts of a compound as one folded word. Returns false when it is too long to be a name, or has no
/// letter: `1.5` is not `15`.
pub(super) fn join(written: &str, out: &mut String) -> bool {
    if written.len() > MAX_TERM_CHARS || !written.chars().any(char::is_alphabetic) {
        return false;
    }
    for part in written.split(['_', '-', '/', ':', '.']) {
        fold(part, MAX_TERM_CHARS, out);
    }
    !out.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_split_a_word() {
        for (word, expected) in [
            ("readFile", Some(4)),
            ("HTTPServer2", Some(4)),
            ("iPhone", Some(1)),
            ("utf8Text", Some(4)),
            ("Ferry", None),
            ("FERRY", None),
            ("URLs", None),
            ("ferry", None),
            ("", None),
            ("é\u{301}A", None),
        ] {
            assert_eq!(first_part(word), expected, "{word}");
        }
        let longest = format!("{}B", "a".repeat(MAX_TERM_CHARS - 1));
        assert_eq!(first_part(&longest), Some(MAX_TERM_CHARS - 1));
        assert_eq!(first_part(&format!("a{longest}")), None);
    }

    #[test]
    fn joined_words_become_one_name() {
        let joined = |text: &str| {
            let first = 0..word_length(text);
            let end = end(text, &first)?;
            let mut name = String::new();
            join(&text[..end], &mut name).then_some(name)
        };
        for (text, expected) in [
            ("read_file, then", Some("readfile")),
            ("read-file-", Some("readfile")),
            ("std::fs::read(path)", Some("stdfsread")),
            ("notes/plan.md.", Some("notesplanmd")),
            ("U.S. law", Some("us")),
            ("HTTPServer2", None),
            ("v1.2", Some("v12")),
            ("Österreich-Ungarn", Some("osterreichungarn")),
            ("stream.flush()", None),
            ("end.Next sentence", None),
            ("1.5", None),
            ("a: b", None),
            ("read - file", None),
            ("read", None),
        ] {
            assert_eq!(joined(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_joined_name_has_a_limited_length() {
        let longest = format!("{}-b", "a".repeat(MAX_TERM_CHARS - 2));
        assert!(join(&longest, &mut String::new()));
        assert!(!join(&format!("{longest}b"), &mut String::new()));
    }
}
