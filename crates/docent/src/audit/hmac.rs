//! HMAC-SHA-256 (RFC 2104) for the audit log. Callers and arguments are logged as keyed hashes: a plain hash could be
//! reversed by trying likely names and queries.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::cli_error::CliError;

/// Block size of SHA-256 in bytes.
const BLOCK: usize = 64;

/// Number of hexadecimal digits that are kept: 128 bits, so collisions are unlikely up to 2^64 callers.
const DIGITS: usize = 32;

/// Maximum size of a key file in bytes.
const MAX_BYTES: usize = 4_096;

/// Secret key of the HMAC, derived from the key file by SHA-256.
pub(super) struct HmacKey([u8; 32]);

impl HmacKey {
    /// Loads the key file beside a log, or creates it with mode 0600 and a random key. The key stays the same across
    /// restarts, so that a caller keeps its pseudonym.
    pub(super) fn load_or_create(log: &Path) -> Result<Self, CliError> {
        let path = sibling_path(log, "key");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&path) {
            Ok(mut file) => {
                let random = || uuid::Uuid::new_v4().simple().to_string();
                let text = [random(), random(), random()].concat();
                let written = file
                    .write_all(text.as_bytes())
                    .and_then(|()| file.sync_all());
                written.map_err(|error| CliError::io("write", &path, error))?;
                Ok(Self::of(text.as_bytes()))
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text =
                    std::fs::read(&path).map_err(|error| CliError::io("read", &path, error))?;
                if text.len() < 32 || text.len() > MAX_BYTES {
                    let message = format!("`{}` is not a key file", path.display());
                    return Err(CliError::failed(message)
                        .hint("remove it; a new key is generated at the next start"));
                }
                Ok(Self::of(&text))
            }
            Err(error) => Err(CliError::io("write", &path, error)),
        }
    }

    fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// HMAC of a text, truncated to [`DIGITS`] hexadecimal digits.
    pub(super) fn hash(&self, text: &str) -> String {
        let hash = mac(&self.0, text.as_bytes());
        let mut digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.truncate(DIGITS);
        digits
    }
}

/// Path of a file that belongs to a log, such as `audit.jsonl.key`.
pub(super) fn sibling_path(log: &Path, ending: &str) -> PathBuf {
    let mut name = log.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    log.with_file_name(name)
}

fn mac(secret: &[u8], text: &[u8]) -> [u8; 32] {
    let padded = |with: u8| {
        let rest = std::iter::repeat_n(0, BLOCK.saturating_sub(secret.len()));
        let bytes = secret.iter().copied().chain(rest);
        bytes.map(|byte| byte ^ with).collect::<Vec<u8>>()
    };
    let inner = Sha256::new()
        .chain_update(padded(0x36))
        .chain_update(text)
        .finalize();
    let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner);
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_hash_of_the_standard() {
        // RFC 4231, test case 2.
        let hash = mac(b"Jefe", b"what do ya want for nothing?");
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_secret_is_made_once_and_kept_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("audit.jsonl");
        let (one, two) = (
            HmacKey::load_or_create(&log).unwrap(),
            HmacKey::load_or_create(&log).unwrap(),
        );
        assert_eq!(one.hash("a"), two.hash("a"));
        assert_ne!(one.hash("a"), one.hash("b"));
        assert_eq!(one.hash("a").len(), DIGITS);
        let other = HmacKey::load_or_create(&dir.path().join("other.jsonl")).unwrap();
        assert_ne!(one.hash("a"), other.hash("a"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let kept = std::fs::metadata(dir.path().join("audit.jsonl.key")).unwrap();
            assert_eq!(kept.permissions().mode() & 0o777, 0o600);
        }
        std::fs::write(dir.path().join("audit.jsonl.key"), "short").unwrap();
        assert!(HmacKey::load_or_create(&log).is_err());
    }
}
