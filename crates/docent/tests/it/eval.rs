//! `docent eval` from the command line: drafting queries, nDCG and other metrics, thresholds for CI, comparison of
//! runs, and the HTML report.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::process::{ProcessOutput, TestDir, shown};

/// Copies the example corpus into a temporary folder.
fn parliament() -> TestDir {
    let dir = TestDir::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/parliament");
    for path in ["docent.toml", "speeches"].map(|name| corpus.join(name)) {
        let files = if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        } else {
            vec![path]
        };
        for file in files {
            let name = file.strip_prefix(&corpus).unwrap();
            let name = format!("docs/{}", name.display());
            dir.write(&name, &std::fs::read_to_string(file).unwrap());
        }
    }
    indexed(dir)
}

fn indexed(dir: TestDir) -> TestDir {
    index(&dir);
    dir
}

fn index(dir: &TestDir) {
    assert_eq!(lexical_only(dir, &["index", "docs"]).code, Some(0));
}

/// Runs without a model: lexical ranks can be computed by hand, and indexing takes no time for vectors.
fn lexical_only(dir: &TestDir, args: &[&str]) -> ProcessOutput {
    let mut command = dir.docent(args);
    ProcessOutput::of(command.env("DOCENT_MODEL_NAME", "none").output().unwrap())
}

fn eval(dir: &TestDir, args: &[&str]) -> ProcessOutput {
    let all: Vec<_> = ["eval", "--path", "docs"]
        .iter()
        .chain(args)
        .copied()
        .collect();
    lexical_only(dir, &all)
}

fn read(dir: &TestDir, name: &str) -> String {
    std::fs::read_to_string(dir.path().join(name)).unwrap()
}

