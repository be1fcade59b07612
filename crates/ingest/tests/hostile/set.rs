//! The whole hostile set among two hundred good neighbours, read by the real pool: each file ends in documents
//! or in one code that stays the same, no child takes more than it may, and every neighbour is read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use docent_ingest::{Entry, Limits, Reading, Reason, Source, Workers};
use libtest_mimic::Trial;

use crate::files::{self, Expect, Hostile};
use crate::{Folder, mail, sandbox, trial};

const NEIGHBOURS: usize = 200;

/// Files read at the same time.
const THREADS: usize = 2;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        // Takes long: every file is read twice by an unoptimised parser, and a file that uses up its time takes
        // all of the twenty seconds.
        trial(
            "the_hostile_set_ends_and_its_neighbours_are_read",
            whole_set,
        ),
        #[cfg(unix)]
        trial("what_is_no_file_is_left_out", no_files),
    ]
}

fn whole_set() {
    let folder = Folder::new();
    let set = files::all();
    assert!(set.len() >= 60, "{}", set.len());
    for (number, hostile) in set.iter().enumerate() {
        folder.write(&place(number, hostile), &hostile.bytes);
    }
    for number in 0..NEIGHBOURS {
        let (name, content) = neighbour(number);
        folder.write(&name, content);
    }
    let workers = Arc::new(Workers::new(sandbox("__parse")).unwrap());
    let source = Source::open(folder.path(""), Limits::default()).unwrap();
    let source = source.parsed_by(workers);
    let listing = source.list();
    assert_eq!(listing.entries.len(), set.len() + NEIGHBOURS);
    let first = read(&source, &listing.entries);
    for number in 0..NEIGHBOURS {
        let (name, _) = neighbour(number);
        let reading = first.get(&name).unwrap().as_ref();
        let reading = reading.unwrap_or_else(|reason| panic!("{name}: {reason}"));
        assert_eq!(reading.documents.len(), 1, "{name}");
        let text = &reading.documents.first().unwrap().text;
        assert!(
            text.contains(&format!("Neighbour {number}.")),
            "{name}: {text}"
        );
    }
    for (number, hostile) in set.iter().enumerate() {
        let name = place(number, hostile);
        check(hostile, first.get(&name).unwrap());
    }
    again(&source, &listing.entries, &first);
    #[cfg(target_os = "linux")]
    assert_memory();
}

fn place(number: usize, hostile: &Hostile) -> String {
    // Spread over the neighbours, which are two for each.
    format!("{:03}-{}", number * 2, hostile.name)
}

/// A good file: ours and those of the children in turn.
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

type Outcome = Result<Reading, Reason>;

fn read(source: &Source, entries: &[Entry]) -> BTreeMap<String, Outcome> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(BTreeMap::new());
    let work = || {
        while let Some(entry) = entries.get(next.fetch_add(1, Ordering::SeqCst)) {
            let began = std::time::Instant::now();
            let outcome = source.read(entry);
            let code = outcome.as_ref().map_or_else(Reason::code, |reading| {
                let skipped = reading.skipped.first();
                skipped.map_or("ok", |skipped| skipped.reason.code())
            });
            let (seconds, path) = (began.elapsed().as_secs_f32(), entry.path());
            if path.contains('-') {
                println!("{seconds:6.2} s  {code:16} {path}");
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

fn check(hostile: &Hostile, outcome: &Outcome) {
    let (name, code) = (&hostile.name, outcome.as_ref().err().map(Reason::code));
    match (hostile.expect, outcome) {
        (Expect::Documents(count), Ok(reading)) => {
            assert_eq!(reading.documents.len(), count, "{name}")
        }
        (Expect::Code(expect), Err(reason)) => assert_eq!(reason.code(), expect, "{name}"),
        // The one code that says nothing about the file: no child could be started.
        (Expect::Either, _) => assert_ne!(code, Some("unreadable"), "{name}"),
        (expect, _) => panic!("{name}: {code:?} instead of {expect:?}"),
    }
    let Ok(reading) = outcome else { return };
    for document in &reading.documents {
        assert!(
            !document.text.contains("root:x:0"),
            "{name} shows a file of this machine"
        );
        assert_eq!(
            docent_ingest::clean(&document.text),
            document.text,
            "{name}"
        );
        assert!(document.check().is_ok(), "{name}");
    }
}

/// The same files in another order and company, without those that only the clock ended.
fn again(source: &Source, entries: &[Entry], first: &BTreeMap<String, Outcome>) {
    let slow =
        |entry: &&Entry| matches!(first.get(entry.path()), Some(Err(Reason::TooSlow { .. })));
    let mut rest: Vec<_> = entries
        .iter()
        .filter(|entry| !slow(entry))
        .cloned()
        .collect();
    rest.reverse();
    for (name, outcome) in read(source, &rest) {
        let code = |outcome: &Outcome| outcome.as_ref().err().map(Reason::code);
        assert_eq!(first.get(&name).map(code), Some(code(&outcome)), "{name}");
    }
}

/// The largest child of all, as the system counted.
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

/// Links, pipes, holes and names that no file should have.
#[cfg(unix)]
fn no_files() {
    use std::os::unix::ffi::OsStrExt as _;
    let (folder, outside) = (Folder::new(), Folder::new());
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
    let source = Source::open(folder.path(""), Limits::default()).unwrap();
    let source = source.parsed_by(Arc::new(Workers::new(sandbox("__parse")).unwrap()));
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
    let codes: Vec<_> = outcomes
        .values()
        .map(|outcome| outcome.as_ref().err().map(Reason::code))
        .collect();
    assert_eq!(
        codes
            .iter()
            .filter(|code| **code == Some("too-large"))
            .count(),
        1
    );
    // The hard link is a file of this folder; the four strange names are read and shown safely.
    assert_eq!(codes.iter().filter(|code| code.is_none()).count(), 5);
    assert!(
        outcomes
            .keys()
            .all(|path| !path.contains(['\n', '\u{202E}']))
    );
}
