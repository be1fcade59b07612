//! `docent init`: the settings file it writes, which describes the folder and changes no behaviour.

use serde_json::json;

use crate::process::{TestDir, shown};

#[test]
fn a_new_file_describes_the_folder_and_changes_nothing() {
    let dir = TestDir::small();
    dir.write(
        "docs/minutes/a.md",
        "---\nspeaker: Ada\nlength: 7\n---\nWords.\n",
    );
    dir.write(
        "docs/letters/b.md",
        "---\nspeaker: Ilke\nday: 2024-03-12\n---\nWords.\n",
    );
    dir.write("docs/picture.png", "\u{89}PNG\0");
    let first = dir.run(&["index", "docs", "--json"]).json();
    assert_eq!(first["indexed"], 5, "{first}");
    let ran = dir.run(&["init", "docs"]);
    let place = shown(&dir.path().join("docs/docent.toml"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr,
        format!(
            "wrote `{place}`: 3 fields in 5 documents of 6 files\n\
             nothing is set yet; remove the `#` before each setting that you want\n"
        )
    );
    let page = std::fs::read_to_string(dir.path().join("docs/docent.toml")).unwrap();
    for words in [
        "# Read 6 of 6 files: jsonl 1, markdown 3, png 1, text 1.\n",
        "# 1 of them contain no document",
        "#title = \"docs\"\n",
        "#url = \"https://a.example/{id}\"\n",
        "\n# keyword, in 3 of 5 documents: \"Ilke\", \"Ada\"\n#[fields.speaker]\n#type = \"keyword\"\n",
        "\n# number, in 1 of 5 documents: 7 to 7\n#[fields.length]\n",
        "\n# date, in 1 of 5 documents: 2024-03-12 to 2024-03-12\n#[fields.day]\n",
        "\n# The documents lie in 2 folders, such as \"letters\", \"minutes\".\n#[fields.folder]\n#path = \"{folder}/\"\n",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    let again = dir.run(&["index", "docs", "--json"]).json();
    assert_eq!(
        (&again["unchanged"], &again["removed"]),
        (&json!(5), &json!(0)),
        "{again}"
    );
}

#[test]
fn an_existing_file_is_replaced_with_force_only() {
    let dir = TestDir::small();
    // An invalid file is not overwritten either.
    dir.write("docs/docent.toml", "title = \n");
    let path = dir.path().join("docs/docent.toml");
    let ran = dir.run(&["init", "docs"]);
    assert_eq!(
        (ran.code, ran.stderr),
        (
            Some(2),
            format!(
                "error: `{}` is already there\nhint: replace it with `--force`, or print a new one with `--print`\n",
                shown(&path)
            )
        )
    );
    let printed = dir.run(&["init", "docs", "--print"]);
    assert!(
        printed.stdout.starts_with("# Settings of this folder"),
        "{printed:?}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "title = \n");
    assert_eq!(dir.run(&["init", "docs", "--force"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), printed.stdout);
}

#[test]
fn an_empty_folder_gets_a_file_too() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path().join("docs")).unwrap();
    let ran = dir.run(&["init", "docs", "--print"]);
    assert!(
        ran.stdout.contains("# Read 0 of 0 files: nothing.\n"),
        "{ran:?}"
    );
}
