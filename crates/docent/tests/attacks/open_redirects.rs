//! Open redirects through client registration: redirect URIs with schemes that start programs are refused, and an
//! authorization request that fails before consent shows an error page instead of redirecting.

use serde_json::json;

use crate::browser::{Browser, CALLBACK, HttpReply, HttpRequest, form};
use crate::process::{ServerProcess, TestDir};

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Redirect URIs that must be refused: schemes that operating systems and browsers act on, and deceptive ones.
const REFUSED: [&str; 45] = [
    "ms-msdt:/id%20PCWDiagnostic",
    "search-ms:query=x&crumb=location:\\\\evil.example",
    "search-ms:query=x",
    "smb://evil.example/share",
    "ldap://evil.example/",
    "ldaps://evil.example/",
    "intent://evil.example/#Intent;scheme=http;end",
    "intent:x",
    "feed:javascript:alert(1)",
    "feed:https://evil.example/",
    "chrome-extension://abcdefghijklmnop/x.html",
    "moz-extension://abc/x.html",
    "chrome://settings/",
    "edge://settings/",
    "about:blank",
    "itms-services://?action=download-manifest&url=https://evil.example/a.plist",
    "itms-apps://apps.example/x",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html,x",
    "blob:https://evil.example/x",
    "filesystem:https://evil.example/x",
    "file:///etc/passwd",
    "ftp://evil.example/",
    "sftp://evil.example/",
    "ssh://evil.example/",
    "telnet://evil.example/",
    "ws://evil.example/",
    "wss://evil.example/",
    "mailto:a@evil.example",
    "tel:123",
    "sms:123",
    "market://details?id=x",
    "shell:startup",
    "ms-officecmd:x",
    "ms-word:ofe|u|https://evil.example/a.docx",
    "ms-settings:x",
    "view-source:https://evil.example/",
    "jar:https://evil.example/x!/y",
    "vscode://file/etc/passwd",
    "cursor://anysphere.cursor-deeplink/mcp/install?name=x",
    "steam://run/1",
    "http://evil.example/cb",
    "z39.50s://evil.example/",
];

fn serve(dir: &TestDir) -> (ServerProcess, Browser) {
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let server = ServerProcess::start(dir, &["docs", "--auth", "password", "--no-watch"]);
    let address = server.address.clone();
    (server, Browser { address })
}

fn register(browser: &Browser, uri: &str) -> HttpReply {
    browser.send(&HttpRequest {
        method: "POST",
        target: "/register",
        headers: "Content-Type: application/json\r\n".to_owned(),
        body: json!({"redirect_uris": [uri]}).to_string(),
    })
}

#[test]
fn schemes_that_start_programs_are_not_registered() {
    let dir = TestDir::small();
    let (_server, browser) = serve(&dir);
    for uri in REFUSED {
        let got = register(&browser, uri);
        assert_eq!(got.status, 400, "{uri}: {}", got.body);
        assert_eq!(got.json()["error"], "invalid_redirect_uri", "{uri}");
    }
    for uri in [
        CALLBACK,
        "http://127.0.0.1/callback",
        "http://localhost:33418/",
        "com.example.app:/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "vscode://saoudrizwan.claude-dev/mcp-auth/callback/1f",
    ] {
        assert_eq!(register(&browser, uri).status, 201, "{uri}");
    }
}

#[test]
fn a_malformed_request_shows_an_error_page_and_does_not_redirect() {
    let dir = TestDir::small();
    let (_server, browser) = serve(&dir);
    let client = browser.register();
    let good = [
        ("response_type", "code"),
        ("client_id", client.as_str()),
        ("redirect_uri", CALLBACK),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "s\"><b>1"),
    ];
    let ask = |name: &str, value: Option<&str>| {
        let mut values: Vec<_> = good.into_iter().filter(|(key, _)| *key != name).collect();
        values.extend(value.map(|value| (name, value)));
        browser.get(&format!("/authorize?{}", form(&values)), "")
    };
    let long = "x".repeat(2_049);
    for (name, value) in [
        ("response_type", None),
        ("response_type", Some("token")),
        ("code_challenge", None),
        ("code_challenge", Some("short")),
        ("code_challenge_method", Some("plain")),
        ("state", Some(long.as_str())),
        ("scope", Some("admin")),
        ("resource", Some("https://evil.example/mcp")),
        ("prompt", Some("none")),
        ("request", Some("x")),
        ("request_uri", Some("https://evil.example/r")),
        ("response_mode", Some("fragment")),
    ] {
        let got = ask(name, value);
        assert_eq!(got.status, 400, "{name}: {}", got.body);
        let head = got.head.to_ascii_lowercase();
        assert!(!head.contains("\nlocation:") && !head.contains("\nrefresh:"));
        assert!(!got.body.contains("http-equiv"), "{name}: {}", got.body);
        // The URI appears as a link and as text, and the state injects no markup into either.
        assert_eq!(got.body.matches(CALLBACK).count(), 2, "{}", got.body);
        assert!(!got.body.contains("\"><b>"), "{}", got.body);
    }
    // A redirect URI that the client did not register is not even shown.
    let got = ask("redirect_uri", Some("https://evil.example/cb"));
    assert_eq!(got.status, 400);
    assert!(!got.body.contains("evil.example"), "{}", got.body);
    assert_eq!(ask("", None).status, 200);
}
