//! Permissions that change while the writer is dead: nothing is answered that the new rules close.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::server::TestServers;
use super::{DOCUMENTS, ReplicaProcess, START, folder_of, free_port, is_there, search, until};

/// The ids that a search finds; an error where there is no answer.
fn found_ids(address: &str) -> Result<Vec<String>, String> {
    let answer = search(address)?;
    let results = answer.pointer("/result/structuredContent/results");
    let list = results.and_then(serde_json::Value::as_array);
    let id = |one: &serde_json::Value| one["id"].as_str().map(str::to_owned);
    let list = list.ok_or_else(|| answer.to_string())?;
    Ok(list.iter().filter_map(id).collect())
}

#[test]
fn stricter_permissions_hold_from_the_first_answer_after_a_kill() {
    if !is_there() {
        return;
    }
    let servers = TestServers::start(1);
    let folder = tempfile::tempdir().unwrap();
    let settings = {
        let whole = folder_of(&servers, 0);
        std::fs::read_to_string(whole.path().join("docent.toml")).unwrap()
    };
    std::fs::create_dir(folder.path().join("crew")).unwrap();
    for n in 0..DOCUMENTS {
        let place = if n < 10 { "." } else { "crew" };
        let text = format!("# Ferry {n}\n\nThe ferry to isle number {n} was late again.\n");
        let name = folder.path().join(place).join(format!("ferry-{n}.md"));
        std::fs::write(name, text).unwrap();
    }
    let file = folder.path().join("docent.toml");
    std::fs::write(&file, &settings).unwrap();
    let mut writer = ReplicaProcess::start(folder.path(), free_port());
    let address = format!("http://127.0.0.1:{}", writer.port);
    until("crew documents are found", || {
        found_ids(&address).is_ok_and(|ids| ids.iter().any(|id| id.starts_with("crew/")))
    });
    until("all are indexed", || {
        !writer.state().to_string().contains("running")
    });

    // It holds the lease for ten more seconds, in which the next one cannot withdraw anything.
    writer.kill();
    let rules = "[permissions]\ndefault = \"everyone\"\n\
                 [[permissions.folder]]\npath = \"crew/**\"\nreaders = \"nobody\"\n";
    std::fs::write(&file, format!("{settings}{rules}")).unwrap();
    let port = free_port();
    let address = format!("http://127.0.0.1:{port}");
    let asking = std::thread::spawn(move || {
        let start = Instant::now();
        loop {
            if let Ok(ids) = found_ids(&address) {
                assert!(ids.iter().all(|id| !id.starts_with("crew/")), "{ids:?}");
                if ids.len() == 10 {
                    return;
                }
            }
            assert!(
                start.elapsed() < START,
                "the open documents never came back"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let strict = ReplicaProcess::start(folder.path(), port);
    asking.join().unwrap();

    // Another process with other rules, while this one is alive and has the lease, must not answer either.
    let stricter = tempfile::tempdir().unwrap();
    let rules = "[permissions]\ndefault = \"nobody\"\n";
    std::fs::write(
        stricter.path().join("docent.toml"),
        format!("{settings}{rules}"),
    )
    .unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_docent"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg(stricter.path())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(
        message.contains("made under other permissions"),
        "{message}"
    );
    assert!(strict.writes());
}
