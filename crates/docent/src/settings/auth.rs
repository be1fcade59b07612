//! Settings of `[auth]`: trusted issuers, accepted tokens and required scopes.

use std::fmt;
use std::path::PathBuf;

use docent_mcp::SignatureAlgorithm;

use super::setting_value::{InvalidSetting, SettingValue};

/// Client secret for token introspection. `Debug` redacts it, so that no message and no log shows it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct IntrospectionSecret(String);

impl IntrospectionSecret {
    /// Exposes the secret, for the introspection client.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IntrospectionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Authentication settings: which access tokens are accepted, and what callers must have been granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthSettings {
    /// Trusted external issuers, exactly as in the `iss` claim.
    pub issuers: Vec<String>,
    /// Whether every caller must sign in.
    pub required: bool,
    /// Scopes that a caller must have been granted.
    pub scopes: Vec<String>,
    /// Additional audiences to accept in tokens.
    pub audiences: Vec<String>,
    /// Accepted signature algorithms.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// Whether tokens must have the type `at+jwt` (RFC 9068).
    pub access_tokens_only: bool,
    /// Whether issuers may be in a private network, which SSRF protection blocks otherwise.
    pub private_network: bool,
    /// PEM file with the certificate authorities to trust for issuers and providers.
    pub issuer_ca: Option<PathBuf>,
    /// Introspection endpoint for opaque tokens.
    pub introspection: IntrospectionSettings,
    /// Whether API keys alone turn authentication on.
    pub api_keys: bool,
    /// Lifetime of signed page links, in days.
    pub link_days: u64,
}

/// Settings of token introspection (RFC 7662), for opaque tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntrospectionSettings {
    /// URL of the introspection endpoint.
    pub url: Option<String>,
    /// Exact name of the issuer behind the endpoint.
    pub issuer: Option<String>,
    /// Client id of this server at the issuer.
    pub client_id: String,
    /// Client secret of this server at the issuer.
    pub client_secret: IntrospectionSecret,
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self {
            issuers: Vec::new(),
            required: true,
            scopes: vec!["docs.read".to_owned()],
            audiences: Vec::new(),
            algorithms: SignatureAlgorithm::USUAL.to_vec(),
            access_tokens_only: false,
            private_network: false,
            issuer_ca: None,
            introspection: IntrospectionSettings::default(),
            api_keys: false,
            link_days: 7,
        }
    }
}

impl AuthSettings {
    /// Whether these settings turn authentication on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.issuers.is_empty() || self.introspection.url.is_some() || self.api_keys
    }
}

/// Parses an https or http URL but keeps its exact text, because issuer names are compared byte by byte.
pub(super) fn address(value: &SettingValue) -> Result<String, InvalidSetting> {
    value.web_address()?;
    let name = value.line(512)?;
    if name.contains(char::is_whitespace) {
        return Err(value.invalid("is not an address", "example: `https://login.example.org`"));
    }
    Ok(name)
}

pub(super) fn issuers(value: &SettingValue) -> Result<Vec<String>, InvalidSetting> {
    let names = value.list()?;
    for name in &names {
        address(&SettingValue::Text(name.clone()))?;
    }
    Ok(names)
}

pub(super) fn algorithms(value: &SettingValue) -> Result<Vec<SignatureAlgorithm>, InvalidSetting> {
    let names = value.list()?;
    let found: Option<Vec<_>> = names
        .iter()
        .map(|name| SignatureAlgorithm::parse(name))
        .collect();
    found.filter(|list| !list.is_empty()).ok_or_else(|| {
        value.invalid(
            "is not a list of algorithms",
            "known are `RS256`, `RS384`, `RS512`, `PS256`, `ES256`, `ES384`, `EdDSA`",
        )
    })
}

/// Parses a secret. An error does not show the value.
pub(super) fn secret(value: &SettingValue) -> Result<IntrospectionSecret, InvalidSetting> {
    let hidden =
        |_| SettingValue::Text(String::new()).invalid("is not a line of text", "write one line");
    value.line(2_000).map(IntrospectionSecret).map_err(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> SettingValue {
        SettingValue::Text(text.to_owned())
    }

    #[test]
    fn issuers_are_kept_to_the_letter() {
        let given = text("https://a.example/, https://b.example/t/1");
        assert_eq!(
            issuers(&given).unwrap(),
            ["https://a.example/", "https://b.example/t/1"]
        );
        assert!(issuers(&text("https://a.example, a.example")).is_err());
        assert!(issuers(&text("https://a.example/x y")).is_err());
    }

    #[test]
    fn only_known_algorithms_with_public_keys_are_taken() {
        let given = text("ES256,EdDSA");
        assert_eq!(
            algorithms(&given).unwrap(),
            [SignatureAlgorithm::Es256, SignatureAlgorithm::EdDsa]
        );
        for bad in ["", "HS256", "none", "ES256,es256"] {
            assert!(algorithms(&text(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let found = secret(&text("hush-hush")).unwrap();
        assert_eq!(found.reveal(), "hush-hush");
        assert_eq!(format!("{found:?}"), "Secret(…)");
        let wrong = secret(&text("hush\u{7}hush")).unwrap_err();
        assert!(!format!("{wrong:?}").contains("hush"));
    }

    #[test]
    fn sign_in_is_on_when_somebody_could_sign_in() {
        assert!(!AuthSettings::default().is_on());
        let auth = AuthSettings {
            api_keys: true,
            ..AuthSettings::default()
        };
        assert!(auth.is_on());
        let mut auth = AuthSettings::default();
        auth.issuers.push("https://a.example".to_owned());
        assert!(auth.is_on());
        let mut auth = AuthSettings::default();
        auth.introspection.url = Some("https://a.example".to_owned());
        assert!(auth.is_on());
    }
}
