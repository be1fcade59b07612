//! The authenticated identity behind a request.

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The maximum number of values of one claim. Providers truncate lists of groups at 200. A longer list
/// counts as absent, because a part of it would be a guess.
pub(crate) const MAX_VALUES: usize = 1_000;
/// The maximum size of one claim value; a longer value counts as absent. No group, name or address is that long, and
/// truncating instead could turn a long value into another that exists and grants more.
pub(crate) const MAX_VALUE_BYTES: usize = 1_024;
/// The maximum nesting of a dotted claim name such as `realm_access.roles`. Keycloak nests roles up to three deep,
/// other providers less. A claim is looked up for every request, so the walk through a token has to end.
const MAX_DEPTH: usize = 4;
/// The pseudo-issuer of callers that authenticate with an API key; no real issuer may have this name.
pub(crate) const API_KEY_ISSUER: &str = "key";

/// The verified identity behind a request. A tool receives one with every call and cannot create one, so
/// that no path to data bypasses this module.
///
/// There are three kinds: anonymous (a server without authentication, or one that makes it optional), the
/// owner (who started the program and talks to it over stdio), and an identity verified by an issuer or an
/// API key.
///
/// ```rust
/// use docent_mcp::{Caller, Failure};
///
/// fn check_editor(caller: &Caller) -> Result<(), Failure> {
///     let is_editor = caller.claim("groups").iter().any(|group| group == "editors");
///     if caller.is_owner() || is_editor {
///         return Ok(());
///     }
///     Err(Failure::refused("only editors may do this"))
/// }
/// # let _ = check_editor;
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Caller(CallerKind);

#[derive(Clone, PartialEq, Eq)]
enum CallerKind {
    Anonymous,
    Owner,
    Known(Arc<VerifiedIdentity>),
}

/// The claims of a verified identity, and its `key` for caches and rate limits.
#[derive(PartialEq, Eq)]
pub(crate) struct VerifiedIdentity {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    pub(crate) client: Option<String>,
    pub(crate) scopes: BTreeSet<String>,
    pub(crate) claims: Map<String, Value>,
    pub(crate) key: String,
}

impl Caller {
    /// The caller of a server without authentication, or one that sent no credential.
    pub(crate) const fn anonymous() -> Self {
        Self(CallerKind::Anonymous)
    }

    /// The person who started the program over stdio, and who can read the files anyway.
    pub(crate) const fn owner() -> Self {
        Self(CallerKind::Owner)
    }

    /// An identity that `issuer` has verified.
    pub(crate) fn verified(
        issuer: &str,
        subject: &str,
        client: Option<String>,
        scopes: BTreeSet<String>,
        claims: Map<String, Value>,
    ) -> Self {
        Self(CallerKind::Known(Arc::new(VerifiedIdentity {
            key: key(issuer, subject),
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            client,
            scopes,
            claims,
        })))
    }

    fn get(&self) -> Option<&VerifiedIdentity> {
        match &self.0 {
            CallerKind::Known(known) => Some(known),
            CallerKind::Anonymous | CallerKind::Owner => None,
        }
    }

    /// True when the caller is not authenticated.
    #[must_use]
    pub const fn is_anonymous(&self) -> bool {
        matches!(self.0, CallerKind::Anonymous)
    }

    /// True for the person who started the program and talks to it over stdio.
    #[must_use]
    pub const fn is_owner(&self) -> bool {
        matches!(self.0, CallerKind::Owner)
    }

