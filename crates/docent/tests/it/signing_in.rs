//! Authentication of the real program: API keys, an external issuer, optional sign-in, and signed links to pages.

use serde_json::{Value, json};

use crate::process::{ServerProcess, TestDir, until};

const PUBLIC: [&str; 2] = ["--public-url", "https://docs.example.org"];

fn with_auth(settings: &str) -> TestDir {
    let dir = TestDir::small();
    dir.write("docs/docent.toml", &format!("[auth]\n{settings}\n"));
    dir
}

fn add(dir: &TestDir, more: &[&str]) -> String {
    let mut args = vec!["key", "add", "nightly", "--path", "docs"];
    args.extend(more);
    let ran = dir.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("it cannot be shown again"), "{ran:?}");
    ran.stdout.trim().to_owned()
}

fn serve(dir: &TestDir) -> ServerProcess {
    ServerProcess::start(dir, &["docs", PUBLIC[0], PUBLIC[1]])
}

/// Calls a tool, and returns the status, the `WWW-Authenticate` challenge and the structured content.
fn call(
    server: &ServerProcess,
    headers: &str,
    tool: &str,
    arguments: &Value,
) -> (u16, String, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let (head, text) = server.raw("POST", "/mcp", Some(&body), headers);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let challenge = head
        .lines()
        .find_map(|line| line.strip_prefix("www-authenticate: "));
    let answer: Value = serde_json::from_str(&text).unwrap();
    (
        status,
        challenge.unwrap_or_default().to_owned(),
        answer["result"]["structuredContent"].clone(),
    )
}

fn search(server: &ServerProcess, headers: &str) -> (u16, String, Value) {
    call(server, headers, "search", &json!({"query": "ferry"}))
}

#[test]
fn a_key_opens_the_server_until_it_is_removed() {
    let dir = with_auth("api_keys = true");
    let key = add(&dir, &[]);
    let server = serve(&dir);
    server.wait_until_synced();
    server.wait_for("sign-in      required: API keys");
    let (status, challenge, _) = search(&server, "");
    assert_eq!(status, 401);
    assert_eq!(
        challenge,
        "Bearer resource_metadata=\"https://docs.example.org/.well-known/oauth-protected-resource/mcp\", \
         scope=\"docs.read\""
    );
    for headers in [
        format!("Authorization: Bearer {key}\r\n"),
        format!("X-Api-Key: {key}\r\n"),
    ] {
        let (status, _, found) = search(&server, &headers);
        assert_eq!(status, 200);
        assert_eq!(found["results"][0]["id"], "ferry.md");
    }
    let listed = dir.run(&["key", "list", "--path", "docs", "--json"]).json();
    assert_eq!(listed[0]["name"], "nightly");
    assert_eq!(listed[0]["scopes"], json!(["docs.read"]));
    assert!(!listed.to_string().contains(&key));
    let removed = dir.run(&["key", "remove", "nightly", "--path", "docs"]);
    assert_eq!(
        (removed.code, removed.stderr.as_str()),
        (Some(0), "1 key removed\n")
    );
    let refused = until(|| {
        let (status, challenge, _) = search(&server, &format!("X-Api-Key: {key}\r\n"));
        (status == 401).then_some(challenge)
    });
    assert!(refused.unwrap().contains("invalid_token"));
    assert!(!server.log().contains(&key), "an API key is in the log");
}

#[test]
fn a_link_opens_its_page_and_no_other() {
    let dir = with_auth("api_keys = true");
    let header = format!("X-Api-Key: {}\r\n", add(&dir, &[]));
    let link = {
        let server = serve(&dir);
        server.wait_until_synced();
        let (_, _, found) = search(&server, &header);
        found["results"][0]["url"].as_str().unwrap().to_owned()
    };
    // The server was restarted; links that it signed before are still valid.
    let server = serve(&dir);
    server.wait_until_synced();
    let path = link.strip_prefix("https://docs.example.org").unwrap();
    assert!(path.starts_with("/d/ferry.md?exp="), "{path}");
    let get = |path: &str| {
        let (head, body) = server.raw("GET", path, None, "");
        (head.split(' ').nth(1).unwrap().to_owned(), head, body)
    };
    let (status, head, body) = get(path);
    assert_eq!(status, "200");
    assert!(body.contains("The ferry sails at nine."), "{body}");
    assert!(head.contains("cache-control: private"), "{head}");
    let (plain, query) = path.split_once('?').unwrap();
    let absent = get("/d/nothing.md");
    for bad in [
        plain.to_owned(),
        path.replace("ferry.md", "slate.txt"),
        format!("{plain}?{}", query.replace("exp=", "exp=9")),
        path[..path.len() - 1].to_owned(),
    ] {
        let refused = get(&bad);
        assert_eq!(refused.0, "404", "{bad}");
        assert_eq!(
            refused.2, absent.2,
            "a forbidden page must equal a missing one"
        );
    }
}

