//! TLS on the accept loop, with a rustls client that verifies the certificate: ALPN, the handshake deadline, plain
//! text on a TLS port, and an untrusted certificate.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use docent_mcp::http::ServerTls;
use docent_mcp::http::limits::HttpLimits;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use tokio_rustls::{TlsConnector, client};

use crate::client::{AcceptServer, soon};

/// Starts a server with a self-signed certificate, and returns the certificate as the client's trust anchor.
async fn server(limits: HttpLimits) -> (AcceptServer, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("cert"), dir.path().join("key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = ServerTls::load(cert, key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = Router::new().route("/", get(|| async { "hello" }));
    let server = AcceptServer::with_tls(listener, limits, router, Some(tls));
    (server, made.cert.der().clone())
}

async fn connect(
    server: &AcceptServer,
    trusted: CertificateDer<'static>,
    protocols: &[&[u8]],
) -> std::io::Result<client::TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(server.address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

#[tokio::test]
async fn answers_come_over_tls() {
    let (server, trusted) = server(HttpLimits::default()).await;
    let mut client = soon("handshake", connect(&server, trusted, &[b"http/1.1"]))
        .await
        .unwrap();
    let ask = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    client.write_all(ask).await.unwrap();
    let mut answer = String::new();
    soon("answer", client.read_to_string(&mut answer))
        .await
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"),
        "{answer}"
    );
    server.stop.cancel();
    server.stopped().await;
}

#[tokio::test]
async fn the_newest_protocol_that_both_know_is_spoken() {
    let (server, trusted) = server(HttpLimits::default()).await;
    for (offered, chosen) in [
        (&[b"h2".as_slice(), b"http/1.1"][..], Some(b"h2".as_slice())),
        (&[b"http/1.1".as_slice()][..], Some(b"http/1.1".as_slice())),
        (&[][..], None),
    ] {
        let handshake = connect(&server, trusted.clone(), offered);
        let client = soon("handshake", handshake).await.unwrap();
        assert_eq!(client.get_ref().1.alpn_protocol(), chosen);
    }
}

#[tokio::test]
async fn a_connection_without_a_handshake_is_closed() {
    let limits = HttpLimits {
        headers: Duration::from_millis(200),
        ..HttpLimits::default()
    };
    let (server, _) = server(limits).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut rest = Vec::new();
    let _ = soon("the end", silent.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
    // A client that sends plain HTTP gets a TLS alert, and its connection is closed too.
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let _ = soon("the end", plain.read_to_end(&mut rest)).await;
    assert!(!rest.windows(5).any(|some| some == b"hello"));
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused() {
    let (server, _) = server(HttpLimits::default()).await;
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let handshake = connect(&server, other.cert.der().clone(), &[]);
    assert!(soon("handshake", handshake).await.is_err());
}
