//! Loads private certificate authorities (CA bundles) for issuers and hosts in the owner's network.

use std::io::Read as _;
use std::path::Path;

use docent_mcp::{CertificateAuthorities, MAX_AUTHORITIES_BYTES};

use crate::cli_error::CliError;
use crate::settings;

/// Certificate authorities for issuers and the upstream provider, if `auth.issuer_ca` is set.
pub(super) fn of_issuers(
    settings: &settings::AuthSettings,
) -> Result<Option<CertificateAuthorities>, CliError> {
    let Some(path) = &settings.issuer_ca else {
        return Ok(None);
    };
    let bad = |error| {
        CliError::usage(format!(
            "`auth.issuer_ca` cannot be used: `{}`",
            path.display()
        ))
        .hint("it must be a PEM file of certificates, each beginning with `-----BEGIN CERTIFICATE-----`")
        .because(error)
    };
    CertificateAuthorities::parse(&read(path)?)
        .map(Some)
        .map_err(bad)
}

/// Reads a CA bundle, up to a size limit.
pub(super) fn read(path: &Path) -> Result<String, CliError> {
    let unread = |error| CliError::io("read", path, error).hint("name a PEM file of certificates");
    let file = std::fs::File::open(path).map_err(unread)?;
    let mut text = String::new();
    let most = MAX_AUTHORITIES_BYTES as u64 + 1;
    file.take(most).read_to_string(&mut text).map_err(unread)?;
    if text.len() > MAX_AUTHORITIES_BYTES {
        let message = format!(
            "`{}` has more than {MAX_AUTHORITIES_BYTES} bytes",
            path.display()
        );
        return Err(CliError::usage(message).hint("keep only certificates in it"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_certificates_has_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        std::fs::write(&path, "x".repeat(MAX_AUTHORITIES_BYTES)).unwrap();
        assert_eq!(read(&path).unwrap().len(), MAX_AUTHORITIES_BYTES);
        std::fs::write(&path, "x".repeat(MAX_AUTHORITIES_BYTES + 1)).unwrap();
        assert!(read(&path).unwrap_err().message.contains("more than"));
    }

    #[test]
    fn a_file_without_certificates_is_an_error_of_its_setting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let settings = settings::AuthSettings {
            issuer_ca: Some(path.clone()),
            ..settings::AuthSettings::default()
        };
        assert!(
            of_issuers(&settings)
                .unwrap_err()
                .message
                .contains("cannot read")
        );
        for bad in [&b""[..], b"hello", b"\xff\xfe"] {
            std::fs::write(&path, bad).unwrap();
            let problem = of_issuers(&settings).unwrap_err();
            assert!(problem.hint.unwrap().contains("certificates"), "{bad:?}");
        }
        assert!(
            of_issuers(&settings::AuthSettings::default())
                .unwrap()
                .is_none()
        );
    }
}
