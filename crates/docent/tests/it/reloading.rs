//! The real server while its docent.toml changes.

use serde_json::{Value, json};

use crate::process::{Dir, Server, until};

fn serve(dir: &Dir, toml: &str) -> Server {
    dir.write("docs/docent.toml", toml);
    let server = Server::start(dir, &["docs"]);
    server.wait_until_synced();
    server
}

/// A document once it is as it should be.
fn wait_for(server: &Server, id: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let read = || server.call("fetch", &json!({"id": id}))["structuredContent"].clone();
    until(|| Some(read()).filter(&fits)).unwrap_or_else(|| panic!("{}: {}", read(), server.said()))
}

#[test]
fn fields_and_addresses_change_while_it_serves() {
    let dir = Dir::small();
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
    server.wait_for("docent.toml changed: `documents.url`, `fields` from now on");
    let found = server.call("find", &json!({"query": "author:Ilke"}));
    assert_eq!(found["structuredContent"]["total_count"], 1, "{found}");
    dir.remove("docs/docent.toml");
    wait_for(&server, "ferry.md", |read| {
        read["metadata"]["speaker"] == "Ilke" && read["url"] == ""
    });
}

#[test]
fn what_cannot_change_is_said_and_what_is_broken_changes_nothing() {
    let dir = Dir::small();
    let server = serve(&dir, "[fields.author]\nfrom = \"speaker\"\n");
    dir.write("docs/docent.toml", "[fields.author]\nfrom = 3\n");
    let place =
        "docent.toml cannot be used, so the settings stay: `fields.author.from` is not a line";
    server.wait_for(place);
    dir.write("docs/new.md", "---\nspeaker: Ada\n---\nA lantern.\n");
    wait_for(&server, "new.md", |read| {
        read["metadata"]["author"] == "Ada"
    });
    dir.write(
        "docs/docent.toml",
        "title = \"Boats\"\n[server]\nlisten = \"127.0.0.1:1\"\ndual = \"never\"\n[fields.writer]\nfrom = \"speaker\"\n",
    );
    // The address was typed, so that the file has no say in it.
    server.wait_for("docent.toml changed: `server.dual`, `title` from the next start on");
    wait_for(&server, "new.md", |read| {
        read["metadata"]["writer"] == "Ada"
    });
    assert_eq!(server.said().matches(place).count(), 1);
}
