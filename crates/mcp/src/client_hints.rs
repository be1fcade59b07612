//! What a host tells about the user behind a request: `_meta` members into values for wording and
//! counting.
//!
//! Anyone can write them, so none may decide what somebody is allowed to see. That is in the types:
//! only a [`Caller`](crate::Caller), which the server verified, opens anything, nothing here turns into
//! one, and a [`Pseudonym`] cannot be made, read or compared with a text.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::widget::fingerprint;

/// The longest text that a host may tell; what is longer counts as not told.
const MAX_CHARS: usize = 512;

/// What the host told about the user, each of it only perhaps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientHints {
    /// The program in front of the user, for statistics.
    pub user_agent: Option<String>,
    /// Roughly where the user is.
    pub location: Option<UserLocation>,
    /// The user, by a name that means nothing elsewhere.
    pub subject: Option<Pseudonym>,
    /// The conversation.
    pub session: Option<Pseudonym>,
    /// The user's organization.
    pub organization: Option<Pseudonym>,
}

/// Roughly where the user is, for units, maps and the news of the place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserLocation {
    /// The city.
    pub city: Option<String>,
    /// The state or province.
    pub region: Option<String>,
    /// The country, most often in two letters.
    pub country: Option<String>,
    /// Such as `Europe/Lisbon`.
    pub timezone: Option<String>,
    /// Degrees east, from -180 to 180.
    pub longitude: Option<f64>,
    /// Degrees north, from -90 to 90.
    pub latitude: Option<f64>,
}

/// Somebody or something the host gave a name that means nothing elsewhere.
///
/// Two of one name are equal, so it can be the key of a counter. The name itself stays inside:
///
/// ```compile_fail
/// fn may_read(told: docent_mcp::Told) -> bool {
///     told.subject.is_some_and(|subject| subject == "v1/the-boss")
/// }
/// ```
///
/// and it is no caller:
///
/// ```compile_fail
/// fn caller(subject: docent_mcp::Pseudonym) -> docent_mcp::Caller {
///     subject.into()
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pseudonym(Box<str>);

impl Pseudonym {
    fn of(value: &Value) -> Option<Self> {
        text(value).map(|name| Self(name.into()))
    }

    /// Sixteen letters that stand for it in a log, from which it cannot be read back.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint(self.0.as_bytes(), 8)
    }
}

impl fmt::Debug for Pseudonym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pseudonym({})", self.fingerprint())
    }
}

impl ClientHints {
    pub(crate) fn of<'a>(get: impl Fn(&str) -> Option<&'a Value>) -> Self {
        let name = |key: &str| get(key).and_then(Pseudonym::of);
        Self {
            user_agent: get("openai/userAgent").and_then(text),
            location: get("openai/userLocation")
                .and_then(Value::as_object)
                .map(UserLocation::of),
            subject: name(SUBJECT),
            session: name("openai/session"),
            organization: name("openai/organization"),
        }
    }
}

const SUBJECT: &str = "openai/subject";

/// The subject alone, of a `_meta` that nobody has parsed yet: it is looked at for every call.
pub(crate) fn subject(meta: &str) -> Option<Pseudonym> {
    #[derive(Deserialize)]
    struct SubjectMeta {
        #[serde(rename = "openai/subject")]
        subject: Option<Value>,
    }
    if !meta.contains(SUBJECT) {
        return None;
    }
    let meta: SubjectMeta = serde_json::from_str(meta).ok()?;
    Pseudonym::of(&meta.subject?)
}

impl UserLocation {
    fn of(members: &Map<String, Value>) -> Self {
        let word = |key: &str| members.get(key).and_then(text);
        let degrees = |key: &str, most: f64| {
            // Hosts were seen to send numbers as texts.
            let value = members.get(key)?;
            let number = value
                .as_f64()
                .or_else(|| value.as_str()?.trim().parse().ok())?;
            Some(number).filter(|number: &f64| number.abs() <= most)
        };
        Self {
            city: word("city"),
            region: word("region"),
            country: word("country"),
            timezone: word("timezone"),
            longitude: degrees("longitude", 180.0),
            latitude: degrees("latitude", 90.0),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    let fits = !text.is_empty()
        && text.chars().nth(MAX_CHARS).is_none()
        && !text.contains(char::is_control);
    fits.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(meta: &Value) -> ClientHints {
        ClientHints::of(|key| meta.get(key))
    }

    #[test]
    fn numbers_come_as_numbers_or_as_texts() {
        for (longitude, latitude) in [
            (json!(-9.14), json!(38.7)),
            (json!("-9.14"), json!(" 38.7 ")),
        ] {
            let place = json!({"city": "Lisbon", "region": "Lisboa", "country": "PT",
                "timezone": "Europe/Lisbon", "longitude": longitude, "latitude": latitude});
            let location = told(&json!({"openai/userLocation": place}))
                .location
                .unwrap();
            assert_eq!(
                (location.longitude, location.latitude),
                (Some(-9.14), Some(38.7))
            );
            assert_eq!(location.city.as_deref(), Some("Lisbon"));
            assert_eq!(location.timezone.as_deref(), Some("Europe/Lisbon"));
        }
    }

    #[test]
    fn what_makes_no_sense_was_not_told() {
        let longest = "x".repeat(MAX_CHARS);
        assert!(
            told(&json!({"openai/userAgent": longest}))
                .user_agent
                .is_some()
        );
        for meta in [
            json!({}),
            json!({"openai/userAgent": 1, "openai/subject": {}, "openai/session": ""}),
            json!({"openai/userAgent": format!("{longest}x"), "openai/subject": format!("{longest}x")}),
            json!({"openai/userAgent": "a\nb", "openai/subject": "\u{0}"}),
            json!({"openai/userLocation": "Lisbon"}),
        ] {
            assert_eq!(told(&meta), ClientHints::default(), "{meta}");
        }
        let odd = json!({"longitude": 181, "latitude": "NaN", "city": ["x"], "country": "inf"});
        let location = told(&json!({"openai/userLocation": odd})).location.unwrap();
        assert_eq!(
            location,
            UserLocation {
                country: Some("inf".to_owned()),
                ..UserLocation::default()
            }
        );
    }

    #[test]
    fn a_pseudonym_counts_but_does_not_speak() {
        let meta = json!({"openai/subject": "v1/secret", "openai/session": "v1/secret",
            "openai/organization": "v1/other"});
        let told = told(&meta);
        assert_eq!(told.subject, told.session);
        assert_ne!(told.subject, told.organization);
        assert!(!format!("{told:?}").contains("secret"));
        assert_eq!(subject(&meta.to_string()), told.subject);
        assert_eq!(subject(r#"{"openai/subject":7}"#), None);
        assert_eq!(subject("{}"), None);
    }
}
