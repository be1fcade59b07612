//! Floods of dynamic client registrations: rate limits by network keep room for other clients, authenticated clients
//! are not delayed, and the stored registrations stay bounded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::browser::{Browser, CALLBACK, HttpReply, HttpRequest};
use crate::latency::Latencies;
use crate::process::{ServerProcess, TestDir, until};
use crate::stop_on_drop::StopOnDrop;

const THREADS: usize = 30;
const EACH: usize = 40;
/// The token bucket that all networks share behind a proxy: burst and refill per second.
const SHARED_BURST: usize = 300;
const SHARED_EACH_SECOND: usize = 2;
/// The token bucket of one site (an IPv6 /48).
const SITE_BURST: usize = 180;
const SITE_EACH_SECOND: usize = 1;
/// The target for refreshes while 30 threads register.
const MAX_REFRESH_P99: Duration = Duration::from_millis(50);
/// The size limit of the file that stores the registrations.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Starts a server with one user, and returns the user's password.
fn serve(dir: &TestDir) -> (ServerProcess, Browser, String) {
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let server = ServerProcess::start(dir, &["docs", "--auth", "password", "--no-watch"]);
    let address = server.address.clone();
    (server, Browser { address }, added.stdout.trim().to_owned())
}

fn register(browser: &Browser, metadata: &Value, headers: &str) -> HttpReply {
    browser.send(&HttpRequest {
        method: "POST",
        target: "/register",
        headers: format!("Content-Type: application/json\r\n{headers}"),
        body: metadata.to_string(),
    })
}

/// Signs in through a client, and returns the client id and its refresh token.
fn signed_in(browser: &Browser, client: String, password: &str) -> (String, String) {
    let page = browser.authorize(&client);
    let answer = browser.submit_consent(&page, &[("name", "anna"), ("password", password)]);
    let got = browser.redeem(&client, &answer.redirect_parameter("code"));
    assert_eq!(got.status, 200, "{}", got.body);
    let token = got.json()["refresh_token"].as_str().unwrap().to_owned();
    (client, token)
}

/// Exchanges a refresh token and returns the next one.
fn refreshed(browser: &Browser, client: &str, token: &str) -> String {
    let got = browser.refresh(client, token);
    assert_eq!(got.status, 200, "{}", got.body);
    got.json()["refresh_token"].as_str().unwrap().to_owned()
}

#[test]
fn a_flood_neither_slows_those_who_signed_in_nor_keeps_others_out() {
    let dir = TestDir::small();
    let (_server, browser, password) = serve(&dir);
    let (client, mut token) = signed_in(&browser, browser.register(), &password);
    // A user whose consent form is open during the flood.
    let waiting = browser.register();
    let page = browser.authorize(&waiting);

    let (start, done) = (Instant::now(), AtomicBool::new(false));
    let (statuses, waits) = std::thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        let flood: Vec<_> = (0..THREADS)
            .map(|thread| {
                let browser = browser.clone();
                scope.spawn(move || {
                    let uri = format!("{CALLBACK}/{}", "x".repeat(1_000));
                    let metadata =
                        json!({"client_name": "n".repeat(thread), "redirect_uris": [uri]});
                    let answers = (0..EACH).map(|_| register(&browser, &metadata, ""));
                    answers.map(|got| got.status).collect::<Vec<_>>()
                })
            })
            .collect();
        let refreshing = scope.spawn(|| {
            let mut waits = Vec::new();
            while !done.load(Ordering::SeqCst) {
                let before = Instant::now();
                token = refreshed(&browser, &client, &token);
                waits.push(before.elapsed());
            }
            waits
        });
        let joined = flood.into_iter().flat_map(|thread| thread.join().unwrap());
        let statuses: Vec<u16> = joined.collect();
        drop(stop);
        (statuses, refreshing.join().unwrap())
    });
    // That no refresh waits for a registration is also proven without a clock, where the writer of registrations can be
    // blocked: `a_refresh_is_answered_while_the_writer_of_registrations_is_held` in docent-oauth.
    Latencies::new(waits).report("refreshes during a flood", Some(MAX_REFRESH_P99));

    let of = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert_eq!(
        of(201) + of(429),
        THREADS * EACH,
        "nothing else: {statuses:?}"
    );
    let passed = usize::try_from(start.elapsed().as_secs()).unwrap() + 1;
    assert!(
        of(201) <= SHARED_BURST + passed * SHARED_EACH_SECOND,
        "{}",
        of(201)
    );
    // The consent form from before the flood still works, and new clients can register.
    let answer = browser.submit_consent(&page, &[("name", "anna"), ("password", &password)]);
    assert_eq!(
        browser
            .redeem(&waiting, &answer.redirect_parameter("code"))
            .status,
        200
    );
    let metadata = json!({"redirect_uris": [CALLBACK]});
    let late = until(|| {
        let got = register(&browser, &metadata, "");
        (got.status == 201).then(|| got.json()["client_id"].as_str().unwrap().to_owned())
    });
    signed_in(&browser, late.unwrap(), &password);
    for name in ["registrations.redb", "sign-in.redb"] {
        let path = dir.path().join("docs/.docent/sign-in").join(name);
        let bytes = std::fs::metadata(path).unwrap().len();
        assert!(bytes < MAX_FILE_BYTES, "{name}: {bytes}");
    }
}

