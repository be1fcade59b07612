//! The HTTP client for issuers: the only outgoing requests of this crate, guarded against SSRF.
//!
//! It uses https only, follows no redirects, uses no proxy, gives up after five seconds, limits the size of
//! the response, and connects to no private address unless the operator allows it. The check runs inside
//! the resolver, on the addresses that are then connected to, so that DNS rebinding cannot bypass it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Uri;
use ureq::Agent;
use ureq::config::Config;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use super::{CertificateAuthorities, IssuerNetwork, IssuerTransport};

/// The timeout of one request, from name resolution to the last byte. Issuers answer within a fraction of a second. The
/// request of a client waits for this one, and hosts allow about ten seconds, so a refusal with a reason has to come
/// before that.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response. Key sets of real providers have 2 to 20 KiB.
pub(crate) const MAX_ANSWER_BYTES: u64 = 256 * 1024;

/// Why a request failed. It quotes nothing from the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HttpFetchError {
    /// A URL that is not https. Plain http is allowed to a loopback address of [`IssuerNetwork::Private`] only.
    #[error("the address is not https")]
    Scheme,
    /// One of the host's addresses is in a private network, and those are not allowed.
    #[error("the address is in a private network")]
    Private,
    /// Any status but 200. Redirects are not followed.
    #[error("the server answered with status {0}")]
    Status(u16),
    /// A response of more than 256 KiB.
    #[error("the answer is too long")]
    TooLong,
    /// The TLS handshake failed, as it does for an untrusted certificate.
    #[error("untrusted certificate")]
    Untrusted,
    /// No connection, or no complete response in five seconds.
    #[error("the server could not be reached in time")]
    Unreachable,
}

/// An HTTP client for issuer endpoints; tests substitute their own.
pub trait HttpFetch: Send + Sync {
    /// Fetches the body behind a URL.
    fn get(&self, url: String) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>>;

    /// Posts a form, with our `Authorization` header, and returns the response's body.
    fn post(
        &self,
        url: String,
        form: FormPost,
    ) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>>;
}

/// A form to post. It holds client secrets, so it does not implement `Debug`.
pub struct FormPost {
    /// The value of the `Authorization` header.
    pub authorization: Option<String>,
    /// The form, percent-encoded.
    pub body: String,
}

/// The [`HttpFetch`] that uses the network.
pub(crate) struct HttpFetcher {
    agent: Agent,
    private: bool,
}

impl HttpFetcher {
    /// `private` allows private addresses, and http to a loopback address.
    #[cfg(test)]
    pub(crate) fn new(private: bool) -> Self {
        Self::with_authorities(private, None)
    }

    /// A client that trusts the operator's certificate authorities instead of the public ones.
    pub(crate) fn with_authorities(
        private: bool,
        authorities: Option<&CertificateAuthorities>,
    ) -> Self {
        let config = Config::builder()
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(None)
            .tls_config(CertificateAuthorities::tls(authorities))
            .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")))
            .build();
        let resolver = PublicAddressResolver {
            private,
            inner: DefaultResolver::default(),
        };
        Self {
            agent: Agent::with_parts(config, DefaultConnector::default(), resolver),
            private,
        }
    }

    fn check(&self, url: &str) -> Result<(), HttpFetchError> {
        let uri: Uri = url.parse().map_err(|_| HttpFetchError::Scheme)?;
        let here = uri.host().is_some_and(is_loopback_host);
        match uri.scheme_str() {
            Some("https") => Ok(()),
            Some("http") if here && self.private => Ok(()),
            _ => Err(HttpFetchError::Scheme),
        }
    }
}

impl HttpFetch for HttpFetcher {
    fn get(&self, url: String) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
        let (agent, checked) = (self.agent.clone(), self.check(&url));
        blocking(move || {
            checked?;
            let sent = agent.get(&url).header("accept", "application/json").call();
            read_response(sent)
        })
    }

    fn post(
        &self,
        url: String,
        form: FormPost,
    ) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
        let (agent, checked) = (self.agent.clone(), self.check(&url));
        blocking(move || {
            checked?;
            let mut request = agent
                .post(&url)
                .header("accept", "application/json")
                .header("content-type", "application/x-www-form-urlencoded");
            if let Some(value) = &form.authorization {
                request = request.header("authorization", value);
            }
            read_response(request.send(form.body))
        })
    }
}

