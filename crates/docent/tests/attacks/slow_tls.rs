//! Slow TLS clients: some never finish the handshake, others finish it and never read. Honest clients are answered
//! meanwhile, memory stays bounded, and idle connections are closed at their deadline.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

use crate::process::{ServerProcess, TestDir, until};
use crate::wire;

const MIB: u64 = 1024 * 1024;
const MAX_GROWTH: u64 = 128 * MIB;
const HALF_GREETED: usize = 100;
const UNREAD: usize = 100;
const CALLS_EACH: usize = 4;

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

struct TlsServer {
    server: ServerProcess,
    config: Arc<ClientConfig>,
}

impl TlsServer {
    fn start(dir: &TestDir) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        dir.write("cert.pem", &made.cert.pem());
        dir.write("key.pem", &made.signing_key.serialize_pem());
        wire::long_document(dir);
        let files = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
        let mut args = vec!["docs", "--no-watch"];
        args.extend(files);
        let mut command = dir.serve(&args);
        command.env("DOCENT_MODEL_NAME", "none");
        command.env("DOCENT_LIMITS_HEADERS_SECONDS", "3");
        let config = trusting(made.cert.der().clone());
        let server = Self {
            server: ServerProcess::of(command),
            config,
        };
        let ready = until(|| (server.get("/readyz").0 == 200).then_some(()));
        assert!(ready.is_some(), "{}", server.server.log());
        server
    }

    fn connection(&self) -> ClientConnection {
        let name = ServerName::try_from("localhost").unwrap();
        ClientConnection::new(Arc::clone(&self.config), name).unwrap()
    }

    /// Opens a connection; the first write does the handshake.
    fn connect(&self) -> TlsStream {
        StreamOwned::new(self.connection(), wire::connect(&self.server))
    }

    /// Sends half of a ClientHello and then nothing.
    fn half_greeted(&self) -> TcpStream {
        let mut hello = Vec::new();
        self.connection().write_tls(&mut hello).unwrap();
        let mut stream = wire::connect(&self.server);
        stream.write_all(&hello[..hello.len() / 2]).unwrap();
        stream
    }

    /// Requests far more than fits into the socket buffers, and reads none of it.
    fn unread(&self) -> TlsStream {
        let body = wire::call("fetch", &json!({"id": "long.txt"}));
        let request = wire::post_head("/mcp", "application/json", body.len()) + &body;
        let mut stream = self.connect();
        for _ in 0..CALLS_EACH {
            stream.write_all(request.as_bytes()).unwrap();
        }
        stream
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = self.connect();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // A connection that ends without a `close_notify` alert is an error for rustls, which does not matter here.
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        (status.unwrap_or_default(), answer)
    }

    /// Makes a call, reads the answer and returns its status.
    fn fetch(&self) -> u16 {
        let body = wire::call("fetch", &json!({"id": "long.txt"}));
        let mut stream = self.connect();
        let head = wire::post_head("/mcp", "application/json", body.len());
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// A client configuration that trusts only this certificate.
fn trusting(certificate: CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

#[test]
fn slow_handshakes_and_unread_answers_keep_nobody_waiting() {
    let dir = TestDir::small();
    let server = TlsServer::start(&dir);
    assert_eq!(server.fetch(), 200);
    let before = wire::memory(&server.server, "VmRSS");

    let greeted: Vec<_> = (0..HALF_GREETED).map(|_| server.half_greeted()).collect();
    assert_eq!(server.get("/readyz").0, 200);
    let unread: Vec<_> = (0..UNREAD).map(|_| server.unread()).collect();
    for _ in 0..5 {
        let (status, answer) = server.get("/readyz");
        assert_eq!(status, 200, "{answer}");
    }
    // A client that reads is answered, once the server has evicted the connections with the most unread bytes.
    let read = until(|| (server.fetch() == 200).then_some(()));
    assert!(read.is_some());
    let after = wire::memory(&server.server, "VmRSS");
    let peak = wire::memory(&server.server, "VmHWM");
    assert!(
        after < before + MAX_GROWTH && peak < before + MAX_GROWTH,
        "grown by {} MiB, at most {} MiB",
        after.saturating_sub(before) / MIB,
        peak.saturating_sub(before) / MIB
    );

    // Unfinished handshakes have a deadline: each of these connections is closed, with an alert at most.
    for mut stream in greeted {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => assert!(rest.len() < 100, "{} bytes", rest.len()),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    drop(unread);
    assert_eq!(server.get("/readyz").0, 200);
}
