//! The command line: settings errors, `index`, `search`, `check`, and help, with their exact messages.

use serde_json::json;

use crate::process::{ProcessOutput, TestDir, shown};

fn error(ran: &ProcessOutput, code: i32, stderr: &str) {
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(code), "", stderr)
    );
}

#[test]
fn a_bad_setting_is_named_with_its_source_and_a_hint() {
    let dir = TestDir::small();
    let flag = dir.run(&["serve", "docs", "--listen", "80a"]);
    error(
        &flag,
        2,
        "error: `server.listen` is not an address: `80a`\nhint: example: `127.0.0.1:8787`\n",
    );
    let mut command = dir.docent(&["index", "docs"]);
    let variable = ProcessOutput::of(
        command
            .env("DOCENT_SEARCH_RESULTS", "101")
            .output()
            .unwrap(),
    );
    error(
        &variable,
        2,
        "error: `search.results` is not a number from 1 to 100: `101`\n\
         from: environment variable `DOCENT_SEARCH_RESULTS`\n\
         hint: write a whole number from 1 to 100\n",
    );
    dir.write(
        "docs/docent.toml",
        "[documents]\nurl = \"https://docs.example.org/\"\n",
    );
    let file = dir.run(&["index", "docs"]);
    let place = shown(&dir.path().join("docs/docent.toml"));
    error(
        &file,
        2,
        &format!(
            "error: `documents.url` is not a web address with `{{id}}`: `https://docs.example.org/`\n\
             from: {place}\nhint: example: `https://docs.example.org/read/{{id}}`\n"
        ),
    );
}

#[test]
fn an_unknown_key_is_refused() {
    let dir = TestDir::small();
    dir.write("docs/docent.toml", "[fetch]\nmax_char = 7\n");
    let place = shown(&dir.path().join("docs/docent.toml"));
    error(
        &dir.run(&["index", "docs"]),
        2,
        &format!(
            "error: there is no setting `fetch.max_char`\nfrom: {place}\nhint: known are `fetch.max_chars`\n"
        ),
    );
    assert!(!dir.path().join("docs/.docent").exists());
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let dir = TestDir::small();
    let mut command = dir.docent(&["index", "docs"]);
    let ran = ProcessOutput::of(
        command
            .env("DOCENT_SERVICE_HOST", "10.0.0.1")
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr
            .starts_with("warning: environment variable `DOCENT_SERVICE_HOST` is not a setting\n")
    );
}

#[test]
fn a_path_that_is_no_folder_is_named() {
    let dir = TestDir::small();
    for command in [
        &["serve", "nowhere"][..],
        &["index", "nowhere"],
        &["search", "x", "--path", "nowhere"],
    ] {
        error(
            &dir.run(command),
            2,
            "error: there is no folder `nowhere`\nhint: name the folder with your documents, such as `./documents`\n",
        );
    }
    error(
        &dir.run(&["index", "docs/ferry.md"]),
        2,
        "error: `docs/ferry.md` is not a folder\nhint: name the folder it lies in\n",
    );
}

