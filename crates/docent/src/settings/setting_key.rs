//! One setting: what it is called everywhere, and how a value gets into [`Settings`].

use super::setting_value::{InvalidSetting, SettingValue};
use super::{PREFIX, Settings};

/// One setting: its name, its flag and how a value gets into [`Settings`].
pub struct SettingKey {
    /// The dotted name, as in `docent.toml`.
    pub name: &'static str,
    /// The flag that sets it too.
    pub flag: Option<&'static str>,
    /// What it is without being set, as the documentation writes it.
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

    /// The name in the environment: `server.listen` is `DOCENT_SERVER_LISTEN`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('.', "_").to_uppercase())
    }
}
