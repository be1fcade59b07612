//! Raw values of settings, from a file, the environment or a flag, and their conversion into types, with errors that
//! show the value and a right example.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use docent_mcp::http::guard::RequestGuard;
use url::Url;

use crate::display_text::shorten;

/// Maximum number of values in a list.
pub const MAX_LIST: usize = 64;

/// Maximum number of characters of a value in a message.
const MAX_SHOWN: usize = 80;

/// A raw value, before it is parsed for its setting.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingValue {
    /// Text from a flag or an environment variable.
    Text(String),
    /// Values of a repeated flag.
    List(Vec<String>),
    /// Typed TOML value from the settings file.
    Toml(toml::Value),
}

/// Why a value is invalid. The message `` `server.listen` is not an address: `80a` `` consists of the key and these
/// parts.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    /// The problem, such as `is not an address`.
    pub what: String,
    /// The value, truncated and without control characters.
    pub shown: String,
    /// The fix, such as an example of a valid value.
    pub hint: String,
}

impl SettingValue {
    /// The value as messages show it.
    fn shown(&self) -> String {
        let text = match self {
            Self::Text(text) | Self::Toml(toml::Value::String(text)) => text.clone(),
            Self::List(items) => items.join(","),
            Self::Toml(value) => value.to_string(),
        };
        shorten(&text, MAX_SHOWN)
    }

    /// Creates an error about this value.
    pub fn invalid(&self, what: impl Into<String>, hint: impl Into<String>) -> InvalidSetting {
        InvalidSetting {
            what: what.into(),
            shown: self.shown(),
            hint: hint.into(),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Toml(toml::Value::String(text)) => Some(text.trim()),
            _ => None,
        }
    }

    /// Parses one line of 1 to `most` characters.
    pub fn line(&self, most: usize) -> Result<String, InvalidSetting> {
        let fits = |text: &&str| {
            !text.is_empty() && text.chars().count() <= most && !text.contains(char::is_control)
        };
        let what = format!("is not a line of 1 to {most} characters");
        let found = self.text().filter(fits).map(str::to_owned);
        found.ok_or_else(|| self.invalid(what, "write one line of text in quotes"))
    }

