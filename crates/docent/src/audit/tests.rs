//! Tests of the audit log: restarts, crashes, a full disk, rotation, and 150 tampered copies.

use std::fs;

use serde_json::json;

use super::log_writer::AuditLogWriter;
use super::verify::verify;
use super::*;

fn entry(n: usize) -> Map<String, Value> {
    let entry = json!({"event": "call", "tool": "search", "results": [format!("d{n}")]});
    entry.as_object().cloned().unwrap()
}

fn filled(path: &Path, lines: usize, max_bytes: u64) {
    let mut log = AuditLogWriter::open(path, max_bytes).unwrap();
    for n in 0..lines {
        log.write([entry(n)].into_iter(), SystemTime::now())
            .unwrap();
    }
}

fn is_whole(path: &Path) -> bool {
    verify(&[path.to_owned()]).unwrap().is_ok()
}

#[test]
fn a_log_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    for _ in 0..3 {
        filled(&path, 4, u64::MAX);
    }
    let whole = verify(std::slice::from_ref(&path)).unwrap().unwrap();
    assert_eq!((whole.lines, whole.last.number), (15, 15));
    assert!(whole.remarks.is_empty(), "{:?}", whole.remarks);
}

#[test]
fn fifty_of_fifty_changes_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    filled(&path, 49, u64::MAX);
    let good = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    assert_eq!(lines.len(), 50);
    let (mut edited, mut removed, mut swapped) = (0, 0, 0);
    for at in 0..50 {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        changed[at] = changed[at].replacen("T", "t", 1);
        fs::write(&path, changed.join("\n") + "\n").unwrap();
        edited += usize::from(!is_whole(&path));
        let mut changed = lines.clone();
        changed.remove(at);
        fs::write(&path, changed.join("\n") + "\n").unwrap();
        removed += usize::from(!is_whole(&path));
        let mut changed = lines.clone();
        changed.swap(at, (at + 1) % 50);
        fs::write(&path, changed.join("\n") + "\n").unwrap();
        swapped += usize::from(!is_whole(&path));
    }
    assert_eq!((edited, removed, swapped), (50, 50, 50));
    fs::write(&path, &good).unwrap();
    assert!(is_whole(&path));
}

#[test]
fn the_first_bad_line_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    filled(&path, 9, u64::MAX);
    let good = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let line = |content: String| {
        fs::write(&path, content).unwrap();
        verify(std::slice::from_ref(&path))
            .unwrap()
            .unwrap_err()
            .line
    };
    // The successor reveals an edited line; the head file reveals an edited last line.
    assert_eq!(line(good.replacen("\"d3\"", "\"d4\"", 1)), 6);
    assert_eq!(line(good.replacen("\"d8\"", "\"d7\"", 1)), 10);
    assert_eq!(line(lines[..7].join("\n") + "\n"), 8);
    assert_eq!(line(lines[1..].join("\n") + "\n"), 1);
    assert_eq!(line("not json\n".to_owned()), 1);
    let longest = "x".repeat(usize::try_from(super::log_writer::MAX_LINE_BYTES).unwrap() + 1);
    assert_eq!(line(longest), 1);
}

#[test]
fn a_line_that_a_crash_tore_is_cut_off_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    filled(&path, 3, u64::MAX);
    let head_path = dir.path().join("audit.jsonl.head");
    let (whole, head) = (fs::read(&path).unwrap(), fs::read(&head_path).unwrap());
    for torn in [1, 40, 120] {
        let mut bytes = whole.clone();
        bytes.extend_from_slice(&whole[..torn]);
        fs::write(&path, &bytes).unwrap();
        let found = verify(std::slice::from_ref(&path)).unwrap().unwrap();
        assert_eq!(found.remarks.len(), 1, "a torn line is a remark: {found:?}");
        filled(&path, 1, u64::MAX);
        let found = verify(std::slice::from_ref(&path)).unwrap().unwrap();
        assert!(found.remarks.is_empty());
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains(&format!("\"torn\",\"bytes\":{torn}")),
            "{text}"
        );
        fs::write(&head_path, &head).unwrap();
        fs::write(&path, &whole).unwrap();
    }
    fs::write(&path, "{\"seq\": 1}\n").unwrap();
    assert!(AuditLogWriter::open(&path, u64::MAX).is_err());
}

#[test]
fn a_large_log_goes_on_in_another_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    filled(&path, 60, 2_000);
    filled(&path, 10, 2_000);
    let mut files: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.to_string_lossy().ends_with("head"))
        .collect();
    // The one without a number is the newest.
    files.sort_by_key(|path| (path.ends_with("audit.jsonl"), path.clone()));
    assert!(files.len() > 3, "{files:?}");
    let whole = verify(&files).unwrap().unwrap();
    assert!(whole.remarks.is_empty(), "{:?}", whole.remarks);
    assert_eq!(whole.lines, whole.last.number);
    let without_first = verify(&files[1..]).unwrap().unwrap();
    assert_eq!(without_first.remarks.len(), 1);
    files.remove(1);
    assert!(verify(&files).unwrap().is_err());
}

#[test]
fn a_log_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let _first = AuditLogWriter::open(&path, u64::MAX).unwrap();
    let second = AuditLogWriter::open(&path, u64::MAX);
    assert!(second.is_err_and(|problem| problem.message.contains("another process")));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_lines_and_says_how_many() {
    // Every write to this device fails with "no space left".
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.jsonl");
    let log = AuditLogWriter::open(&path, u64::MAX).unwrap();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let (sender, queue) = sync_channel(QUEUE);
    let lost = AtomicU64::new(2);
    for n in 0..3 {
        sender.send(AuditMessage::Call(entry(n))).unwrap();
    }
    drop(sender);
    write(log.with_file(full), &queue, &lost);
    let good = fs::read_to_string(&path).unwrap();
    assert_eq!(good.lines().count(), 1, "nothing was written");
    let (sender, queue) = sync_channel(QUEUE);
    lost.store(5, Ordering::Relaxed);
    sender.send(AuditMessage::Call(entry(9))).unwrap();
    drop(sender);
    write(
        AuditLogWriter::open(&path, u64::MAX).unwrap(),
        &queue,
        &lost,
    );
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"event\":\"gap\",\"lost\":5"), "{text}");
    assert!(is_whole(&path));
}

#[test]
fn ids_and_texts_end_at_their_bounds() {
    let ids = |count: usize| vec!["x".repeat(512); count];
    let most = MAX_IDS_BYTES / 512;
    assert_eq!(truncate_ids(&ids(most)), (&ids(most)[..], false));
    assert_eq!(truncate_ids(&ids(most + 1)), (&ids(most)[..], true));
    assert_eq!(
        truncate_arguments(&"é".repeat(MAX_QUERY_BYTES)).len(),
        MAX_QUERY_BYTES
    );
    assert_eq!(
        truncate_arguments(&"x".repeat(MAX_QUERY_BYTES + 1)).len(),
        MAX_QUERY_BYTES
    );
}
