//! OAuth client metadata (RFC 7591): validates it into an [`OAuthClient`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::redirect;

/// The maximum length of a client's display name in characters.
const MAX_NAME: usize = 80;

/// A public client (RFC 6749, section 2.1). It has no secret; its redirect URIs are all that identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OAuthClient {
    pub(crate) id: String,
    /// The display name, sanitized for the consent page.
    pub(crate) name: String,
    pub(crate) redirects: Vec<String>,
    /// Whether the client gets refresh tokens.
    pub(crate) refreshes: bool,
}

impl OAuthClient {
    /// True if `requested` is a redirect URI of the client. The URI is validated again, because an older
    /// version may have accepted more at registration.
    pub(crate) fn allows_redirect(&self, requested: &str) -> bool {
        let registered = |known: &String| redirect::matches(known, requested);
        redirect::is_acceptable(requested) && self.redirects.iter().any(registered)
    }

    /// True if the client id is the URL of a client ID metadata document.
    pub(crate) fn has_document(&self) -> bool {
        is_document_url(&self.id)
    }
}

/// True for a client id that is the URL of a metadata document.
pub(crate) fn is_document_url(id: &str) -> bool {
    id.starts_with("https://")
}

/// Client metadata from a registration request or a metadata document; unknown members are ignored.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ClientMetadata {
    pub(crate) client_id: Option<String>,
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    token_endpoint_auth_method: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    client_secret: Option<Value>,
    client_secret_expires_at: Option<Value>,
}

/// Why client metadata is refused; the text follows the words "the client" in the error description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientMetadataError(pub(crate) &'static str);

impl ClientMetadata {
    pub(crate) const fn has_secret(&self) -> bool {
        self.client_secret.is_some() || self.client_secret_expires_at.is_some()
    }

    /// Validates the metadata of a client that must be able to do without a secret: `none` has to be among
    /// its authentication methods.
    pub(crate) fn into_public_client(self, id: &str) -> Result<OAuthClient, ClientMetadataError> {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        let plain = match (methods, self.token_endpoint_auth_method.as_deref()) {
            (Some(all), _) => all.iter().any(|method| method == "none"),
            (None, method) => matches!(method, None | Some("none")),
        };
        if !plain {
            return Err(ClientMetadataError(
                "cannot do without a secret: `token_endpoint_auth_method` must be `none`",
            ));
        }
        self.into_client(id)
    }

    /// Validates the metadata whatever authentication method it asks for; a registration response tells the
    /// client that it is `none`.
    pub(crate) fn into_client(self, id: &str) -> Result<OAuthClient, ClientMetadataError> {
        let lists = |list: &Option<Vec<String>>, value: &str| {
            list.as_ref().map(|list| list.iter().any(|v| v == value))
        };
        if lists(&self.response_types, "code") == Some(false) {
            return Err(ClientMetadataError(
                "does not use codes: `response_types` must hold `code`",
            ));
        }
        if lists(&self.grant_types, "authorization_code") == Some(false) {
            return Err(ClientMetadataError(
                "does not use codes: `grant_types` must hold `authorization_code`",
            ));
        }
        if self.redirect_uris.is_empty() || self.redirect_uris.len() > redirect::MAX_URIS {
            return Err(ClientMetadataError(
                "has no `redirect_uris`, or more than 20",
            ));
        }
        let bytes: usize = self.redirect_uris.iter().map(String::len).sum();
        if bytes > redirect::MAX_TOTAL_BYTES {
            return Err(ClientMetadataError(
                "has more than 4 KiB of `redirect_uris`",
            ));
        }
        if !self
            .redirect_uris
            .iter()
            .all(|uri| redirect::is_acceptable(uri))
        {
            return Err(ClientMetadataError(
                "has a redirect uri that is neither https, nor http on the user's machine, nor a program's scheme that is \
                 named after a domain, such as `com.example.app:/callback`",
            ));
        }
        Ok(OAuthClient {
            id: id.to_owned(),
            name: self
                .client_name
                .as_deref()
                .map(display_name)
                .unwrap_or_default(),
            redirects: self.redirect_uris,
            refreshes: lists(&self.grant_types, "refresh_token").unwrap_or(true),
        })
    }
}

