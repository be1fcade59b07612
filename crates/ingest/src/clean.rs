//! Text sanitization: removes invisible and bidirectional control characters and normalizes line endings to
//! `\n`, so that the index and the model read what a person sees. It defends against hidden prompts and
//! reordered text.
//!
//! Cleaning is idempotent; a property test with 20,000 cases guards that. Which characters are invisible, and
//! which scripts need one, is defined in [`docent_unicode`].

/// The version of the cleaning rules. Documents are compared by it, so that files indexed under older rules
/// are parsed again.
pub const CLEANING_VERSION: u32 = 3;

/// Removes invisible and control characters and turns every line ending into `\n`.
pub fn clean(text: &str) -> String {
    let mut normalized = String::with_capacity(text.len());
    let mut has_invisible = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            // Vertical tab, form feed, next line, line separator and paragraph separator are line endings
            // too.
            '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => normalized.push('\n'),
            '\n' | '\t' => normalized.push(c),
            _ if c.is_control() => {}
            _ => {
                has_invisible = has_invisible || docent_unicode::is_invisible(c);
                normalized.push(c);
            }
        }
    }
    // Most texts have no invisible characters; the second pass runs only where the first one saw some.
    if has_invisible {
        docent_unicode::visible(&normalized)
    } else {
        normalized
    }
}

/// Cleans a text into a single line: every run of white space becomes one space, and both ends are trimmed.
pub fn clean_line(text: &str) -> String {
    let cleaned = clean(text);
    let mut line = String::with_capacity(cleaned.len());
    for word in cleaned.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Truncates a text to `limit` characters; true if something was cut.
pub(crate) fn truncate_chars(text: &mut String, limit: usize) -> bool {
    match text.char_indices().nth(limit) {
        Some((end, _)) => {
            text.truncate(end);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(input: &str, expect: &str) {
        assert_eq!(clean(input), expect, "cleaning {input:?}");
    }

    #[test]
    fn hidden_characters_go() {
        for hidden in [
            "\u{E0000}",
            "\u{E0041}",
            "\u{E007F}",
            "\u{202A}",
            "\u{202E}",
            "\u{2066}",
            "\u{2069}",
            "\u{200B}",
            "\u{2060}",
            "\u{2064}",
            "\u{FEFF}",
            "\u{AD}",
            "\u{180E}",
            "\u{200E}",
            "\u{200F}",
            "\u{61C}",
            "\u{FFF9}",
            "\u{0}",
            "\u{1B}",
            "\u{7F}",
            "\u{9B}",
            "\u{200D}",
            "\u{200C}",
            "\u{FE0F}",
            "\u{FE00}",
            "\u{E0100}",
            "\u{180B}",
            "\u{3164}",
            "\u{115F}",
            "\u{1160}",
            "\u{FFA0}",
            "\u{34F}",
            "\u{17B4}",
            "\u{17B5}",
            "\u{1D173}",
            "\u{1D17A}",
            "\u{2800}",
            "\u{E01F0}",
            "\u{E0FFF}",
        ] {
            check(&format!("pay{hidden}ment"), "payment");
            check(hidden, "");
        }
    }

    #[test]
    fn line_ends_become_newlines() {
        check(
            "a\r\nb\rc\nd\u{85}e\u{2028}f\u{2029}g\u{C}h\u{B}i\tj",
            "a\nb\nc\nd\ne\nf\ng\nh\ni\tj",
        );
        check("a\r\r\nb", "a\n\nb");
    }

    #[test]
    fn scripts_that_need_joiners_keep_them() {
        // Persian, Hindi, Sinhala, Malayalam at a word's end, Mongolian with its selector.
        for text in [
            "می\u{200C}خواهم",
            "क\u{94D}\u{200D}ष",
            "ශ\u{DCA}\u{200D}රී",
            "ന\u{D4D}\u{200D} ഒരു",
            "ᠭ\u{180B}ᠠ",
            "שלום עולם",
            "العربية",
        ] {
            check(text, text);
        }
        check("می\u{200C}\u{200C}خواهم", "می\u{200C}خواهم");
        check("a\u{200C}b", "ab");
    }

    #[test]
    fn emoji_and_ideographs_keep_their_variants() {
        for text in [
            "👩\u{200D}❤\u{FE0F}\u{200D}👨",
            "🏳\u{FE0F}\u{200D}🌈",
            "1\u{FE0F}\u{20E3}",
            "葛\u{E0100}",
            "﨑\u{FE00}",
            "👍🏽",
        ] {
            check(text, text);
        }
        check("❤\u{FE0F}\u{FE0F}\u{FE0E}", "❤\u{FE0F}");
        check("😀\u{E0100}\u{E0101}\u{E0102}", "😀");
        check("1\u{FE0F}2", "12");
        check("🏴\u{E0067}\u{E0062}\u{E007F}", "🏴");
    }

    #[test]
    fn one_line_has_single_spaces() {
        assert_eq!(clean_line("  a\r\n\tb\u{A0}c\u{2003} "), "a b c");
        assert_eq!(clean_line("\u{200B}\n"), "");
    }

    #[test]
    fn cutting_counts_characters() {
        let mut exact = "äöü".to_owned();
        assert!(!truncate_chars(&mut exact, 3));
        assert_eq!(exact, "äöü");
        let mut longer = "äöüx".to_owned();
        assert!(truncate_chars(&mut longer, 3));
        assert_eq!(longer, "äöü");
    }

    /// Strings made mostly of the characters that the rules handle, with letters between them.
    fn tricky() -> impl Strategy<Value = String> {
        let special = prop::sample::select(vec![
            '\r',
            '\n',
            '\u{200B}',
            '\u{200C}',
            '\u{200D}',
            '\u{FE0F}',
            '\u{FE00}',
            '\u{E0100}',
            '\u{180B}',
            '\u{180E}',
            '\u{61C}',
            '\u{94D}',
            'क',
            'م',
            'ᠭ',
            '葛',
            '❤',
            '👩',
            '1',
            '\u{20E3}',
            'a',
            ' ',
            '\u{202E}',
            '\u{E0041}',
            '\u{FEFF}',
            '\u{AD}',
            '\u{3164}',
            '\u{2800}',
            '\u{115F}',
            '\u{1161}',
        ]);
        prop::collection::vec(prop_oneof![8 => special, 1 => any::<char>()], 0..24)
            .prop_map(String::from_iter)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn cleaning_is_idempotent_and_complete(text in tricky()) {
            let once = clean(&text);
            prop_assert_eq!(clean(&once), once.clone());
            prop_assert_eq!(docent_unicode::visible(&once), once.clone());
            prop_assert!(!once.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            let visible = |c: &char| c.is_alphanumeric() && !docent_unicode::is_invisible(*c);
            prop_assert!(text.chars().filter(visible).eq(once.chars().filter(visible)));
        }
    }
}
