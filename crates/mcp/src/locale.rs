//! Language negotiation: matches the user's language to one of the app's, by the lookup of RFC 4647.

use std::sync::Arc;

use serde_json::Value;

use crate::error::BuildError;

/// `_meta` keys of the user's language in ChatGPT: the current one, and the one of its first year.
pub(crate) const LOCALE: &str = "openai/locale";
const OLD_LOCALE: &str = "webplus/i18n";

/// Maximum length of a language tag. RFC 5646 requires room for 35 characters.
const MAX_TAG: usize = 64;

/// The languages of an app. The first is the fallback.
#[derive(Debug, Clone)]
pub(crate) struct AppLocales(Arc<[String]>);

impl Default for AppLocales {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl AppLocales {
    pub(crate) fn new(tags: Vec<String>) -> Result<Self, BuildError> {
        match tags.iter().find(|tag| !is_tag(tag)) {
            Some(bad) => Err(BuildError::Locale(bad.clone())),
            None => Ok(Self(tags.into())),
        }
    }

    /// Returns the app's language for a request; `None` for an app without a list.
    pub(crate) fn pick<'a>(&self, get: impl Fn(&str) -> Option<&'a Value>) -> Option<&str> {
        let default = self.0.first()?;
        let best = requested_locale(get).and_then(|range| lookup(&range, &self.0));
        Some(best.unwrap_or(default))
    }
}

/// Returns the requested language as a tag.
pub(crate) fn requested_locale<'a>(get: impl Fn(&str) -> Option<&'a Value>) -> Option<String> {
    let value = get(LOCALE).or_else(|| get(OLD_LOCALE))?;
    // Some systems write `en_US` instead of `en-US`.
    let tag = value.as_str()?.trim().replace('_', "-");
    is_tag(&tag).then_some(tag)
}

fn is_tag(tag: &str) -> bool {
    let is_part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    tag.len() <= MAX_TAG && tag.split('-').all(is_part)
}

/// Finds the best tag for a language range: the range itself, then ever shorter prefixes of it.
fn lookup<'a>(range: &str, tags: &'a [String]) -> Option<&'a str> {
    let mut range = range;
    loop {
        if let Some(found) = tags.iter().find(|tag| tag.eq_ignore_ascii_case(range)) {
            return Some(found);
        }
        let (shorter, _) = range.rsplit_once('-')?;
        // A single letter only introduces the subtag after it, so it is removed too.
        range = match shorter.rsplit_once('-') {
            Some((before, letter)) if letter.len() == 1 => before,
            _ => shorter,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn picked(locales: &[&str], meta: &Value) -> Option<String> {
        let locales = AppLocales::new(locales.iter().map(|&tag| tag.to_owned()).collect()).unwrap();
        locales.pick(|key| meta.get(key)).map(str::to_owned)
    }

    #[test]
    fn lookup_shortens_from_the_right() {
        let ours = ["en", "de", "fr-CA", "zh-Hant", "zh", "x-klingon"];
        for (requested, expected) in [
            ("en-GB", "en"),
            ("EN-us", "en"),
            ("de_AT", "de"),
            ("fr-CA", "fr-CA"),
            ("fr-FR", "en"),
            ("fr", "en"),
            ("zh-Hant-TW", "zh-Hant"),
            ("zh-Hant-CN-x-private1-private2", "zh-Hant"),
            ("zh-CN", "zh"),
            ("de-a-b-c", "de"),
            ("x-klingon", "x-klingon"),
            ("ja", "en"),
            ("*", "en"),
            ("", "en"),
            ("en--", "en"),
        ] {
            let meta = json!({"openai/locale": requested});
            assert_eq!(
                picked(&ours, &meta).as_deref(),
                Some(expected),
                "{requested}"
            );
            let old = json!({"webplus/i18n": requested});
            assert_eq!(
                picked(&ours, &old).as_deref(),
                Some(expected),
                "{requested}"
            );
        }
        for meta in [
            json!({}),
            json!({"openai/locale": 5}),
            json!({"openai/locale": "de-".repeat(40)}),
        ] {
            assert_eq!(picked(&ours, &meta).as_deref(), Some("en"));
        }
        assert_eq!(picked(&[], &json!({"openai/locale": "en"})), None);
    }

    #[test]
    fn a_language_nobody_can_ask_for_does_not_build() {
        for bad in ["", "en_US", "englishlanguage", "de-", &"a-".repeat(40)] {
            let error = AppLocales::new(vec![bad.to_owned()]).err();
            assert_eq!(error, Some(BuildError::Locale(bad.to_owned())));
        }
    }
}
