//! Slow client metadata documents: while hosts delay the documents of their apps, users of other apps sign in without
//! delay. Fetches are limited per host and coalesced per document.

use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use docent_mcp::http::{RouteRequest, RouteResponse};
use serde_json::json;

use crate::authority::TestAuthority;
use crate::browser::{Browser, CALLBACK, form};
use crate::peers::MockPeer;
use crate::process::{ServerProcess, TestDir, until};
use crate::wire;

/// More than the concurrency limit of the sign-in page.
const WAITING: usize = 100;
/// The limit of requests that wait for documents of one host; further ones are refused immediately.
const PLACES_OF_ONE_HOST: usize = 16;
const SLOW_HOSTS: usize = 5;
/// The response time of a slow host, below the fetch timeout of five seconds.
const SLOW: Duration = Duration::from_secs(4);

/// A host that serves the metadata document of any number of apps after a delay.
fn host(authority: &TestAuthority, delay: Duration) -> MockPeer {
    MockPeer::start(Some(authority.vouch("localhost")), |name| {
        let name = name.to_owned();
        move |path: &str, _: &RouteRequest| {
            std::thread::sleep(delay);
            RouteResponse::json(&json!({
                "client_id": format!("{name}/{path}"), "client_name": "Chart room",
                "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none",
            }))
        }
    })
}

/// The path of the metadata document of an app.
fn path(app: usize) -> String {
    format!("/{app}/client.json")
}

fn client(host: &MockPeer, app: usize) -> String {
    format!("{}{}", host.name, path(app))
}

/// Starts a server that trusts these hosts and has one user, and returns the user's password.
fn serve(
    dir: &TestDir,
    authority: &TestAuthority,
    hosts: &[&MockPeer],
) -> (ServerProcess, Browser, String) {
    dir.write("ca.pem", &authority.pem);
    let names: Vec<_> = hosts.iter().map(|host| host.host()).collect();
    let settings = format!(
        "search.mode = \"lexical\"\n[auth]\nclient_hosts = {names:?}\nclient_ca = \"../ca.pem\"\n"
    );
    dir.write("docs/docent.toml", &settings);
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let server = ServerProcess::start(dir, &["docs", "--auth", "password", "--no-watch"]);
    let address = server.address.clone();
    (server, Browser { address }, added.stdout.trim().to_owned())
}

/// Opens the sign-in page of an app on `count` connections.
fn visitors(server: &ServerProcess, client: &str, count: usize) -> Vec<TcpStream> {
    let query = form(&[("client_id", client)]);
    let request = format!(
        "GET /authorize?{query} HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.address
    );
    let open = |_| {
        let mut stream = wire::connect(server);
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    (0..count).map(open).collect()
}

/// The number of visitors without a response so far.
fn unanswered(visitors: &[TcpStream]) -> usize {
    let waits = |stream: &&TcpStream| {
        let seen = stream.peek(&mut [0]);
        seen.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    visitors.iter().filter(waits).count()
}

#[test]
fn many_who_wait_for_one_slow_document_keep_no_other_app_out() {
    let authority = TestAuthority::new();
    let (slow, prompt) = (host(&authority, SLOW), host(&authority, Duration::ZERO));
    let dir = TestDir::small();
    let (server, browser, password) = serve(&dir, &authority, &[&slow, &prompt]);
    let mut app = 0;
    // On a slow machine, the document may arrive before the other app's page; then the round is repeated with another
    // one.
    let waiting = until(|| {
        app += 1;
        let crowd = visitors(&server, &client(&slow, app), WAITING);
        let in_place = until(|| (unanswered(&crowd) <= PLACES_OF_ONE_HOST).then_some(()));
        assert!(in_place.is_some(), "{} wait", unanswered(&crowd));
        let page = browser.authorize(&client(&prompt, app));
        assert_eq!(page.status, 200, "{}", page.body);
        (unanswered(&crowd) > 0).then_some(crowd)
    });
    assert!(waiting.is_some(), "the other app waited for the slow one");
    for _ in 0..5 {
        let client = client(&prompt, app);
        let page = browser.authorize(&client);
        assert_eq!(page.status, 200, "{}", page.body);
        let answer = browser.submit_consent(&page, &[("name", "anna"), ("password", &password)]);
        let got = browser.redeem(&client, &answer.redirect_parameter("code"));
        assert_eq!(got.status, 200, "{}", got.body);
    }
    let asked = || slow.received().lines().count();
    let heard = until(|| (asked() >= app).then_some(()));
    assert!(heard.is_some(), "{}", server.log());
    assert_eq!(asked(), app, "one fetch for all who wait for a document");
}

#[test]
fn slow_hosts_at_once_keep_no_other_app_out() {
    let authority = TestAuthority::new();
    let slow: Vec<_> = (0..SLOW_HOSTS).map(|_| host(&authority, SLOW)).collect();
    let prompt = host(&authority, Duration::ZERO);
    let dir = TestDir::small();
    let hosts: Vec<_> = slow.iter().chain([&prompt]).collect();
    let (server, browser, password) = serve(&dir, &authority, &hosts);
    let mut app = 0;
    // As above, the round is repeated if one of the hosts has answered before the other app's page arrived.
    let beside = until(|| {
        app += 1;
        let of_host = |host: &MockPeer| visitors(&server, &client(host, app), 2);
        let crowd: Vec<_> = slow.iter().flat_map(of_host).collect();
        let is_asked = |host: &MockPeer| host.received().contains(&path(app));
        let all_asked = until(|| slow.iter().all(is_asked).then_some(()));
        assert!(all_asked.is_some(), "a slow host waits for the others");
        let page = browser.authorize(&client(&prompt, app));
        assert_eq!(page.status, 200, "{}", page.body);
        let hung = unanswered(&crowd) == crowd.len();
        if !hung {
            let over = until(|| (unanswered(&crowd) == 0).then_some(()));
            assert!(over.is_some(), "{}", server.log());
        }
        hung.then_some(crowd)
    });
    assert!(beside.is_some(), "the other app waited for a slow one");
    let client = client(&prompt, app);
    let answer = browser.submit_consent(
        &browser.authorize(&client),
        &[("name", "anna"), ("password", &password)],
    );
    let got = browser.redeem(&client, &answer.redirect_parameter("code"));
    assert_eq!(got.status, 200, "{}", got.body);
}
