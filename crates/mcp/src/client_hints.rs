//! Unverified hints of the host about its user (`_meta`), for wording and rate limits.
//!
//! Any client can write them, so they must never decide what somebody may see. The types enforce that: only a
//! [`Caller`](crate::Caller), which the server verified, grants access, no hint converts into one, and a
//! [`Pseudonym`] cannot be constructed, read or compared with a text.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fingerprint::fingerprint;

/// Maximum length of a hint in characters. A longer one is ignored rather than truncated: a pseudonym that was cut
/// could become that of another user, and would then share that user's rate limit.
const MAX_CHARS: usize = 512;

/// Hints of the host about its user, all optional and none verified. Get them from
/// [`Context::client_hints`](crate::Context::client_hints).
///
/// ```rust
/// use docent_mcp::Context;
///
/// fn unit(context: &Context) -> &'static str {
///     let location = context.client_hints().location.unwrap_or_default();
///     match location.country.as_deref() {
///         Some("US") => "feet",
///         _ => "metres",
///     }
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientHints {
    /// The user agent of the program in front of the user, for statistics.
    pub user_agent: Option<String>,
    /// The rough location of the user.
    pub location: Option<UserLocation>,
    /// The user, under a pseudonym of the host.
    pub subject: Option<Pseudonym>,
    /// The conversation, under a pseudonym of the host.
    pub session: Option<Pseudonym>,
    /// The organization of the user, under a pseudonym of the host.
    pub organization: Option<Pseudonym>,
}

/// The rough location of the user, for units, maps and local news.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserLocation {
    /// The name of the city.
    pub city: Option<String>,
    /// The state, province or region.
    pub region: Option<String>,
    /// The country, usually as a two-letter code.
    pub country: Option<String>,
    /// The IANA time zone, such as `Europe/Lisbon`.
    pub timezone: Option<String>,
    /// Longitude in degrees east, from -180 to 180.
    pub longitude: Option<f64>,
    /// Latitude in degrees north, from -90 to 90.
    pub latitude: Option<f64>,
}

/// A pseudonym that the host gives a user, a conversation or an organization. It means nothing to other hosts.
///
/// Equal pseudonyms compare equal, so one can be the key of a counter. The text itself cannot be read:
///
/// ```compile_fail
/// fn may_read(hints: docent_mcp::ClientHints) -> bool {
///     hints.subject.is_some_and(|subject| subject == "v1/the-boss")
/// }
/// ```
///
/// and it does not convert into a caller:
///
/// ```compile_fail
/// fn caller(subject: docent_mcp::Pseudonym) -> docent_mcp::Caller {
///     subject.into()
/// }
/// ```
///
/// What remains is to compare, to hash and to log it:
///
/// ```rust
/// use std::collections::HashMap;
///
/// use docent_mcp::{ClientHints, Pseudonym};
///
/// fn count(calls: &mut HashMap<Pseudonym, u32>, hints: ClientHints) {
///     if let Some(subject) = hints.subject {
///         *calls.entry(subject).or_default() += 1;
///     }
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pseudonym(Box<str>);

impl Pseudonym {
    fn of(value: &Value) -> Option<Self> {
        text(value).map(|name| Self(name.into()))
    }

    /// Returns a hash of sixteen hexadecimal digits for log lines, from which the pseudonym cannot be recovered.
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

/// Extracts the subject alone from an unparsed `_meta`, because the rate limit needs it for every call.
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
        let field = |key: &str| members.get(key).and_then(text);
        let degrees = |key: &str, most: f64| {
            // Some hosts send numbers as strings.
            let value = members.get(key)?;
            let number = value
                .as_f64()
                .or_else(|| value.as_str()?.trim().parse().ok())?;
            Some(number).filter(|number: &f64| number.abs() <= most)
        };
        Self {
            city: field("city"),
            region: field("region"),
            country: field("country"),
            timezone: field("timezone"),
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

    fn hints(meta: &Value) -> ClientHints {
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
            let location = hints(&json!({"openai/userLocation": place}))
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
    fn malformed_hints_are_ignored() {
        let longest = "x".repeat(MAX_CHARS);
        assert!(
            hints(&json!({"openai/userAgent": longest}))
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
            assert_eq!(hints(&meta), ClientHints::default(), "{meta}");
        }
        let odd = json!({"longitude": 181, "latitude": "NaN", "city": ["x"], "country": "inf"});
        let location = hints(&json!({"openai/userLocation": odd}))
            .location
            .unwrap();
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
        let hints = hints(&meta);
        assert_eq!(hints.subject, hints.session);
        assert_ne!(hints.subject, hints.organization);
        assert!(!format!("{hints:?}").contains("secret"));
        assert_eq!(subject(&meta.to_string()), hints.subject);
        assert_eq!(subject(r#"{"openai/subject":7}"#), None);
        assert_eq!(subject("{}"), None);
    }
}
