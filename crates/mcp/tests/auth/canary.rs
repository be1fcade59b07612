//! A token goes nowhere: not into logs, not into answers, not into requests of ours.

use std::io::Write;
use std::sync::{Arc, Mutex};

use docent_mcp::Demand;
use serde_json::json;

use crate::world::{Sent, World};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "current_thread")]
async fn no_part_of_a_token_is_seen_again() {
    let log = Log::default();
    let writer = log.clone();
    // For the whole process: what other tests write beside it is looked through as well.
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let world = World::with(Demand::Always).await;
    let mut claims = world.claims();
    claims["canary"] = "CANARYCLAIM".into();
    let good = world.ed.token(&claims);
    let mut expired = claims.clone();
    expired["exp"] = 1.into();
    let unknown = world.ed.token_with(&json!({"kid": "CANARYKID"}), &claims);
    let tokens = [
        good.clone(),
        world.ed.token(&expired),
        unknown,
        format!("{good}x"),
        "CANARYOPAQUE".to_owned(),
        "docent_CANARYK1_CANARYKEYCANARYKEYCANARYKEYCANARYKEYCANARYK".to_owned(),
    ];
    let mut answers = String::new();
    for token in &tokens {
        for sent in [
            Sent::call("whoami").bearer(token),
            Sent::call("nothing").bearer(token),
            Sent::call("whoami").with("x-api-key", token.as_str()),
            Sent::call("whoami").bearer(token).at("/other"),
        ] {
            let answered = world.server.send(&sent).await;
            answers.push_str(&answered.head);
            answers.push_str(&answered.body);
        }
    }
    for path in ["/readyz", "/healthz"] {
        answers.push_str(&world.server.get(path).await.body);
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let heard = world.provider.heard.lock().unwrap().clone();
    assert!(
        log.contains("refused a caller"),
        "the log is looked at: {log}"
    );
    assert!(
        heard.contains("jwks") || world.provider.fetched() > 0,
        "so is the issuer"
    );
    let mut canaries: Vec<&str> = tokens.iter().flat_map(|token| token.split('.')).collect();
    canaries.retain(|part| part.len() > 10);
    canaries.extend(["CANARY", "authorization: Bearer"]);
    for (place, text) in [
        ("the log", &log),
        ("answers", &answers),
        ("the issuer", &heard),
    ] {
        for canary in &canaries {
            assert!(!text.contains(canary), "{place} has {canary}");
        }
    }
}
