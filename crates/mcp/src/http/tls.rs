//! A certificate and its key in two files into TLS for a listener, renewed while it serves.
//!
//! Whoever renews a certificate writes the files anew; nobody should have to restart a server for that. So
//! the files are looked at again and again, and what cannot be used changes nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::rustls::{ServerConfig, crypto};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(10);

/// The most bytes of each file, and the most certificates of a chain.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
const MAX_CHAIN: usize = 16;

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file that cannot be read.
    #[error("`{}` cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system or the decoder said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file without what it should hold.
    #[error("there is no {what} in `{}`", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// A certificate or a key.
        what: &'static str,
    },
    /// The two do not fit, or are of a kind that nobody accepts.
    #[error("the certificate and the key cannot be used together")]
    Pair(#[from] rustls::Error),
}

impl CertificateError {
    /// What would help.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => {
                "both are files in PEM form, readable by the user that runs the server"
            }
            Self::Empty { .. } => {
                "the certificate with its chain stands in one file, its private key in the other"
            }
            Self::Pair(_) => "take the key with which this certificate was asked for",
        }
    }
}

/// TLS with the certificate of two files, for [`Options`](super::Options).
#[derive(Clone, Debug)]
pub struct ServerTls(Arc<ServerTlsInner>);

#[derive(Debug)]
struct ServerTlsInner {
    certificate: PathBuf,
    key: PathBuf,
    now: RwLock<LoadedCertificate>,
}

#[derive(Clone, Debug)]
struct LoadedCertificate {
    config: Arc<ServerConfig>,
    /// How the files looked when they were read.
    seen: CertificateStamps,
}

/// When each file was last written, and its size.
type CertificateStamps = [Option<(SystemTime, u64)>; 2];

impl ServerTls {
    /// Reads a chain of certificates and the private key of the first.
    ///
    /// # Errors
    /// When they cannot be read or used.
    pub fn load(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, CertificateError> {
        let (certificate, key) = (certificate.into(), key.into());
        let seen = file_stamps(&certificate, &key);
        let config = config(&certificate, &key)?;
        Ok(Self(Arc::new(ServerTlsInner {
            certificate,
            key,
            now: RwLock::new(LoadedCertificate { config, seen }),
        })))
    }

    /// Greets a client. The caller bounds how long that takes.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current().config)
            .accept(stream)
            .await
    }

    /// Looks at the files again and again, for as long as it is polled.
    pub(crate) async fn reload_loop(&self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let tls = self.clone();
            let renewed = tokio::task::spawn_blocking(move || tls.renew()).await;
            match renewed {
                Ok(Ok(true)) => tracing::info!("the certificate was renewed"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    let hint = error.hint();
                    tracing::warn!(%error, hint, "a new certificate cannot be used; the old one stays");
                }
                Err(error) => tracing::error!(%error, "the certificate could not be looked at"),
            }
        }
    }

    /// Reads the files again if they look different, and says whether what they hold is used now.
    ///
    /// # Errors
    /// When they cannot be used; they are then not read again before they change.
    fn renew(&self) -> Result<bool, CertificateError> {
        let ServerTlsInner {
            certificate, key, ..
        } = &*self.0;
        let seen = file_stamps(certificate, key);
        let LoadedCertificate {
            config: old,
            seen: before,
        } = self.current();
        if seen == before {
            return Ok(false);
        }
        let read = config(certificate, key);
        let config = read.as_ref().map_or(old, Arc::clone);
        let mut now = self.0.now.write().unwrap_or_else(PoisonError::into_inner);
        *now = LoadedCertificate { config, seen };
        read.map(|_| true)
    }

    fn current(&self) -> LoadedCertificate {
        let now = self.0.now.read().unwrap_or_else(PoisonError::into_inner);
        now.clone()
    }
}

