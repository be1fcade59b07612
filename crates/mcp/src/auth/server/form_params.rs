//! What a form or a query carries into named values, each at most once.

use std::collections::BTreeMap;

/// The most bytes of a form or a query. A form that carries a whole query once more is the longest.
pub(crate) const MAX_BYTES: usize = 32 * 1024;
/// The most values of one form.
const MAX_VALUES: usize = 64;

/// Named values. A name that comes twice is refused: two readers could each believe another one.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FormParams(BTreeMap<String, String>);

/// Why a form cannot be read.
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
    /// Reads `a=b&c=d` in the encoding of forms.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FormError> {
        if bytes.len() > MAX_BYTES {
            return Err(FormError::TooLong);
        }
        let mut values = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(bytes) {
            // The decoder puts this in place of bytes that are no text.
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

    /// A value that is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

/// Adds values to an address that may have a query already.
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
