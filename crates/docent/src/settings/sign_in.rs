//! How people sign in, where Docent does that itself.

use std::path::PathBuf;

use docent_mcp::sign_in::ClientSecret;

use super::setting_value::{InvalidSetting, SettingValue};

/// Who signs people in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignInMethod {
    /// Nobody here.
    #[default]
    Disabled,
    /// Docent, with passwords of its own.
    Password,
    /// Docent, by way of an OpenID provider.
    Upstream,
}

/// Who signs people in, by the name of it.
pub(super) const BY: [(&str, SignInMethod); 3] = [
    ("none", SignInMethod::Disabled),
    ("password", SignInMethod::Password),
    ("upstream", SignInMethod::Upstream),
];

/// How people sign in.
#[derive(Debug, Clone, Default)]
pub struct SignInSettings {
    /// Who signs them in.
    pub by: SignInMethod,
    /// Where users, grants and keys are kept, if not in the usual place.
    pub dir: Option<PathBuf>,
    /// The provider's address.
    pub upstream_issuer: Option<String>,
    /// The id under which this server is registered there.
    pub upstream_client_id: Option<String>,
    /// Its secret.
    pub upstream_client_secret: Option<ClientSecret>,
    /// Hosts of the owner's own network that may hold documents of clients.
    pub client_hosts: Vec<String>,
    /// A file with the certificates of the authorities that vouch for them.
    pub client_ca: Option<PathBuf>,
}

/// A secret; what is wrong about one is not shown.
pub(super) fn secret(value: &SettingValue) -> Result<ClientSecret, InvalidSetting> {
    let hidden =
        |_| SettingValue::Text(String::new()).invalid("is not a line of text", "write one line");
    value.line(2_000).map(ClientSecret::new).map_err(hidden)
}

/// The address of an issuer, to the letter.
pub(super) fn issuer(value: &SettingValue) -> Result<String, InvalidSetting> {
    value.web_address()?;
    value.line(512)
}
