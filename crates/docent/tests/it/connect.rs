//! `docent connect`: client configuration that is printed, written and removed, and the connection test, with the real
//! program on both ends.

use serde_json::{Value, json};

use crate::process::{ProcessOutput, ServerProcess, TestDir, shown};

fn read(dir: &TestDir, path: &str) -> String {
    std::fs::read_to_string(dir.path().join(path)).unwrap()
}

#[test]
fn the_clients_are_listed() {
    let dir = TestDir::new();
    let ran = dir.run(&["connect"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let names: Vec<_> = ran
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        names,
        [
            "chatgpt",
            "claude",
            "claude-desktop",
            "claude-code",
            "vscode",
            "cursor",
            "codex",
            "gemini",
            "inspector",
            "openai-api",
            "claude-api"
        ]
    );
    let listed = dir.run(&["connect", "--print", "json"]).json();
    assert_eq!(listed[3]["client"], "claude-code");
    assert_eq!(listed[3]["file"], shown(&dir.path().join(".claude.json")));
}

/// The whole cycle: write the entry, start the program as the client would, search, and remove the entry.
#[test]
fn a_program_is_written_started_and_removed() {
    let dir = TestDir::small();
    dir.write(".claude.json", "{\n  \"numStartups\": 7\n}\n");
    let ran = dir.run(&[
        "connect",
        "claude-code",
        "docs",
        "--write",
        "--print",
        "json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["connection"]["ok"], true, "{report}");
    assert_eq!(report["connection"]["tools"][0], "search");
    assert_eq!(report["file"]["change"], "added");
    let written: Value = serde_json::from_str(&read(&dir, ".claude.json")).unwrap();
    let docs = shown(&dir.path().join("docs"));
    assert_eq!(written["numStartups"], 7);
    assert_eq!(
        written["mcpServers"]["docs"]["args"],
        json!(["serve", docs, "--stdio"])
    );
    assert_eq!(
        read(&dir, ".claude.json.docent-backup"),
        "{\n  \"numStartups\": 7\n}\n"
    );

    let again = dir.run(&[
        "connect",
        "claude-code",
        "docs",
        "--write",
        "--no-verify",
        "--print",
        "json",
    ]);
    assert_eq!(again.json()["file"]["change"], "unchanged");
    let gone = dir.run(&["connect", "claude-code", "docs", "--remove"]);
    assert_eq!(gone.code, Some(0), "{gone:?}");
    let written: Value = serde_json::from_str(&read(&dir, ".claude.json")).unwrap();
    assert_eq!(written["mcpServers"], json!({}));
}

#[test]
fn an_address_is_tested_with_a_search() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let url = format!("http://{}/mcp", server.address);
    let ran = dir.run(&[
        "connect", "codex", "docs", "--url", &url, "--write", "--name", "dam",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("ok: docs "), "{}", ran.stdout);
    assert_eq!(
        read(&dir, ".codex/config.toml"),
        format!("[mcp_servers.dam]\nurl = \"{url}\"\n")
    );
    // A hosted client needs a public address, which is missing; the connection test runs all the same.
    let ran = dir.run(&[
        "connect", "chatgpt", "docs", "--url", &url, "--print", "json",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["connection"]["ok"], true);
    assert_eq!(report["missing"].as_array().unwrap().len(), 1, "{report}");
}

#[test]
fn a_server_that_does_not_run_is_reported_with_its_command() {
    let dir = TestDir::small();
    let ran = dir.run(&[
        "connect",
        "gemini",
        "docs",
        "--url",
        "http://127.0.0.1:1/mcp",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let docs = shown(&dir.path().join("docs"));
    let hint = format!("start it with `docent serve {docs} --listen 127.0.0.1:1`");
    assert!(ran.stdout.contains(&hint), "{}", ran.stdout);
    assert!(!dir.path().join(".gemini").exists());
}

#[test]
fn an_invalid_client_file_is_never_changed() {
    let dir = TestDir::small();
    let broken = "{\n  // half a file\n  \"servers\": {";
    dir.write(".vscode/mcp.json", broken);
    let args = ["connect", "vscode", "docs", "--write", "--scope", "project"];
    let ran = dir.run(&args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("mcp.json` is not valid JSON"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("hint: it was not changed"),
        "{}",
        ran.stderr
    );
    assert_eq!(read(&dir, ".vscode/mcp.json"), broken);
    let files = std::fs::read_dir(dir.path().join(".vscode"))
        .unwrap()
        .count();
    assert_eq!(files, 1);
}

#[test]
fn wrong_arguments_are_refused_with_a_hint() {
    let dir = TestDir::small();
    let check = |args: &[&str], message: &str| {
        let mut all = vec!["connect"];
        all.extend(args);
        let ran: ProcessOutput = dir.run(&all);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(message), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{args:?}: {}", ran.stderr);
    };
    check(
        &["chatgpt", "docs", "--write"],
        "error: ChatGPT has no configuration file that docent can edit",
    );
    check(
        &["chatgpt", "docs", "--stdio"],
        "error: ChatGPT cannot start programs on this machine",
    );
    check(
        &["claude-desktop", "docs", "--http"],
        "error: Claude Desktop accepts only programs in its file",
    );
    check(
        &["claude-desktop", "docs", "--write", "--scope", "project"],
        "error: Claude Desktop has no project configuration file",
    );
    check(
        &["codex", "docs", "--name", "a b"],
        "error: `a b` is not a name for a server",
    );
    check(
        &["codex", "docs", "--url", "docs"],
        "error: `docs` is not a web address",
    );
    check(
        &["codex", "docs", "--token-env", "Bearer x"],
        "is not the name of an environment variable",
    );
    check(&["codex", "nowhere"], "error: there is no folder `nowhere`");
}
