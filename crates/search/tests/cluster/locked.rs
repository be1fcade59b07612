//! Nodes that require an API key, and nodes that speak TLS with a certificate of a private authority.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use docent_search::{ClusterEngine, ClusterSettings, Engine, SearchError, ServiceKey};
use libtest_mimic::Trial;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair,
};

use crate::runtime;
use crate::server::TestServers;
use crate::shelf::{find, put};

/// How soon a wrong key or an untrusted certificate must be reported.
const PROMPT: Duration = Duration::from_secs(2);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("locked::keys_are_asked_for", || {
            keys();
            Ok(())
        }),
        Trial::test("locked::certificates_are_checked", || {
            certificates();
            Ok(())
        }),
    ]
}

fn with_key(servers: &TestServers, key: Option<&str>) -> ClusterSettings {
    ClusterSettings {
        key: key.map(|key| ServiceKey::new(key.to_owned())),
        collection: "locked".to_owned(),
        ..ClusterSettings::new(servers.addresses())
    }
}

/// The message and the hint of an error, which must come soon.
fn refusal<T>(work: impl FnOnce() -> Result<T, SearchError>) -> (String, &'static str) {
    let start = Instant::now();
    let error = work().err().unwrap();
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
    assert!(matches!(error, SearchError::Cluster { .. }), "{error:?}");
    (error.to_string(), error.hint())
}

fn keys() {
    let env = [
        ("QDRANT__SERVICE__API_KEY", "the right one"),
        ("QDRANT__SERVICE__READ_ONLY_API_KEY", "to read"),
    ];
    let servers = TestServers::start_with(1, &env);
    let runtime = runtime();
    let engine = ClusterEngine::open(with_key(&servers, Some("the right one")), None).unwrap();
    runtime
        .block_on(engine.apply(vec![put("a", "T", "A ferry.")]))
        .unwrap();
    assert_eq!(runtime.block_on(find(&engine, "ferry")), ["a"]);

    let (what, hint) = refusal(|| ClusterEngine::open(with_key(&servers, None), None));
    assert!(
        what.contains("requires an API key") && hint.contains("`engine.key`"),
        "{what}: {hint}"
    );
    for open in [ClusterEngine::open, ClusterEngine::open_read_only] {
        let (what, hint) = refusal(|| open(with_key(&servers, Some("a wrong one")), None));
        assert!(what.contains("rejects the API key"), "{what}");
        assert!(
            hint.contains("`engine.key`") && !what.contains("a wrong one"),
            "{hint}"
        );
    }
    let reader = ClusterEngine::open_read_only(with_key(&servers, Some("to read")), None).unwrap();
    assert_eq!(runtime.block_on(find(&reader, "ferry")), ["a"]);
    // Nobody else holds the lease, so what is refused is the key.
    drop(engine);
    let reader = ClusterEngine::open(with_key(&servers, Some("to read")), None).unwrap();
    let write = || runtime.block_on(reader.apply(vec![put("b", "T", "A tram.")]));
    let (what, hint) = refusal(write);
    assert!(what.contains("does not permit"), "{what}");
    assert!(hint.contains("may read and write"), "{hint}");
}

/// A certificate authority, as a file, and a certificate for `localhost` that it signed, with its key.
fn authority(dir: &Path, name: &str) -> [PathBuf; 3] {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let signer: &Issuer<'_, KeyPair> = &issuer;
    let leaf = leaf.signed_by(&key, signer).unwrap();
    let own: &Certificate = issuer.as_ref();
    let write = |kind: &str, pem: String| {
        let path = dir.join(format!("{name}-{kind}.pem"));
        std::fs::write(&path, pem).unwrap();
        path
    };
    [
        write("ca", own.pem()),
        write("cert", leaf.pem()),
        write("key", key.serialize_pem()),
    ]
}

fn certificates() {
    let dir = tempfile::tempdir().unwrap();
    let [ca, cert, key] = authority(dir.path(), "one");
    let [other, _, _] = authority(dir.path(), "other");
    let env = [
        ("QDRANT__SERVICE__ENABLE_TLS", "true"),
        ("QDRANT__TLS__CERT", cert.to_str().unwrap()),
        ("QDRANT__TLS__KEY", key.to_str().unwrap()),
        // Clients authenticate with a key only.
        ("QDRANT__TLS__CA_CERT", ca.to_str().unwrap()),
        ("QDRANT__SERVICE__VERIFY_HTTPS_CLIENT_CERTIFICATE", "false"),
    ];
    let servers = TestServers::start_with(1, &env);
    let plain = servers.addresses();
    let secure: Vec<String> = plain
        .iter()
        .map(|address| address.replace("http://127.0.0.1", "https://localhost"))
        .collect();
    let settings = |addresses: &[String], ca: Option<&Path>| ClusterSettings {
        ca_file: ca.map(Path::to_owned),
        collection: "locked".to_owned(),
        ..ClusterSettings::new(addresses.to_vec())
    };
    let engine = ClusterEngine::open(settings(&secure, Some(&ca)), None).unwrap();
    let runtime = runtime();
    runtime
        .block_on(engine.apply(vec![put("a", "T", "A ferry.")]))
        .unwrap();
    assert_eq!(runtime.block_on(find(&engine, "ferry")), ["a"]);

    for ca in [None, Some(other.as_path())] {
        let (what, hint) = refusal(|| ClusterEngine::open(settings(&secure, ca), None));
        assert!(
            what.contains("TLS connection to the cluster failed"),
            "{what}"
        );
        assert!(hint.contains("`engine.ca_file`"), "{hint}");
    }
    // The certificate is for another name than this address.
    let by_ip: Vec<_> = plain
        .iter()
        .map(|one| one.replace("http://", "https://"))
        .collect();
    let (_, hint) = refusal(|| ClusterEngine::open(settings(&by_ip, Some(&ca)), None));
    assert!(hint.contains("`engine.addresses`"), "{hint}");
    // These nodes do not speak TLS.
    let open = TestServers::start(1);
    let wrong_scheme: Vec<_> = open
        .addresses()
        .iter()
        .map(|address| address.replace("http://127.0.0.1", "https://localhost"))
        .collect();
    let (_, hint) = refusal(|| ClusterEngine::open(settings(&wrong_scheme, Some(&ca)), None));
    assert!(hint.contains("speak TLS"), "{hint}");
    let (what, _) = refusal(|| ClusterEngine::open(settings(&plain, None), None));
    assert!(what.contains("cluster"), "{what}");
}
