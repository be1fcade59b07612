//! SSRF-safe HTTP client for client ID metadata documents, whose URLs anybody can choose: https only, no
//! redirects, public addresses only, and the connection goes to the very address that was checked (no DNS
//! rebinding).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use docent_mcp::oauth::is_public_address;
use docent_mcp::{CertificateAuthorities, InvalidAuthorities};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

/// The timeout of one fetch, from name resolution to the last byte. Hosts allow ten seconds for a whole
/// login.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a document in bytes.
pub(crate) const MAX_BYTES: u64 = 32 * 1024;

/// Hosts in the operator's own network from which client ID metadata documents may be fetched too, and the
/// CAs to trust for them.
///
/// ```rust
/// use docent_oauth::{AuthorizationServerOptions, OwnHosts};
///
/// let mut options =
///     AuthorizationServerOptions::new("https://docs.example.org", "Harbour archive", "./state");
/// options.own_hosts = OwnHosts {
///     names: vec!["app.harbour.internal".to_owned(), "dev.harbour.internal:8443".to_owned()],
///     // The certificates of a private certificate authority, read from a PEM file.
///     authorities: None,
/// };
/// ```
#[derive(Debug, Clone, Default)]
pub struct OwnHosts {
    /// The host names, each with its port unless that is 443.
    pub names: Vec<String>,
    /// CA certificates in PEM, for hosts with certificates of a private PKI.
    pub authorities: Option<String>,
}

/// A fetched document with its freshness lifetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FetchedDocument {
    pub(crate) body: Vec<u8>,
    /// The lifetime in seconds from `Cache-Control`, if the header sets one.
    pub(crate) fresh_for: Option<u64>,
}

/// Why a document could not be fetched. The texts are shown on the error page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentFetchError {
    #[error("its host is not on the internet")]
    NotPublic,
    #[error("it was not found: status {0}")]
    Status(u16),
    #[error("it is too large")]
    TooLarge,
    #[error("it is not JSON")]
    NotJson,
    #[error("it cannot be fetched")]
    Failed,
}

/// The HTTP client. It blocks, so it must run on a blocking thread.
#[derive(Clone)]
pub(crate) struct DocumentFetcher {
    own: Arc<OwnHosts>,
    authorities: Option<CertificateAuthorities>,
}

impl DocumentFetcher {
    /// # Errors
    /// When the certificate authorities are not valid PEM certificates.
    pub(crate) fn new(own: OwnHosts) -> Result<Self, InvalidAuthorities> {
        let authorities = own
            .authorities
            .as_deref()
            .map(CertificateAuthorities::parse);
        Ok(Self {
            authorities: authorities.transpose()?,
            own: Arc::new(own),
        })
    }

    /// True for a host that the operator has allowed.
    pub(crate) fn is_own(&self, authority: &str) -> bool {
        self.own
            .names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(authority))
    }

    /// Fetches a JSON document from an https URL.
    pub(crate) fn json(&self, address: &str) -> Result<FetchedDocument, DocumentFetchError> {
        let uri: Uri = address.parse().map_err(|_| DocumentFetchError::Failed)?;
        let authority = uri.authority().ok_or(DocumentFetchError::Failed)?;
        let own = self.is_own(authority.as_str());
        let answer = self
            .agent(own)
            .get(address)
            .header("accept", "application/json")
            .call();
        let mut response = answer.map_err(|error| match error {
            Error::Other(inner) if inner.is::<PrivateAddressError>() => {
                DocumentFetchError::NotPublic
            }
            error => {
                tracing::debug!(%error, "cannot fetch a client metadata document");
                DocumentFetchError::Failed
            }
        })?;
        if response.status() != 200 {
            return Err(DocumentFetchError::Status(response.status().as_u16()));
        }
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok());
        let kind = header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_json = kind.eq_ignore_ascii_case("application/json")
            || (kind.starts_with("application/") && kind.ends_with("+json"));
        if !is_json {
            return Err(DocumentFetchError::NotJson);
        }
        let fresh_for = header("cache-control").and_then(fresh_for);
        // The reader reports a body of exactly its limit as too long, hence one byte more.
        let body = response
            .body_mut()
            .with_config()
            .limit(MAX_BYTES + 1)
            .read_to_vec();
        let body = body.map_err(|error| match error {
            Error::BodyExceedsLimit(_) => DocumentFetchError::TooLarge,
            _ => DocumentFetchError::Failed,
        })?;
        Ok(FetchedDocument { body, fresh_for })
    }

    fn agent(&self, own: bool) -> Agent {
        let authorities = self.authorities.as_ref().filter(|_| own);
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .https_only(true)
            // A proxy would resolve names itself and so bypass the address check.
            .proxy(None)
            .tls_config(CertificateAuthorities::tls(authorities))
            .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")))
            .build();
        Agent::with_parts(config, DefaultConnector::new(), DocumentResolver { own })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the address is not public")]
struct PrivateAddressError;

/// A DNS resolver that returns addresses only if all of them are public. The connection is made to exactly
/// these.
#[derive(Debug)]
struct DocumentResolver {
    own: bool,
}

impl Resolver for DocumentResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = DefaultResolver::default().resolve(uri, config, timeout)?;
        let public = |address: &SocketAddr| is_public_address(address.ip());
        if self.own || found.iter().all(public) {
            Ok(found)
        } else {
            Err(Error::Other(Box::new(PrivateAddressError)))
        }
    }
}

