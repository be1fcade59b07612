//! Parsers for the `[engine]` settings of a cluster.

use docent_search::{MAX_ADDRESSES, MAX_COLLECTION_CHARS};

use super::setting_value::{InvalidSetting, SettingValue};

/// Parses the URLs of the nodes. An error does not show them, since one may contain a password by mistake.
pub(super) fn addresses(given: &SettingValue) -> Result<Vec<String>, InvalidSetting> {
    let list = given.list()?;
    let is_address = |text: &String| {
        let url = url::Url::parse(text);
        url.is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.host().is_some()
                && url.username().is_empty()
                && url.password().is_none()
        })
    };
    if list.len() <= MAX_ADDRESSES && list.iter().all(is_address) {
        return Ok(list);
    }
    let hint = "example: `http://qdrant-1:6333`; put the key into `engine.key`";
    Err(SettingValue::Text(String::new()).invalid("is not a list of web addresses", hint))
}

pub(super) fn collection(given: &SettingValue) -> Result<String, InvalidSetting> {
    let name = given.line(MAX_COLLECTION_CHARS)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_plain) {
        return Ok(name);
    }
    Err(given.invalid("is not a name", "use letters, digits, `-` and `_`"))
}

pub(super) fn small_number(given: &SettingValue, most: u64) -> Result<u32, InvalidSetting> {
    let number = given.number(1..=most)?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}
