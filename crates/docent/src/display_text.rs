//! Texts as messages and answers show them: on one line, without control characters, of a limited length.

use docent_unicode::{ellipsize, truncate_chars};

/// Truncates a text to `most` characters for a message and replaces control characters.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let visible = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
    ellipsize(text, most).chars().map(visible).collect()
}

/// Collapses a text to one line of at most `most` characters, without control characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    // Fast path: nearly every value is one tidy ASCII line already.
    let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let tidy = || text.trim() == text && !text.contains("  ");
    if text.len() <= most && text.bytes().all(plain) && tidy() {
        return text.to_owned();
    }
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    // Only a bounded prefix is processed, so that huge values cost little; runs of spaces may leave fewer characters.
    let start = truncate_chars(text, most.saturating_mul(4));
    let start: String = start.chars().map(visible).collect();
    let words = start.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate_chars(&words, most).trim_end().to_owned()
}

/// Formats a count with its English noun: `1 document`, `2 documents`.
pub(crate) fn pluralize(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_one_line_and_end_at_their_bound() {
        assert_eq!(one_line(" a\n\u{1b}b\t c ", 9), "a b c");
        assert_eq!(one_line(&"é".repeat(9), 9), "é".repeat(9));
        assert_eq!(one_line(&"é".repeat(10), 9), "é".repeat(9));
        assert_eq!(one_line("abc def", 4), "abc");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(pluralize(1, "document"), "1 document");
        assert_eq!(pluralize(0, "document"), "0 documents");
    }

    #[test]
    fn control_characters_are_replaced_and_the_end_is_marked() {
        assert_eq!(shorten("a\u{1b}b", 3), "a\u{FFFD}b");
        assert_eq!(shorten("abcd", 3), "abc…");
    }
}
