//! Hot reload: the real server while its docent.toml changes.

use serde_json::{Value, json};

use crate::process::{ServerProcess, TestDir, until};

fn serve(dir: &TestDir, toml: &str) -> ServerProcess {
    dir.write("docs/docent.toml", toml);
    let server = ServerProcess::start(dir, &["docs"]);
    server.wait_until_synced();
    server
}

/// Polls `fetch` until the document satisfies the predicate.
fn wait_for(server: &ServerProcess, id: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let read = || server.call("fetch", &json!({"id": id}))["structuredContent"].clone();
    until(|| Some(read()).filter(&fits)).unwrap_or_else(|| panic!("{}: {}", read(), server.log()))
}

#[test]
fn fields_and_urls_change_while_it_serves() {
    let dir = TestDir::small();
    let server = serve(&dir, "search.mode = \"lexical\"\n");
    let before = wait_for(&server, "ferry.md", |_| true);
    assert_eq!(
        (&before["url"], &before["metadata"]["speaker"]),
        (&json!(""), &json!("Ilke"))
    );
    dir.write(
        "docs/docent.toml",
        "search.mode = \"lexical\"\n[documents]\nurl = \"https://a.example/{id}\"\n\
         [fields.author]\nfrom = \"speaker\"\n",
    );
    let after = wait_for(&server, "ferry.md", |read| {
        read["metadata"]["author"] == "Ilke"
    });
    assert_eq!(after["url"], "https://a.example/ferry.md");
    assert_eq!(after["metadata"].get("speaker"), None);
    server.wait_for("docent.toml changed: applied `documents.url`, `fields`");
    let found = server.call("find", &json!({"query": "author:Ilke"}));
    assert_eq!(found["structuredContent"]["total_count"], 1, "{found}");
    dir.remove("docs/docent.toml");
    wait_for(&server, "ferry.md", |read| {
        read["metadata"]["speaker"] == "Ilke" && read["url"] == ""
    });
}

#[test]
fn settings_that_need_a_restart_are_named_and_an_invalid_file_changes_nothing() {
    let dir = TestDir::small();
    let server = serve(&dir, "[fields.author]\nfrom = \"speaker\"\n");
    dir.write("docs/docent.toml", "[fields.author]\nfrom = 3\n");
    let place =
        "docent.toml is invalid, keeping the current settings: `fields.author.from` is not a line";
    server.wait_for(place);
    dir.write("docs/new.md", "---\nspeaker: Ada\n---\nA lantern.\n");
    wait_for(&server, "new.md", |read| {
        read["metadata"]["author"] == "Ada"
    });
    dir.write(
        "docs/docent.toml",
        "title = \"Boats\"\n[server]\nlisten = \"127.0.0.1:1\"\ndual = \"never\"\n[fields.writer]\nfrom = \"speaker\"\n",
    );
    // `--listen` was given on the command line, which overrides the file.
    server.wait_for("docent.toml changed: restart to apply `server.dual`, `title`");
    wait_for(&server, "new.md", |read| {
        read["metadata"]["writer"] == "Ada"
    });
    assert_eq!(server.log().matches(place).count(), 1);
}
