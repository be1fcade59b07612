//! Runs the golden files of every format in a sandboxed child and in this process and compares the results.
//! It catches parsers that open files, start threads or exceed the sandbox limits.

use std::path::Path;
use std::sync::Arc;

use docent_ingest::{FolderSource, Limits, ParserPool};
use libtest_mimic::Trial;

use crate::{sandbox, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("children_read_golden_files_as_we_do", same)]
}

fn same() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let workers = Arc::new(ParserPool::new(sandbox("__parse")).unwrap());
    let here = FolderSource::open(&data, Limits::default()).unwrap();
    let there = FolderSource::open(&data, Limits::default()).unwrap();
    let there = there.with_workers(workers.clone());
    let listing = here.list();
    for entry in &listing.entries {
        assert_eq!(there.read(entry), here.read(entry), "{}", entry.path());
    }
    assert!(workers.started() > 0, "no golden file needs a child");
}
