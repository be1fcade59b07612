//! Private certificate authority for tests. Its certificates are trusted only where `pem` is configured as a root.

use docent_mcp::http::ServerTls;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

pub(crate) struct TestAuthority {
    issuer: rcgen::Issuer<'static, KeyPair>,
    /// Self-signed root certificate in PEM, the trust anchor to configure.
    pub(crate) pem: String,
}

impl TestAuthority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = rcgen::Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// Issues a server certificate for this host name. The key lives in a temporary folder only until it is loaded.
    pub(crate) fn vouch(&self, name: &str) -> ServerTls {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (cert, private) = (dir.path().join("cert"), dir.path().join("key"));
        std::fs::write(&cert, certificate.pem()).unwrap();
        std::fs::write(&private, key.serialize_pem()).unwrap();
        ServerTls::load(cert, private).unwrap()
    }
}
