//! Parser for form bodies and query strings (`application/x-www-form-urlencoded`) that refuses duplicate
//! parameters.

use std::collections::BTreeMap;

/// The maximum size of a form or query. The longest is a consent form, which contains a whole authorization
/// request.
pub(crate) const MAX_BYTES: usize = 32 * 1024;
/// The maximum number of parameters.
const MAX_VALUES: usize = 64;

/// Parsed parameters. RFC 6749 forbids duplicates; two readers could each see a different value.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FormParams(BTreeMap<String, String>);

/// Why a form or query is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormError {
    #[error("the request is too long")]
    TooLong,
    #[error("a parameter is given twice")]
    Twice,
    #[error("the request is not text")]
    NotText,
}

impl FormParams {
    /// Parses and percent-decodes a body such as `a=b&c=d`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FormError> {
        if bytes.len() > MAX_BYTES {
            return Err(FormError::TooLong);
        }
        let mut values = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(bytes) {
            // The decoder replaces bytes that are not UTF-8 with this character.
            if name.contains('\u{FFFD}') || value.contains('\u{FFFD}') {
                return Err(FormError::NotText);
            }
            if values.len() >= MAX_VALUES {
                return Err(FormError::TooLong);
            }
            if values
                .insert(name.into_owned(), value.into_owned())
                .is_some()
            {
                return Err(FormError::Twice);
            }
        }
        Ok(Self(values))
    }

    /// The value of a parameter. An empty one counts as absent (RFC 6749, section 3.1).
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

/// Appends parameters to a URL that may already have a query.
pub(crate) fn with_query(address: &str, values: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(values);
    let join = if address.contains('?') { '&' } else { '?' };
    format!("{address}{join}{}", query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_come_once() {
        let form = FormParams::parse(b"a=1&b=x%20y+z&c=").unwrap();
        assert_eq!((form.get("a"), form.get("b")), (Some("1"), Some("x y z")));
        assert_eq!((form.get("c"), form.get("d")), (None, None));
        for (bad, why) in [
            (&b"a=1&a=2"[..], FormError::Twice),
            (b"a=1&%61=1", FormError::Twice),
            (b"a=%ff", FormError::NotText),
        ] {
            assert_eq!(FormParams::parse(bad), Err(why));
        }
    }

    #[test]
    fn length_and_number_have_bounds() {
        assert!(FormParams::parse(&[b'a'; MAX_BYTES]).is_ok());
        assert_eq!(
            FormParams::parse(&[b'a'; MAX_BYTES + 1]),
            Err(FormError::TooLong)
        );
        let many = |count: usize| {
            let all: Vec<_> = (0..count).map(|n| format!("v{n}=1")).collect();
            FormParams::parse(all.join("&").as_bytes())
        };
        assert!(many(MAX_VALUES).is_ok());
        assert_eq!(many(MAX_VALUES + 1), Err(FormError::TooLong));
    }

    #[test]
    fn a_query_is_added_to_whatever_is_there() {
        assert_eq!(
            with_query("https://a.example/b", &[("c", "d e&")]),
            "https://a.example/b?c=d+e%26"
        );
        assert_eq!(
            with_query("https://a.example/b?x=1", &[("c", "d")]),
            "https://a.example/b?x=1&c=d"
        );
    }
}
