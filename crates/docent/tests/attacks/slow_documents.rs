//! A host that takes its time over the document of its app: whoever signs in through another app does not wait for it.

use std::io::Write as _;
use std::time::Duration;

use docent_mcp::http::{RouteRequest, RouteResponse};
use serde_json::json;

use crate::authority::Authority;
use crate::browser::{Browser, CALLBACK, form};
use crate::peers::Peer;
use crate::process::{Dir, Server, until};
use crate::wire;

/// More than there are places for requests to one page of sign-in.
const WAITING: usize = 100;

/// The host of an app, which answers after a while.
fn app(authority: &Authority, delay: Duration) -> Peer {
    Peer::start(Some(authority.vouch("localhost")), |name| {
        let document = json!({
            "client_id": format!("{name}/client.json"), "client_name": "Chart room",
            "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none",
        });
        move |_: &str, _: &RouteRequest| {
            std::thread::sleep(delay);
            RouteResponse::json(&document)
        }
    })
}

#[test]
fn many_who_wait_for_one_slow_document_keep_no_other_app_out() {
    let authority = Authority::new();
    let slow = app(&authority, Duration::from_secs(4));
    let prompt = app(&authority, Duration::ZERO);
    let dir = Dir::small();
    dir.write("ca.pem", &authority.pem);
    let settings = format!(
        "search.mode = \"lexical\"\n[auth]\nclient_hosts = [\"{}\", \"{}\"]\nclient_ca = \"../ca.pem\"\n",
        slow.host(),
        prompt.host()
    );
    dir.write("docs/docent.toml", &settings);
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let server = Server::start(&dir, &["docs", "--auth", "password", "--no-watch"]);
    let browser = Browser {
        address: server.address.clone(),
    };

    let query = form(&[("client_id", &format!("{}/client.json", slow.name))]);
    let request = format!(
        "GET /authorize?{query} HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.address
    );
    let waiting: Vec<_> = (0..WAITING)
        .map(|_| {
            let mut stream = wire::connect(&server);
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let asked = until(|| (!slow.heard().is_empty()).then_some(()));
    assert!(asked.is_some(), "{}", server.said());
    let client = format!("{}/client.json", prompt.name);
    for _ in 0..5 {
        let page = browser.ask(&client);
        assert_eq!(page.status, 200, "{}", page.body);
        let password = added.stdout.trim();
        let answer = browser.answer(&page, &[("name", "anna"), ("password", password)]);
        let got = browser.spend(&client, &answer.handed("code"));
        assert_eq!(got.status, 200, "{}", got.body);
    }
    assert_eq!(slow.heard().lines().count(), 1, "one fetch for all of them");
    drop(waiting);
}
