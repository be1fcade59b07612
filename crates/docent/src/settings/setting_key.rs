//! Definition of a single setting: its names in the file, the environment and on the command line, its default and its
//! setter.

use super::setting_default::SettingDefault;
use super::setting_value::{InvalidSetting, SettingValue};
use super::{PREFIX, Settings};

/// A setting: its key, its flag, its default and the function that parses a value into [`Settings`].
pub struct SettingKey {
    /// Dotted key, as in `docent.toml`.
    pub name: &'static str,
    /// The command-line flag that also sets it, if any.
    pub flag: Option<&'static str>,
    /// Describes the default where it is no fixed value, such as `the folder's name`.
    description: Option<&'static str>,
    get: fn(&Settings) -> SettingDefault,
    pub(super) set: fn(&mut Settings, &SettingValue) -> Result<(), InvalidSetting>,
}

impl SettingKey {
    pub(super) const fn new(
        name: &'static str,
        get: fn(&Settings) -> SettingDefault,
        set: fn(&mut Settings, &SettingValue) -> Result<(), InvalidSetting>,
    ) -> Self {
        Self {
            name,
            flag: None,
            description: None,
            get,
            set,
        }
    }

    pub(super) const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    /// Describes the default in place of the value of the field.
    pub(super) const fn default_description(mut self, text: &'static str) -> Self {
        self.description = Some(text);
        self
    }

    /// The default, from [`Settings::default`].
    #[must_use]
    pub fn default(&self) -> SettingDefault {
        match self.description {
            Some(text) => SettingDefault::Description(text),
            None => (self.get)(&Settings::default()),
        }
    }

    /// Name of the environment variable: `server.listen` is `DOCENT_SERVER_LISTEN`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }
}
