//! Characters into the letters they are found by: which belong to words, and which are the same
//! letter in another dress.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// How a script parts its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptSpacing {
    /// With spaces, as in English.
    Spaced,
    /// Not at all, as in Chinese, Japanese or Thai; or so that parts of a word are asked for, as in
    /// Korean.
    Unspaced,
}

/// The script of a letter or digit; nothing for every other character.
pub(crate) fn script(c: char) -> Option<ScriptSpacing> {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric().then_some(ScriptSpacing::Spaced);
    }
    if is_unspaced(c) {
        return (c.is_alphanumeric() || is_combining_mark(c)).then_some(ScriptSpacing::Unspaced);
    }
    c.is_alphanumeric().then_some(ScriptSpacing::Spaced)
}

/// Whether a character only changes the one before it, so that no word ends between the two:
/// accents, vowel signs, joiners and the soft hyphen.
pub(crate) fn extends_previous(c: char) -> bool {
    !c.is_ascii() && (is_combining_mark(c) || is_invisible(c))
}

fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF       // Thai, Lao
        | 0x1000..=0x109F     // Burmese
        | 0x1100..=0x11FF     // Korean letters
        | 0x1780..=0x17FF     // Khmer
        | 0x2E80..=0x2FDF     // Han radicals
        | 0x3005..=0x3007     // Han iteration marks
        | 0x3040..=0x31FF     // Japanese syllables, Bopomofo, Korean letters
        | 0x3400..=0x4DBF     // Han
        | 0x4E00..=0x9FFF     // Han
        | 0xA960..=0xA97F     // Korean letters
        | 0xAC00..=0xD7FF     // Korean syllables
        | 0xF900..=0xFAFF     // Han
        | 0xFF66..=0xFFDC     // Japanese and Korean at half width
        | 0x20000..=0x323AF   // Han
    )
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{200C}' | '\u{200D}' | '\u{2060}' | '\u{FEFF}'
    )
}

/// Whether a decomposed character is dropped: an accent that readers leave out when they search.
/// Marks that make another letter, such as the Japanese voicing mark, stay.
fn is_dropped(c: char) -> bool {
    is_invisible(c)
        || matches!(u32::from(c),
            0x0300..=0x036F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF
            | 0xFE00..=0xFE0F | 0xFE20..=0xFE2F | 0xE0100..=0xE01EF
            | 0x0591..=0x05C7               // Hebrew points
            | 0x0640 | 0x064B..=0x065F | 0x0670 // Arabic points and the stretching stroke
        )
}

/// Letters that Unicode does not take apart but readers type as others.
fn replacement_letters(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}

/// Appends at most `most` characters of `word` to `out`, in lower case and without accents.
pub(crate) fn fold(word: &str, most: usize, out: &mut String) {
    if word.is_ascii() {
        let start = out.len();
        out.push_str(word.get(..most).unwrap_or(word));
        if let Some(added) = out.get_mut(start..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    let lowered = word
        .nfkd()
        .filter(|c| !is_dropped(*c))
        .flat_map(char::to_lowercase);
    let mut plainly = LetterReplacer {
        letters: lowered,
        rest: "".chars(),
    };
    // What was taken apart only to be looked at, such as a Korean syllable, is put together again.
    out.extend(plainly.by_ref().nfc().take(most));
}

/// Appends at most `most` characters of `word` to `out`, in lower case and with its accents, as
/// stemmers read them. Turkish has a small letter of its own for `I`.
pub(super) fn lower(word: &str, is_turkish: bool, most: usize, out: &mut String) {
    if word.is_ascii() && !is_turkish {
        fold(word, most, out);
        return;
    }
    let small = |c: char| {
        let c = match c {
            'I' if is_turkish => 'ı',
            'İ' if is_turkish => 'i',
            _ => c,
        };
        c.to_lowercase()
    };
    let letters = word.nfc().filter(|c| !is_invisible(*c)).flat_map(small);
    out.extend(letters.nfc().take(most));
}

/// Replaces letters by the ones readers type.
struct LetterReplacer<I> {
    letters: I,
    rest: std::str::Chars<'static>,
}

impl<I: Iterator<Item = char>> Iterator for LetterReplacer<I> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        self.rest.next().or_else(|| {
            let letter = self.letters.next()?;
            match replacement_letters(letter) {
                Some(letters) => {
                    self.rest = letters.chars();
                    self.rest.next()
                }
                None => Some(letter),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(word: &str) -> String {
        let mut out = String::new();
        fold(word, 64, &mut out);
        out
    }

    #[test]
    fn dresses_of_one_letter_are_one_letter() {
        let cases = [
            ("Ferry", "ferry"),
            ("Éclair", "eclair"),
            ("e\u{301}clair", "eclair"),
            ("Straße", "strasse"),
            ("STRASSE", "strasse"),
            ("Łódź", "lodz"),
            ("Æsir", "aesir"),
            ("ＡＢＣ１", "abc1"),
            ("İstanbul", "istanbul"),
            ("ΟΔΟΣ", "οδοσ"),
            ("οδός", "οδοσ"),
            ("co\u{AD}operate", "cooperate"),
            ("한국", "한국"),
            ("\u{1112}\u{1161}\u{11AB}", "한"),
            ("か\u{3099}", "が"),
            ("ｶﾞ", "ガ"),
            ("مُحَمَّد", "محمد"),
        ];
        for (word, expected) in cases {
            assert_eq!(folded(word), expected, "{word}");
        }
    }

    #[test]
    fn a_word_is_cut_at_its_limit() {
        for word in ["a".repeat(65), "é".repeat(65)] {
            assert_eq!(folded(&word).chars().count(), 64);
        }
    }
}
