//! Deep pagination as a denial of service: a page after thousands of results costs about as much as a search, because
//! the skipped documents are not read.

use std::fmt::Write as _;

use serde_json::json;

use crate::process::{ServerProcess, TestDir};

/// The rows are spread over several files, so that the index has several segments.
const FILES: usize = 4;
const ROWS: usize = 2_500;
/// The number of calls of each page in a round. Rounds alternate, so that other work on the machine affects both.
const CALLS: usize = 20;
/// The CPU time after which the first page is measured well enough: a clock tick more or less changes a hundredth.
const MIN_TICKS: u64 = 100;
/// The cost limit of a deep page, as a multiple of the first page. It is 0.7 of it for lexical and for hybrid search, and
/// more than ten times as much where the results before the page are loaded too.
const MAX_RATIO: u64 = 4;

/// The CPU time of the server so far (user and system), in clock ticks.
fn ticks(server: &ServerProcess) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Compares the cost of the last page of results with that of the first, under these settings.
fn check_deep_page(settings: &str, has_vectors: bool) {
    let dir = TestDir::new();
    dir.write("docs/docent.toml", settings);
    for file in 0..FILES {
        let mut table = "name,note\n".to_owned();
        for row in 0..ROWS {
            let _ = writeln!(
                table,
                "berth {file} {row},the ferry waits at pier {}",
                row % 7
            );
        }
        dir.write(&format!("docs/berths{file}.csv"), &table);
        // One commit per file gives one segment per file.
        let ran = dir.run(&["index", "docs"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let server = ServerProcess::start(&dir, &["docs", "--no-watch"]);
    if has_vectors {
        server.wait_until_embedded();
    } else {
        server.wait_until_synced();
    }
    let cost = |offset: usize| {
        let ask = json!({"query": "ferry", "offset": offset, "limit": 10});
        let answer = server.call("find", &ask);
        let results = answer["structuredContent"]["results"]
            .as_array()
            .map(Vec::len);
        assert_eq!(results, Some(10), "{answer}");
        let before = ticks(&server);
        for _ in 0..CALLS {
            server.call("find", &ask);
        }
        ticks(&server) - before
    };
    let (mut calls, mut first, mut deep) = (0, 0, 0);
    // A deep page that is over its limit ends the loop too.
    while first < MIN_TICKS && deep <= MIN_TICKS * MAX_RATIO {
        first += cost(0);
        deep += cost(9_980);
        calls += CALLS;
    }
    assert!(
        deep <= first * MAX_RATIO,
        "{calls} calls cost {first} ticks for the first page, {deep} for a deep one"
    );
}

#[test]
fn a_deep_page_costs_no_more_than_a_few_searches() {
    check_deep_page(
        "[search]\nmode = \"lexical\"\n[model]\nname = \"none\"\n",
        false,
    );
}

#[test]
fn a_deep_page_of_hybrid_search_costs_no_more_than_a_few_searches() {
    check_deep_page("[model]\nname = \"table\"\n", true);
}
