//! Unicode text: removal of invisible characters, except where a script or an emoji needs them, and truncation.
//!
//! Hidden characters let a text say one thing to a person and another to a model (prompt injection), and let one name
//! pass for another (spoofing). So an invisible character is removed unless its neighbours show that it belongs there.
//! Documents and the names of OAuth clients go through this one list.
//!
//! Beside it are the functions that truncate text at a character boundary.
//!
//! ```
//! assert_eq!(docent_unicode::visible("pay\u{3164}ment"), "payment");
//! assert_eq!(docent_unicode::visible("می\u{200C}خواهم"), "می\u{200C}خواهم");
//! ```

mod context;
mod truncate;

pub use truncate::{ellipsize, truncate_bytes, truncate_chars};

/// Removes the invisible characters of a text that their context does not justify. The function is idempotent.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if is_invisible(c)
            && let Some(flag) = context::flag(before, rest)
        {
            out.push_str(flag);
            before = flag.chars().next_back();
            rest = rest.get(flag.len()..).unwrap_or_default();
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if !is_invisible(c) || context::belongs(before, c, rest.chars().next()) {
            out.push(c);
            before = Some(c);
        }
    }
    out
}

/// Whether a character is invisible, or only affects how others are displayed: every default ignorable code point of
/// Unicode, the interlinear annotation marks, and symbols that are blank by design. White space and control characters
/// do not count.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    is_default_ignorable(c)
        || matches!(
            c,
            // Interlinear annotation marks, the blank Braille cell, the null notehead of music.
            '\u{FFF9}'..='\u{FFFB}' | '\u{2800}' | '\u{1D159}'
        )
}

/// Unicode's property `Default_Ignorable_Code_Point`. Seventeen ranges are smaller than a dependency; a test compares
/// them with the property for every character.
const fn is_default_ignorable(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFF8}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests;