#[test]
fn a_network_behind_the_proxy_that_floods_leaves_room_for_the_others() {
    let dir = TestDir::small();
    let (_server, browser, _) = serve(&dir);
    let metadata = json!({"redirect_uris": [CALLBACK]});
    let from = |address: &str| {
        let header = format!("X-Forwarded-For: 10.9.9.9, {address}\r\n");
        register(&browser, &metadata, &header)
    };
    // Half of them send a forged header line before that of the proxy.
    let flood: Vec<_> = (0..100)
        .map(|n| match n % 2 {
            0 => from(&format!("9.9.9.{n}")),
            _ => {
                let header =
                    format!("X-Forwarded-For: 7.7.{n}.7\r\nX-Forwarded-For: 9.9.9.{n}\r\n");
                register(&browser, &metadata, &header)
            }
        })
        .collect();
    let refused: Vec<_> = flood.iter().filter(|got| got.status == 429).collect();
    assert!(refused.len() >= 30, "{}", refused.len());
    assert!(refused.iter().all(|got| got.head.contains("retry-after: ")));
    assert_eq!(from("8.8.8.8").status, 201, "another network");
    assert_eq!(
        register(&browser, &metadata, "").status,
        201,
        "an unknown one"
    );
}

#[test]
fn a_site_with_many_networks_leaves_room_for_the_others() {
    let dir = TestDir::small();
    let (_server, browser, _) = serve(&dir);
    let metadata = json!({"redirect_uris": [CALLBACK]});
    let from = |address: &str| {
        let header = format!("X-Forwarded-For: {address}\r\n");
        register(&browser, &metadata, &header).status
    };
    let start = Instant::now();
    let flood = (0..SHARED_BURST + 100)
        .map(|n| from(&format!("2001:470:1000:{:x}::1", (n % 256) << 8)))
        .filter(|status| *status == 201);
    let let_in = flood.count();
    let passed = usize::try_from(start.elapsed().as_secs()).unwrap() + 1;
    assert!(let_in >= SITE_BURST, "{let_in}");
    assert!(
        let_in <= SITE_BURST + passed * SITE_EACH_SECOND,
        "{let_in} in {passed} s"
    );
    assert_eq!(from("9.8.8.8"), 201, "another network");
    assert_eq!(register(&browser, &metadata, "").status, 201, "an unknown");
    // Two more sites exhaust the shared bucket; a network that has not come lately is admitted by the reserve.
    for n in 0..SHARED_BURST * 2 {
        let site = 0x1001 + n % 2;
        from(&format!("2001:470:{site:x}:{:x}::1", (n % 256) << 8));
    }
    assert_eq!(from("9.7.7.7"), 201, "a network that is new");
}

#[test]
fn the_addresses_of_a_client_have_a_bound() {
    let dir = TestDir::small();
    let (_server, browser, _) = serve(&dir);
    let with = |bytes: usize| {
        let uri = |bytes: usize| {
            let rest = "a".repeat(bytes - CALLBACK.len() - 1);
            format!("{CALLBACK}/{rest}")
        };
        let uris = [uri(2_000), uri(2_000), uri(bytes - 4_000)];
        register(&browser, &json!({ "redirect_uris": uris }), "").status
    };
    assert_eq!((with(4_096), with(4_097)), (201, 400));
}
