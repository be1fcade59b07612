//! Floods of tokens with unknown key ids: the server refetches the JWKS at most once in 30 seconds, however many come,
//! and learns rotated keys after that interval.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::fake_issuer::{FakeIssuer, PUBLIC, claims};
use crate::mint::{Signer, jwks};
use crate::process::{ServerProcess, TestDir, until};

/// The minimum interval between two JWKS fetches, as docs/signin.md promises.
const INTERVAL: Duration = Duration::from_secs(30);
const THREADS: usize = 16;
const EACH: usize = 25;

/// An issuer whose JWKS the test can change.
fn issuer(keys: &Arc<Mutex<Value>>) -> FakeIssuer {
    let keys = Arc::clone(keys);
    FakeIssuer::start(move |name, question| match question.path.as_str() {
        "/.well-known/openid-configuration" => {
            Some(json!({"issuer": name, "jwks_uri": format!("{name}/jwks")}))
        }
        "/jwks" => Some(keys.lock().unwrap().clone()),
        _ => None,
    })
}

fn serve(dir: &TestDir, settings: &str) -> (ServerProcess, Browser) {
    let settings = format!("search.mode = \"lexical\"\n[auth]\n{settings}\n");
    dir.write("docs/docent.toml", &settings);
    let server = ServerProcess::start(dir, &["docs", "--no-watch", "--public-url", PUBLIC]);
    server.wait_until_synced();
    let address = server.address.clone();
    (server, Browser { address })
}

fn status(browser: &Browser, token: &str) -> u16 {
    let header = format!("Authorization: Bearer {token}\r\n");
    let got = browser.rpc("/mcp", &header, "tools/list", &json!({}));
    got.status
}

/// Sends correctly signed tokens with made-up key ids, and returns the statuses.
fn flood(browser: &Browser, signer: &Signer, issuer: &FakeIssuer) -> Vec<u16> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let made_up = |n: usize| json!({"kid": format!("made-up-{thread}-{n}")});
                    let token = |n: usize| signer.token_with(&made_up(n), &claims(&issuer.name));
                    (0..EACH)
                        .map(|n| status(browser, &token(n)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let joined = threads.into_iter();
        joined.flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// The number of JWKS fetches that the interval allows since `start`.
fn allowed(start: Instant) -> usize {
    let intervals = start.elapsed().as_secs() / INTERVAL.as_secs();
    1 + usize::try_from(intervals).unwrap()
}

struct Rotation {
    keys: Arc<Mutex<Value>>,
    issuer: FakeIssuer,
    start: Instant,
    browser: Browser,
    _server: ServerProcess,
    old: Signer,
}

impl Rotation {
    /// Starts a server that has fetched the keys of an issuer.
    fn begin(dir: &TestDir) -> Self {
        let old = Signer::ed25519("old");
        let keys = Arc::new(Mutex::new(jwks(&[&old])));
        let issuer = issuer(&keys);
        let start = Instant::now();
        let settings = format!("issuers = [\"{}\"]\nprivate_network = true", issuer.name);
        let (server, browser) = serve(dir, &settings);
        let good = old.token(&claims(&issuer.name));
        let known = until(|| (status(&browser, &good) == 200).then_some(()));
        assert!(known.is_some(), "{}", server.log());
        Self {
            keys,
            issuer,
            start,
            browser,
            _server: server,
            old,
        }
    }

    /// Floods the server, and checks that valid tokens still work and that the JWKS fetches stay within their bound.
    fn attack(&self) {
        let statuses = flood(&self.browser, &self.old, &self.issuer);
        assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
        let good = self.old.token(&claims(&self.issuer.name));
        assert_eq!(status(&self.browser, &good), 200);
        assert_eq!(self.browser.get("/readyz", "").status, 200);
        let (fetched, allowed) = (self.issuer.asked("/jwks"), allowed(self.start));
        assert!((1..=allowed).contains(&fetched), "{fetched} of {allowed}");
    }
}

#[test]
fn unknown_keys_do_not_make_the_server_ask_again() {
    let dir = TestDir::small();
    let rotation = Rotation::begin(&dir);
    rotation.attack();
    let new = Signer::ed25519("new");
    *rotation.keys.lock().unwrap() = jwks(&[&rotation.old, &new]);
    rotation.attack();
    // A token with a known key id but the signature of another key is refused.
    let forged = new.token_with(&json!({"kid": "old"}), &claims(&rotation.issuer.name));
    assert_eq!(status(&rotation.browser, &forged), 401);
}

#[test]
fn a_new_key_is_known_after_the_interval_whatever_the_flood() {
    let dir = TestDir::small();
    let rotation = Rotation::begin(&dir);
    let new = Signer::ed25519("new");
    *rotation.keys.lock().unwrap() = jwks(&[&new]);
    let good = new.token(&claims(&rotation.issuer.name));
    let statuses = flood(&rotation.browser, &rotation.old, &rotation.issuer);
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    // The flood of unknown key ids goes on while valid tokens arrive.
    let made_up = json!({"kid": "made-up"});
    let known = until(|| {
        let made_up = new.token_with(&made_up, &claims(&rotation.issuer.name));
        assert_eq!(status(&rotation.browser, &made_up), 401);
        (status(&rotation.browser, &good) == 200).then_some(())
    });
    assert!(known.is_some(), "the new key was never fetched");
    assert!(rotation.start.elapsed() >= INTERVAL);
    let (fetched, allowed) = (rotation.issuer.asked("/jwks"), allowed(rotation.start));
    assert!((2..=allowed).contains(&fetched), "{fetched} of {allowed}");
    // A key that the issuer withdrew no longer verifies tokens.
    let withdrawn = rotation.old.token(&claims(&rotation.issuer.name));
    assert_eq!(status(&rotation.browser, &withdrawn), 401);
}

#[test]
fn an_issuer_of_a_private_network_is_not_asked_unless_it_is_allowed() {
    let dir = TestDir::small();
    let signer = Signer::ed25519("k");
    let issuer = issuer(&Arc::new(Mutex::new(jwks(&[&signer]))));
    let (server, browser) = serve(&dir, &format!("issuers = [\"{}\"]", issuer.name));
    server.wait_for("cannot fetch the issuer's keys");
    assert!(server.log().contains("the address is not https"));
    assert_eq!(browser.get("/readyz", "").status, 503);
    assert_eq!(status(&browser, &signer.token(&claims(&issuer.name))), 503);
    assert_eq!(issuer.asked("/jwks"), 0);
}
