//! `docent preview`, the page that acts as a host: its routes over real sockets, and the secret and origin checks that
//! protect its proxy.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::process::{ServerProcess, TestDir};

struct PreviewReply {
    status: u16,
    head: String,
    body: String,
}

impl PreviewReply {
    fn header(&self, name: &str) -> String {
        let line = self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        });
        line.unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }
}

fn request(address: &str, line: &str, headers: &[(&str, &str)], body: &str) -> PreviewReply {
    let mut request = format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    PreviewReply {
        status: head[9..12].parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Gets the page, and parses the configuration embedded in it.
fn page(address: &str) -> (PreviewReply, Value) {
    let page = request(address, "GET /preview", &[], "");
    let (_, rest) = page.body.split_once("id=\"config\">").unwrap();
    let config = serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap();
    (page, config)
}

#[test]
fn the_page_runs_its_own_script_and_nothing_else() {
    let dir = TestDir::new();
    let preview = ServerProcess::preview(&dir, &["http://127.0.0.1:9/mcp"]);
    let (page, config) = page(&preview.address);
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe")
    );
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(config["server"], "http://127.0.0.1:9/mcp");
    assert_eq!(config["proxy"], true);
    let moved = request(&preview.address, "GET /", &[], "");
    assert_eq!(
        (moved.status, moved.header("location").as_str()),
        (302, "/preview")
    );
}

#[test]
fn a_widget_is_framed_under_the_policy_of_its_host() {
    let dir = TestDir::new();
    let preview = ServerProcess::preview(&dir, &[]);
    let address = &preview.address;
    let token = page(address).1["token"].as_str().unwrap().to_owned();
    let token = ("x-docent-token", token.as_str());
    let widget = |host: &str| {
        json!({"html": "<!doctype html><p>hi", "host": host, "csp": {
            "connectDomains": ["https://api.example.com"], "frameDomains": ["https://video.example.com"],
            "resourceDomains": ["https://cdn.example.com; script-src *"]}})
        .to_string()
    };
    for (host, frames) in [
        ("chatgpt", "https://video.example.com"),
        ("claude", "'none'"),
    ] {
        let kept = request(address, "POST /preview/frame", &[token], &widget(host)).json();
        let shown = request(
            address,
            &format!("GET {}", kept["src"].as_str().unwrap()),
            &[],
            "",
        );
        assert_eq!(shown.body, "<!doctype html><p>hi");
        let policy = shown.header("content-security-policy");
        assert!(
            policy.starts_with(kept["policy"].as_str().unwrap()),
            "{policy}"
        );
        assert!(
            policy.contains("connect-src 'self' https://api.example.com;"),
            "{policy}"
        );
        assert!(policy.contains(&format!("frame-src {frames};")), "{policy}");
        assert!(!policy.contains("script-src *") && policy.ends_with("sandbox allow-scripts"));
    }
    let bare = json!({"html": "x", "host": "claude", "csp": null}).to_string();
    let kept = request(address, "POST /preview/frame", &[token], &bare).json();
    assert!(
        kept["policy"]
            .as_str()
            .unwrap()
            .ends_with("connect-src 'none'")
    );
    assert_eq!(
        request(address, "POST /preview/frame", &[token], "{}").status,
        400
    );
    assert_eq!(
        request(address, "GET /preview/frame/none", &[], "").status,
        404
    );
}

#[test]
fn another_sites_page_gets_nothing() {
    let dir = TestDir::new();
    let preview = ServerProcess::preview(&dir, &[]);
    let address = &preview.address;
    let token = page(address).1["token"].as_str().unwrap().to_owned();
    let token = ("x-docent-token", token.as_str());
    let (same_site, navigate) = (
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-mode", "navigate"),
    );
    let evil = ("origin", "https://evil.example");
    let target = ("x-docent-target", "http://127.0.0.1:9/mcp");
    let status =
        |line: &str, headers: &[(&str, &str)]| request(address, line, headers, "{}").status;
    assert_eq!(status("GET /preview", &[same_site]), 403);
    assert_eq!(status("GET /preview", &[same_site, navigate]), 200);
    assert_eq!(status("GET /preview", &[evil]), 403);
    for line in ["POST /preview/frame", "POST /preview/proxy"] {
        assert_eq!(status(line, &[target]), 403, "{line} without the secret");
        assert_eq!(
            status(line, &[target, ("x-docent-token", "guess")]),
            403,
            "{line}"
        );
        assert_eq!(
            status(line, &[target, token, same_site, navigate]),
            403,
            "{line}"
        );
        assert_eq!(status(line, &[target, token, evil]), 403, "{line}");
    }
    assert_eq!(
        status(
            "POST /preview/proxy",
            &[token, ("x-docent-target", "file:///etc/passwd")]
        ),
        400
    );
    assert_eq!(status("POST /preview/proxy", &[token, target]), 502);
    let refused = dir.run(&["preview", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("only on loopback addresses"),
        "{}",
        refused.stderr
    );
    let refused = dir.run(&["preview", "ftp://a.example"]);
    assert!(
        refused.stderr.contains("is not a web address"),
        "{}",
        refused.stderr
    );
}

#[test]
fn another_server_is_reached_through_the_proxy() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    let preview = ServerProcess::preview(&dir, &[]);
    let token = page(&preview.address).1["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let target = format!("http://{}/mcp", server.address);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    for accept in ["application/json", "application/json, text/event-stream"] {
        let headers = [
            ("x-docent-token", token.as_str()),
            ("x-docent-target", target.as_str()),
            ("content-type", "application/json"),
            ("accept", accept),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let answer = request(&preview.address, "POST /preview/proxy", &headers, &list);
        assert_eq!(answer.status, 200);
        let text = answer.body.trim().trim_start_matches("data: ");
        let message: Value = serde_json::from_str(text).unwrap();
        assert_eq!(message["result"]["tools"][0]["name"], "search");
    }
}

#[test]
fn a_server_shows_itself_only_when_asked_to() {
    let dir = TestDir::small();
    let plain = ServerProcess::start(&dir, &["docs"]);
    assert_eq!(request(&plain.address, "GET /preview", &[], "").status, 404);
    drop(plain);
    let server = ServerProcess::start(&dir, &["docs", "--preview"]);
    let config = page(&server.address).1;
    assert_eq!(
        (&config["server"], &config["proxy"]),
        (&json!("/mcp"), &json!(false))
    );
    let token = config["token"].as_str().unwrap();
    let headers = [
        ("x-docent-token", token),
        ("x-docent-target", "http://127.0.0.1:9/mcp"),
    ];
    let answer = request(&server.address, "POST /preview/proxy", &headers, "{}");
    assert_eq!(
        answer.status, 404,
        "a server with `--preview` must not act as an open proxy"
    );
}