#[test]
fn queries_are_drafted_scored_and_gated() {
    let dir = parliament();
    let made = eval(&dir, &["--make", "48", "--out", "q.jsonl"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(
        made.stderr,
        "48 queries drafted in q.jsonl; read them, correct them, and add your own\n"
    );
    let passed = eval(
        &dir,
        &["q.jsonl", "--min-ndcg", "0.5", "--min-recall", "0.5"],
    );
    assert_eq!(
        (passed.code, passed.stderr.as_str()),
        (Some(0), ""),
        "{passed:?}"
    );
    assert!(
        passed
            .stdout
            .starts_with("Parliament of Corrowin: 48 judged queries, 64 documents\n"),
        "{}",
        passed.stdout
    );
    // No search finds the speech about juries with the query `ferry`.
    let wrong = "{\"query\":\"winter ferry timetable\",\"relevant\":[\"speeches/2024-03-26-jury-service-reform.md\"]}\n";
    dir.write("harder.jsonl", &(read(&dir, "q.jsonl") + wrong));
    let failed = eval(&dir, &["harder.jsonl", "--min-ndcg", "1", "--json"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let ndcg = failed.json()["scores"]["ndcg_at_10"].as_f64().unwrap();
    assert!(ndcg > 0.5 && ndcg < 1.0, "{ndcg}");
    assert_eq!(
        failed.stderr,
        format!(
            "error: nDCG@10 is {ndcg:.4}, below the 1.0000 of `--min-ndcg`\n\
             hint: look at the worst queries; `--report report.html` shows what each of them found\n"
        )
    );
    assert_eq!(failed.json()["gates"][0]["passed"], false);
}

#[test]
fn drafts_are_deterministic_and_keep_the_rules() {
    let dir = parliament();
    let made = |seed: &str| eval(&dir, &["--make", "64", "--seed", seed]).stdout;
    let text = made("5");
    assert_eq!(made("5"), text);
    assert_ne!(made("6"), text);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 64);
    let documents: BTreeSet<_> = lines
        .iter()
        .map(|line| line["relevant"][0].as_str().unwrap())
        .collect();
    assert_eq!(documents.len(), 64, "one for each speech");
    for line in &lines {
        let query = line["query"].as_str().unwrap();
        assert!((2..=12).contains(&query.split(' ').count()), "{query}");
        assert!(["keywords", "phrase", "question"].contains(&line["kind"].as_str().unwrap()));
        let speech = read(
            &dir,
            &format!("docs/{}", line["relevant"][0].as_str().unwrap()),
        );
        let title = speech
            .lines()
            .find_map(|line| line.strip_prefix("title: "))
            .unwrap();
        let title = title.trim_matches('"').to_lowercase();
        assert!(!query.contains(&title), "{query}");
    }
    let few = eval(&dir, &["--make", "200"]);
    // Three drafts for each speech, less the kinds that a speech has no material for.
    let count = few.stdout.lines().count();
    assert!((180..=192).contains(&count), "{count}");
    let warning = format!("warning: only {count} queries of 200 could be drafted\n");
    assert!(few.stderr.starts_with(&warning), "{few:?}");
}

#[test]
fn drafts_never_replace_a_file_and_need_text() {
    let dir = indexed(TestDir::small());
    dir.write("q.jsonl", "precious");
    let ran = eval(&dir, &["--make", "1", "--out", "q.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr
            .starts_with("error: `q.jsonl` is there already\nhint: "),
        "{ran:?}"
    );
    assert_eq!(read(&dir, "q.jsonl"), "precious");
    let none = eval(&dir, &["--make", "1"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(
        none.stderr
            .starts_with("warning: only 0 queries of 1 could be drafted\nhint: ")
    );
}

/// Three documents whose ranks are known, so that every metric can be computed by hand.
#[test]
fn the_metrics_equal_those_computed_by_hand() {
    let dir = indexed(TestDir::small());
    dir.write(
        "q.jsonl",
        "{\"id\":\"one\",\"query\":\"ferry\",\"relevant\":[\"ferry.md\"],\"kind\":\"word\"}\n\
         {\"id\":\"two\",\"query\":\"levee\",\"relevant\":{\"r1\":1,\"gone\":2}}\n\
         {\"query\":\"zeppelin\",\"relevant\":[\"slate.txt\"]}\n\
         {\"query\":\"nobody judged this\",\"relevant\":[]}\n",
    );
    let ran = eval(&dir, &["q.jsonl", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "warning: 1 query left out, without a relevant document\n\
         warning: 1 of 4 judged documents are not in the index: `gone`\n\
         hint: they count as not found; run `docent index`, or compare the ids with those of `docent search --json`\n"
    );
    let run = ran.json();
    // nDCG of the second query is 1 / (2 + 1 / log2(3)).
    let scores = &run["queries"][1]["scores"];
    assert_eq!(
        (&scores["ndcg_at_10"], &scores["recall_at_10"]),
        (&json!(0.380_094), &json!(0.5))
    );
    assert_eq!(run["scores"]["ndcg_at_10"], json!(0.460_031));
    assert_eq!(run["scores"]["recall_at_10"], json!(0.5));
    assert_eq!(run["scores"]["mrr_at_10"], json!(0.666_667));
    assert_eq!(run["scores"]["coverage"], json!(0.666_667));
    assert_eq!(run["scores"]["diversity_at_10"], json!(1.0));
    assert_eq!(
        (&run["asked"], &run["unjudged"], &run["unknown_documents"]),
        (&json!(3), &json!(1), &json!(1))
    );
    assert_eq!(run["queries"][0]["found"], json!(["ferry.md"]));
    assert_eq!(
        run["queries"][1]["expected"],
        json!([{"id": "gone", "grade": 2, "rank": null}, {"id": "r1", "grade": 1, "rank": 1}])
    );
    assert_eq!(run["queries"][2]["id"], "zeppelin");
    assert_eq!(run["kinds"][1]["kind"], "word");
}

#[test]
fn collections_of_beir_and_trec_are_read() {
    let dir = indexed(TestDir::small());
    dir.write(
        "q.jsonl",
        "{\"_id\":\"1\",\"text\":\"ferry\",\"metadata\":{}}\n{\"_id\":2,\"text\":\"levee\"}\n",
    );
    dir.write(
        "beir.tsv",
        "query-id\tcorpus-id\tscore\n1\tferry.md\t1\n2\tr1\t1\n9\tr1\t1\n",
    );
    dir.write("trec.txt", "1 0 ferry.md 1\n2 0 r1 2\n2 0 slate.txt 0\n");
    for qrels in ["beir.tsv", "trec.txt"] {
        let ran = eval(&dir, &["q.jsonl", "--qrels", qrels, "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        assert_eq!(ran.json()["scores"]["ndcg_at_10"], json!(1.0));
    }
}

#[test]
fn bad_input_is_named_with_its_line_and_a_hint() {
    let dir = indexed(TestDir::small());
    let good = "{\"query\":\"ferry\",\"relevant\":[\"ferry.md\"]}\n";
    dir.write("good.jsonl", good);
    dir.write("bad.jsonl", &format!("{good}{{\"query\":\"levee\"}}\n"));
    dir.write("unjudged.jsonl", "{\"query\":\"levee\",\"relevant\":[]}\n");
    dir.write("bad.tsv", "1\tferry.md\n");
    dir.write("before.json", "{}");
    let cases: [(&[&str], &str); 8] = [
        (
            &["none.jsonl"],
            "error: there is no file `none.jsonl`\nhint: ",
        ),
        (
            &["bad.jsonl"],
            "error: `relevant` is missing\nfrom: bad.jsonl:2\nhint: ",
        ),
        (
            &["unjudged.jsonl"],
            "error: no query of `unjudged.jsonl` has a relevant document\nhint: ",
        ),
        (
            &["good.jsonl", "--qrels", "bad.tsv"],
            "error: the line has 2 columns\nfrom: bad.tsv:1\nhint: ",
        ),
        (
            &["good.jsonl", "--compare", "before.json"],
            "error: `before.json` is not an earlier run: ",
        ),
        (
            &["good.jsonl", "--report", "no/where.html"],
            "error: `no/where.html` cannot be written\nhint: ",
        ),
        (
            &["good.jsonl", "--min-ndcg", "2"],
            "error: invalid value '2' for '--min-ndcg <SHARE>': write a number",
        ),
        (
            &[],
            "error: the following required arguments were not provided:",
        ),
    ];
    for (args, message) in cases {
        let ran = eval(&dir, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.starts_with(message), "{ran:?}");
    }
    let skipped = eval(&dir, &["bad.jsonl", "--skip-bad", "--json"]);
    assert_eq!(skipped.code, Some(0), "{skipped:?}");
    assert_eq!(
        skipped.stderr,
        "skipped: bad.jsonl:2: `relevant` is missing (list the ids of the relevant documents, or name a file with `--qrels`)\n"
    );
    assert_eq!(skipped.json()["skipped_lines"], 1);
}

#[test]
fn evaluating_needs_an_index() {
    let dir = TestDir::small();
    dir.write(
        "q.jsonl",
        "{\"query\":\"ferry\",\"relevant\":[\"ferry.md\"]}\n",
    );
    let folder = shown(&dir.path().join("docs"));
    for args in [&["q.jsonl"][..], &["--make", "1"]] {
        let ran = eval(&dir, args);
        assert_eq!(ran.code, Some(1));
        assert_eq!(
            ran.stderr,
            format!(
                "error: `{folder}` is not indexed\nhint: index it with `docent index {folder}`\n"
            )
        );
    }
}

#[test]
fn two_runs_are_compared_and_a_drop_fails_a_build() {
    let dir = indexed(TestDir::small());
    dir.write(
        "q.jsonl",
        "{\"query\":\"ferry\",\"relevant\":[\"ferry.md\"]}\n{\"query\":\"levee\",\"relevant\":[\"r1\"]}\n",
    );
    dir.write("before.json", &eval(&dir, &["q.jsonl", "--json"]).stdout);
    let same = eval(
        &dir,
        &["q.jsonl", "--compare", "before.json", "--max-drop", "0"],
    );
    assert_eq!(same.code, Some(0), "{same:?}");
    for part in [
        "compared in 2 queries (0 only in this run, 0 only in the earlier one)\n",
        "  nDCG@10       1.000 -> 1.000  +0.000\n",
        "  nDCG@10: 0 better, 0 worse, 2 the same; the change may be chance (p = 1.000)",
    ] {
        assert!(same.stdout.contains(part), "{part}\n---\n{}", same.stdout);
    }
    dir.remove("docs/ferry.md");
    index(&dir);
    let worse = eval(
        &dir,
        &["q.jsonl", "--compare", "before.json", "--max-drop", "0.4"],
    );
    assert_eq!(worse.code, Some(1), "{worse:?}");
    assert!(
        worse.stderr.contains(
            "error: the change of nDCG@10 is -0.5000, below the -0.4000 of `--max-drop`\n"
        ),
        "{worse:?}"
    );
    assert!(
        worse.stdout.contains("\n  worse  -1.000  ferry"),
        "{}",
        worse.stdout
    );
    let json = eval(&dir, &["q.jsonl", "--compare", "before.json", "--json"]).json();
    assert_eq!(
        (&json["compared"]["worse"], &json["compared"]["same"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(json["compared"]["losses"][0]["query"], "ferry");
}

#[test]
fn the_report_is_self_contained() {
    let dir = TestDir::new();
    dir.write(
        "docs/a.md",
        "---\ntitle: <img src=x onerror=alert(1)>\n---\nThe ferry & the <b>quay</b>.\n",
    );
    dir.write("docs/b.md", "---\ntitle: Quay\n---\nThe quay is old.\n");
    let dir = indexed(dir);
    dir.write(
        "q.jsonl",
        "{\"query\":\"<script>ferry</script>\",\"relevant\":[\"b.md\"],\"kind\":\"<i>\"}\n\
         {\"query\":\"quay\",\"relevant\":[\"a.md\",\"b.md\"]}\n",
    );
    dir.write("before.json", &eval(&dir, &["q.jsonl", "--json"]).stdout);
    let args = [
        "q.jsonl",
        "--report",
        "r.html",
        "--compare",
        "before.json",
        "--min-mrr",
        "0.1",
    ];
    let ran = eval(&dir, &args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = read(&dir, "r.html");
    for reference in [
        "<script", "<link", "<img", "<iframe", "<a ", "<i>", "src=\"", "href", "url(", "@import",
        "://",
    ] {
        assert!(!page.contains(reference), "{reference}");
    }
    for part in [
        "<!doctype html>",
        "default-src 'none'",
        "&lt;script&gt;ferry&lt;/script&gt;",
        "&lt;img src=x onerror=alert(1)&gt;",
        "prefers-color-scheme: dark",
        "Compared with the earlier run",
        "Worst queries",
        "passed: MRR@10",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<svg").count(), 4);
}

#[test]
fn help_explains_the_file_and_the_exit_status() {
    let help = TestDir::new().run(&["eval", "--help"]).stdout;
    for words in [
        "Examples:",
        "--make 50",
        "\"relevant\"",
        "--compare before.json",
        "Exit status: 0 done",
    ] {
        assert!(help.contains(words), "{words}");
    }
}
