//! `docent package` and `docent man`: the bundle, registry entry and test cases for app stores, and manual pages.

use std::io::Read as _;

use serde_json::Value;

use crate::process::{ServerProcess, TestDir};

/// Eight documents that differ enough for a test case to find each of them.
fn corpus() -> TestDir {
    let dir = TestDir::new();
    let topics = [
        (
            "ferry",
            "The ferry to Slate Island sails at nine from the northern pier and carries forty passengers in winter.",
        ),
        (
            "levee",
            "The levee at Brackwater was raised by two metres after the spring flood washed away the willow fence.",
        ),
        (
            "orchard",
            "Pear trees in the Highfell orchard are pruned in February, before the sap rises and the bees return.",
        ),
        (
            "lighthouse",
            "The lighthouse keeper of Cape Morrow counts the herring boats each evening and writes them into a ledger.",
        ),
        (
            "quarry",
            "Slate from the Highfell quarry roofs every chapel in the valley; the last cart went down in autumn.",
        ),
        (
            "bakery",
            "Rye bread in the Corrowin bakery rises overnight in wooden troughs that are never washed with soap.",
        ),
        (
            "railway",
            "The narrow railway between Dunmere and the salt pans was closed when the viaduct lost an arch.",
        ),
        (
            "library",
            "The travelling library lends eleven novels a week to the weavers of Tannwick and keeps a waiting list.",
        ),
    ];
    for (name, text) in topics {
        let title = format!("Notes on the {name}");
        dir.write(
            &format!("docs/{name}.md"),
            &format!("---\ntitle: {title}\n---\n# {title}\n\n{text}\n"),
        );
    }
    dir
}

fn read(dir: &TestDir, path: &str) -> Value {
    let text = std::fs::read_to_string(dir.path().join(path)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_package_holds_a_bundle_an_entry_and_cases_that_were_run() {
    let dir = corpus();
    dir.write("small-program", "not really docent");
    let ran = dir.run(&[
        "package",
        "docs",
        "--binary",
        "small-program",
        "--registry-name",
        "org.example/docs",
        "--bundle-url",
        "https://example.org/docs.mcpb",
        "--version",
        "1.2.3",
        "--author",
        "The harbour office",
    ]);
    // Without a public address some checks of reviewers cannot pass; the remaining steps are printed.
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    assert!(ran.stderr.contains("remaining steps:"), "{}", ran.stderr);

    let submission = read(&dir, "package/chatgpt-app-submission.json");
    assert_eq!(
        submission["test_cases"].as_array().unwrap().len(),
        5,
        "{submission:#}"
    );
    assert_eq!(
        submission["negative_test_cases"].as_array().unwrap().len(),
        3
    );
    let tools = submission["tools"].as_object().unwrap();
    assert!(
        tools.contains_key("search") && tools.contains_key("fetch"),
        "{tools:?}"
    );

    let entry = read(&dir, "package/server.json");
    assert_eq!(entry["name"], "org.example/docs");
    let package = &entry["packages"][0];
    assert_eq!(package["version"], "1.2.3");
    assert_eq!(package["fileSha256"].as_str().unwrap().len(), 64);

    let file = std::fs::File::open(dir.path().join("package/docs.mcpb")).unwrap();
    let mut zip = zip::ZipArchive::new(file).unwrap();
    let mut program = String::new();
    zip.by_name("server/docent")
        .unwrap()
        .read_to_string(&mut program)
        .unwrap();
    assert_eq!(program, "not really docent");
}

#[test]
fn a_folder_with_too_few_documents_is_refused() {
    let dir = TestDir::small();
    dir.write("small-program", "x");
    let ran = dir.run(&["package", "docs", "--binary", "small-program"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("of 5 test cases could be drawn"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("`server.json` is skipped"),
        "{}",
        ran.stderr
    );
    let bad = dir.run(&["package", "docs", "--version", "latest"]);
    assert_eq!(bad.code, Some(2), "{bad:?}");
}

#[test]
fn the_domain_is_proved_with_the_token_alone() {
    let dir = TestDir::small();
    dir.write(
        "docs/docent.toml",
        "[server]\nopenai_challenge = \"abc-123_x\"\n",
    );
    let server = ServerProcess::start(&dir, &["docs"]);
    let (status, kind, body) = server.page("/.well-known/openai-apps-challenge");
    assert_eq!(
        (status, kind.as_str(), body.as_str()),
        (200, "text/plain; charset=utf-8", "abc-123_x")
    );
    dir.write("docs/docent.toml", "[server]\nopenai_challenge = \"a b\"\n");
    let ran = dir.run(&["index", "docs"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("`server.openai_challenge` is not a token"),
        "{}",
        ran.stderr
    );
}

#[test]
fn manual_pages_and_completions_are_printed_and_written() {
    let dir = TestDir::new();
    let page = dir.run(&["man", "connect"]);
    assert_eq!(page.code, Some(0), "{page:?}");
    assert!(
        page.stdout.contains(".TH docent-connect 1"),
        "{}",
        page.stdout
    );
    assert_eq!(dir.run(&["man", "--dir", "man"]).code, Some(0));
    let pages = std::fs::read_dir(dir.path().join("man")).unwrap().count();
    assert!(pages > 10, "{pages}");
    let unknown = dir.run(&["man", "nothing"]);
    assert_eq!(
        (unknown.code, unknown.stderr.contains("hint: ")),
        (Some(2), true),
        "{unknown:?}"
    );
    let script = dir.run(&["completions", "bash"]);
    assert!(script.stdout.contains("_docent()"), "{}", script.stdout);
}