    /// The issuer that identified the caller, by its exact name, or `key` for an API key.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        self.get().map(|known| known.issuer.as_str())
    }

    /// True when the caller used an API key. Its subject is a name that the operator chose, not an
    /// issuer's.
    #[must_use]
    pub fn is_api_key(&self) -> bool {
        self.issuer() == Some(API_KEY_ISSUER)
    }

    /// The caller's subject (`sub`). It is unique only within its issuer.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.get().map(|known| known.subject.as_str())
    }

    /// The OAuth client that the caller uses, by its client id at the issuer.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.get().and_then(|known| known.client.as_deref())
    }

    /// The granted scopes, in alphabetical order. The owner has none and needs none.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.get()
            .into_iter()
            .flat_map(|known| known.scopes.iter().map(String::as_str))
    }

    /// True when exactly this scope was granted. The owner has every scope.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.is_owner() || self.get().is_some_and(|known| known.scopes.contains(scope))
    }

    /// The values of a claim such as `groups` or `email`. A string, number or boolean gives one value, a
    /// list of those gives many, and anything else none. `a.b` is looked up as a claim of that whole name
    /// first, then as `b` inside the claim `a`.
    #[must_use]
    pub fn claim(&self, name: &str) -> Vec<String> {
        self.get()
            .map(|known| values_of_claim(&known.claims, name))
            .unwrap_or_default()
    }

    /// A stable pseudonym of the caller, `None` for an anonymous one and for the owner. It is a hash, so
    /// that it can stand in logs and cache keys where a person's name must not.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.get().map(|known| known.key.as_str())
    }
}

/// Names and claims are personal data, so `Debug` output shows only the pseudonym.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            CallerKind::Anonymous => f.write_str("Caller(anonymous)"),
            CallerKind::Owner => f.write_str("Caller(owner)"),
            CallerKind::Known(known) => write!(f, "Caller({})", known.key),
        }
    }
}

/// The pseudonym: a truncated SHA-256 over issuer and subject. The length prefix keeps pairs apart whose
/// concatenations are equal.
fn key(issuer: &str, subject: &str) -> String {
    let mut hash = Sha256::new();
    hash.update((issuer.len() as u64).to_be_bytes());
    hash.update(issuer);
    hash.update(subject);
    let mut text = String::with_capacity(32);
    for byte in hash.finalize().iter().take(16) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The values of a claim, as [`Caller::claim`] returns them.
///
/// ```rust
/// use docent_mcp::oauth::values_of_claim;
///
/// let claims = serde_json::json!({"realm_access": {"roles": ["crew"]}, "level": 3});
/// let claims = claims.as_object().cloned().unwrap_or_default();
/// assert_eq!(values_of_claim(&claims, "realm_access.roles"), ["crew"]);
/// assert_eq!(values_of_claim(&claims, "level"), ["3"]);
/// ```
#[must_use]
pub fn values_of_claim(claims: &Map<String, Value>, name: &str) -> Vec<String> {
    let found = claims.get(name).or_else(|| nested_claim(claims, name));
    found.and_then(claim_values).unwrap_or_default()
}

fn nested_claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut steps = name.splitn(MAX_DEPTH, '.');
    let first = claims.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.as_object()?.get(step))
}

fn claim_values(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) if items.len() <= MAX_VALUES => items.iter().map(text).collect(),
        Value::Array(_) => None,
        single => Some(vec![text(single)?]),
    }
}

fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    (text.len() <= MAX_VALUE_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn caller(claims: Value) -> Caller {
        let scopes = ["docs.read", "docs.write"].map(str::to_owned).into();
        let Value::Object(claims) = claims else {
            panic!("claims are an object")
        };
        Caller::verified(
            "https://a.example",
            "u1",
            Some("c1".to_owned()),
            scopes,
            claims,
        )
    }

    #[test]
    fn somebody_known_has_names_and_scopes() {
        let caller = caller(json!({}));
        assert_eq!(caller.issuer(), Some("https://a.example"));
        assert_eq!(caller.subject(), Some("u1"));
        assert_eq!(caller.client(), Some("c1"));
        assert_eq!(
            caller.scopes().collect::<Vec<_>>(),
            ["docs.read", "docs.write"]
        );
        assert!(caller.has_scope("docs.read"));
        for other in ["docs", "docs.rea", "docs.read2", "DOCS.READ", ""] {
            assert!(!caller.has_scope(other), "{other}");
        }
        assert!(!caller.is_anonymous() && !caller.is_owner());
    }

    #[test]
    fn an_anonymous_caller_has_no_scope_and_the_owner_every_scope() {
        for (caller, owner) in [(Caller::anonymous(), false), (Caller::owner(), true)] {
            assert_eq!(caller.issuer(), None);
            assert_eq!(caller.subject(), None);
            assert_eq!(caller.client(), None);
            assert_eq!(caller.key(), None);
            assert_eq!(caller.scopes().count(), 0);
            assert!(caller.claim("groups").is_empty());
            assert_eq!(caller.has_scope("docs.read"), owner);
            assert_eq!(caller.is_owner(), owner);
            assert_eq!(caller.is_anonymous(), !owner);
            assert!(!caller.is_api_key());
        }
    }

    #[test]
    fn an_api_key_is_told_from_an_issuer() {
        let of = |issuer| Caller::verified(issuer, "u1", None, BTreeSet::new(), Map::new());
        assert!(of("key").is_api_key());
        assert!(!of("https://a.example").is_api_key() && !of("Key").is_api_key());
    }

    #[test]
    fn claims_are_texts_numbers_truths_and_lists_of_them() {
        let caller = caller(json!({
            "email": "a@example.org", "level": 3, "staff": true, "groups": ["a", 1, false],
            "realm": {"roles": ["r1"], "deep": {"er": {"still": "x"}}}, "flat.name": "flat", "flat": {"name": "no"},
            "null": null, "mixed": ["a", {"b": 1}], "object": {"a": 1},
        }));
        let cases: [(&str, &[&str]); 13] = [
            ("email", &["a@example.org"]),
            ("level", &["3"]),
            ("staff", &["true"]),
            ("groups", &["a", "1", "false"]),
            ("realm.roles", &["r1"]),
            ("realm.deep.er", &[]),
            ("realm.deep.er.still", &["x"]),
            ("flat.name", &["flat"]),
            ("null", &[]),
            ("mixed", &[]),
            ("object", &[]),
            ("absent", &[]),
            ("email.x", &[]),
        ];
        for (name, expected) in cases {
            assert_eq!(caller.claim(name), expected, "{name}");
        }
    }

    #[test]
    fn claims_have_bounds() {
        let list = |count: usize| caller(json!({"g": vec!["x"; count]})).claim("g").len();
        assert_eq!(list(MAX_VALUES), MAX_VALUES);
        assert_eq!(list(MAX_VALUES + 1), 0);
        let long = |bytes: usize| caller(json!({"g": "x".repeat(bytes)})).claim("g").len();
        assert_eq!(long(MAX_VALUE_BYTES), 1);
        assert_eq!(long(MAX_VALUE_BYTES + 1), 0);
        let deep = json!({"a": {"b": {"c": {"d": {"e": "x"}}}}});
        assert!(caller(deep).claim("a.b.c.d.e").is_empty());
    }

    #[test]
    fn keys_tell_pairs_apart_and_names_stay_out_of_logs() {
        let of = |issuer: &str, subject: &str| {
            let caller = Caller::verified(issuer, subject, None, BTreeSet::new(), Map::new());
            caller.key().unwrap().to_owned()
        };
        assert_eq!(of("a", "b"), of("a", "b"));
        assert_eq!(of("a", "b").len(), 32);
        let keys: BTreeSet<_> = [("a", "b"), ("a", "c"), ("c", "b"), ("ab", ""), ("", "ab")]
            .map(|(issuer, subject)| of(issuer, subject))
            .into();
        assert_eq!(keys.len(), 5);
        let shown = format!("{:?}", caller(json!({"email": "a@example.org"})));
        assert_eq!(shown, format!("Caller({})", of("https://a.example", "u1")));
        assert_eq!(format!("{:?}", Caller::anonymous()), "Caller(anonymous)");
        assert_eq!(format!("{:?}", Caller::owner()), "Caller(owner)");
    }
}
