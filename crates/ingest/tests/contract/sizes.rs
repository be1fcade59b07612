//! How much of a file is read, and how it is handed on.

use docent_ingest::{Limits, Reason, Source};

use crate::{Folder, find};

#[test]
fn a_file_ends_at_its_bound() {
    let folder = Folder::new();
    folder
        .write("exact.txt", "x".repeat(20_000))
        .write("over.txt", "x".repeat(20_001));
    let limits = Limits {
        max_file_bytes: 20_000,
        ..Limits::default()
    };
    assert_eq!(
        folder
            .read("exact.txt", limits.clone())
            .unwrap()
            .fingerprint
            .size,
        20_000
    );
    let over = Reason::TooLarge {
        bytes: 20_001,
        limit: 20_000,
    };
    assert_eq!(folder.read("over.txt", limits.clone()).unwrap_err(), over);
    let source = folder.source(limits);
    assert_eq!(
        source
            .fingerprint(&find(&source.list(), "over.txt"))
            .unwrap_err(),
        over
    );
}

#[test]
fn a_file_of_records_ends_at_a_bound_of_its_own() {
    let folder = Folder::new();
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
    let folder = Folder::new();
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
        let (mut pieces, mut largest) = (0, 0);
        let read = source.read_into(&entry, &mut |piece| {
            pieces += 1;
            largest = largest.max(piece.len());
            true
        });
        assert_eq!(read.unwrap().fingerprint, whole.fingerprint);
        assert!(pieces > 5 && largest < 400, "{name}: {pieces} {largest}");
        let mut taken = 0;
        let stopped = source.read_into(&entry, &mut |_| {
            taken += 1;
            taken < 2
        });
        assert_eq!((stopped.unwrap_err(), taken), (Reason::Gone, 2));
    }
}

#[test]
fn a_sparse_giant_is_not_read() {
    let folder = Folder::new();
    folder.write("giant.txt", "");
    let file = std::fs::File::options()
        .write(true)
        .open(folder.path("giant.txt"))
        .unwrap();
    file.set_len(4 << 30).unwrap();
    assert_eq!(
        folder.read("giant.txt", Limits::default()).unwrap_err(),
        Reason::Binary
    );
    let source = folder.source(Limits::default());
    let reason = source
        .fingerprint(&find(&source.list(), "giant.txt"))
        .unwrap_err();
    assert_eq!(
        reason,
        Reason::TooLarge {
            bytes: 4 << 30,
            limit: 64 << 20
        }
    );
}

/// Files of the kernel say that they are empty and are not, like a file that grows while it is read.
#[cfg(target_os = "linux")]
#[test]
fn reading_is_bounded_whatever_the_size_says() {
    let limits = Limits {
        max_file_bytes: 10,
        max_depth: 0,
        ..Limits::default()
    };
    let source = Source::open("/proc/sys/kernel/random", limits).unwrap();
    let entry = find(&source.list(), "uuid");
    assert_eq!(entry.size, 0);
    assert_eq!(
        source.fingerprint(&entry).unwrap_err(),
        Reason::TooLarge {
            bytes: 11,
            limit: 10
        }
    );
    assert_eq!(source.read(&entry).unwrap_err().code(), "too-large");
}
