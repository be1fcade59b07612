//! Normalization of field names: when two names are the same.
//!
//! One function decides for ingestion, for the rules of `[fields]` and for hiding fields from readers,
//! because a name that one of them recognizes and another does not would leave a document open by mistake.
//! When in doubt it treats names as equal: taking a name for the reader field can only close a document to
//! readers that it does not name.

use unicode_normalization::UnicodeNormalization as _;

use crate::clean::clean_line;

/// Quotation marks that exporters and people leave around a name.
const QUOTES: &[char] = &[
    '"', '\'', '`', '´', '“', '”', '„', '‟', '‘', '’', '‚', '‛', '«', '»', '‹', '›', '「', '」',
];

/// The form in which field names are compared: lower case, Unicode compatibility form (NFKC), without
/// hidden characters, and each part without blanks and quotation marks around it. `Für` is the same name
/// whether its second letter is one character, two, or full width.
///
/// ```
/// use docent_ingest::comparable_name;
///
/// assert_eq!(comparable_name(" \"Allowed\""), "allowed");
/// assert_eq!(comparable_name("fu\u{308}r"), comparable_name("FÜR"));
/// ```
#[must_use]
pub fn comparable_name(name: &str) -> String {
    if is_plain(name) {
        return name.to_owned();
    }
    let line = clean_line(name).replace('´', "'");
    // Lower-casing comes between two NFKC passes, because either may change the other's result.
    let folded: String = line.nfkc().flat_map(char::to_lowercase).nfkc().collect();
    let folded = clean_line(&folded);
    let is_around = |c: char| c.is_whitespace() || QUOTES.contains(&c);
    let parts: Vec<_> = unquoted(&folded, is_around)
        .split('.')
        .map(|part| unquoted(part, is_around))
        .collect();
    parts.join(".")
}

/// A part of a name without the blanks and quotes around it. A part of nothing but quotes is kept.
fn unquoted(part: &str, is_around: impl Fn(char) -> bool) -> &str {
    match part.trim_matches(is_around) {
        "" => part.trim(),
        inner => inner,
    }
}

/// Fast path for most keys of most files, which are in comparable form already.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(plain)
}

/// Whether a name is that of a field, or nested in it: `allowed` and `Allowed.groups` for `allowed`.
#[must_use]
pub fn is_or_is_nested_in(name: &str, field: &str) -> bool {
    let (name, field) = (comparable_name(name), comparable_name(field));
    name == field || is_nested(&name, &field)
}

/// Whether `inner` is `outer` followed by a point and more. Both must be in comparable form.
pub(super) fn is_nested(inner: &str, outer: &str) -> bool {
    rest_of(inner, outer).is_some()
}

/// The part of `inner` after `outer` and a point.
pub(super) fn rest_of<'i>(inner: &'i str, outer: &str) -> Option<&'i str> {
    inner.strip_prefix(outer)?.strip_prefix('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_however_it_is_written() {
        for name in [
            "Allowed",
            " allowed\t",
            "\"allowed\"",
            " \"Allowed\" ",
            "'allowed'",
            "`allowed`",
            "“allowed”",
            "„ALLOWED“",
            "«allowed»",
            "´allowed´",
            "\"allowed",
            "ａｌｌｏｗｅｄ",
            "＂allowed＂",
            "allo\u{200B}wed",
        ] {
            assert_eq!(comparable_name(name), "allowed", "{name:?}");
        }
        for (one, other) in [
            ("für", "fu\u{308}r"),
            ("FÜR", "fu\u{308}r"),
            ("İ", "i\u{307}"),
            ("ﬁeld", "FIELD"),
            ("\"access\".'groups'", "Access . Groups"),
        ] {
            assert_eq!(comparable_name(one), comparable_name(other), "{one:?}");
        }
        for name in ["allowed_by", "disallowed", "all owed", "", "\"", "allow'ed"] {
            assert_ne!(comparable_name(name), "allowed", "{name:?}");
        }
    }

    #[test]
    fn comparing_twice_changes_nothing() {
        for name in [
            "\"'a.\"b\"'",
            "Ⅷ",
            "ſ",
            "ẞ",
            "\u{345}",
            "a . b",
            "´",
            "''",
            "…",
        ] {
            let once = comparable_name(name);
            assert_eq!(comparable_name(&once), once, "{name:?}");
        }
    }

    #[test]
    fn nested_names_belong_to_their_field() {
        assert!(is_or_is_nested_in("ALLOWED.groups", "allowed"));
        assert!(is_or_is_nested_in("\"fu\u{308}r\"", "Für"));
        assert!(!is_or_is_nested_in("allowed_by", "allowed"));
        assert!(!is_or_is_nested_in("allowed", "allowed.groups"));
    }
}
