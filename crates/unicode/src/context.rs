//! Contexts that justify an invisible character: joiners in joining scripts and emoji, variation selectors after a base
//! that they can vary, fillers in Hangul syllables, the blank cell in Braille, and the tag sequences of three flags.

/// The emoji tag sequences of the flags of England, Scotland and Wales. Other tag sequences are not displayed, so they
/// could smuggle any text.
const TAGGED_FLAGS: [&str; 3] = [
    "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// The last selector that a registered ideographic variation sequence uses: no ideograph has more than 32 of them, VS17
/// to VS48. The 208 selectors after it select nothing, so behind an ideograph they could only carry hidden bytes.
const LAST_IDEOGRAPHIC_SELECTOR: char = '\u{E011F}';

/// The tag sequence at the start of `rest`, if a black flag precedes it and it names a known flag.
pub(crate) fn flag(before: Option<char>, rest: &str) -> Option<&'static str> {
    let known = TAGGED_FLAGS.iter().find(|tags| rest.starts_with(**tags));
    known.copied().filter(|_| before == Some('\u{1F3F4}'))
}

/// Whether an invisible character belongs between its neighbours. The character `before` is one that was kept.
pub(crate) fn belongs(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before else {
        return c == '\u{115F}' && after.is_some_and(is_vowel_jamo);
    };
    match c {
        '\u{200C}' | '\u{200D}' => joins(before, c, after),
        '\u{180B}'..='\u{180D}'
        | '\u{180F}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{E0100}'..=LAST_IDEOGRAPHIC_SELECTOR => selects(before, c, after),
        // Fillers for a syllable without a leading consonant, and for one without a vowel.
        '\u{115F}' => after.is_some_and(is_vowel_jamo),
        '\u{1160}' => is_leading_jamo(before) && after.is_some_and(is_trailing_jamo),
        '\u{2800}' => is_braille(before) && after.is_some_and(is_braille),
        _ => false,
    }
}

/// Whether a variation selector directly follows a base character that it can vary. Runs of selectors, which can carry
/// hidden bytes, never survive, because a selector is not a base.
fn selects(base: char, selector: char, after: Option<char>) -> bool {
    match selector {
        '\u{180B}'..='\u{180F}' => matches!(base, '\u{1820}'..='\u{18AA}'),
        '\u{E0100}'..=LAST_IDEOGRAPHIC_SELECTOR => is_han(base),
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

/// Whether a joiner stands between letters of a joining script or after an Indic virama, which ends words in older
/// Malayalam; the zero-width joiner also between two pictographs, as in emoji sequences.
fn joins(before: char, joiner: char, after: Option<char>) -> bool {
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
    in_script && !super::is_invisible(c)
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

fn is_leading_jamo(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{115E}' | '\u{A960}'..='\u{A97C}')
}

fn is_vowel_jamo(c: char) -> bool {
    matches!(c, '\u{1161}'..='\u{11A7}' | '\u{D7B0}'..='\u{D7C6}')
}

fn is_trailing_jamo(c: char) -> bool {
    matches!(c, '\u{11A8}'..='\u{11FF}' | '\u{D7CB}'..='\u{D7FB}')
}

/// Whether a character is a Braille cell with at least one dot.
fn is_braille(c: char) -> bool {
    matches!(c, '\u{2801}'..='\u{28FF}')
}
