//! Text from outside into text a reader sees in full: invisible and bidirectional control characters
//! removed, line ends made `\n`. Cleaning twice gives the same as cleaning once.
//!
//! Hidden characters are how a document says one thing to a person and another to a model, so the rule is
//! to remove a character that shows nothing unless its neighbours prove that a script needs it.

/// Removes what cannot be seen and makes every line end `\n`.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let kept = match c {
            '\r' if chars.peek() == Some(&'\n') => None,
            // Vertical tab, form feed, next line, line separator and paragraph separator end a line too.
            '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
            '\n' | '\t' => Some(c),
            _ if c.is_control() || is_invisible(c) => None,
            _ if is_selector(c) => selects(before, c, chars.peek().copied()).then_some(c),
            '\u{200C}' | '\u{200D}' => joins(before, c, chars.peek().copied()).then_some(c),
            _ => Some(c),
        };
        if let Some(kept) = kept {
            out.push(kept);
            before = Some(kept);
        }
    }
    out
}

/// Cleans a text that must stay on one line: every run of white space becomes one space, none at the ends.
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

/// Cuts a text after `limit` characters; true when something was cut.
pub(crate) fn cut(text: &mut String, limit: usize) -> bool {
    match text.char_indices().nth(limit) {
        Some((end, _)) => {
            text.truncate(end);
            true
        }
        None => false,
    }
}

/// Characters that show nothing in every script. U+200E, U+200F and U+061C only steer direction: words
/// keep their letters without them, and runs of them are a known way to hide bits.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}'
        | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E00FF}')
}

fn is_selector(c: char) -> bool {
    matches!(c,
        '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// A variation selector stays when it follows, directly, a character it can vary. Longer runs carry
/// hidden bytes and never survive, because a selector is not such a character.
fn selects(before: Option<char>, selector: char, after: Option<char>) -> bool {
    let Some(base) = before else { return false };
    match selector {
        '\u{180B}'..='\u{180F}' => matches!(base, '\u{1820}'..='\u{18AA}'),
        '\u{E0100}'..='\u{E01EF}' => is_han(base),
        '\u{FE0E}' | '\u{FE0F}' if matches!(base, '#' | '*' | '0'..='9') => {
            after == Some('\u{20E3}')
        }
        '\u{FE0E}' | '\u{FE0F}' => is_pictograph(base),
        _ => {
            is_han(base)
                || matches!(base,
                    '0' | '\u{1000}'..='\u{109F}' | '\u{2200}'..='\u{22FF}' | '\u{2A00}'..='\u{2AFF}'
                    | '\u{3001}'..='\u{3002}' | '\u{A840}'..='\u{A877}' | '\u{AA60}'..='\u{AA7F}'
                    | '\u{FF01}'..='\u{FF1F}')
        }
    }
}

/// A joiner stays between letters of a script that joins them, after a vowel killer of India (old
/// Malayalam ends words so), and the zero width joiner also between two pictographs.
fn joins(before: Option<char>, joiner: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    let emoji = joiner == '\u{200D}'
        && (is_pictograph(before) || before == '\u{FE0F}')
        && after.is_some_and(is_pictograph);
    let letters = is_joining(before) && after.is_some_and(is_joining);
    emoji || letters || is_vowel_killer(before)
}

fn is_joining(c: char) -> bool {
    let in_script = matches!(c,
        '\u{600}'..='\u{74F}' | '\u{750}'..='\u{77F}' | '\u{7C0}'..='\u{7FF}' | '\u{840}'..='\u{8FF}'
        | '\u{900}'..='\u{DFF}' | '\u{F00}'..='\u{109F}' | '\u{1780}'..='\u{18AF}'
        | '\u{1B00}'..='\u{1B7F}' | '\u{A840}'..='\u{A877}' | '\u{A980}'..='\u{A9DF}'
        | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{10AC0}'..='\u{10AFF}'
        | '\u{11000}'..='\u{1107F}' | '\u{1E900}'..='\u{1E95F}');
    in_script && !is_invisible(c) && !is_selector(c)
}

fn is_vowel_killer(c: char) -> bool {
    matches!(
        c,
        '\u{94D}'
            | '\u{9CD}'
            | '\u{A4D}'
            | '\u{ACD}'
            | '\u{B4D}'
            | '\u{BCD}'
            | '\u{C4D}'
            | '\u{CCD}'
            | '\u{D4D}'
            | '\u{DCA}'
    )
}

fn is_han(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFD}')
}

fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2194}'..='\u{21AA}' | '\u{231A}'..='\u{23FF}' | '\u{24C2}' | '\u{25AA}'..='\u{27BF}'
        | '\u{2934}'..='\u{2935}' | '\u{2B05}'..='\u{2B55}' | '\u{3030}' | '\u{303D}' | '\u{3297}'
        | '\u{3299}' | '\u{1F000}'..='\u{1FAFF}')
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
        assert!(!cut(&mut exact, 3));
        assert_eq!(exact, "äöü");
        let mut longer = "äöüx".to_owned();
        assert!(cut(&mut longer, 3));
        assert_eq!(longer, "äöü");
    }

    /// Strings made mostly of the characters that the rules are about, with letters between them.
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
            prop_assert!(!once.chars().any(is_invisible));
            prop_assert!(!once.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            let visible = |c: &char| c.is_alphanumeric();
            prop_assert!(text.chars().filter(visible).eq(once.chars().filter(visible)));
        }
    }
}
