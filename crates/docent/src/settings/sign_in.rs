//! Settings of the built-in sign-in: Docent's own authorization server.

use std::path::PathBuf;

use docent_oauth::ClientSecret;

use super::setting_value::{InvalidSetting, SettingValue};

/// How users authenticate at the built-in sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignInMethod {
    /// There is no built-in sign-in.
    #[default]
    Disabled,
    /// With passwords of the users in `docent user`.
    Password,
    /// At an upstream OpenID provider, which docent federates to.
    Upstream,
}

/// Values of `auth.mode` with their meaning.
pub(super) const SIGN_IN_METHODS: [(&str, SignInMethod); 3] = [
    ("none", SignInMethod::Disabled),
    ("password", SignInMethod::Password),
    ("upstream", SignInMethod::Upstream),
];

/// Settings of the built-in sign-in and its upstream provider.
#[derive(Debug, Clone, Default)]
pub struct SignInSettings {
    /// Authentication method; `Disabled` turns the sign-in off.
    pub method: SignInMethod,
    /// Folder for users, grants and keys, if not the default location.
    pub dir: Option<PathBuf>,
    /// Issuer URL of the upstream provider.
    pub upstream_issuer: Option<String>,
    /// Client id of this server at the provider.
    pub upstream_client_id: Option<String>,
    /// Client secret of this server at the provider.
    pub upstream_client_secret: Option<ClientSecret>,
    /// Hosts in the private network from which client-id metadata documents may be fetched.
    pub client_hosts: Vec<String>,
    /// PEM file with the certificate authorities to trust for those hosts.
    pub client_ca: Option<PathBuf>,
}

/// Parses a secret. An error does not show the value.
pub(super) fn secret(value: &SettingValue) -> Result<ClientSecret, InvalidSetting> {
    let hidden =
        |_| SettingValue::Text(String::new()).invalid("is not a line of text", "write one line");
    value.line(2_000).map(ClientSecret::new).map_err(hidden)
}

/// Parses the issuer URL of the provider, but keeps its exact text.
pub(super) fn issuer(value: &SettingValue) -> Result<String, InvalidSetting> {
    value.web_address()?;
    value.line(512)
}
