//! TLS for a listener, from a certificate and a key in two files, with automatic reload.
//!
//! Tools that renew certificates rewrite the files, and no one should have to restart a server for that. So the files
//! are polled, and a certificate that cannot be used leaves the old one in place.

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

/// Interval at which the files are checked for changes. Certificates are renewed weeks before they expire, so nothing
/// depends on the moment. Polling works on every file system, unlike notifications, which network mounts and containers
/// do not deliver.
const EVERY: Duration = Duration::from_secs(10);

/// Maximum size of each file, and maximum number of certificates in a chain.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
const MAX_CHAIN: usize = 16;

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read or parsed.
    #[error("`{}` cannot be read", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system or the parser.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file does not contain what it should.
    #[error("there is no {what} in `{}`", path.display())]
    Empty {
        /// The path of the file.
        path: PathBuf,
        /// What is missing: a certificate or a private key.
        what: &'static str,
    },
    /// The certificate and the key do not match, or are of an unsupported kind.
    #[error("the certificate and the key cannot be used together")]
    Pair(#[from] rustls::Error),
}

impl CertificateError {
    /// Returns a hint that says how to fix the problem.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => {
                "both are files in PEM form, readable by the user that runs the server"
            }
            Self::Empty { .. } => {
                "the certificate with its chain stands in one file, its private key in the other"
            }
            Self::Pair(_) => "use the private key that belongs to this certificate",
        }
    }
}

/// A TLS certificate from two files, for [`HttpOptions`](super::HttpOptions). It is reloaded when the files change.
///
/// ```rust,no_run
/// use docent_mcp::http::{HttpOptions, ServerTls};
///
/// let tls = ServerTls::load("/etc/tides/cert.pem", "/etc/tides/key.pem")?;
/// let options = HttpOptions { tls: Some(tls), ..HttpOptions::default() };
/// # let _ = options;
/// # Ok::<(), docent_mcp::http::CertificateError>(())
/// ```
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
    /// The modification times and sizes of the files when they were read.
    stamps: CertificateStamps,
}

/// The modification time and size of both files.
type CertificateStamps = [Option<(SystemTime, u64)>; 2];

impl ServerTls {
    /// Loads a certificate chain, and the private key of its first certificate.
    ///
    /// # Errors
    /// Returns an error if they cannot be read or used.
    pub fn load(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, CertificateError> {
        let (certificate, key) = (certificate.into(), key.into());
        let stamps = file_stamps(&certificate, &key);
        let config = config(&certificate, &key)?;
        Ok(Self(Arc::new(ServerTlsInner {
            certificate,
            key,
            now: RwLock::new(LoadedCertificate { config, stamps }),
        })))
    }

    /// Performs the TLS handshake with a client. The caller sets the time limit.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current().config)
            .accept(stream)
            .await
    }

    /// Polls the files, for as long as the future is polled.
    pub(crate) async fn reload_loop(&self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let tls = self.clone();
            let renewed = tokio::task::spawn_blocking(move || tls.renew()).await;
            match renewed {
                Ok(Ok(true)) => tracing::info!("TLS certificate reloaded"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    let hint = error.hint();
                    tracing::warn!(%error, hint, "TLS certificate reload failed, keeping the old one");
                }
                Err(error) => tracing::error!(%error, "TLS certificate check failed"),
            }
        }
    }

    /// Reloads the files if they changed. Returns whether a new certificate is in use.
    ///
    /// # Errors
    /// Returns an error if they cannot be used; they are not read again before they change.
    fn renew(&self) -> Result<bool, CertificateError> {
        let ServerTlsInner {
            certificate, key, ..
        } = &*self.0;
        let stamps = file_stamps(certificate, key);
        let LoadedCertificate {
            config: old,
            stamps: before,
        } = self.current();
        if stamps == before {
            return Ok(false);
        }
        let read = config(certificate, key);
        let config = read.as_ref().map_or(old, Arc::clone);
        let mut now = self.0.now.write().unwrap_or_else(PoisonError::into_inner);
        *now = LoadedCertificate { config, stamps };
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

        /// Writes a newly generated certificate and its key.
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
    fn certificate_errors_are_distinguished() {
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
        // Two certificates can have the same size and modification time, so the second gets another time.
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
        // The error is reported once per change.
        assert!(!tls.renew().unwrap());
    }
}
