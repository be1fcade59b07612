//! Text into JSON, with a bound on how many values it holds: a parsed value takes up to forty times the room of its
//! text, so that a few megabytes of `[[],[],…` would be hundreds in memory.

use serde_json::Value;

/// The most values of one text. A list of a thousand tools has about a hundred thousand.
pub(crate) const MAX_VALUES: usize = 400_000;

/// Why a text is no JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JsonError {
    Broken,
    TooMany,
}

/// The value of a text, and how many values it holds. Depth has the parser's own bound.
pub(super) fn parsed(text: &[u8]) -> Result<(Value, usize), JsonError> {
    let count = values(text);
    if count > MAX_VALUES {
        return Err(JsonError::TooMany);
    }
    let value = serde_json::from_slice(text).map_err(|_| JsonError::Broken)?;
    Ok((value, count))
}

/// How many values a text holds at most: one more than it has commas and opening brackets outside of strings.
fn values(text: &[u8]) -> usize {
    let (mut count, mut in_string, mut is_escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        assert_eq!(values(br#"{"a": [1, 2], "b,[\\\",": "{"}"#), 5);
        assert_eq!(values(b"5"), 1);
    }

    #[test]
    fn a_text_has_a_bound_of_values() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1)).into_bytes();
        assert!(parsed(&list(MAX_VALUES - 1)).is_ok());
        assert_eq!(parsed(&list(MAX_VALUES)), Err(JsonError::TooMany));
        assert_eq!(parsed(b"{"), Err(JsonError::Broken));
        assert_eq!(parsed("[".repeat(200).as_bytes()), Err(JsonError::Broken));
    }
}
