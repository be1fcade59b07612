//! Trusted certificate authorities for TLS connections to the nodes, from the file in `engine.ca_file`.

use std::io::Read as _;
use std::path::Path;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::error::SearchError;

/// The most bytes of that file: the list of all public authorities has a quarter of that.
const MAX_BYTES: u64 = 1024 * 1024;

/// The TLS configuration: trusts the authorities of this file, or the public roots without one.
pub(super) fn tls_config(file: Option<&Path>) -> Result<TlsConfig, SearchError> {
    let Some(file) = file else {
        return Ok(TlsConfig::default());
    };
    let invalid = |reason: String| SearchError::Cluster {
        what: format!(
            "`engine.ca_file` cannot be used: `{}` {reason}",
            file.display()
        ),
        hint: "name a PEM file with the certificate authorities that signed the nodes' certificates",
        source: None,
    };
    let mut pem = Vec::new();
    let opened =
        std::fs::File::open(file).map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let mut reader = opened.take(MAX_BYTES + 1);
    let read = reader.read_to_end(&mut pem);
    read.map_err(|error| invalid(format!("cannot be read: {error}")))?;
    if pem.len() as u64 > MAX_BYTES {
        return Err(invalid(format!("has more than {MAX_BYTES} bytes")));
    }
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        match item.map_err(|_| invalid("is not PEM".to_owned()))? {
            PemItem::Certificate(certificate) => certificates.push(certificate),
            // Checking certificates needs no private key, so a file with one is a mistake.
            PemItem::PrivateKey(_) => return Err(invalid("holds a private key".to_owned())),
            _ => {}
        }
    }
    if certificates.is_empty() {
        return Err(invalid("holds no certificate".to_owned()));
    }
    let roots = RootCerts::new_with_certs(&certificates);
    Ok(TlsConfig::builder().root_certs(roots).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text(content: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        match tls_config(Some(file.path())) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_invalid_certificate_file_is_an_error_with_a_reason() {
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let good = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(error_text(good.as_bytes()), "");
        for (content, reason) in [
            ("", "holds no certificate"),
            ("no PEM at all", "holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA", "is not PEM"),
            (&format!("{good}{key}"), "holds a private key"),
        ] {
            let error_text = error_text(content.as_bytes());
            assert!(
                error_text.contains("`engine.ca_file`") && error_text.ends_with(reason),
                "{error_text}"
            );
        }
        let padding = |bytes: usize| {
            let mut padded = good.as_bytes().to_vec();
            padded.resize(bytes, b'\n');
            error_text(&padded)
        };
        let most = usize::try_from(MAX_BYTES).unwrap();
        assert_eq!(padding(most), "");
        assert!(padding(most + 1).contains("more than"));
        let missing = tls_config(Some(Path::new("no/such/file")))
            .err()
            .unwrap()
            .to_string();
        assert!(missing.contains("cannot be read"), "{missing}");
    }
}
