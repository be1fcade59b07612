//! The real server on a full disk: search continues, indexing fails with a message, and resumes when space is freed.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::process::{ServerProcess, TestDir, until};

/// Shell script that mounts a small tmpfs in its own mount namespace, and then runs the rest of its arguments.
const ON_SMALL_DISK: &str = "mount -t tmpfs -o size=12m tmpfs \"$1\" && shift && exec \"$@\"";

/// Starts `docent serve` with its index on a 12 MB disk. Returns `None` where the system allows no mount namespace.
fn serve(dir: &TestDir) -> Option<ServerProcess> {
    let index = dir.path().join("index");
    fs::create_dir_all(&index).unwrap();
    let namespaces: [&[&str]; 2] = [&["--mount"], &["--map-root-user", "--mount"]];
    let namespace = namespaces.into_iter().find(|namespace| {
        let mut trial = Command::new("unshare");
        trial
            .args(*namespace)
            .args(["sh", "-c", ON_SMALL_DISK, "sh"]);
        let ran = trial.arg(&index).arg("true").output();
        ran.is_ok_and(|output| output.status.success())
    })?;
    let docent = dir.docent(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "docs",
        "--index",
        "index",
    ]);
    let mut command = Command::new("unshare");
    command
        .args(namespace)
        .args(["sh", "-c", ON_SMALL_DISK, "sh"]);
    command.arg(&index).arg(docent.get_program());
    command.args(docent.get_args()).current_dir(dir.path());
    Some(ServerProcess::of(command))
}

fn is_found(server: &ServerProcess, word: &str) -> bool {
    let found = server.call("search", &json!({"query": word}));
    let results = found["structuredContent"]["results"].as_array().unwrap();
    results
        .iter()
        .any(|one| one["text"].as_str().unwrap().contains(word))
}

#[test]
fn search_goes_on_while_the_disk_is_full_and_indexing_when_it_is_not() {
    let dir = TestDir::small();
    dir.write("docs/docent.toml", "search.mode = \"lexical\"\n");
    let Some(server) = serve(&dir) else {
        // `eprintln` is captured in a test that passes, so this writes to stderr itself.
        let notice = b"skipped: no small disk can be mounted here\n";
        std::io::stderr().write_all(notice).unwrap();
        return;
    };
    server.wait_until_synced();
    assert!(is_found(&server, "ferry"));
    // Only the server's mount namespace has the small disk, so it is reached through /proc.
    let root = PathBuf::from(format!("/proc/{}/root", server.pid()));
    let index = dir.path().join("index");
    let index = root.join(index.strip_prefix("/").unwrap());
    let ballast = index.join("ballast");
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[7; 4096]).is_ok() {}
    for number in 0..40 {
        let words: Vec<_> = (0..2_000).map(|word| format!("w{number}x{word}")).collect();
        let text = format!("A lantern burns. {}", words.join(" "));
        dir.write(&format!("docs/new{number}.md"), &text);
    }
    let failed = || {
        let (_, ready) = server.http("GET", "/readyz", None);
        (ready["sync"]["state"] == "failed").then_some(())
    };
    until(failed).unwrap_or_else(|| panic!("indexing never failed: {}", server.log()));
    assert!(is_found(&server, "ferry") && is_found(&server, "Slate"));
    assert!(!is_found(&server, "lantern"));
    server.wait_for("indexing failed; the previous state of the index is still served");
    drop(file);
    fs::remove_file(ballast).unwrap();
    let found = || is_found(&server, "lantern").then_some(());
    until(found).unwrap_or_else(|| panic!("indexing never resumed: {}", server.log()));
    let ready = server.wait_until_synced();
    assert_eq!(ready["documents"], 43, "{}", server.log());
    assert!(is_found(&server, "ferry"));
}