fn file_stamps(certificate: &Path, key: &Path) -> CertificateStamps {
    [certificate, key].map(|path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    })
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, CertificateError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&read(certificate)?)
        .take(MAX_CHAIN)
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(certificate, error))?;
    if chain.is_empty() {
        let (path, what) = (certificate.to_owned(), "certificate");
        return Err(CertificateError::Empty { path, what });
    }
    let key = match PrivateKeyDer::from_pem_slice(&read(key)?) {
        Ok(key) => key,
        Err(rustls_pki_types::pem::Error::NoItemsFound) => {
            let (path, what) = (key.to_owned(), "private key");
            return Err(CertificateError::Empty { path, what });
        }
        Err(error) => return Err(unreadable(key, error)),
    };
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    use std::io::Read as _;
    let failed = |error: io::Error| unreadable(path, error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(unreadable(
            path,
            io::Error::from(io::ErrorKind::FileTooLarge),
        ));
    }
    Ok(bytes)
}

fn unreadable(
    path: &Path,
    source: impl std::error::Error + Send + Sync + 'static,
) -> CertificateError {
    CertificateError::File {
        path: path.to_owned(),
        source: Box::new(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct CertificateFiles(tempfile::TempDir);

    impl CertificateFiles {
        fn new() -> Self {
            let files = Self(tempfile::tempdir().unwrap());
            files.issue();
            files
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Writes a certificate that was not there before.
        fn issue(&self) {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            std::fs::write(self.path("cert"), made.cert.pem()).unwrap();
            std::fs::write(self.path("key"), made.signing_key.serialize_pem()).unwrap();
        }

        fn load(&self) -> Result<ServerTls, CertificateError> {
            ServerTls::load(self.path("cert"), self.path("key"))
        }
    }

    #[test]
    fn what_cannot_be_used_is_told_apart() {
        let files = CertificateFiles::new();
        files.load().unwrap();
        let other = CertificateFiles::new();
        let mixed = ServerTls::load(files.path("cert"), other.path("key")).unwrap_err();
        assert!(matches!(mixed, CertificateError::Pair(_)), "{mixed}");
        let absent = ServerTls::load(files.path("cert"), files.path("none")).unwrap_err();
        assert!(matches!(absent, CertificateError::File { .. }), "{absent}");
        let swapped = ServerTls::load(files.path("key"), files.path("cert")).unwrap_err();
        assert!(
            matches!(swapped, CertificateError::Empty { .. }),
            "{swapped}"
        );
        std::fs::write(files.path("key"), "no key").unwrap();
        let empty = files.load().unwrap_err();
        assert!(empty.to_string().contains("no private key"), "{empty}");
    }

    #[test]
    fn a_file_ends_at_its_bound() {
        let files = CertificateFiles::new();
        let long = |bytes: u64| vec![b' '; usize::try_from(bytes).unwrap()];
        std::fs::write(files.path("key"), long(MAX_FILE_BYTES)).unwrap();
        assert!(matches!(files.load(), Err(CertificateError::Empty { .. })));
        std::fs::write(files.path("key"), long(MAX_FILE_BYTES + 1)).unwrap();
        assert!(matches!(files.load(), Err(CertificateError::File { .. })));
    }

    #[test]
    fn a_new_certificate_is_taken_and_a_bad_one_changes_nothing() {
        let files = CertificateFiles::new();
        let tls = files.load().unwrap();
        let first = tls.current().config;
        assert!(!tls.renew().unwrap());
        // Sizes and times of two certificates can be the same, so that one is given another time.
        let later = SystemTime::now() + Duration::from_secs(60);
        let touch = |name: &str| {
            let file = std::fs::File::options().write(true).open(files.path(name));
            file.unwrap().set_modified(later).unwrap();
        };
        files.issue();
        touch("cert");
        assert!(tls.renew().unwrap());
        let second = tls.current().config;
        assert!(!Arc::ptr_eq(&first, &second));
        std::fs::write(files.path("cert"), "half a certificate").unwrap();
        assert!(tls.renew().is_err());
        assert!(Arc::ptr_eq(&second, &tls.current().config));
        // It is told once.
        assert!(!tls.renew().unwrap());
    }
}
