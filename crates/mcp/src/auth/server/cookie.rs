//! Cookies that tie a form, or a trip to a provider, to the browser that was given it.

use crate::http::RouteRequest;

/// The most bytes of one that is read.
const MAX_BYTES: usize = 4_096;

/// A cookie of ours. On https its name keeps other hosts of the domain from setting it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowserCookie {
    name: &'static str,
    secure: bool,
}

impl BrowserCookie {
    /// The cookie `name` of a server at this address.
    pub(crate) fn new(name: &'static str, address: &str) -> Self {
        let secure = address.starts_with("https://");
        Self { name, secure }
    }

    fn name(self) -> String {
        let prefix = if self.secure { "__Host-" } else { "" };
        format!("{prefix}{}", self.name)
    }

    /// Its value, if the browser sent exactly one.
    pub(crate) fn read(self, visit: &RouteRequest) -> Option<String> {
        let name = self.name();
        let mut found = visit
            .header("cookie")?
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value);
        let value = found.next().filter(|value| value.len() <= MAX_BYTES)?;
        found.next().is_none().then(|| value.to_owned())
    }

    /// The header that sets it for this many seconds. `Lax`, because a provider sends the browser back from
    /// another site.
    pub(crate) fn set(self, value: &str, seconds: u64) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!(
            "{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}",
            self.name()
        )
    }
}
