//! Table of `Host` and `Origin` values, including every disguise that is known to pass naive checks.

use http::{Method, Version};

pub(crate) const OK: u16 = 200;
pub(crate) const BAD: u16 = 400;
pub(crate) const NO: u16 = 403;

/// One combination of request target and `Host` headers, with the expected status.
pub(crate) struct HostCase {
    pub(crate) name: &'static str,
    pub(crate) version: Version,
    /// Prefix of the path in the request target: the `:authority` of HTTP/2, or an absolute URI.
    pub(crate) target: &'static str,
    pub(crate) stated: &'static [&'static [u8]],
    pub(crate) expect: u16,
}

pub(crate) const fn h1(
    name: &'static str,
    stated: &'static [&'static [u8]],
    expect: u16,
) -> HostCase {
    HostCase {
        name,
        version: Version::HTTP_11,
        target: "",
        stated,
        expect,
    }
}

pub(crate) const fn to(
    name: &'static str,
    version: Version,
    target: &'static str,
    stated: &'static [&'static [u8]],
    expect: u16,
) -> HostCase {
    HostCase {
        name,
        version,
        target,
        stated,
        expect,
    }
}

pub(crate) const V1: Version = Version::HTTP_11;
pub(crate) const V2: Version = Version::HTTP_2;

#[rustfmt::skip]
pub(crate) const HOSTS: &[HostCase] = &[
    h1("exact", &[b"localhost:8787"], OK),
    h1("no port", &[b"localhost"], OK),
    h1("other port", &[b"localhost:1"], OK),
    h1("upper case", &[b"LOCALHOST:8787"], OK),
    h1("loopback v4", &[b"127.0.0.1:8787"], OK),
    h1("loopback v6", &[b"[::1]:8787"], OK),
    h1("loopback v6 written out", &[b"[0:0:0:0:0:0:0:1]"], OK),
    h1("public", &[b"docs.example.com"], OK),
    h1("public with port", &[b"docs.example.com:443"], OK),
    h1("listed", &[b"Search.Example.org:9"], OK),
    h1("listed with its port", &[b"pinned.example.org:8443"], OK),
    h1("listed with another port", &[b"pinned.example.org:8444"], NO),
    h1("listed without its port", &[b"pinned.example.org"], NO),
    h1("listed with default port left out", &[b"tls.example.org"], OK),
    h1("evil", &[b"evil.example"], NO),
    h1("loopback as prefix", &[b"localhost.evil"], NO),
    h1("loopback as suffix", &[b"evil.localhost"], NO),
    h1("listed as suffix", &[b"evilsearch.example.org"], NO),
    h1("listed as parent", &[b"a.search.example.org"], NO),
    h1("trailing dot", &[b"localhost.:8787"], NO),
    h1("listed, trailing dot", &[b"docs.example.com."], NO),
    h1("any address", &[b"0.0.0.0:8787"], NO),
    h1("any v6 address", &[b"[::]:8787"], NO),
    h1("short v4", &[b"127.1:8787"], NO),
    h1("decimal v4", &[b"2130706433"], NO),
    h1("hexadecimal v4", &[b"0x7f000001"], NO),
    h1("octal v4", &[b"0177.0.0.1"], NO),
    h1("other loopback v4", &[b"127.0.0.2"], NO),
    h1("v4 mapped", &[b"[::ffff:127.0.0.1]:8787"], NO),
    h1("userinfo", &[b"localhost@evil.example"], BAD),
    h1("userinfo before ours", &[b"evil@localhost:8787"], BAD),
    h1("empty", &[b""], BAD),
    h1("port alone", &[b":8787"], BAD),
    h1("empty port", &[b"localhost:"], BAD),
    h1("port too large", &[b"localhost:65536"], BAD),
    h1("port zero", &[b"localhost:0"], BAD),
    h1("port with sign", &[b"localhost:+80"], BAD),
    h1("two ports", &[b"localhost:80:80"], BAD),
    h1("with path", &[b"localhost/x"], BAD),
    h1("with space", &[b"localhost evil"], BAD),
    h1("list", &[b"localhost, evil.example"], BAD),
    h1("empty label", &[b"localhost..evil"], BAD),
    h1("not ascii", &[b"localh\xc3\xb6st"], BAD),
    h1("not utf-8", &[b"localhost\xff"], BAD),
    h1("v6 without brackets", &[b"::1"], BAD),
    h1("v6 with zone", &[b"[::1%25lo]"], BAD),
    h1("open bracket", &[b"[::1"], BAD),
    h1("two, equal", &[b"localhost", b"localhost"], BAD),
    h1("two, one evil", &[b"localhost", b"evil.example"], BAD),
    h1("absent", &[], BAD),
    to("absent in 1.0", Version::HTTP_10, "", &[], BAD),
    to("absolute target", V1, "http://localhost:8787", &[b"localhost:8787"], OK),
    to("absolute target differs", V1, "http://evil.example", &[b"localhost:8787"], BAD),
    to("host differs from absolute target", V1, "http://localhost", &[b"evil.example"], BAD),
    to("ports differ", V1, "http://localhost:1", &[b"localhost:2"], BAD),
    to("absolute target without host", V1, "http://localhost", &[], BAD),
    to("absolute target, both evil", V1, "http://evil.example", &[b"evil.example"], NO),
    to("authority", V2, "http://localhost:8787", &[], OK),
    to("authority evil", V2, "http://evil.example", &[], NO),
    to("authority with userinfo", V2, "http://a@localhost", &[], BAD),
    to("authority and equal host", V2, "http://localhost", &[b"LOCALHOST"], OK),
    to("authority differs from host", V2, "http://localhost", &[b"evil.example"], BAD),
    to("host differs from authority", V2, "http://evil.example", &[b"localhost"], BAD),
    to("no authority but host", V2, "", &[b"localhost"], OK),
    to("no authority and no host", V2, "", &[], BAD),
];

