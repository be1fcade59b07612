//! The whole hostile set among two hundred harmless files, read by the real pool: each hostile file yields
//! documents or one stable error code, no child exceeds its memory limit, and every harmless file is read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use docent_ingest::{FileEntry, FolderSource, Limits, ParserPool};
use libtest_mimic::Trial;

use crate::{HostileFolder, mail, sandbox, trial};

const NEIGHBOURS: usize = 200;

/// Threads that read files at the same time.
const THREADS: usize = 2;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        // Takes long: every file is read twice by an unoptimized parser, and a file that hits its deadline
        // takes all of the twenty seconds.
        trial(
            "the_hostile_set_ends_and_its_neighbours_are_read",
            whole_set,
        ),
        #[cfg(unix)]
        trial("what_is_no_file_is_left_out", no_files),
    ]
}

fn whole_set() {
    let folder = HostileFolder::new();
    let set = hostile_files(&folder);
    assert!(set.len() >= 60, "{}", set.len());
    for number in 0..NEIGHBOURS {
        let (name, content) = neighbour(number);
        folder.write(&name, content);
    }
    let workers = Arc::new(ParserPool::new(sandbox("__parse")).unwrap());
    let source = FolderSource::open(folder.path(""), Limits::default()).unwrap();
    let source = source.with_workers(workers);
    let listing = source.list();
    assert_eq!(listing.entries.len(), set.len() + NEIGHBOURS);
    let first = read(&source, &listing.entries);
    for number in 0..NEIGHBOURS {
        let (name, _) = neighbour(number);
        let documents = first.get(&name).unwrap().documents();
        let [text] = documents.unwrap_or_else(|code| panic!("{name}: {code}")) else {
            panic!("{name} is not one document");
        };
        assert!(
            text.contains(&format!("Neighbour {number}.")),
            "{name}: {text}"
        );
    }
    for (name, expect) in &set {
        check(name, expect, first.get(name).unwrap());
    }
    again(&source, &listing.entries, &first);
    // The system accounts for the memory of children once they have exited.
    drop(source);
    #[cfg(target_os = "linux")]
    assert_memory();
}

/// Has the set written, and returns the expected outcome of each file.
fn hostile_files(folder: &HostileFolder) -> Vec<(String, String)> {
    let mut writer = std::process::Command::new(std::env::current_exe().unwrap());
    let written = writer.arg("__write").arg(folder.path("")).output().unwrap();
    assert!(written.status.success(), "{written:?}");
    let lines = String::from_utf8(written.stdout).unwrap();
    let line = |line: &str| {
        let (name, expect) = line.split_once('\t').unwrap();
        (name.to_owned(), expect.to_owned())
    };
    lines.lines().map(line).collect()
}

/// A harmless file, alternating between formats that this process reads and formats that children read.
fn neighbour(number: usize) -> (String, Vec<u8>) {
    let text = format!("Neighbour {number}. The quarry road is open.");
    let (extension, content) = match number % 4 {
        0 => ("md", format!("# Road\n\n{text}\n").into_bytes()),
        1 => ("txt", text.into_bytes()),
        2 => ("eml", mail(&text).into_bytes()),
        _ => ("txt.gz", packed(text.as_bytes())),
    };
    (format!("{number:03}.{extension}"), content)
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// The outcome of a file: the beginnings of its documents, or an error code.
struct HostileOutcome(Result<Vec<String>, &'static str>);

impl HostileOutcome {
    /// Reads a file as the server does, keeping only the beginnings of some documents: all texts of all
    /// files would fill the memory.
    fn of(source: &FolderSource, entry: &FileEntry) -> Self {
        let name = entry.path();
        let mut texts = Vec::new();
        let read = source.read_into(entry, &mut |documents| {
            for document in documents {
                assert_eq!(
                    docent_ingest::clean(&document.text),
                    document.text,
                    "{name}"
                );
                assert!(document.check().is_ok(), "{name}");
                let shown = if texts.len() < 100 { 10_000 } else { 0 };
                texts.push(document.text.chars().take(shown).collect());
            }
            true
        });
        Self(read.map(|_| texts).map_err(|reason| reason.code()))
    }

    fn documents(&self) -> Result<&[String], &'static str> {
        self.0.as_deref().map_err(|code| *code)
    }

    fn code(&self) -> Option<&'static str> {
        self.0.as_ref().err().copied()
    }
}

