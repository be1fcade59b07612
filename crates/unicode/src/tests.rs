//! Tests of the list of invisible characters and of their removal: each character with Unicode's property
//! `Default_Ignorable_Code_Point`, and each context in which an invisible character is kept.

use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;
use proptest::prelude::*;

use super::*;

#[test]
fn the_list_is_unicodes_own_and_five_more() {
    let property = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    for c in '\0'..=char::MAX {
        assert_eq!(is_default_ignorable(c), property.contains(c), "{c:?}");
    }
    let more: Vec<char> = ('\0'..=char::MAX)
        .filter(|c| is_invisible(*c) && !is_default_ignorable(*c))
        .collect();
    let blanks = ['\u{2800}', '\u{FFF9}', '\u{FFFA}', '\u{FFFB}', '\u{1D159}'];
    assert_eq!(more, blanks);
}

#[test]
fn every_invisible_character_is_removed_from_plain_words() {
    for c in ('\0'..=char::MAX).filter(|c| is_invisible(*c)) {
        assert_eq!(visible(&format!("pay{c}ment")), "payment", "{c:?}");
        assert_eq!(visible(&format!("{c}{c}")), "", "{c:?}");
    }
}

#[test]
fn characters_that_a_script_or_emoji_needs_are_kept() {
    for text in [
        // Persian, Hindi, Sinhala, Malayalam at the end of a word, Mongolian with its selector.
        "می\u{200C}خواهم",
        "क\u{94D}\u{200D}ष",
        "ශ\u{DCA}\u{200D}රී",
        "ന\u{D4D}\u{200D} ഒരു",
        "ᠭ\u{180B}ᠠ",
        // Hangul: syllables, conjoining jamo, and syllables without a leading consonant or a vowel.
        "한글",
        "\u{1112}\u{1161}\u{11AB}",
        "\u{115F}\u{1161}",
        "\u{1100}\u{1160}\u{11A8}",
        // Braille with spaces.
        "⠓⠊\u{2800}⠁",
        // Ideographs and symbols with a variation selector.
        "葛\u{E0100}",
        "邉\u{E011F}",
        "﨑\u{FE00}",
        // Emoji: families, flags, keycaps, colours.
        "👩\u{200D}❤\u{FE0F}\u{200D}👨",
        "🏳\u{FE0F}\u{200D}🌈",
        "1\u{FE0F}\u{20E3}",
        "👍🏽",
        "🇳🇿",
        "🏴\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
    ] {
        assert_eq!(visible(text), text, "{text:?}");
    }
}

#[test]
fn format_characters_out_of_context_are_removed() {
    for (text, expected) in [
        ("می\u{200C}\u{200C}خواهم", "می\u{200C}خواهم"),
        ("a\u{200C}b", "ab"),
        ("❤\u{FE0F}\u{FE0F}\u{FE0E}", "❤\u{FE0F}"),
        ("😀\u{E0100}\u{E0101}", "😀"),
        ("1\u{FE0F}2", "12"),
        ("a\u{E0100}", "a"),
        // Selectors that no registered sequence uses, one behind each ideograph.
        ("葛\u{E0120}飾\u{E01EF}区\u{E0150}", "葛飾区"),
        // Tag sequences that name no known flag, or follow another character.
        ("🏴\u{E0067}\u{E0062}\u{E007F}", "🏴"),
        ("🏴\u{E0068}\u{E0069}\u{E007F}", "🏴"),
        (
            "🏳\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
            "🏳",
        ),
        // Fillers and blanks outside of their context.
        ("한\u{3164}글", "한글"),
        ("한\u{115F}글", "한글"),
        ("\u{1100}\u{1160}", "\u{1100}"),
        ("\u{FFA0}\u{115F}\u{1160}", ""),
        ("⠓\u{2800}\u{2800}a", "⠓a"),
        ("e\u{34F}\u{301}", "e\u{301}"),
        ("ក\u{17B4}\u{17B5}", "ក"),
    ] {
        assert_eq!(visible(text), expected, "{text:?}");
    }
}

/// Random strings made mostly of the characters that the rules treat specially.
fn tricky() -> impl Strategy<Value = String> {
    let special = prop::sample::select(
        "\u{200B}\u{200C}\u{200D}\u{FE0F}\u{FE00}\u{E0100}\u{E01F0}\u{180B}\u{61C}\u{94D}\u{2800}\u{115F}\u{1160}\
         \u{3164}\u{1100}\u{1161}\u{11A8}\u{E0067}\u{E007F}\u{20E3}\u{34F}🏴कمᠭ葛❤👩⠓1a "
            .chars()
            .collect::<Vec<_>>(),
    );
    prop::collection::vec(prop_oneof![8 => special, 1 => any::<char>()], 0..24)
        .prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn remaining_characters_are_visible_or_in_context(text in tricky()) {
        let once = visible(&text);
        prop_assert_eq!(visible(&once), once.clone());
        let seen = |c: &char| !is_invisible(*c);
        prop_assert!(text.chars().filter(seen).eq(once.chars().filter(seen)), "nothing visible is lost");
        let chars: Vec<char> = once.chars().collect();
        for (at, c) in chars.iter().enumerate().filter(|(_, c)| is_invisible(**c)) {
            let before = at.checked_sub(1).map(|at| chars[at]);
            let tag = matches!(c, '\u{E0020}'..='\u{E007F}');
            prop_assert!(tag || context::belongs(before, *c, chars.get(at + 1).copied()), "{:?}", once);
        }
    }
}
