//! The file of `engine.ca_file` into the authorities whose certificates nodes may show.

use std::io::Read as _;
use std::path::Path;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::error::SearchError;

/// The most bytes of such a file: a system's list of all authorities has a quarter of that.
const MAX_BYTES: u64 = 1024 * 1024;

/// How certificates are checked: by the authorities of this file, or by those that browsers know.
pub(super) fn tls_config(file: Option<&Path>) -> Result<TlsConfig, SearchError> {
    let Some(file) = file else {
        return Ok(TlsConfig::default());
    };
    let bad = |reason: String| SearchError::Cluster {
        what: format!(
            "`engine.ca_file` cannot be used: `{}` {reason}",
            file.display()
        ),
        hint: "name a PEM file with the certificates of the authorities that signed those of the nodes",
        source: None,
    };
    let mut pem = Vec::new();
    let opened =
        std::fs::File::open(file).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let mut reader = opened.take(MAX_BYTES + 1);
    let read = reader.read_to_end(&mut pem);
    read.map_err(|error| bad(format!("cannot be read: {error}")))?;
    if pem.len() as u64 > MAX_BYTES {
        return Err(bad(format!("has more than {MAX_BYTES} bytes")));
    }
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        match item.map_err(|_| bad("is not PEM".to_owned()))? {
            PemItem::Certificate(certificate) => certificates.push(certificate),
            // Nobody needs a key to check certificates.
            PemItem::PrivateKey(_) => return Err(bad("holds a private key".to_owned())),
            _ => {}
        }
    }
    if certificates.is_empty() {
        return Err(bad("holds no certificate".to_owned()));
    }
    let roots = RootCerts::new_with_certs(&certificates);
    Ok(TlsConfig::builder().root_certs(roots).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(content: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        match tls_config(Some(file.path())) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_no_list_of_authorities_is_said() {
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let good = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(told(good.as_bytes()), "");
        for (content, reason) in [
            ("", "holds no certificate"),
            ("no PEM at all", "holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA", "is not PEM"),
            (&format!("{good}{key}"), "holds a private key"),
        ] {
            let told = told(content.as_bytes());
            assert!(
                told.contains("`engine.ca_file`") && told.ends_with(reason),
                "{told}"
            );
        }
        let padding = |bytes: usize| {
            let mut padded = good.as_bytes().to_vec();
            padded.resize(bytes, b'\n');
            told(&padded)
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
