//! Truncation of text to a number of characters or bytes, never inside a character.

use std::borrow::Cow;

/// The first `max` characters of a text.
///
/// ```
/// assert_eq!(docent_unicode::truncate_chars("résumé", 2), "ré");
/// ```
#[inline]
#[must_use]
pub fn truncate_chars(text: &str, max: usize) -> &str {
    // Without this, a short text, which is the usual one, would be decoded for nothing.
    if text.len() <= max {
        return text;
    }
    match text.char_indices().nth(max) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// The longest prefix of a text that has at most `max` bytes and ends at a character boundary.
///
/// ```
/// assert_eq!(docent_unicode::truncate_bytes("résumé", 2), "r");
/// ```
#[inline]
#[must_use]
pub fn truncate_bytes(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// The first `max` characters of a text, and `…` after them if something was cut off.
///
/// ```
/// assert_eq!(docent_unicode::ellipsize("résumé", 2), "ré…");
/// assert_eq!(docent_unicode::ellipsize("ré", 2), "ré");
/// ```
#[inline]
#[must_use]
pub fn ellipsize(text: &str, max: usize) -> Cow<'_, str> {
    let start = truncate_chars(text, max);
    if start.len() == text.len() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{start}…"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bounds_are_inclusive() {
        for (text, max, by_chars, by_bytes, with_ellipsis) in [
            ("", 0, "", "", ""),
            ("a", 0, "", "", "…"),
            ("abc", 3, "abc", "abc", "abc"),
            ("abc", 2, "ab", "ab", "ab…"),
            ("üüü", 3, "üüü", "ü", "üüü"),
            ("üüü", 2, "üü", "ü", "üü…"),
            ("a😀b", 2, "a😀", "a", "a😀…"),
            ("abc", usize::MAX, "abc", "abc", "abc"),
        ] {
            assert_eq!(truncate_chars(text, max), by_chars, "{text} {max}");
            assert_eq!(truncate_bytes(text, max), by_bytes, "{text} {max}");
            assert_eq!(ellipsize(text, max), with_ellipsis, "{text} {max}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_as_if_it_were_collected(text in ".{0,20}", max in 0..24_usize) {
            let start: String = text.chars().take(max).collect();
            prop_assert_eq!(truncate_chars(&text, max), &start);
            let bytes = truncate_bytes(&text, max);
            prop_assert!(text.starts_with(bytes) && bytes.len() <= max);
            let next = text[bytes.len()..].chars().next();
            prop_assert!(next.is_none_or(|c| bytes.len() + c.len_utf8() > max));
        }
    }
}
