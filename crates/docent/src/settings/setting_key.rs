//! Definition of a single setting: its names in the file, the environment and on the command line, and its setter.

use super::setting_value::{InvalidSetting, SettingValue};
use super::{PREFIX, Settings};

/// A setting: its key, its flag, its documented default and the function that parses a value into [`Settings`].
pub struct SettingKey {
    /// Dotted key, as in `docent.toml`.
    pub name: &'static str,
    /// The command-line flag that also sets it, if any.
    pub flag: Option<&'static str>,
    /// The default, as the documentation writes it; a test compares it with [`Settings::default`].
    pub default: &'static str,
    pub(super) set: fn(&mut Settings, &SettingValue) -> Result<(), InvalidSetting>,
}

impl SettingKey {
    pub(super) const fn new(
        name: &'static str,
        default: &'static str,
        set: fn(&mut Settings, &SettingValue) -> Result<(), InvalidSetting>,
    ) -> Self {
        Self {
            name,
            flag: None,
            default,
            set,
        }
    }

    pub(super) const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    /// Name of the environment variable: `server.listen` is `DOCENT_SERVER_LISTEN`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }
}
