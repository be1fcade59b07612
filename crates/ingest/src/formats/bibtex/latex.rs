//! LaTeX to plain text, for the subset that bibliographies use: accents, dashes, special letters and braces.

use unicode_normalization::UnicodeNormalization as _;

use crate::clean::clean;

/// Accent commands and the combining character that each puts on the letter after it.
const ACCENTS: &[(char, char)] = &[
    ('\'', '\u{301}'),
    ('`', '\u{300}'),
    ('^', '\u{302}'),
    ('"', '\u{308}'),
    ('~', '\u{303}'),
    ('=', '\u{304}'),
    ('.', '\u{307}'),
    ('c', '\u{327}'),
    ('v', '\u{30C}'),
    ('u', '\u{306}'),
    ('H', '\u{30B}'),
    ('r', '\u{30A}'),
    ('k', '\u{328}'),
    ('b', '\u{331}'),
    ('d', '\u{323}'),
];

/// Commands that expand to a letter or a punctuation mark.
const LETTERS: &[(&str, &str)] = &[
    ("ss", "ß"),
    ("o", "ø"),
    ("O", "Ø"),
    ("ae", "æ"),
    ("AE", "Æ"),
    ("oe", "œ"),
    ("OE", "Œ"),
    ("aa", "å"),
    ("AA", "Å"),
    ("l", "ł"),
    ("L", "Ł"),
    ("i", "ı"),
    ("j", "ȷ"),
    ("textendash", "–"),
    ("textemdash", "—"),
    ("textquoteright", "’"),
    ("textquoteleft", "‘"),
    ("ldots", "…"),
    ("dots", "…"),
    ("textbackslash", "\\"),
];

/// Renders LaTeX markup as the text that would be printed. Hard-wrapped lines are joined into paragraphs.
pub(super) fn latex_to_text(latex: &str) -> String {
    let mut out = String::with_capacity(latex.len());
    let mut rest = latex;
    while let Some(at) = rest.find(['\\', '{', '}', '~', '-', '$']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let mark = from.chars().next().unwrap_or(' ');
        let dashes = from.len() - from.trim_start_matches('-').len();
        rest = match (mark, dashes) {
            ('\\', _) => command(from.get(1..).unwrap_or_default(), &mut out),
            ('~', _) => {
                out.push(' ');
                from.get(1..).unwrap_or_default()
            }
            ('-', 2 | 3) => {
                out.push(if dashes == 2 { '–' } else { '—' });
                from.get(dashes..).unwrap_or_default()
            }
            ('-', _) => {
                out.push_str(from.get(..dashes).unwrap_or_default());
                from.get(dashes..).unwrap_or_default()
            }
            _ => from.get(1..).unwrap_or_default(),
        };
    }
    out.push_str(rest);
    let out: String = out.nfc().collect();
    paragraphs(&clean(&out))
}

/// Writes the expansion of the command after a backslash to `out` and returns the remaining input.
fn command<'l>(from: &'l str, out: &mut String) -> &'l str {
    let Some(first) = from.chars().next() else {
        return from;
    };
    let after = from.get(first.len_utf8()..).unwrap_or_default();
    let accent = ACCENTS.iter().find(|(mark, _)| *mark == first);
    let is_letter = first.is_ascii_alphabetic();
    let takes_argument = !is_letter || after.starts_with(|c: char| c == '{' || c.is_whitespace());
    if let Some((_, mark)) = accent.filter(|_| takes_argument) {
        let open = after.trim_start().trim_start_matches('{');
        let (letter, left) = accented_letter(open);
        if let Some(letter) = letter {
            out.extend([letter, *mark]);
            return left;
        }
    }
    if !is_letter {
        out.push(first);
        return after;
    }
    let length = from.find(|c: char| !c.is_ascii_alphabetic());
    let (name, after) = from.split_at(length.unwrap_or(from.len()));
    if let Some((_, letter)) = LETTERS.iter().find(|(known, _)| *known == name) {
        out.push_str(letter);
        return after.strip_prefix(' ').unwrap_or(after);
    }
    // Formatting commands such as `\emph` are dropped; their argument in braces follows as text.
    after
}

/// The letter under an accent. `\i` and `\j` are the dotless forms, which become plain letters below an
/// accent.
fn accented_letter(text: &str) -> (Option<char>, &str) {
    for (dotless, letter) in [("\\i", 'i'), ("\\j", 'j')] {
        if let Some(after) = text.strip_prefix(dotless)
            && !after.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            return (Some(letter), after);
        }
    }
    let letter = text.chars().next().filter(|c| c.is_alphabetic());
    let length = letter.map_or(0, char::len_utf8);
    (letter, text.get(length..).unwrap_or_default())
}

/// Joins the lines of each paragraph with a space and keeps the paragraphs.
fn paragraphs(text: &str) -> String {
    let parts = text.split("\n\n").map(crate::clean::clean_line);
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_dashes_are_printed() {
        for (latex, text) in [
            (r#"M{\"u}ller \"{o} \'e {\'{\i}}"#, "Müller ö é í"),
            (
                r"\v{S}koda \c c {\o}re stra{\ss}e \l odz",
                "Škoda ç øre straße łodz",
            ),
            (r"A \& B 5\% a\_b", "A & B 5% a_b"),
            ("1--2 --- well-known", "1–2 — well-known"),
            (r"\emph{Tides} of~{Corrowin}", "Tides of Corrowin"),
            ("one\n  two\n\nthree", "one two\n\nthree"),
            (r"a \", "a"),
            (r#"\"#, ""),
            (r#"\'"#, "'"),
        ] {
            assert_eq!(latex_to_text(latex), text, "{latex}");
        }
    }
}
