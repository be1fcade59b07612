//! Defaults of settings as text, for `--help` and the documentation. They are derived from
//! [`Settings::default`](super::Settings::default), so each default is stated only once.

use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::time::Duration;

use docent_mcp::SignatureAlgorithm;

use super::auth::IntrospectionSecret;
use super::tools::NameAlias;
use crate::corpus::IndexMemoryBudget;
use crate::telemetry::OtlpHeaders;

/// Default of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingDefault {
    /// A value, as it is written into `docent.toml` or an environment variable.
    Value(String),
    /// What applies instead of a value, such as `none` or `the folder's name`.
    Description(&'static str),
}

const NONE: SettingDefault = SettingDefault::Description("none");
const EMPTY_LIST: SettingDefault = SettingDefault::Description("[]");
/// Stands for a secret, so that no secret is ever printed. No secret has a default today.
const HIDDEN: SettingDefault = SettingDefault::Description("hidden");

impl Display for SettingDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value(text) => text,
            Self::Description(text) => text,
        })
    }
}

impl SettingDefault {
    /// The word for a value in a table of choices.
    pub(super) fn choice<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> Self {
        let word = choices.iter().find(|(_, meaning)| meaning == value);
        word.map_or(NONE, |(word, _)| Self::Value((*word).to_owned()))
    }

    fn list<T: Display>(items: impl IntoIterator<Item = T>) -> Self {
        let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
        if items.is_empty() {
            EMPTY_LIST
        } else {
            Self::Value(items.join(","))
        }
    }
}

/// A type of fields in [`Settings`](super::Settings) whose values can be written as text.
pub(super) trait StatesDefault {
    /// The value as a default.
    fn setting_default(&self) -> SettingDefault;
}

macro_rules! displayed {
    ($($type:ty),+) => {
        $(impl StatesDefault for $type {
            fn setting_default(&self) -> SettingDefault {
                SettingDefault::Value(self.to_string())
            }
        })+
    };
}

displayed!(bool, u32, u64, u128, usize, f32, SocketAddr);

impl StatesDefault for String {
    fn setting_default(&self) -> SettingDefault {
        if self.is_empty() {
            NONE
        } else {
            SettingDefault::Value(self.clone())
        }
    }
}

/// An optional setting has no default; one that had would have to be described with
/// [`default_description`](super::SettingKey::default_description).
impl<T> StatesDefault for Option<T> {
    fn setting_default(&self) -> SettingDefault {
        self.as_ref().map_or(NONE, |_| HIDDEN)
    }
}

impl StatesDefault for Vec<String> {
    fn setting_default(&self) -> SettingDefault {
        SettingDefault::list(self)
    }
}

impl StatesDefault for Vec<NameAlias> {
    fn setting_default(&self) -> SettingDefault {
        SettingDefault::list(
            self.iter()
                .map(|alias| format!("{}={}", alias.name, alias.source)),
        )
    }
}

impl StatesDefault for Vec<SignatureAlgorithm> {
    fn setting_default(&self) -> SettingDefault {
        SettingDefault::list(self.iter().map(|algorithm| algorithm.name()))
    }
}

impl StatesDefault for Duration {
    fn setting_default(&self) -> SettingDefault {
        SettingDefault::Value(self.as_secs().to_string())
    }
}

impl StatesDefault for IndexMemoryBudget {
    fn setting_default(&self) -> SettingDefault {
        SettingDefault::Value(self.mib().to_string())
    }
}

impl StatesDefault for IntrospectionSecret {
    fn setting_default(&self) -> SettingDefault {
        if self.reveal().is_empty() {
            NONE
        } else {
            HIDDEN
        }
    }
}

impl StatesDefault for OtlpHeaders {
    fn setting_default(&self) -> SettingDefault {
        if self.0.is_empty() {
            EMPTY_LIST
        } else {
            HIDDEN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(default: &SettingDefault) -> String {
        default.to_string()
    }

    #[test]
    fn values_are_written_as_in_the_file() {
        assert_eq!(
            text(&vec!["a".to_owned(), "b".to_owned()].setting_default()),
            "a,b"
        );
        assert_eq!(text(&Vec::<String>::new().setting_default()), "[]");
        assert_eq!(text(&String::new().setting_default()), "none");
        assert_eq!(text(&None::<u32>.setting_default()), "none");
        assert_eq!(text(&Duration::from_secs(30).setting_default()), "30");
        assert_eq!(text(&0.0_f32.setting_default()), "0");
        assert_eq!(
            text(&IndexMemoryBudget::of_mib(300).setting_default()),
            "300"
        );
        assert_eq!(
            text(&SettingDefault::choice(&[("a", 1), ("b", 2)], &2)),
            "b"
        );
    }

    #[test]
    fn secrets_are_not_written() {
        let headers = OtlpHeaders(vec![("api-key".to_owned(), "hush".to_owned())]);
        assert_eq!(text(&headers.setting_default()), "hidden");
        assert_eq!(text(&Some("hush").setting_default()), "hidden");
    }
}