    /// Parses a whole number within bounds.
    pub fn number(&self, bounds: RangeInclusive<u64>) -> Result<u64, InvalidSetting> {
        let found = match self {
            Self::Toml(toml::Value::Integer(number)) => u64::try_from(*number).ok(),
            Self::Text(text) => text.trim().replace('_', "").parse().ok(),
            _ => None,
        };
        let (least, most) = (bounds.start(), bounds.end());
        found
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| {
                self.invalid(
                    format!("is not a number from {least} to {most}"),
                    format!("write a whole number from {least} to {most}"),
                )
            })
    }

    /// Parses a whole number within bounds as a `usize`.
    pub fn size(&self, bounds: RangeInclusive<u64>) -> Result<usize, InvalidSetting> {
        let number = self.number(bounds)?;
        usize::try_from(number)
            .map_err(|_| self.invalid("is too large for this machine", "lower it"))
    }

    /// Parses a number from 0 to 1.
    pub fn fraction(&self) -> Result<f32, InvalidSetting> {
        let found = match self {
            Self::Toml(toml::Value::Integer(number)) => Some(*number as f32),
            Self::Toml(toml::Value::Float(number)) => Some(*number as f32),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        found
            .filter(|number| (0.0..=1.0).contains(number))
            .ok_or_else(|| self.invalid("is not a number from 0 to 1", "example: `0.5`"))
    }

    /// Parses `true` or `false`.
    pub fn boolean(&self) -> Result<bool, InvalidSetting> {
        match self {
            Self::Toml(toml::Value::Boolean(on)) => Some(*on),
            _ => self.text().and_then(|text| text.parse().ok()),
        }
        .ok_or_else(|| self.invalid("is neither `true` nor `false`", "write `true` or `false`"))
    }

    /// Parses one of several words into its meaning.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, InvalidSetting> {
        let found = choices.iter().find(|(word, _)| self.text() == Some(word));
        let words: Vec<_> = choices
            .iter()
            .map(|(word, _)| format!("`{word}`"))
            .collect();
        let words = words.join(", ");
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            self.invalid(
                format!("is not one of {words}"),
                format!("write one of {words}"),
            )
        })
    }

    /// Parses a list of texts: an array in the file, separated by commas elsewhere.
    pub fn list(&self) -> Result<Vec<String>, InvalidSetting> {
        let items: Option<Vec<String>> = match self {
            Self::Text(text) => Some(text.split(',').map(str::to_owned).collect()),
            Self::List(items) => Some(items.clone()),
            Self::Toml(toml::Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect(),
            Self::Toml(_) => None,
        };
        let mut items = items.ok_or_else(|| {
            self.invalid(
                "is not a list of texts",
                "write them as `[\"one\", \"two\"]`",
            )
        })?;
        for item in &mut items {
            *item = item.trim().to_owned();
        }
        items.retain(|item| !item.is_empty());
        if items.len() > MAX_LIST {
            let what = format!("has more than {MAX_LIST} values");
            return Err(self.invalid(what, format!("name at most {MAX_LIST}")));
        }
        Ok(items)
    }

    /// Parses a socket address to listen on.
    pub fn address(&self) -> Result<SocketAddr, InvalidSetting> {
        let found = self.text().and_then(|text| text.parse().ok());
        found.ok_or_else(|| self.invalid("is not an address", "example: `127.0.0.1:8787`"))
    }

    /// Parses an absolute http or https URL without query, fragment and user name.
    pub fn web_address(&self) -> Result<Url, InvalidSetting> {
        let plain = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
        };
        let found = self
            .text()
            .and_then(|text| Url::parse(text).ok())
            .filter(plain);
        found.ok_or_else(|| {
            self.invalid(
                "is not a web address",
                "example: `https://docs.example.org`",
            )
        })
    }

    /// Parses host names, each with or without a port, or `*` for any.
    pub fn hosts(&self) -> Result<Vec<String>, InvalidSetting> {
        let hosts = self.list()?;
        match RequestGuard::new(&hosts, &[] as &[&str]) {
            Ok(_) => Ok(hosts),
            Err(bad) => Err(self.invalid("is not a list of host names", bad.hint())),
        }
    }

    /// Parses origins of web pages, or `*` for any.
    pub fn origins(&self) -> Result<Vec<String>, InvalidSetting> {
        let origins = self.list()?;
        match RequestGuard::new(&[] as &[&str], &origins) {
            Ok(_) => Ok(origins),
            Err(bad) => Err(self.invalid("is not a list of origins", bad.hint())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> SettingValue {
        SettingValue::Text(value.to_owned())
    }

    fn toml(value: impl Into<toml::Value>) -> SettingValue {
        SettingValue::Toml(value.into())
    }

    #[test]
    fn numbers_keep_their_bounds() {
        for (given, expected) in [
            (text("1"), Some(1)),
            (text("20"), Some(20)),
            (text("1_0"), Some(10)),
            (toml(20), Some(20)),
            (text("21"), None),
            (text("0"), None),
            (toml(21), None),
            (toml(-1), None),
            (toml("5"), None),
            (text("ten"), None),
        ] {
            assert_eq!(given.number(1..=20).ok(), expected, "{given:?}");
        }
        let wrong = text("21").number(1..=20).unwrap_err();
        assert_eq!(
            (wrong.what.as_str(), wrong.shown.as_str()),
            ("is not a number from 1 to 20", "21")
        );
    }

    #[test]
    fn lists_end_at_their_bound() {
        let items = |count: usize| toml(vec!["a".to_owned(); count]);
        assert_eq!(items(MAX_LIST).list().unwrap().len(), MAX_LIST);
        assert!(items(MAX_LIST + 1).list().is_err());
        assert_eq!(text(" a, ,b ").list().unwrap(), ["a", "b"]);
        assert!(toml(7).list().is_err());
        assert!(toml(vec![7]).list().is_err());
    }

    #[test]
    fn lines_end_at_their_bound() {
        assert!(text("ééé").line(3).is_ok());
        for bad in [text("éééé"), text("  "), text("a\nb"), toml(3)] {
            assert!(bad.line(3).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_hosts_and_origins_are_told_from_other_text() {
        assert!(text("[::1]:0").address().is_ok());
        assert!(text("localhost").address().is_err());
        for good in [
            "docs.example.org",
            "docs.example.org:8443",
            "[::1]:80",
            "10.0.0.1",
        ] {
            assert!(text(good).hosts().is_ok(), "{good}");
        }
        for bad in ["https://docs.example.org", "a/b", "a b", "u@a"] {
            assert!(text(bad).hosts().is_err(), "{bad}");
        }
        for good in ["https://app.example.org", "http://localhost:*", "*"] {
            assert!(text(good).origins().is_ok(), "{good}");
        }
        for bad in ["https://app.example.org/x", "app.example.org", "https://"] {
            assert!(text(bad).origins().is_err(), "{bad}");
        }
        for bad in [
            "docs.example.org",
            "ftp://a.example",
            "https://a.example/?q",
            "https://u@a.example",
        ] {
            assert!(text(bad).web_address().is_err(), "{bad}");
        }
    }

    #[test]
    fn values_in_messages_are_truncated_and_printable() {
        assert_eq!(
            text("\u{1b}[31mred").invalid("", "").shown,
            "\u{FFFD}[31mred"
        );
        assert_eq!(text(&"é".repeat(80)).invalid("", "").shown, "é".repeat(80));
        assert_eq!(
            text(&"é".repeat(81)).invalid("", "").shown,
            format!("{}…", "é".repeat(80))
        );
    }
}
