//! `docent doctor`: what it finds on a real machine, and that it changes nothing.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::process::{Dir, Server};

/// The findings about one thing: their states, and everything they say.
fn about(told: &Value, about: &str) -> (Vec<String>, String) {
    let all = told["findings"].as_array().unwrap();
    let found: Vec<_> = all.iter().filter(|f| f["about"] == about).collect();
    let text = |f: &Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    let states = found.iter().map(|f| text(f, "state")).collect();
    let says: Vec<_> = found
        .iter()
        .map(|f| format!("{} {}", text(f, "says"), text(f, "hint")))
        .collect();
    (states, says.join("\n"))
}

/// Every file below a folder with its content.
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
    let dir = Dir::small();
    let before = everything(&dir.path());
    let ran = dir.run(&["doctor", "docs", "--listen", "127.0.0.1:0", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = ran.json();
    let (states, says) = about(&told, "index");
    assert_eq!(states, ["warning"], "{says}");
    assert!(says.contains("docent index "), "{says}");
    assert_eq!(about(&told, "folder").0, ["ok"]);
    assert_eq!(about(&told, "model").0, ["ok"]);
    assert_eq!(about(&told, "public").0, ["warning"]);
    assert!(
        !about(&told, "sandbox").1.contains("can be started"),
        "{told}"
    );
    assert_eq!(everything(&dir.path()), before);
}

#[test]
fn a_whole_index_is_told_from_a_damaged_one() {
    let dir = Dir::small();
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    let args = ["doctor", "docs", "--listen", "127.0.0.1:0", "--json"];
    let (states, says) = about(&dir.run(&args).json(), "index");
    assert_eq!(states, ["ok"], "{says}");
    assert!(says.contains("3 documents"), "{says}");
    let index = dir.path().join("docs/.docent/index");
    let (damaged, content) = everything(&index)
        .into_iter()
        .find(|(path, _)| path.ends_with(".store"))
        .unwrap();
    std::fs::write(&damaged, &content[..content.len() / 2]).unwrap();
    let before = everything(&dir.path());
    let ran = dir.run(&args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let (states, says) = about(&ran.json(), "index");
    assert_eq!(states, ["wrong"], "{says}");
    assert_eq!(
        everything(&dir.path()),
        before,
        "a doctor that was not asked to mends nothing"
    );
}

#[test]
fn who_has_the_port_is_told() {
    let dir = Dir::small();
    let server = Server::start(&dir, &["docs"]);
    server.wait_until_synced();
    let told = dir
        .run(&["doctor", "docs", "--listen", &server.address, "--json"])
        .json();
    let (states, says) = about(&told, "port");
    assert_eq!(states, ["ok"]);
    assert!(says.contains("serves `docs` at"), "{says}");
    assert!(
        about(&told, "index").1.contains("keeps it up to date"),
        "{told}"
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

/// The public address is asked as it is: here it leads to the server itself, then to nobody.
#[test]
fn the_public_address_is_tried() {
    let dir = Dir::small();
    let server = Server::start(&dir, &["docs"]);
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
    let told = args(&url).json();
    let (states, says) = about(&told, "public");
    assert_eq!(states, ["warning", "ok"], "{says}");
    assert!(about(&told, "clock").1.contains("seconds apart"), "{told}");
    let ran = args("http://127.0.0.1:1");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // A name that the server was not told about, though the way leads to it.
    let strange = url.replace("127.0.0.1", "docs.localhost");
    let (_, says) = about(&args(&strange).json(), "public");
    assert!(
        says.contains("does not know that name") || says.contains("cannot be reached"),
        "{says}"
    );
}

#[test]
fn a_bad_setting_is_a_finding_and_the_rest_is_looked_at() {
    let dir = Dir::small();
    dir.write("docs/docent.toml", "[server]\nlisten = \"80a\"\n");
    let ran = dir.run(&["doctor", "docs", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = ran.json();
    assert!(
        about(&told, "settings")
            .1
            .contains("`server.listen` is not an address"),
        "{told}"
    );
    assert_eq!(about(&told, "folder").0, ["ok"]);
}