#[rustfmt::skip]
pub(crate) const ORIGINS: &[(&str, &[&[u8]], u16)] = &[
    ("absent", &[], OK),
    ("listed", &[b"https://app.example.com"], OK),
    ("listed, upper case", &[b"HTTPS://App.Example.com"], OK),
    ("listed, default port spelled out", &[b"https://app.example.com:443"], OK),
    ("host of ours", &[b"https://chatgpt.com"], OK),
    ("other host of ours", &[b"https://claude.ai"], OK),
    ("public", &[b"https://docs.example.com"], OK),
    ("loopback", &[b"http://localhost:6274"], OK),
    ("loopback v4", &[b"http://127.0.0.1:6274"], OK),
    ("loopback v6", &[b"https://[::1]:6274"], OK),
    ("any port listed", &[b"http://tools.example.com:5173"], OK),
    ("any port listed, none given", &[b"http://tools.example.com"], OK),
    ("extension listed", &[b"chrome-extension://abcdef"], OK),
    ("evil", &[b"https://evil.example"], NO),
    ("null", &[b"null"], NO),
    ("listed as prefix", &[b"https://app.example.com.evil.example"], NO),
    ("listed as suffix", &[b"https://evilapp.example.com"], NO),
    ("subdomain of listed", &[b"https://x.app.example.com"], NO),
    ("parent of listed", &[b"https://example.com"], NO),
    ("loopback as prefix", &[b"http://localhost.evil"], NO),
    ("loopback as suffix", &[b"http://evil.localhost"], NO),
    ("loopback, trailing dot", &[b"http://localhost."], NO),
    ("short v4", &[b"http://127.1"], NO),
    ("any address", &[b"http://0.0.0.0:8787"], NO),
    ("http for https", &[b"http://app.example.com"], NO),
    ("http with the port of https", &[b"http://app.example.com:443"], NO),
    ("https for http", &[b"https://tools.example.com"], NO),
    ("other port", &[b"https://app.example.com:8443"], NO),
    ("port of http", &[b"https://app.example.com:80"], NO),
    ("port of another scheme", &[b"chrome-extension://abcdef:443"], NO),
    ("two, equal", &[b"https://app.example.com", b"https://app.example.com"], NO),
    ("two, one evil", &[b"https://app.example.com", b"https://evil.example"], NO),
    ("list", &[b"https://app.example.com, https://evil.example"], NO),
    ("space between", &[b"https://app.example.com https://evil.example"], NO),
    ("with path", &[b"https://app.example.com/"], NO),
    ("with query", &[b"https://app.example.com?x"], NO),
    ("userinfo", &[b"https://app.example.com@evil.example"], NO),
    ("no scheme", &[b"app.example.com"], NO),
    ("scheme alone", &[b"https://"], NO),
    ("scheme not one", &[b"ht tps://app.example.com"], NO),
    ("star", &[b"*"], NO),
    ("star port", &[b"https://app.example.com:*"], NO),
    ("empty", &[b""], NO),
    ("not utf-8", &[b"https://app.example.com\xff"], NO),
];

pub(crate) const ROUTES: &[&str] = &[
    "/",
    "/mcp",
    "/mcp/",
    "/healthz",
    "/readyz",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/openai-apps-challenge",
    "/widgets/results",
    "/absent",
];

pub(crate) const METHODS: [Method; 6] = [
    Method::GET,
    Method::POST,
    Method::DELETE,
    Method::PUT,
    Method::HEAD,
    Method::OPTIONS,
];