fn read(source: &FolderSource, entries: &[FileEntry]) -> BTreeMap<String, HostileOutcome> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(BTreeMap::new());
    let work = || {
        while let Some(entry) = entries.get(next.fetch_add(1, Ordering::SeqCst)) {
            let began = std::time::Instant::now();
            let outcome = HostileOutcome::of(source, entry);
            let (seconds, path) = (began.elapsed().as_secs_f32(), entry.path());
            if path.contains('-') {
                println!(
                    "{seconds:6.2} s  {:16} {path}",
                    outcome.code().unwrap_or("ok")
                );
            }
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(path.to_owned(), outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    all.into_inner().unwrap()
}

fn check(name: &str, expect: &str, outcome: &HostileOutcome) {
    let found = match outcome.documents() {
        Ok(documents) => format!("{} documents", documents.len()),
        Err(code) => code.to_owned(),
    };
    if expect.is_empty() {
        // The one code that says nothing about the file: no child could be started.
        assert_ne!(found, "unreadable", "{name}");
    } else {
        assert_eq!(found, expect, "{name}");
    }
    for text in outcome.documents().unwrap_or_default() {
        assert!(
            !text.contains("root:x:0"),
            "{name} shows a file of this machine"
        );
    }
}

/// Reads the files again in another order, without those that hit the deadline this time or the last,
/// because that may vary.
fn again(source: &FolderSource, entries: &[FileEntry], first: &BTreeMap<String, HostileOutcome>) {
    const SLOW: Option<&str> = Some("too-slow");
    let code = |name: &str| first.get(name).and_then(HostileOutcome::code);
    let slow = |entry: &&FileEntry| code(entry.path()) == SLOW;
    let mut rest: Vec<_> = entries
        .iter()
        .filter(|entry| !slow(entry))
        .cloned()
        .collect();
    rest.reverse();
    let mut read = read(source, &rest);
    read.retain(|_, outcome| outcome.code() != SLOW);
    for (name, outcome) in read {
        assert_eq!(code(&name), outcome.code(), "{name}");
    }
}

/// Asserts the peak memory of the largest child, as the system accounts for it.
#[cfg(target_os = "linux")]
pub(crate) fn assert_memory() {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let peak = u64::try_from(usage.max_rss()).unwrap() * 1024;
    println!("largest child: {} MiB", peak >> 20);
    assert!(
        peak > 0 && peak <= docent_ingest::MAX_MEMORY_BYTES,
        "{peak}"
    );
}

/// Links, pipes, sparse files and unusual names.
#[cfg(unix)]
fn no_files() {
    use std::os::unix::ffi::OsStrExt as _;
    let (folder, outside) = (HostileFolder::new(), HostileFolder::new());
    outside.write("secret.txt", "secret");
    for (target, link) in [
        ("/etc/passwd", "a.eml"),
        ("self.eml", "self.eml"),
        ("..", "up"),
    ] {
        std::os::unix::fs::symlink(target, folder.path(link)).unwrap();
    }
    std::fs::hard_link(outside.path("secret.txt"), folder.path("hard.txt")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(folder.path("socket.eml")).unwrap());
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe.eml"))
        .status();
    assert!(made.unwrap().success());
    let mut holes = std::fs::File::create(folder.path("holes.eml")).unwrap();
    std::io::Write::write_all(&mut holes, mail("holes").as_bytes()).unwrap();
    holes.set_len(4 << 30).unwrap();
    let deep = (0..70).fold(folder.path("deep"), |path, _| path.join("d"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("a.eml"), mail("deep")).unwrap();
    let long = "x".repeat(251) + ".eml";
    for name in [
        b"a\nb.eml".as_slice(),
        b"a\xFF.eml",
        "a\u{202E}lme.eml".as_bytes(),
        long.as_bytes(),
    ] {
        let path = folder.path("").join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(path, mail("named")).unwrap();
    }
    let source = FolderSource::open(folder.path(""), Limits::default()).unwrap();
    let source = source.with_workers(Arc::new(ParserPool::new(sandbox("__parse")).unwrap()));
    let listing = source.list();
    let left_out: Vec<_> = listing
        .skipped
        .iter()
        .map(|skipped| skipped.reason.code())
        .collect();
    assert_eq!(left_out.iter().filter(|code| **code == "link").count(), 3);
    assert_eq!(
        left_out.iter().filter(|code| **code == "special").count(),
        2
    );
    assert_eq!(
        left_out.iter().filter(|code| **code == "too-deep").count(),
        1
    );
    let outcomes = read(&source, &listing.entries);
    let codes: Vec<_> = outcomes.values().map(HostileOutcome::code).collect();
    assert_eq!(
        codes
            .iter()
            .filter(|code| **code == Some("too-large"))
            .count(),
        1
    );
    // The hard link is a regular file of this folder; the four unusual names are read and displayed safely.
    assert_eq!(codes.iter().filter(|code| code.is_none()).count(), 5);
    assert!(
        outcomes
            .keys()
            .all(|path| !path.contains(['\n', '\u{202E}']))
    );
}
