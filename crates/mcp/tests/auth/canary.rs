//! Canary test for credential leaks: no part of a token appears in logs, responses, files or outgoing requests.
//! `crates/docent/tests/it/canary` tests the same for the whole program.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docent_mcp::{ApiKeyGrant, ApiKeyStore, IntrospectionClient, Issuer, IssuerNetwork};
use serde_json::json;

use crate::fixture::{AuthTestServer, LoopbackIssuer, RawRequest, builder, claims};
use crate::mint::Signer;
use crate::needles::found;

/// Number of rounds. Ten credentials in five places each make 10,000 requests.
const ROUNDS: usize = 200;

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "current_thread")]
async fn no_part_of_a_token_is_logged_or_returned() {
    let log = LogBuffer::default();
    let writer = log.clone();
    // A global subscriber, so that the log lines of tests that run at the same time are searched as well.
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let signer = Signer::ed25519("canary");
    let provider = LoopbackIssuer::start(&[&signer]).await;
    let introspector = LoopbackIssuer::start(&[]).await;
    let dir = tempfile::tempdir().unwrap();
    let keys = ApiKeyStore::open(dir.path().join("keys.json")).unwrap();
    let grant = ApiKeyGrant {
        name: "nightly".to_owned(),
        scopes: vec!["docs.read".to_owned()],
        ..ApiKeyGrant::default()
    };
    let key = keys.add(grant, 1).unwrap();
    let secret = "CANARY-secret-of-our-own".to_owned();
    let endpoint = format!("{}/introspect", introspector.name);
    let client = IntrospectionClient {
        id: "docent",
        secret: &secret,
    };
    let auth = builder()
        .issuer(
            Issuer::remote(&provider.name, None, IssuerNetwork::Private).cooldown(Duration::ZERO),
        )
        .issuer(Issuer::introspected(
            &introspector.name,
            &endpoint,
            client,
            IssuerNetwork::Private,
        ))
        .keys(keys);
    let server = AuthTestServer::start(auth.build().unwrap()).await;

    let mut claimed = claims(&provider.name);
    claimed["canary"] = "CANARY-of-a-claim-0123456789".into();
    let good = signer.token(&claimed);
    let mut expired = claimed.clone();
    expired["exp"] = 1.into();
    let opaque = [
        "good-CANARY-opaque-0123456789",
        "CANARY-opaque-that-is-unknown",
    ];
    // Each credential, and the status of a call with it.
    let tokens = [
        (good.clone(), 200),
        (signer.token(&expired), 401),
        (
            signer.token_with(&json!({"kid": "CANARY-kid-0123456789"}), &claimed),
            401,
        ),
        (format!("{good}x"), 401),
        (opaque[0].to_owned(), 200),
        (opaque[1].to_owned(), 401),
        (key.clone(), 200),
        (format!("{}CANARYCANARY", &key[..key.len() - 12]), 401),
        (
            "docent_CANARYK1_CANARYKEYCANARYKEYCANARYKEYCANARYKEYCANARYK".to_owned(),
            401,
        ),
        ("CANARY.but.not-a-token-at-all".to_owned(), 401),
    ];
    let mut answers = String::new();
    let mut count = 0;
    for _ in 0..ROUNDS {
        for (token, status) in &tokens {
            let query = format!("/mcp?access_token={token}");
            for (sent, expected) in [
                (RawRequest::call("whoami").bearer(token), Some(*status)),
                (RawRequest::call("nothing").bearer(token), None),
                (
                    RawRequest::call("whoami").with("x-api-key", token.as_str()),
                    None,
                ),
                (
                    RawRequest::call("whoami").bearer(token).at("/other"),
                    Some(404),
                ),
                (RawRequest::call("whoami").at(&query), Some(401)),
            ] {
                let answered = server.send(&sent).await;
                if let Some(expected) = expected {
                    assert_eq!(answered.status, expected, "{token}: {}", answered.body);
                }
                answers.push_str(&answered.head);
                answers.push_str(&answered.body);
                count += 1;
            }
        }
    }
    assert_eq!(count, 10_000);
    for path in ["/readyz", "/healthz"] {
        answers.push_str(&server.get(path).await.body);
    }

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("refused a caller"), "the log was not captured");
    let disk = std::fs::read_to_string(dir.path().join("keys.json")).unwrap();
    assert!(disk.contains("nightly"), "the key file was not read");
    let issuer_requests = provider.received.lock().unwrap().clone();
    assert!(
        provider.fetched() > 0 && !issuer_requests.is_empty(),
        "the issuer recorded no request"
    );
    let introspected = introspector.received.lock().unwrap().clone();
    assert!(
        introspected.contains(opaque[0]),
        "the introspection endpoint recorded no token"
    );
    // The header of a JWT is left out: it names the algorithm, which is no secret and the same for all tokens.
    let mut secrets: Vec<String> = tokens
        .iter()
        .flat_map(|(token, _)| match token.matches('.').count() {
            2 => token.split('.').skip(1).map(str::to_owned).collect(),
            _ => vec![token.clone()],
        })
        .filter(|part| part.len() >= 16)
        .collect();
    secrets.extend(["CANARY-of-a-claim-0123456789", "CANARY-kid-0123456789"].map(str::to_owned));
    let own = [&secrets[..], std::slice::from_ref(&secret)].concat();
    for (place, text) in [
        ("the log", &log),
        ("answers", &answers),
        ("the disk", &disk),
        ("the issuer", &issuer_requests),
    ] {
        assert_eq!(found(text, &own), None, "{place}");
        assert!(
            !text.to_ascii_lowercase().contains("authorization: bearer"),
            "{place}"
        );
    }
    // The introspection endpoint receives opaque tokens and the client credentials, and nothing else. A credential
    // that is no JWT may be an opaque token, so it is sent there too.
    let [known, unknown] = opaque;
    let sent_for_introspection = [known, unknown, "CANARY.but.not-a-token-at-all"];
    let is_sent = |secret: &String| {
        sent_for_introspection
            .iter()
            .any(|token| token.contains(secret.as_str()))
    };
    let never_sent: Vec<String> = secrets
        .into_iter()
        .filter(|secret| !is_sent(secret))
        .collect();
    assert_eq!(found(&introspected, &never_sent), None);
}
