//! Password sign-in of the real program: `docent user`, checks before the start, and the metadata for clients.

use serde_json::{Value, json};

use crate::process::{ServerProcess, TestDir};

fn user(dir: &TestDir, args: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["user"];
    all.extend(args);
    all.extend(["--path", "docs"]);
    let ran = dir.run(&all);
    (ran.code, ran.stdout, ran.stderr)
}

#[test]
fn users_are_added_listed_and_removed() {
    let dir = TestDir::small();
    let (code, password, stderr) = user(
        &dir,
        &[
            "add",
            "anna",
            "--email",
            "anna@port.example",
            "--group",
            "crew",
        ],
    );
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(
        password.trim().len(),
        23,
        "a password is printed once: {password}"
    );
    assert!(!stderr.contains(password.trim()));
    let (code, _, stderr) = user(&dir, &["add", "anna"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("there is a user `anna` already"),
        "{stderr}"
    );
    let (_, listed, _) = user(&dir, &["list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        listed,
        json!({"users": [{"name": "anna", "email": "anna@port.example", "groups": ["crew"]}]})
    );
    let (code, new, _) = user(&dir, &["password", "anna"]);
    assert_eq!(code, Some(0));
    assert_ne!(new, password);
    assert_eq!(user(&dir, &["remove", "anna"]).0, Some(0));
    let (code, _, stderr) = user(&dir, &["remove", "anna"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("there is no user `anna`"), "{stderr}");
    let (code, _, stderr) = user(&dir, &["add", "bo", "--email", "nowhere"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("`nowhere` is not an e-mail address"),
        "{stderr}"
    );
}

#[test]
fn password_mode_without_users_explains_what_to_run() {
    let dir = TestDir::small();
    let ran = dir.run(&[
        "serve",
        "docs",
        "--listen",
        "127.0.0.1:0",
        "--auth",
        "password",
    ]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("nobody can sign in yet"), "{ran:?}");
    assert!(
        ran.stderr.contains("docent user add NAME --path '"),
        "{ran:?}"
    );
    assert_eq!(user(&dir, &["add", "anna"]).0, Some(0));
    let open = [
        "--auth",
        "password",
        "--public-url",
        "http://docs.example.org",
    ];
    let mut all = vec!["serve", "docs", "--listen", "127.0.0.1:0"];
    all.extend(open);
    let ran = dir.run(&all);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("use an https URL"), "{ran:?}");
    let ran = dir.run(&[
        "serve",
        "docs",
        "--listen",
        "127.0.0.1:0",
        "--auth",
        "upstream",
    ]);
    assert!(
        ran.stderr.contains("`auth.upstream.issuer` is not set"),
        "{ran:?}"
    );
}

#[test]
fn password_mode_tells_clients_where_to_sign_in() {
    let dir = TestDir::small();
    assert_eq!(user(&dir, &["add", "anna"]).0, Some(0));
    let server = ServerProcess::start(
        &dir,
        &[
            "docs",
            "--auth",
            "password",
            "--public-url",
            "https://docs.example.org",
        ],
    );
    let (head, _) = server.raw("POST", "/mcp", Some(&json!({})), "");
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    let (head, text) = server.raw("GET", "/.well-known/oauth-authorization-server", None, "");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let metadata: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(metadata["issuer"], "https://docs.example.org");
    assert_eq!(metadata["token_endpoint"], "https://docs.example.org/token");
}

#[cfg(unix)]
#[test]
fn stored_files_are_readable_by_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TestDir::small();
    assert_eq!(user(&dir, &["add", "anna"]).0, Some(0));
    let server = ServerProcess::start(&dir, &["docs", "--auth", "password"]);
    drop(server);
    let mode = |path: &str| {
        let path = dir.path().join("docs/.docent").join(path);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("sign-in"), 0o700);
    assert_eq!(mode("sign-in/users.json"), 0o600);
    assert_eq!(mode("sign-in/sign-in.redb"), 0o600);
    assert_eq!(mode("sign-in/registrations.redb"), 0o600);
}
