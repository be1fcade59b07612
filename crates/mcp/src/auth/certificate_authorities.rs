//! Custom certificate authorities (CAs) in PEM, for issuers with certificates of a private PKI.

use std::fmt;
use std::sync::Arc;

use rustls_pki_types::CertificateDer;
use tokio_rustls::rustls::RootCertStore;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// The maximum size of a CA bundle. The bundle of a whole browser has a fifth of that.
pub const MAX_AUTHORITIES_BYTES: usize = 1024 * 1024;

/// One or more trusted CA certificates, in place of the public root certificates.
///
/// ```rust
/// use docent_mcp::{CertificateAuthorities, InvalidAuthorities};
///
/// let parsed = CertificateAuthorities::parse("not a certificate");
/// assert_eq!(parsed.err(), Some(InvalidAuthorities));
/// ```
#[derive(Clone)]
pub struct CertificateAuthorities(Arc<Vec<Certificate<'static>>>);

impl CertificateAuthorities {
    /// Parses PEM certificates and ignores any text between them.
    ///
    /// # Errors
    /// When there is no certificate, when one of them cannot be a trust anchor, or when the text is longer
    /// than [`MAX_AUTHORITIES_BYTES`].
    pub fn parse(pem: &str) -> Result<Self, InvalidAuthorities> {
        if pem.len() > MAX_AUTHORITIES_BYTES {
            return Err(InvalidAuthorities);
        }
        let mut found = Vec::new();
        // A certificate that cannot be a trust anchor is refused here. TLS would skip it silently, and
        // nobody would know why nothing is trusted.
        let mut store = RootCertStore::empty();
        for item in parse_pem(pem.as_bytes()) {
            if let PemItem::Certificate(one) = item.map_err(|_| InvalidAuthorities)? {
                let added = store.add(CertificateDer::from(one.der()));
                added.map_err(|_| InvalidAuthorities)?;
                found.push(one);
            }
        }
        if found.is_empty() {
            return Err(InvalidAuthorities);
        }
        Ok(Self(Arc::new(found)))
    }

    /// The TLS configuration that trusts these authorities; with `None`, the root certificates that
    /// browsers trust.
    #[must_use]
    pub fn tls(authorities: Option<&Self>) -> TlsConfig {
        let roots = match authorities {
            Some(Self(some)) => RootCerts::Specific(some.clone()),
            None => RootCerts::WebPki,
        };
        TlsConfig::builder().root_certs(roots).build()
    }
}

impl fmt::Debug for CertificateAuthorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorities({})", self.0.len())
    }
}

/// The text is not a valid CA bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a list of CA certificates in PEM, or longer than 1 MiB")]
pub struct InvalidAuthorities;

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate() -> String {
        let made = rcgen::generate_simple_self_signed(["login.example".to_owned()]).unwrap();
        made.cert.pem()
    }

    #[test]
    fn certificates_are_read_among_anything() {
        let one = certificate();
        let read = |text: &str| CertificateAuthorities::parse(text).map(|all| all.0.len());
        assert_eq!(read(&one), Ok(1));
        assert_eq!(read(&format!("# ours\n{one}\n\n{}", certificate())), Ok(2));
        let not_one = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        let broken = "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n";
        for bad in [
            "",
            "hello",
            key,
            not_one,
            broken,
            &format!("{one}{not_one}"),
        ] {
            assert_eq!(read(bad), Err(InvalidAuthorities), "{bad}");
        }
        let shown = format!("{:?}", CertificateAuthorities::parse(&one).unwrap());
        assert_eq!(shown, "Authorities(1)");
    }

    #[test]
    fn they_have_a_bound() {
        let one = certificate();
        let padded = |size: usize| format!("{}{one}", "\n".repeat(size - one.len()));
        assert!(CertificateAuthorities::parse(&padded(MAX_AUTHORITIES_BYTES)).is_ok());
        assert!(CertificateAuthorities::parse(&padded(MAX_AUTHORITIES_BYTES + 1)).is_err());
    }
}