#[test]
fn a_signed_link_ends_when_the_permissions_change() {
    let rules = |group: &str| {
        format!(
            "[auth]\napi_keys = true\n[permissions]\ndefault = \"signed-in\"\n\
             [[permissions.folder]]\npath = \"ferry.md\"\ngroups = [\"{group}\"]\n"
        )
    };
    let dir = TestDir::small();
    dir.write("docs/docent.toml", &rules("crew"));
    let header = format!("X-Api-Key: {}\r\n", add(&dir, &["--claim", "groups=crew"]));
    let server = serve(&dir);
    server.wait_until_synced();
    let (_, _, found) = search(&server, &header);
    let link = found["results"][0]["url"].as_str().unwrap();
    let path = link.strip_prefix("https://docs.example.org").unwrap();
    let status = |path: &str| {
        let (head, _) = server.raw("GET", path, None, "");
        head.split(' ').nth(1).unwrap().to_owned()
    };
    assert!(path.starts_with("/d/ferry.md?exp="), "{path}");
    assert_eq!(status(path), "200");
    dir.write("docs/docent.toml", &rules("captains"));
    until(|| (status(path) == "404").then_some(())).unwrap();
    let (_, _, found) = search(&server, &header);
    assert_ne!(found["results"][0]["id"], "ferry.md");
}

#[test]
fn key_mode_without_a_key_does_not_start() {
    let dir = with_auth("api_keys = true");
    let ran = dir.run(&["serve", "docs", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("there is no API key yet"), "{ran:?}");
    assert!(ran.stderr.contains("docent key add NAME"), "{ran:?}");
}

#[test]
fn readiness_waits_for_an_unreachable_issuer() {
    let dir = with_auth("issuers = [\"http://127.0.0.1:1\"]\nprivate_network = true");
    let server = serve(&dir);
    let (status, ready) = server.http("GET", "/readyz", None);
    assert_eq!(status, 503);
    assert_eq!(ready["sign_in"], "waiting for keys");
    let (status, metadata) = server.http("GET", "/.well-known/oauth-protected-resource/mcp", None);
    assert_eq!(status, 200);
    assert_eq!(metadata["resource"], "https://docs.example.org/mcp");
    assert_eq!(
        metadata["authorization_servers"],
        json!(["http://127.0.0.1:1"])
    );
    assert_eq!(search(&server, "").0, 401);
}

#[test]
fn where_sign_in_is_optional_everybody_may_search() {
    let dir = with_auth("api_keys = true\nrequired = false");
    let key = add(&dir, &["--claim", "groups=board", "--days", "30"]);
    let server = serve(&dir);
    server.wait_until_synced();
    assert_eq!(search(&server, "").0, 200);
    assert_eq!(search(&server, &format!("X-Api-Key: {key}\r\n")).0, 200);
    assert_eq!(search(&server, "X-Api-Key: docent_other\r\n").0, 401);
    let tools = server.mcp("tools/list", &json!({}));
    assert_eq!(
        tools["tools"][0]["securitySchemes"],
        json!([{"type": "noauth"}, {"type": "oauth2", "scopes": ["docs.read"]}])
    );
}

#[test]
fn invalid_key_arguments_are_refused_with_a_hint() {
    let dir = TestDir::small();
    for (args, words) in [
        (vec!["add", ""], "is not a name for an API key"),
        (vec!["add", "a", "--scope", "a b"], "is not a scope"),
        (vec!["add", "a", "--claim", "groups"], "is not a claim"),
        (vec!["add", "a", "--claim", "=x"], "is not a claim"),
        (vec!["add", "a", "--days", "0"], "0"),
        (vec!["remove", "nobody"], "there is no key `nobody`"),
    ] {
        let mut all = vec!["key"];
        all.extend(args);
        all.extend(["--path", "docs"]);
        let ran = dir.run(&all);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
    let none = dir.run(&["key", "list", "--path", "docs"]);
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (Some(0), "there is no key\n")
    );
    let ran = dir.run(&["key", "add", "a", "--path", "docs"]);
    assert!(ran.stderr.contains("authentication is off"), "{ran:?}");
}