/// Sanitizes a display name: one line of visible characters, shortened to the limit.
fn display_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control())
        .collect();
    let plain = docent_unicode::visible(&plain);
    let mut words = plain.split(' ').filter(|word| !word.is_empty());
    let mut line = words.next().unwrap_or_default().to_owned();
    for word in words {
        line.push(' ');
        line.push_str(word);
    }
    if line.chars().nth(MAX_NAME).is_some() {
        line = docent_unicode::ellipsize(&line, MAX_NAME - 1).into_owned();
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(value: Value) -> ClientMetadata {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn names_are_one_short_visible_line() {
        for (name, expected) in [
            ("ChatGPT", "ChatGPT"),
            ("  a \n\t b ", "a b"),
            ("safe\u{202E}live", "safelive"),
            ("Zoë 海", "Zoë 海"),
            ("\u{200B}", ""),
            ("\u{2800}\u{3164}\u{FFA0}", ""),
            ("Chat\u{115F}GPT\u{E0041}", "ChatGPT"),
            ("کتاب\u{200C}خانه", "کتاب\u{200C}خانه"),
        ] {
            assert_eq!(display_name(name), expected);
        }
        assert_eq!(display_name(&"a".repeat(MAX_NAME)), "a".repeat(MAX_NAME));
        let long = display_name(&"a".repeat(MAX_NAME + 1));
        assert_eq!(long.chars().count(), MAX_NAME);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn redirect_schemes_that_an_older_version_registered_are_rejected() {
        let client = OAuthClient {
            id: "x".to_owned(),
            name: String::new(),
            redirects: [
                "https://a.example/cb",
                "ms-msdt:/id",
                "intent:x",
                "cursor://file/a",
            ]
            .map(str::to_owned)
            .to_vec(),
            refreshes: true,
        };
        assert!(client.allows_redirect("https://a.example/cb"));
        for bad in ["ms-msdt:/id", "intent:x", "cursor://file/a"] {
            assert!(!client.allows_redirect(bad), "{bad}");
        }
    }

    #[test]
    fn addresses_have_a_bound() {
        let with = |count: usize| {
            let uris = vec!["https://a.example/cb"; count];
            metadata(json!({ "redirect_uris": uris })).into_public_client("x")
        };
        assert!(with(redirect::MAX_URIS).is_ok());
        assert!(with(redirect::MAX_URIS + 1).is_err());
        assert!(with(0).is_err());
        // The total length is limited too, well below that of as many URIs of the maximum length.
        let of = |total: usize| {
            let uri = |bytes: usize| format!("https://a.example/{}", "a".repeat(bytes - 18));
            let uris = [uri(2_000), uri(2_000), uri(total - 4_000)];
            metadata(json!({ "redirect_uris": uris })).into_public_client("x")
        };
        assert!(of(redirect::MAX_TOTAL_BYTES).is_ok());
        assert!(of(redirect::MAX_TOTAL_BYTES + 1).is_err());
    }

    #[test]
    fn a_client_must_be_able_to_do_without_a_secret() {
        let with = |one: Value, all: Value| {
            metadata(json!({
                "redirect_uris": ["https://a.example/cb"],
                "token_endpoint_auth_method": one, "token_endpoint_auth_methods_supported": all,
            }))
            .into_public_client("x")
            .is_ok()
        };
        let (none, basic) = (json!("none"), json!("client_secret_basic"));
        for (one, all, taken) in [
            (json!(null), json!(null), true),
            (none.clone(), json!(null), true),
            (basic.clone(), json!(null), false),
            (basic.clone(), json!(["none"]), true),
            (none.clone(), json!(["client_secret_basic"]), false),
            (none, json!([]), false),
        ] {
            assert_eq!(with(one.clone(), all.clone()), taken, "{one} {all}");
        }
    }

    #[test]
    fn refresh_tokens_are_for_those_who_want_them() {
        let with = |grants: Value| {
            metadata(json!({"redirect_uris": ["https://a.example/cb"], "grant_types": grants}))
                .into_public_client("x")
                .map(|client| client.refreshes)
        };
        assert_eq!(
            with(json!(["authorization_code", "refresh_token"])),
            Ok(true)
        );
        assert_eq!(with(json!(["authorization_code"])), Ok(false));
        assert_eq!(with(json!(null)), Ok(true));
        assert!(with(json!(["implicit"])).is_err());
    }
}
