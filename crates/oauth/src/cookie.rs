//! Cookies that bind a form or an upstream login to the browser that started it, against login CSRF.

use docent_mcp::http::RouteRequest;

/// The maximum length of a cookie's value.
const MAX_BYTES: usize = 4_096;

/// A cookie of this server. On https its `__Host-` prefix keeps other hosts of the domain from setting it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowserCookie {
    name: &'static str,
    secure: bool,
}

impl BrowserCookie {
    /// The cookie `name` for a server with this base URL.
    pub(crate) fn new(name: &'static str, address: &str) -> Self {
        let secure = address.starts_with("https://");
        Self { name, secure }
    }

    fn name(self) -> String {
        let prefix = if self.secure { "__Host-" } else { "" };
        format!("{prefix}{}", self.name)
    }

    /// The cookie's value, if the browser sent exactly one.
    pub(crate) fn read(self, request: &RouteRequest) -> Option<String> {
        let name = self.name();
        let mut found = request
            .header("cookie")?
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value);
        let value = found.next().filter(|value| value.len() <= MAX_BYTES)?;
        found.next().is_none().then(|| value.to_owned())
    }

    /// The `Set-Cookie` value with a lifetime in seconds. `SameSite=Lax`, because the provider's redirect
    /// comes from another site.
    pub(crate) fn set(self, value: &str, seconds: u64) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!(
            "{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}",
            self.name()
        )
    }
}
