//! Data loss during indexing: rows with duplicate ids are all kept, and rows that are lost for another reason show up
//! as errors in the report, in the exit status and in `docent doctor`.

use serde_json::Value;

use crate::process::TestDir;

/// The size of the table that once lost rows to duplicate ids: 5,790 of its rows were left.
const ROWS: usize = 23_272;

/// A folder without an embedding model, because lexical search is enough to count rows.
fn folder() -> TestDir {
    let dir = TestDir::new();
    dir.write("docs/docent.toml", "[model]\nname = \"none\"\n");
    dir
}

fn index(dir: &TestDir, folder: &str) -> (Option<i32>, Value) {
    let ran = dir.run(&["index", folder, "--json"]);
    let report = ran.json();
    (ran.code, report)
}

/// The exit status of `docent doctor`, and its findings about losses.
fn doctor(dir: &TestDir, folder: &str) -> (Option<i32>, Vec<String>) {
    let ran = dir.run(&["doctor", folder, "--listen", "127.0.0.1:0", "--json"]);
    let told = ran.json();
    let findings = told["findings"].as_array().unwrap();
    let losses = findings.iter().filter(|f| f["about"] == "losses");
    let says = losses.map(|f| format!("{} {}", f["state"].as_str().unwrap(), f["says"]));
    (ran.code, says.collect())
}

#[test]
fn a_column_that_repeats_is_a_field_and_every_row_a_document() {
    let dir = folder();
    let identity = |n: usize| ["Secret Identity", "Public Identity", "", "Unknown"][n % 4];
    let rows = |line: &dyn Fn(usize) -> String| (0..ROWS).map(line).collect::<String>();
    dir.write(
        "docs/heroes.csv",
        &format!(
            "name,ID,align\n{}",
            rows(&|n| format!("Hero {n},{},good\n", identity(n)))
        ),
    );
    dir.write(
        "docs/heroes.jsonl",
        &rows(&|n| format!("{{\"name\":\"Hero {n}\",\"ID\":\"{}\"}}\n", identity(n))),
    );
    let (code, report) = index(&dir, "docs");
    assert_eq!(report["documents"], 2 * ROWS, "{report}");
    assert_eq!((code, &report["lost"]), (Some(0), &Value::from(0)));
    let warnings: Vec<_> = report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {} {}", one["path"], one["line"], one["code"]))
        .collect();
    assert_eq!(
        warnings,
        [
            "\"heroes.csv\" 4 \"numbered-rows\"",
            "\"heroes.jsonl\" 3 \"numbered-rows\""
        ]
    );
    let (code, losses) = doctor(&dir, "docs");
    assert_eq!((code, losses.len()), (Some(0), 0), "{losses:?}");
    // Indexing is idempotent: ids do not depend on what the index held before.
    let (code, again) = index(&dir, "docs");
    assert_eq!((code, &again["indexed"]), (Some(0), &Value::from(0)));
    // The column is a field that can be searched like any other.
    let found = dir.run(&[
        "search",
        "ID:\"Public Identity\"",
        "--path",
        "docs",
        "--json",
    ]);
    let found = found.json().to_string();
    assert!(found.contains("Public Identity"), "{found}");
}

/// Files with the same ids keep all their rows, also with long ids of multi-byte characters and with ids that look
/// qualified already.
#[test]
fn ids_of_other_files_cost_no_row() {
    let dir = folder();
    let long = "é".repeat(250);
    for name in ["a", "bb", "ccc"] {
        dir.write(
            &format!("docs/{name}.csv"),
            &format!("id,port\n1,Ellin\n{long},Tarn\n{name}.csv#id=1,Orrin\na.csv#L2,Skerry\n"),
        );
    }
    let (code, report) = index(&dir, "docs");
    assert_eq!(report["documents"], 12, "{report}");
    assert_eq!((code, &report["lost"]), (Some(0), &Value::from(0)));
}

/// An archive may contain a path twice: `tar -r` appends changed files.
#[test]
fn a_name_twice_in_an_archive_costs_no_document() {
    let dir = folder();
    let mut archive = Vec::new();
    for text in ["The ferry sails at nine.", "The ferry sails at ten."] {
        let mut head = [0_u8; 512];
        let mut put = |at: usize, text: &str| {
            head[at..at + text.len()].copy_from_slice(text.as_bytes());
        };
        put(0, "ferry.md");
        put(100, "0000644");
        put(124, &format!("{:011o}", text.len()));
        put(136, "00000000000");
        put(148, "        ");
        put(156, "0");
        put(257, "ustar\x0000");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend(head);
        archive.extend(text.as_bytes());
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1_024, 0);
    std::fs::write(dir.path().join("docs/old.tar"), archive).unwrap();
    let (code, report) = index(&dir, "docs");
    assert_eq!(
        (code, &report["documents"]),
        (Some(0), &Value::from(2)),
        "{report}"
    );
    assert_eq!(report["warnings"][0]["code"], "repeated-ids", "{report}");
    let (_, again) = index(&dir, "docs");
    assert_eq!(again["unchanged"], 2, "{again}");
}

#[test]
fn lost_records_are_errors_in_the_report_in_doctor_and_in_the_status() {
    let dir = folder();
    dir.write("docs/good.jsonl", "{\"text\":\"the ferry\"}\n");
    dir.write(
        "docs/bad.jsonl",
        "{\"text\":\"one\"}\n{\"text\":\n{\"text\":\"three\"}\n",
    );
    dir.write(
        "docs/open.csv",
        "port,note\nEllin,\"open\nTarn,x\nOrrin,y\n",
    );
    // A file of an unsupported format is skipped, which is not a loss.
    std::fs::write(dir.path().join("docs/boat.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let ran = dir.run(&["index", "docs"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    for line in [
        "error: bad.jsonl:2: the line is not valid JSON",
        "error: open.csv:2: it is damaged",
        "skipped: boat.png: the format `png` is not supported",
        "error: 2 rows or files were lost",
    ] {
        assert!(ran.stderr.contains(line), "{line} in {}", ran.stderr);
    }
    assert!(ran.stdout.starts_with("5 documents: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("3 skipped, 2 lost"), "{}", ran.stdout);
    let (code, losses) = doctor(&dir, "docs");
    assert_eq!((code, losses.len()), (Some(1), 2), "{losses:?}");
    assert!(
        losses[0].starts_with("wrong \"`bad.jsonl:2` is not indexed"),
        "{losses:?}"
    );
    assert!(
        losses[1].starts_with("wrong \"`open.csv:2` is not indexed"),
        "{losses:?}"
    );
    // Losses are reported again while nothing changes, and no longer once the files are correct.
    assert_eq!(index(&dir, "docs").0, Some(3));
    dir.write("docs/bad.jsonl", "{\"text\":\"one\"}\n");
    dir.write("docs/open.csv", "port,note\nEllin,x\n");
    let (code, report) = index(&dir, "docs");
    assert_eq!(
        (code, &report["lost"]),
        (Some(0), &Value::from(0)),
        "{report}"
    );
    assert_eq!(doctor(&dir, "docs").1.len(), 0);
    // The skipped picture is still not a loss.
    assert_eq!(report["skipped"].as_array().unwrap().len(), 1, "{report}");
}
