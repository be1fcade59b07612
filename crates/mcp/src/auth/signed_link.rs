//! Signed links: URLs with an expiry time and an HMAC, signed for a caller who may see a document and
//! verified when the link is opened.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use docent_atomic_file::FileAccess;
use ring::hmac;

use super::AuthError;
use super::api_key::{make_folder, random};

const SECRET_BYTES: usize = 32;

/// The HMAC key for signed links. It is stored in a file, so that links outlive a restart.
///
/// ```rust
/// use docent_mcp::LinkKey;
///
/// let dir = tempfile::tempdir()?;
/// let key = LinkKey::open(&dir.path().join("link.secret"))?;
/// let (now, expires) = (1_700_000_000, 1_700_003_600);
/// let signature = key.sign("doc-1", expires);
/// assert!(key.verify("doc-1", expires, &signature, now));
/// assert!(!key.verify("doc-1", expires, &signature, expires));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LinkKey(hmac::Key);

impl LinkKey {
    /// Loads the secret from a file, which is created with mode 0600 if it does not exist.
    ///
    /// # Errors
    /// When the file can neither be read nor created, or does not hold a secret.
    pub fn open(path: &Path) -> Result<Self, AuthError> {
        let failed =
            |error: io::Error| AuthError::LinkFile(path.display().to_string(), error.to_string());
        let secret = match read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = random::<SECRET_BYTES>()?;
                match create(path, &made) {
                    // Another process created the file first; both use its secret.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
                    done => done.map(|()| made),
                }
            }
            found => found,
        };
        Ok(Self::from_secret(&secret.map_err(failed)?))
    }

    fn from_secret(secret: &[u8; SECRET_BYTES]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The signature (HMAC-SHA256, base64url) over a resource and an expiry time in seconds since 1970.
    #[must_use]
    pub fn sign(&self, resource: &str, expires: u64) -> String {
        let tag = hmac::sign(&self.0, message(resource, expires).as_bytes());
        URL_SAFE_NO_PAD.encode(tag)
    }

    /// True when this server signed exactly this pair and the link has not expired. The comparison takes
    /// constant time.
    #[must_use]
    pub fn verify(&self, resource: &str, expires: u64, signature: &str, now: u64) -> bool {
        let Ok(tag) = URL_SAFE_NO_PAD.decode(signature) else {
            return false;
        };
        let message = message(resource, expires);
        now < expires && hmac::verify(&self.0, message.as_bytes(), &tag).is_ok()
    }
}

/// The signed message. The expiry time has no zero byte, so that no two pairs give the same message.
fn message(resource: &str, expires: u64) -> String {
    format!("docent link\0{expires}\0{resource}")
}

fn read(path: &Path) -> io::Result<[u8; SECRET_BYTES]> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(SECRET_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    let wrong = |_| io::Error::other("it does not hold a link secret");
    bytes.try_into().map_err(wrong)
}

/// Creates the file atomically; fails if there is one already.
fn create(path: &Path, secret: &[u8; SECRET_BYTES]) -> io::Result<()> {
    make_folder(path)?;
    docent_atomic_file::create(path, secret, FileAccess::Private)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_link_opens_what_it_was_signed_for_until_it_ends() {
        let key = LinkKey::from_secret(&[7; SECRET_BYTES]);
        let signature = key.sign("a/b.md", 1_000);
        assert_eq!(signature.len(), 43);
        assert!(key.verify("a/b.md", 1_000, &signature, 999));
        assert!(
            !key.verify("a/b.md", 1_000, &signature, 1_000),
            "it has ended"
        );
        assert!(!key.verify("a/b.md", 1_001, &signature, 999), "another end");
        assert!(
            !key.verify("a/c.md", 1_000, &signature, 999),
            "another resource"
        );
        assert!(!LinkKey::from_secret(&[8; SECRET_BYTES]).verify("a/b.md", 1_000, &signature, 999));
        for bad in ["", "!", &signature[1..], &format!("{signature}A")] {
            assert!(!key.verify("a/b.md", 1_000, bad, 999), "{bad}");
        }
    }

    #[test]
    fn many_who_begin_at_once_have_one_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("link.key");
        let begin = std::sync::Barrier::new(16);
        let all: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
            let open = || {
                begin.wait();
                LinkKey::open(&path).unwrap().sign("x", 10)
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(all.len(), 1);
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn a_secret_that_cannot_be_made_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let opened = LinkKey::open(&file.join("link.key"));
        assert!(matches!(opened, Err(AuthError::LinkFile(..))));
    }

    #[test]
    fn the_secret_lasts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/link.key");
        let signature = LinkKey::open(&path).unwrap().sign("x", 10);
        assert!(LinkKey::open(&path).unwrap().verify("x", 10, &signature, 9));
        assert_eq!(fs::metadata(&path).unwrap().len(), 32);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "no temporary file is left");
        for size in [0, 31, 33] {
            fs::write(&path, vec![0; size]).unwrap();
            assert!(
                matches!(LinkKey::open(&path), Err(AuthError::LinkFile(..))),
                "{size}"
            );
        }
    }
}