fn blocking(
    work: impl FnOnce() -> Result<Vec<u8>, HttpFetchError> + Send + 'static,
) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
    async move {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or(Err(HttpFetchError::Unreachable))
    }
    .boxed()
}

fn read_response(
    sent: Result<http::Response<ureq::Body>, ureq::Error>,
) -> Result<Vec<u8>, HttpFetchError> {
    let mut response = sent.map_err(|error| match error {
        ureq::Error::Other(cause) if cause.is::<HttpFetchError>() => HttpFetchError::Private,
        error if is_tls_error(&error) => HttpFetchError::Untrusted,
        _ => HttpFetchError::Unreachable,
    })?;
    if response.status() != 200 {
        return Err(HttpFetchError::Status(response.status().as_u16()));
    }
    // The reader reports a body of exactly its limit as too long, hence one byte more.
    let body = response
        .body_mut()
        .with_config()
        .limit(MAX_ANSWER_BYTES + 1);
    body.read_to_vec().map_err(|error| match error {
        ureq::Error::BodyExceedsLimit(_) => HttpFetchError::TooLong,
        _ => HttpFetchError::Unreachable,
    })
}

/// True when the TLS handshake failed, such as for an untrusted certificate.
fn is_tls_error(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Rustls(_) => true,
        ureq::Error::Io(error) => {
            let cause = error.get_ref();
            cause.is_some_and(|cause| cause.is::<tokio_rustls::rustls::Error>())
        }
        _ => false,
    }
}

/// A DNS resolver that refuses a host if any of its addresses is private, unless private addresses are
/// allowed.
#[derive(Debug)]
struct PublicAddressResolver {
    private: bool,
    inner: DefaultResolver,
}

impl Resolver for PublicAddressResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        if self.private || found.iter().all(|address| is_public(address.ip())) {
            Ok(found)
        } else {
            Err(ureq::Error::Other(Box::new(HttpFetchError::Private)))
        }
    }
}

fn is_loopback_host(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// True for an address that is globally reachable (IANA special-purpose address registries).
///
/// ```rust
/// use docent_mcp::oauth::is_public_address;
///
/// assert!(is_public_address("2606:4700::1111".parse()?));
/// // An IPv4 address inside an IPv6 address is judged as IPv4.
/// assert!(!is_public_address("::ffff:10.0.0.1".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 51, 100)
            | (203, 0, 113)
            | (198, 18 | 19, _)
    )
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let inner = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(w, x, y, z))
    };
    match (a, b, c, d, e, f) {
        // An IPv4 address embedded in IPv6 (mapped, NAT64, 6to4) is judged as IPv4.
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => inner(g, h),
        (0x2002, high, low, ..) => inner(high, low),
        // Only 2000::/3 is allocated for global unicast; inside it, Teredo tunnels (2001::/32) and
        // documentation addresses (2001:db8::/32) are not public.
        (0x2001, 0 | 0xdb8, ..) => false,
        _ => a & 0xe000 == 0x2000,
    }
}

/// A shareable client for the network: https, no redirects, no proxy, bounded in time and size, and confined to the
/// networks that `transport` allows.
///
/// ```rust,no_run
/// use docent_mcp::IssuerTransport;
/// use docent_mcp::oauth::{endpoint_url, fetch_metadata, http_fetcher};
///
/// # async fn run() -> Result<(), String> {
/// let client = http_fetcher(&IssuerTransport::default());
/// let metadata = fetch_metadata("https://login.example.org", client.as_ref()).await?;
/// let token_endpoint = endpoint_url(&metadata, "token_endpoint");
/// # let _ = token_endpoint;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn http_fetcher(transport: &IssuerTransport) -> Arc<dyn HttpFetch> {
    let private = transport.network == IssuerNetwork::Private;
    Arc::new(HttpFetcher::with_authorities(
        private,
        transport.authorities.as_ref(),
    ))
}

#[cfg(test)]
mod tests;
