//! `docent doctor`: its findings on a real machine, and that it changes nothing.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::process::{ServerProcess, TestDir};

/// The findings about one topic: their states, and their texts joined.
fn about(report: &Value, about: &str) -> (Vec<String>, String) {
    let all = report["findings"].as_array().unwrap();
    let found: Vec<_> = all.iter().filter(|f| f["about"] == about).collect();
    let text = |f: &Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    let states = found.iter().map(|f| text(f, "state")).collect();
    let text: Vec<_> = found
        .iter()
        .map(|f| format!("{} {}", text(f, "says"), text(f, "hint")))
        .collect();
    (states, text.join("\n"))
}

/// Lists every file below a folder with its content, to show that nothing was changed.
fn everything(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_new_folder_needs_an_index_and_nothing_is_made() {
    let dir = TestDir::small();
    let before = everything(&dir.path());
    let ran = dir.run(&["doctor", "docs", "--listen", "127.0.0.1:0", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let (states, text) = about(&report, "index");
    assert_eq!(states, ["warning"], "{text}");
    assert!(text.contains("docent index "), "{text}");
    assert_eq!(about(&report, "folder").0, ["ok"]);
    assert_eq!(about(&report, "model").0, ["ok"]);
    assert_eq!(about(&report, "public").0, ["warning"]);
    assert!(
        !about(&report, "sandbox")
            .1
            .contains("cannot start a parser process"),
        "{report}"
    );
    assert_eq!(everything(&dir.path()), before);
}

#[test]
fn an_intact_index_is_distinguished_from_a_damaged_one() {
    let dir = TestDir::small();
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    let args = ["doctor", "docs", "--listen", "127.0.0.1:0", "--json"];
    let (states, text) = about(&dir.run(&args).json(), "index");
    assert_eq!(states, ["ok"], "{text}");
    assert!(text.contains("3 documents"), "{text}");
    let index = dir.path().join("docs/.docent/index");
    let (damaged, content) = everything(&index)
        .into_iter()
        .find(|(path, _)| path.ends_with(".store"))
        .unwrap();
    std::fs::write(&damaged, &content[..content.len() / 2]).unwrap();
    let before = everything(&dir.path());
    let ran = dir.run(&args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let (states, text) = about(&ran.json(), "index");
    assert_eq!(states, ["wrong"], "{text}");
    assert_eq!(
        everything(&dir.path()),
        before,
        "a run without a repair option must change nothing"
    );
}

#[test]
fn the_owner_of_a_port_in_use_is_named() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let report = dir
        .run(&["doctor", "docs", "--listen", &server.address, "--json"])
        .json();
    let (states, text) = about(&report, "port");
    assert_eq!(states, ["ok"]);
    assert!(text.contains("serves `docs` at"), "{text}");
    assert!(
        about(&report, "index").1.contains("keeps it up to date"),
        "{report}"
    );

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || other.incoming().for_each(drop));
    let ran = dir.run(&["doctor", "docs", "--listen", &address]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout.contains("is taken by another program"),
        "{}",
        ran.stdout
    );
}

/// The public URL is requested as configured: here it is the server itself, and then an address without a listener.
#[test]
fn the_public_address_is_tried() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let url = format!("http://{}", server.address);
    let args = |url: &str| {
        dir.run(&[
            "doctor",
            "docs",
            "--listen",
            "127.0.0.1:0",
            "--public-url",
            url,
            "--json",
        ])
    };
    let report = args(&url).json();
    let (states, text) = about(&report, "public");
    assert_eq!(states, ["warning", "ok"], "{text}");
    assert!(
        about(&report, "clock").1.contains("seconds apart"),
        "{report}"
    );
    let ran = args("http://127.0.0.1:1");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // A host name that leads to the server but is not on its allowlist.
    let strange = url.replace("127.0.0.1", "docs.localhost");
    let (_, text) = about(&args(&strange).json(), "public");
    assert!(
        text.contains("host name not allowed") || text.contains("cannot be reached"),
        "{text}"
    );
}

#[test]
fn a_bad_setting_is_a_finding_and_the_rest_is_checked() {
    let dir = TestDir::small();
    dir.write("docs/docent.toml", "[server]\nlisten = \"80a\"\n");
    let ran = dir.run(&["doctor", "docs", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report = ran.json();
    assert!(
        about(&report, "settings")
            .1
            .contains("`server.listen` is not an address"),
        "{report}"
    );
    assert_eq!(about(&report, "folder").0, ["ok"]);
}