#[test]
fn indexing_reports_what_it_did() {
    let dir = TestDir::small();
    dir.write("docs/picture.png", "\u{89}PNG\0");
    let first = dir.run(&["index", "docs"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(
        first.stdout,
        "3 documents: 3 indexed, 0 unchanged, 0 removed, 1 skipped\n  \
         jsonl     1 file: 1 indexed\n  \
         markdown  1 file: 1 indexed\n  \
         png       1 file: 1 skipped (1 unsupported)\n  \
         text      1 file: 1 indexed\n"
    );
    assert!(
        first.stderr.starts_with("skipped: picture.png: "),
        "{first:?}"
    );
    dir.write("docs/ferry.md", "The ferry sails at ten.\n");
    dir.remove("docs/slate.txt");
    dir.remove("docs/picture.png");
    let second = dir.run(&["index", "docs", "--json"]);
    let folder = dir.path().join("docs");
    assert_eq!(
        second.json(),
        json!({
            "folder": shown(&folder), "index": shown(&folder.join(".docent/index")), "documents": 2, "unreadable": 0, "files": 2,
            "indexed": 1, "unchanged": 1, "removed": 1, "kept": 0, "excluded": 0, "skipped": [], "warnings": [], "unlisted": 0, "lost": 0,
            "formats": {
                "jsonl": {"files": 1, "indexed": 0, "unchanged": 1, "skipped": {}, "warnings": {}},
                "markdown": {"files": 1, "indexed": 1, "unchanged": 0, "skipped": {}, "warnings": {}},
            }
        })
    );
    assert_eq!(second.stderr, "");
}

#[test]
fn problems_in_the_report_have_codes_and_hints() {
    let dir = TestDir::new();
    dir.write(
        "docs/a.jsonl",
        "{\"id\":\"x\",\"text\":\"one\"}\nnot json\n{\"id\":\"x\",\"text\":\"two\"}\n",
    );
    let ran = dir.run(&["index", "docs", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let report = ran.json();
    assert_eq!(
        (&report["indexed"], &report["lost"]),
        (&json!(2), &json!(1))
    );
    let found: Vec<_> = report["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (&s["code"], &s["path"]))
        .collect();
    assert_eq!(found, [(&json!("bad-json"), &json!("a.jsonl"))]);
    assert_eq!(report["skipped"][0]["line"], 2);
    assert_eq!(
        report["formats"]["jsonl"]["skipped"],
        json!({"bad-json": 1})
    );
    assert!(report["skipped"][0]["hint"].is_string());
    assert_eq!(
        report["formats"]["jsonl"]["warnings"],
        json!({"numbered-rows": 1})
    );
}

/// Office documents are distinguished by content, in the first run and among the unchanged files of the second.
#[test]
fn office_documents_are_reported_by_content() {
    let dir = TestDir::new();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/data");
    std::fs::create_dir(dir.path().join("docs")).unwrap();
    let files = [
        ("docx", "slate"),
        ("pptx", "lanterns"),
        ("odt", "harbour"),
        ("epub", "tides"),
    ];
    for (kind, name) in files {
        let file = data.join(kind).join(format!("{name}.{kind}"));
        // The extension `.bin` says nothing about the format.
        std::fs::copy(file, dir.path().join(format!("docs/{name}.bin"))).unwrap();
    }
    for what in ["indexed", "unchanged"] {
        let report = dir.run(&["index", "docs", "--json"]).json();
        for (kind, _) in files {
            assert_eq!(report["formats"][kind][what], 1, "{kind}: {report}");
        }
    }
}

/// The program starts itself as a sandboxed child process to parse formats that it does not parse in process.
#[test]
fn mail_is_read_by_a_process_of_its_own() {
    let dir = TestDir::new();
    dir.write(
        "docs/notice.eml",
        "From: Harbour Office <office@tarnport.example>\nDate: Tue, 12 Mar 2024 10:30:00 +0000\n\
         Subject: Winter timetable\nMessage-ID: <1@tarnport.example>\n\nThe ferry rests on Mondays.\n",
    );
    dir.write(
        "docs/broken.zip",
        "PK\u{3}\u{4} and then nothing of the kind",
    );
    let ran = dir.run(&["index", "docs", "--json"]);
    let report = ran.json();
    assert_eq!(report["documents"], 1, "{report}\n{}", ran.stderr);
    assert_eq!(report["skipped"][0]["code"], "damaged", "{report}");
    assert!(!ran.stderr.contains("incomplete sandbox"), "{}", ran.stderr);
    let found = dir.run(&["search", "ferry mondays", "--path", "docs"]);
    assert!(
        found.stdout.contains("Winter timetable"),
        "{}",
        found.stdout
    );
}

#[test]
fn searching_needs_an_index_and_then_finds() {
    let dir = TestDir::small();
    dir.write(
        "docs/docent.toml",
        "[documents]\nurl = \"https://docs.example.org/{id}\"\n",
    );
    let folder = shown(&dir.path().join("docs"));
    error(
        &dir.run(&["search", "ferry", "--path", "docs"]),
        1,
        &format!("error: `{folder}` is not indexed\nhint: index it with `docent index {folder}`\n"),
    );
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    let people = dir.run(&["search", "ferry", "--path", "docs"]);
    assert_eq!(
        people.stdout,
        " 1. The ferry\n    id: ferry.md\n    url: https://docs.example.org/ferry.md\n    The ferry sails at nine.\n"
    );
    let programs = dir.run(&["search", "levee", "--path", "docs", "--json"]);
    let found = programs.json();
    assert_eq!(
        (&found["total"], found["results"].as_array().map(Vec::len)),
        (&json!(1), Some(1))
    );
    let first = &found["results"][0];
    assert_eq!(
        [&first["id"], &first["title"], &first["url"], &first["text"]],
        ["r1", "Levee", "https://a.example/r1", "The levee holds."]
    );
    assert!(
        first["score"]
            .as_f64()
            .is_some_and(|score| score > 0.0 && score <= 1.0)
    );
    assert_eq!(
        first["passages"],
        json!([{"index": 0, "path": "", "text": "The levee holds."}])
    );
    let nothing = dir.run(&["search", "zeppelin", "--path", "docs"]);
    assert_eq!(
        (
            nothing.code,
            nothing.stdout.as_str(),
            nothing.stderr.as_str()
        ),
        (Some(0), "", "no results\n")
    );
    let limit = dir.run(&["search", "ferry", "--path", "docs", "--limit", "0"]);
    assert_eq!(
        limit.stderr,
        "error: `search.results` is not a number from 1 to 100: `0`\nhint: write a whole number from 1 to 100\n"
    );
}

#[test]
fn checking_needs_an_address_and_reports_an_unreachable_server() {
    let dir = TestDir::new();
    error(
        &dir.run(&["check", "docs.example.org"]),
        2,
        "error: `docs.example.org` is not a web address\nhint: example: `https://docs.example.org/mcp`\n",
    );
    // The port of a closed listener, so that connections are refused.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let ran = dir.run(&["check", &url, "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.json()["findings"][0]["rule"], "lifecycle/answers");
    for (format, words) in [
        ("text", "the connection is refused"),
        ("sarif", "\"version\": \"2.1.0\""),
        ("junit", "<testsuites"),
        ("markdown", "### lifecycle/answers"),
        ("html", "<!doctype html>"),
    ] {
        let ran = dir.run(&["check", &url, "--format", format]);
        assert_eq!(ran.code, Some(1), "{format}");
        assert!(ran.stdout.contains(words), "{format}: {}", ran.stdout);
    }
}

#[test]
fn checking_names_what_was_typed_wrongly() {
    let dir = TestDir::new();
    error(
        &dir.run(&["check", "http://127.0.0.1:1/mcp", "--as", "gemini"]),
        2,
        "error: there is no profile `gemini`\nhint: one of protocol, chatgpt, deep-research, company-knowledge, claude, apps, submission, all\n",
    );
    error(
        &dir.run(&["check", "--stdio"]),
        2,
        "error: there is no program to check\nhint: example: `docent check --stdio -- npx some-server`\n",
    );
    dir.write("tools.json", "{}");
    let ran = dir.run(&[
        "check",
        "http://127.0.0.1:1/mcp",
        "--baseline",
        "tools.json",
    ]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("holds no list of tools"), "{ran:?}");
}

#[test]
fn rules_are_listed_and_their_page_is_fresh() {
    let dir = TestDir::new();
    let ran = dir.run(&["check", "--list-rules", "--as", "claude"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("tools/hints-either"));
    assert!(!ran.stdout.contains("search-fetch/exist"));
    let page = dir
        .run(&["check", "--list-rules", "--format", "markdown"])
        .stdout;
    assert_eq!(page, include_str!("../../../../docs/rules.md"));
}

/// `docent check` with every profile against the product itself, over HTTP and over stdio.
#[test]
fn our_own_server_passes_every_profile() {
    let dir = TestDir::new();
    // The ChatGPT store requires a domain for widgets, which only the owner can configure.
    let settings = "[documents]\nurl = \"https://harbour.example/{+id}\"\n\
                    [widgets]\ndomain = \"https://harbour.example\"\n";
    dir.write("docent.toml", settings);
    dir.write(
        "ferries.md",
        "# Ferry timetable\n\nBoats leave the Rope Quay at six.\n",
    );
    dir.write(
        "dues.md",
        "# Harbour dues\n\nTen crowns a day for boats of any length.\n",
    );
    let ran = dir.run(&[
        "check", "--path", ".", "--as", "all", "--query", "boats", "--json",
    ]);
    let report = ran.json();
    assert_eq!(report["findings"], serde_json::json!([]), "{report:#}");
    assert_eq!(ran.code, Some(0));
    assert!(
        report["passed"].as_array().unwrap().len() > 80,
        "{report:#}"
    );
    let program = env!("CARGO_BIN_EXE_docent");
    let ran = dir.run(&[
        "check", "--as", "all", "--query", "boats", "--json", "--stdio", "--", program, "serve",
        ".", "--stdio",
    ]);
    assert_eq!(ran.json()["findings"], serde_json::json!([]), "{ran:?}");
}

#[test]
fn tools_are_saved_and_compared() {
    let dir = TestDir::new();
    dir.write(
        "ferries.md",
        "# Ferry timetable\n\nBoats leave the Rope Quay at six.\n",
    );
    let ran = dir.run(&["check", "--as", "chatgpt", "--save-tools", "tools.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = dir.run(&[
        "check",
        "--as",
        "chatgpt",
        "--baseline",
        "tools.json",
        "--json",
    ]);
    assert_eq!(ran.json()["findings"], serde_json::json!([]), "{ran:?}");
    dir.write("docent.toml", "[search]\nresults = 5\n");
    let ran = dir.run(&[
        "check",
        "--as",
        "chatgpt",
        "--baseline",
        "tools.json",
        "--json",
    ]);
    assert_eq!(
        ran.json()["findings"][0]["rule"],
        "baseline/words-kept",
        "{ran:?}"
    );
}

#[test]
fn help_has_examples_for_every_reader() {
    let dir = TestDir::new();
    let help = dir.run(&["--help"]);
    for words in [
        "Examples:",
        "docent serve ./documents",
        "DOCENT_",
        "docent.toml",
        "Exit status",
    ] {
        assert!(help.stdout.contains(words), "{words}");
    }
    assert!(
        dir.run(&["serve", "--help"])
            .stdout
            .contains("--public-url https://docs.example.org")
    );
    assert_eq!(
        dir.run(&["--version"]).stdout,
        concat!("docent ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(
        dir.run(&["serve", "--stdio", "--listen", "127.0.0.1:0"])
            .code,
        Some(2)
    );
}
