//! Streamed files of records: their own limit, and delivery of their documents in batches.

use docent_ingest::{IngestError, Limits};

use crate::{TestFolder, find};

#[test]
fn a_file_of_records_ends_at_a_bound_of_its_own() {
    let folder = TestFolder::new();
    let line = "{\"text\":\"x\"}\n";
    for (name, count) in [("exact.jsonl", 10), ("over.jsonl", 11)] {
        folder.write(name, line.repeat(count));
    }
    let limits = Limits {
        max_file_bytes: 1,
        max_stream_bytes: 10 * line.len() as u64,
        ..Limits::default()
    };
    let read = folder.read("exact.jsonl", limits.clone()).unwrap();
    assert_eq!(read.documents.len(), 10);
    let over = folder.read("over.jsonl", limits).unwrap_err();
    assert_eq!(over.code(), "too-large");
}

#[test]
fn documents_are_handed_on_in_pieces_until_nobody_wants_more() {
    let folder = TestFolder::new();
    let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(1_000));
    folder
        .write("a.jsonl", line.repeat(2_000))
        .write(
            "b.json",
            format!("[{}]", vec![line.trim(); 2_000].join(",")),
        )
        .write("c.csv", format!("text\n{}", line.repeat(2_000)));
    let source = folder.source(Limits::default());
    for name in ["a.jsonl", "b.json", "c.csv"] {
        let entry = find(&source.list(), name);
        let whole = source.read(&entry).unwrap();
        assert_eq!(whole.documents.len(), 2_000, "{name}");
        let (mut batches, mut largest) = (0, 0);
        let read = source.read_into(&entry, &mut |batch| {
            batches += 1;
            largest = largest.max(batch.len());
            true
        });
        assert_eq!(read.unwrap().fingerprint, whole.fingerprint);
        assert!(batches > 5 && largest < 400, "{name}: {batches} {largest}");
        let mut taken = 0;
        let stopped = source.read_into(&entry, &mut |_| {
            taken += 1;
            taken < 2
        });
        assert_eq!((stopped.unwrap_err(), taken), (IngestError::Gone, 2));
    }
}
