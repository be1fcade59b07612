//! Parsing of `Host` and `Origin` into values that compare unambiguously.
//!
//! Nothing is allocated per request: the text is borrowed, and compared case-insensitively.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A host name or address, borrowed from a request or owned by a rule.
#[derive(Debug, Clone, Copy)]
enum HostName<S> {
    Name(S),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl<S: AsRef<str>> HostName<S> {
    fn is<T: AsRef<str>>(&self, other: &HostName<T>) -> bool {
        match (self, other) {
            (Self::Name(a), HostName::Name(b)) => a.as_ref().eq_ignore_ascii_case(b.as_ref()),
            (Self::V4(a), HostName::V4(b)) => a == b,
            (Self::V6(a), HostName::V6(b)) => a == b,
            _ => false,
        }
    }
}

impl HostName<&str> {
    fn to_owned(self) -> HostName<String> {
        match self {
            Self::Name(name) => HostName::Name(name.to_owned()),
            Self::V4(address) => HostName::V4(address),
            Self::V6(address) => HostName::V6(address),
        }
    }
}

/// A host with an optional port, as a request contains it.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostAuthority<'a> {
    host: HostName<&'a str>,
    port: Option<u16>,
}

impl PartialEq for HostAuthority<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.host.is(&other.host) && self.port == other.port
    }
}

impl<'a> HostAuthority<'a> {
    /// Parses `name`, `name:port`, `1.2.3.4:port` or `[::1]:port`, and nothing else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(inside) => {
                let (address, port) = inside.split_once(']')?;
                (HostName::V6(address.parse().ok()?), port)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (name, port) = text.split_at(end);
                let host = match name.parse() {
                    Ok(address) => HostName::V4(address),
                    Err(_) if is_name(name) => HostName::Name(name),
                    Err(_) => return None,
                };
                (host, port)
            }
        };
        let port = if port.is_empty() {
            None
        } else {
            Some(parse_port(port)?)
        };
        Some(Self { host, port })
    }

    /// Whether the host is a form that no honest client sends: another spelling of an address, the unspecified
    /// address, or a name with a trailing dot, which browsers treat as a different site.
    pub(super) fn is_disguised(&self) -> bool {
        match self.host {
            HostName::Name(name) => name.ends_with('.') || is_number(name.rsplit('.').next()),
            HostName::V4(address) => address.is_unspecified(),
            HostName::V6(address) => address.is_unspecified() || address.to_ipv4_mapped().is_some(),
        }
    }
}

impl fmt::Display for HostAuthority<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            HostName::Name(name) => f.write_str(name)?,
            HostName::V4(address) => write!(f, "{address}")?,
            HostName::V6(address) => write!(f, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(':')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| plain && *port != 0)
}

/// Maximum length of a DNS name in bytes.
const NAME_BYTES: usize = 253;

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let relative = text.strip_suffix('.').unwrap_or(text);
    text.len() <= NAME_BYTES && relative.split('.').all(is_label)
}

/// Whether the last label of a name is a number. Browsers parse such names as IPv4 addresses: `127.1`, `0x7f000001`.
fn is_number(last: Option<&str>) -> bool {
    last.is_some_and(|last| {
        let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
        match hexadecimal {
            Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
            None => last.bytes().all(|byte| byte.is_ascii_digit()),
        }
    })
}

/// An entry of the host allowlist.
#[derive(Debug, Clone)]
pub(super) struct HostRule {
    host: HostName<String>,
    port: Option<u16>,
}

impl HostRule {
    /// Parses an entry of the host allowlist.
    pub(super) fn parse(entry: &str) -> Option<Self> {
        let authority =
            HostAuthority::parse(entry).filter(|authority| !authority.is_disguised())?;
        Some(Self {
            host: authority.host.to_owned(),
            port: authority.port,
        })
    }

    /// Whether the rule allows the host of a request.
    pub(super) fn allows(&self, requested: &HostAuthority<'_>) -> bool {
        self.host.is(&requested.host)
            && match (self.port, requested.port) {
                (None, _) => true,
                // A client omits the default port of its scheme.
                (Some(port), None) => port == 80 || port == 443,
                (Some(port), Some(requested)) => port == requested,
            }
    }
}

/// The origin of a request, as a browser sends it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestOrigin<'a> {
    scheme: &'a str,
    host: HostName<&'a str>,
    port: Option<u16>,
}

impl<'a> RequestOrigin<'a> {
    /// Parses `scheme://host` or `scheme://host:port`. `null` is not an origin that can be allowed.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let HostAuthority { host, port } = HostAuthority::parse(authority)?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let port = port.or_else(|| default_port(scheme));
        is_scheme.then_some(Self { scheme, host, port })
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    if scheme.eq_ignore_ascii_case("https") {
        Some(443)
    } else {
        scheme.eq_ignore_ascii_case("http").then_some(80)
    }
}

/// An entry of the origin allowlist.
#[derive(Debug, Clone)]
pub(super) struct OriginRule {
    scheme: String,
    host: HostName<String>,
    port: Option<u16>,
    any_port: bool,
}

impl OriginRule {
    /// Parses an entry of the origin allowlist.
    pub(super) fn parse(entry: &str) -> Option<Self> {
        let (text, any_port) = match entry.strip_suffix(":*") {
            Some(text) => (text, true),
            None => (entry, false),
        };
        let RequestOrigin { scheme, host, port } = RequestOrigin::parse(text)?;
        Some(Self {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port,
            any_port,
        })
    }

    /// Whether the rule allows the origin of a request.
    pub(super) fn allows(&self, requested: &RequestOrigin<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(requested.scheme)
            && self.host.is(&requested.host)
            && (self.any_port || self.port == requested.port)
    }
}
