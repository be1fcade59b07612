//! `docent permissions`: `explain` names the readers of a document and the rule that decides, and `list` finds
//! documents that nobody may read and those that were indexed under other settings.

use serde_json::json;

use crate::malformed_permissions::{RULES, WORD, folder};
use crate::process::TestDir;

/// An indexed folder with documents for a group, for everyone and for nobody, and with one folder rule.
fn indexed() -> TestDir {
    let rules = "[[permissions.folder]]\npath = \"board/**\"\ngroups = [\"board\"]\n";
    let dir = folder(&format!("{RULES}{rules}"));
    dir.write("docs/board/a.md", &format!("{WORD} board\n"));
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    dir
}

#[test]
fn the_owner_is_told_who_may_read_and_why() {
    let dir = indexed();
    let added = dir.run(&["user", "add", "anna", "--group", "hr", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let explain = |id: &str, more: &[&str]| {
        let args = ["permissions", "explain", id, "--path", "docs"];
        dir.run(&[&args, more].concat())
    };
    for (id, words) in [
        (
            "closed-empty-list.md",
            vec![
                "readers: nobody",
                "its field `allowed` is empty",
                "hint: name its readers",
            ],
        ),
        (
            "hr-hr.md",
            vec!["readers: group:hr", "its field `allowed` says so"],
        ),
        (
            "cell-4",
            vec!["readers: everyone", "its field `allowed` says so"],
        ),
        (
            "board/a.md",
            vec!["readers: group:board", "the folder rule `board/**`"],
        ),
        (
            "open.md",
            vec!["readers: everyone", "`permissions.default` applies"],
        ),
    ] {
        let ran = explain(id, &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for word in words {
            assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
        }
    }
    for (id, who, code, words) in [
        ("hr-hr.md", "anna", 0, "yes, by `group:hr`"),
        ("hr-hr.md", "hr", 0, "yes, by `group:hr`"),
        ("hr-hr.md", "board", 1, "no, because `group:board`"),
        ("hr-hr.md", "everyone", 1, "no, because nothing"),
        ("board/a.md", "anna", 1, "no, because `group:hr`"),
        ("open.md", "everyone", 0, "yes, by `everyone`"),
        ("closed-null.md", "anna", 1, "no"),
    ] {
        let ran = explain(id, &["--as", who]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let wire = explain("hr-hr.md", &["--as", "anna", "--json"]).json();
    assert_eq!(wire["readers"], json!(["group:hr"]));
    assert_eq!(
        (&wire["rule"], &wire["as"]["may_read"]),
        (&json!("field"), &json!(true))
    );
    let unknown = explain("nothing.md", &[]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.stderr.contains("no document with id `nothing.md`"),
        "{unknown:?}"
    );
    assert!(
        unknown.stderr.contains("hint: ids come from"),
        "{unknown:?}"
    );
    let nobody = explain("open.md", &["--as", "group:"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
}

#[test]
fn the_owner_is_told_what_nobody_may_read_and_what_is_stale() {
    let dir = indexed();
    let list = dir.run(&["permissions", "list", "--unreadable", "--path", "docs"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    assert!(
        list.stdout.contains("closed-null.md") && list.stdout.contains("cell-2"),
        "{list:?}"
    );
    assert!(
        list.stdout.contains(
            "closed-nobody.md (closed-nobody.md): nobody, because its field `allowed` says so"
        ),
        "{list:?}"
    );
    assert!(
        !list.stdout.contains("open.md") && !list.stdout.contains("hr-hr.md"),
        "{list:?}"
    );
    let wire = dir
        .run(&[
            "permissions",
            "list",
            "--unreadable",
            "--json",
            "--path",
            "docs",
        ])
        .json();
    assert_eq!(
        wire["count"].as_u64().unwrap() as usize,
        wire["documents"].as_array().unwrap().len()
    );
    let all = dir.run(&["permissions", "list", "--path", "docs"]);
    assert!(
        all.stdout.contains("open.md (open.md): everyone"),
        "{all:?}"
    );
    // The field takes precedence even where the default grants the same, in `list` as in `explain`.
    let wire = dir.run(&["permissions", "list", "--json", "--path", "docs"]);
    let rows = wire.json();
    let rule = |id: &str| {
        let rows = rows["documents"].as_array().unwrap();
        let row = rows.iter().find(|row| row["id"] == id).unwrap();
        row["rule"].clone()
    };
    assert_eq!(
        (rule("cell-4"), rule("open.md"), rule("hr-hr.md")),
        (json!("field"), json!("default"), json!("field"))
    );
    assert_eq!(rows["stale"], json!(0));
    assert!(!wire.stderr.contains("other settings"), "{wire:?}");
    dir.write("docs/docent.toml", &RULES.replace("everyone", "signed-in"));
    let stale = dir.run(&["permissions", "list", "--json", "--path", "docs"]);
    assert!(
        stale.stderr.contains("were made under other settings"),
        "{stale:?}"
    );
    assert_ne!(stale.json()["stale"], json!(0));
}
