//! A text into a hash that only the holder of a secret can make, so that nobody finds out by trying who called
//! and what they asked. It is HMAC-SHA-256 (RFC 2104).

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::cli_error::CliError;

/// What SHA-256 takes in at a time.
const BLOCK: usize = 64;

/// How many hexadecimal digits of a hash are kept; two of 2^64 callers are not alike.
const DIGITS: usize = 32;

/// The most bytes of a secret's file.
const MAX_BYTES: usize = 4_096;

/// What hashes are made with.
pub(super) struct HmacKey([u8; 32]);

impl HmacKey {
    /// The secret beside a log, made the first time.
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
                    let message = format!("`{}` holds no secret", path.display());
                    return Err(CliError::failed(message).hint("remove it, and another is made"));
                }
                Ok(Self::of(&text))
            }
            Err(error) => Err(CliError::io("write", &path, error)),
        }
    }

    fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// The beginning of a text's hash, in hexadecimal.
    pub(super) fn hash(&self, text: &str) -> String {
        let hash = mac(&self.0, text.as_bytes());
        let mut digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.truncate(DIGITS);
        digits
    }
}

/// A file that belongs to a log.
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
