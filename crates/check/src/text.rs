//! Text helpers for untrusted text: escaping and truncation for display, detection of hidden characters, and an
//! estimate of tokens.
//!
//! `docent-unicode` can truncate too, but this crate uses no other crate of ours: an error that it shared with a server
//! would be invisible to it.
//!
//! Everything that a report quotes passes through here, so that a server can neither send escape sequences to a
//! terminal nor fill the report. Hidden characters become visible, because that they are there is often the finding.

/// Makes a text safe to print: truncated, on one line, with control and hidden characters replaced by U+FFFD.
pub(crate) fn printable(text: &str, most: usize) -> String {
    let start = truncate_chars(text, most);
    let shown = start.chars().map(|c| {
        if c.is_control() || is_hidden(c) {
            '\u{FFFD}'
        } else {
            c
        }
    });
    let ellipsis = (start.len() < text.len()).then_some('…');
    shown.chain(ellipsis).collect()
}

/// The first `most` characters of a text.
pub(crate) fn truncate_chars(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// Whether a character is invisible to a person but read by a model, or reverses the direction of the text around it.
/// The zero-width joiners are not among them: Persian and Indic words need them, and so do emoji.
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Estimates the tokens of a text: four Latin characters to one token, and one token for each character of other
/// scripts. Tokenizers differ by 10 to 20 %, and the limits of hosts are no more exact.
pub(crate) fn estimate_tokens(text: &str) -> usize {
    let (mut plain, mut wide) = (0usize, 0usize);
    for c in text.chars() {
        if (c as u32) < 0x250 {
            plain += 1;
        } else {
            wide += 1;
        }
    }
    plain.div_ceil(4) + wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced_and_long_texts_truncated() {
        assert_eq!(
            printable("a\u{202E}b\nc\u{E0041}d", 9),
            "a\u{FFFD}b\u{FFFD}c\u{FFFD}d"
        );
        assert_eq!(printable("üüü", 3), "üüü");
        assert_eq!(printable("üüüü", 3), "üüü…");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(truncate_chars("üüü", 2), "üü");
        assert_eq!(truncate_chars("üüü", 3), "üüü");
        assert_eq!(truncate_chars("üüü", 0), "");
        assert_eq!(truncate_chars("", 1), "");
    }

    #[test]
    fn joiners_of_words_and_emoji_hide_nothing() {
        assert!(
            !"می\u{200C}خواهم 👩\u{200D}🚀 ❤\u{FE0F}"
                .chars()
                .any(is_hidden)
        );
        assert!("a\u{200B}b".chars().any(is_hidden));
    }

    #[test]
    fn tokens_are_about_right() {
        assert_eq!(estimate_tokens("four letters each of it."), 6);
        assert_eq!(estimate_tokens("住房政策"), 4);
    }
}
