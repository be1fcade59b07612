//! Files that are swapped for links, devices and other folders while the folder is indexed: whatever the moment,
//! nothing from outside of the folder is ever in the index.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::process::{Dir, Ran};
use crate::stop_on_drop::StopOnDrop;

/// A word that stands outside of the folder alone.
const SECRET: &str = "xylotheque";
/// How often the folder is indexed while everything in it is swapped.
const LOOKS: usize = 12;
/// Files of each kind, so that a look takes long enough to be raced.
const FILES: usize = 40;

/// A folder to be indexed, and beside it what must stay outside: files of every way to read one, since what is
/// parsed in a child, streamed and read as a whole is opened in different places.
fn folders() -> Dir {
    let dir = Dir::new();
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

/// Puts something at a place in one step, as an attacker does who races an open.
fn replace(place: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    let beside = place.with_extension("beside~");
    let _ = fs::remove_file(&beside);
    make(&beside)?;
    fs::rename(&beside, place)
}

/// One round of swaps over every file: an absolute link, a relative one, a FIFO, a link to a link, and the file
/// itself again. Hard links are the files themselves and are read; whoever makes one has to own the file or may
/// write it, by default on every Linux.
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
            // The folder around it may be a link just now, and the place is outside then: leave that alone.
            swaps += u64::from(swapped.is_ok());
        }
    }
    Ok(swaps)
}

/// One round over every folder: renamed, a link to the outside in its place, and back again.
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

/// How long one look may take before it is given up: a FIFO that is opened like a file would keep it for ever.
const LOOK_SECONDS: &str = "300";

/// Looks at the folder once.
fn index(dir: &Dir) -> Ran {
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
    Ran::of(command.output().unwrap())
}

/// What the index holds as the last look left it: a search in the terminal does not look at the folder.
fn found(dir: &Dir, word: &str) -> usize {
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
        // One thread for both, so that a file is never swapped inside a folder that is a link.
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
    // At rest again, everything is indexed that belongs here.
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