/// The freshness lifetime in seconds from a `Cache-Control` header.
fn fresh_for(header: &str) -> Option<u64> {
    let mut seconds = None;
    for part in header.split(',') {
        let (name, value) = part.trim().split_once('=').unwrap_or((part.trim(), ""));
        match name.to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Some(0),
            "max-age" => seconds = value.trim_matches('"').parse().ok(),
            _ => {}
        }
    }
    seconds
}

#[cfg(test)]
mod tests {
    use ureq::tls::RootCerts;

    use super::*;

    #[test]
    fn headers_say_how_long() {
        for (header, expected) in [
            ("max-age=60", Some(60)),
            ("public, Max-Age=\"3600\"", Some(3600)),
            ("max-age=60, no-store", Some(0)),
            ("no-cache", Some(0)),
            ("public", None),
            ("max-age=-1", None),
            ("max-age=99999999999999999999", None),
        ] {
            assert_eq!(fresh_for(header), expected, "{header}");
        }
    }

    #[test]
    fn authorities_are_certificates() {
        let with = |pem: &str| {
            DocumentFetcher::new(OwnHosts {
                names: Vec::new(),
                authorities: Some(pem.to_owned()),
            })
        };
        assert!(with("").is_err() && with("hello").is_err());
    }

    #[test]
    fn the_owners_authorities_vouch_for_the_owners_hosts_alone() {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let with = |authorities: Option<String>| {
            let names = vec!["A.example:8443".to_owned()];
            DocumentFetcher::new(OwnHosts { names, authorities }).unwrap()
        };
        let web = |fetcher: &DocumentFetcher, own: bool| {
            let agent = fetcher.agent(own);
            matches!(agent.config().tls_config().root_certs(), RootCerts::WebPki)
        };
        let fetcher = with(Some(made.cert.pem()));
        assert!(!web(&fetcher, true) && web(&fetcher, false));
        assert!(web(&with(None), true) && web(&with(None), false));
        assert!(fetcher.is_own("a.example:8443"));
        for other in ["a.example", "a.example:8444", "b.example:8443", ""] {
            assert!(!fetcher.is_own(other), "{other}");
        }
        // A private key among the certificates is ignored.
        let key = made.signing_key.serialize_pem();
        let both = with(Some(format!("{key}{}", made.cert.pem())));
        assert_eq!(format!("{:?}", both.authorities), "Some(Authorities(1))");
    }

    #[test]
    fn networks_of_others_are_not_called() {
        let fetcher = DocumentFetcher::new(OwnHosts::default()).unwrap();
        for address in [
            "https://127.0.0.1:9/client.json",
            "https://[::1]:9/client.json",
            "https://[::ffff:127.0.0.1]:9/client.json",
            "https://10.0.0.1/client.json",
            "https://169.254.169.254/latest",
            "https://localhost:9/client.json",
            "https://0.0.0.0:9/client.json",
        ] {
            assert_eq!(
                fetcher.json(address),
                Err(DocumentFetchError::NotPublic),
                "{address}"
            );
        }
        assert!(fetcher.json("http://127.0.0.1:9/x").is_err());
    }
}
