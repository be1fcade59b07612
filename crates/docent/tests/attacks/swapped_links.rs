//! Symlink races (TOCTOU): files and folders are replaced by links and FIFOs while the folder is indexed. At no moment
//! may content from outside of the folder reach the index.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::process::{ProcessOutput, TestDir};
use crate::stop_on_drop::StopOnDrop;

/// A word that only files outside of the folder contain.
const SECRET: &str = "xylotheque";
/// The number of syncs during the swaps.
const LOOKS: usize = 12;
/// Files of each format, so that a sync takes long enough for races.
const FILES: usize = 40;

/// The folder to index and, beside it, the files that must stay outside. The formats cover every code path that opens a
/// file: parsed in a child process, streamed, and read as a whole.
fn folders() -> TestDir {
    let dir = TestDir::new();
    dir.write("docs/docent.toml", "[search]\nmode = \"lexical\"\n");
    for number in 0..FILES {
        for (name, text) in kinds(number, "harbour") {
            dir.write(&format!("docs/sub{}/{name}", number % 4), &text);
        }
        for (name, text) in kinds(number, SECRET) {
            dir.write(&format!("outside/{name}"), &text);
        }
    }
    dir
}

fn kinds(number: usize, word: &str) -> [(String, String); 4] {
    [
        (
            format!("{number}.md"),
            format!("# Note\n\nThe {word} {number}.\n"),
        ),
        (
            format!("{number}.html"),
            format!("<title>Page</title><p>The {word} {number}."),
        ),
        (
            format!("{number}.csv"),
            format!("title,text\nRow,The {word} {number}.\n"),
        ),
        (
            format!("{number}.jsonl"),
            format!("{{\"title\":\"Line\",\"text\":\"The {word} {number}.\"}}\n"),
        ),
    ]
}

/// Replaces a path atomically by a rename, as an attacker does to win a race against an open.
fn replace(place: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    let beside = place.with_extension("beside~");
    let _ = fs::remove_file(&beside);
    make(&beside)?;
    fs::rename(&beside, place)
}

/// One round of swaps over every file: an absolute link, a relative one, a FIFO, a link to a link, and the original
/// file. Hard links are not attacked: they are the files themselves, and Linux by default lets only those create one
/// who own the file or may write it (`protected_hardlinks`).
fn swap_files(root: &Path, round: usize) -> std::io::Result<u64> {
    let outside = root.parent().unwrap().join("outside");
    let mut swaps = 0;
    for number in 0..FILES {
        for (kind, (name, text)) in kinds(number, "harbour").into_iter().enumerate() {
            let place = root.join(format!("sub{}", number % 4)).join(&name);
            let target = outside.join(&name);
            let swapped = match (round + number + kind) % 5 {
                0 => replace(&place, |at| symlink(&target, at)),
                1 => replace(&place, |at| {
                    symlink(Path::new("../../outside").join(&name), at)
                }),
                2 => replace(&place, |at| {
                    let made = Command::new("mkfifo").arg(at).status()?;
                    assert!(made.success());
                    Ok(())
                }),
                3 => replace(&place, |at| {
                    symlink(format!("/proc/self/cwd/outside/{name}"), at)
                }),
                _ => replace(&place, |at| fs::write(at, &text)),
            };
            // Errors are ignored: the parent folder may be a link at this moment.
            swaps += u64::from(swapped.is_ok());
        }
    }
    Ok(swaps)
}

/// One round over every folder: it is renamed, a link to the outside takes its place, and it is renamed back.
fn swap_folders(root: &Path) -> std::io::Result<u64> {
    for folder in 0..4 {
        let place = root.join(format!("sub{folder}"));
        let aside = root.parent().unwrap().join(format!("aside{folder}"));
        fs::rename(&place, &aside)?;
        symlink(root.parent().unwrap().join("outside"), &place)?;
        std::thread::yield_now();
        fs::remove_file(&place)?;
        fs::rename(&aside, &place)?;
    }
    Ok(4)
}

/// The timeout of a sync: opening a FIFO like a file would block forever.
const LOOK_SECONDS: &str = "300";

/// Runs one sync, under a timeout.
fn index(dir: &TestDir) -> ProcessOutput {
    let docent = dir.docent(&["index", "docs", "--json"]);
    let set = docent.get_envs();
    let mut command = Command::new("timeout");
    command
        .env_clear()
        .envs(set.filter_map(|(name, value)| Some((name, value?))))
        .current_dir(dir.path())
        .arg(LOOK_SECONDS)
        .arg(docent.get_program())
        .args(docent.get_args());
    ProcessOutput::of(command.output().unwrap())
}

/// The number of hits in the index as the last sync left it; `docent search` does not sync.
fn found(dir: &TestDir, word: &str) -> usize {
    let ran = dir.run(&[
        "search", word, "--path", "docs", "--mode", "lexical", "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let found = ran.json();
    found["results"].as_array().unwrap().len()
}

#[test]
fn nothing_from_outside_is_indexed_whatever_is_swapped_meanwhile() {
    let dir = folders();
    let root = dir.path().join("docs");
    let (done, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&done);
        // One thread swaps both, so that it never writes through a folder that is a link.
        scope.spawn(|| {
            let mut round = 0;
            while !done.load(Ordering::SeqCst) {
                let files = swap_files(&root, round).unwrap();
                let folders: u64 = (0..50).map(|_| swap_folders(&root).unwrap()).sum();
                swaps.fetch_add(files + folders, Ordering::SeqCst);
                round += 1;
            }
        });
        for look in 0..LOOKS {
            let ran = index(&dir);
            assert!(matches!(ran.code, Some(0 | 3)), "{look}: {ran:?}");
            assert!(
                !ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET),
                "{look}"
            );
            assert_eq!(found(&dir, SECRET), 0, "{look}");
        }
    });
    assert!(swaps.load(Ordering::SeqCst) > 0);
    // After the swaps, all files of the folder are indexed.
    for number in 0..FILES {
        for (name, text) in kinds(number, "harbour") {
            let place = root.join(format!("sub{}", number % 4)).join(name);
            let _ = fs::remove_file(&place);
            fs::write(place, text).unwrap();
        }
    }
    let ran = index(&dir);
    assert_eq!(ran.json()["documents"], 4 * FILES, "{ran:?}");
    assert_eq!(found(&dir, SECRET), 0);
    assert!(found(&dir, "harbour") > 0);
}
