//! Child processes that loop, exhaust memory, crash, try to leave the sandbox or break the protocol: each
//! affects its own file and no other.

use std::io::{Read as _, Write as _};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use docent_ingest::{
    FolderSource, Limits, MAX_MEMORY_BYTES, ParserPool, SandboxConfig, SandboxLayerStatus,
};
use libtest_mimic::Trial;

use crate::{HostileFolder, mail, sandbox, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "children_that_misbehave_cost_their_own_file",
            every_misbehaviour,
        ),
        trial("children_that_talk_nonsense_are_not_believed", nonsense),
        trial("a_child_is_replaced_after_its_files", replaced),
        trial("a_program_that_is_no_parser_is_told_apart", no_parser),
        trial("files_are_read_side_by_side", side_by_side),
        trial("a_closed_pool_waits_for_no_child", closed),
        trial("long_tables_come_through_a_child", long_table),
        #[cfg(target_os = "linux")]
        trial("a_dead_idle_child_is_noticed", found_dead),
        #[cfg(target_os = "linux")]
        trial("a_child_stands_behind_every_wall", sandbox_layers),
        #[cfg(target_os = "linux")]
        trial("no_child_outlives_its_pool", none_is_left),
    ]
}

/// Runs the misbehaviour that a file asks for with `misbehave: …` in its child before it is parsed.
pub(crate) fn happen(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Some((_, what)) = text.split_once("misbehave: ") else {
        return;
    };
    // If the sandbox denies the operation, abort. Otherwise continue normally: then the file is parsed and
    // the test fails.
    let give_up = || std::process::abort();
    match what.trim() {
        "loop" => loop {
            std::hint::spin_loop();
        },
        "sleep" => std::thread::sleep(Duration::from_secs(3_600)),
        "eat" => {
            let mut eaten = Vec::new();
            loop {
                eaten.push(vec![1_u8; 1 << 20]);
            }
        }
        "eat at once" => drop(std::hint::black_box(vec![1_u8; 1 << 30])),
        "panic" => panic!("as asked"),
        "abort" => give_up(),
        "exit" => std::process::exit(0),
        "overflow the stack" => drop(deep(u64::MAX)),
        "print" => println!("{}", "talk ".repeat(100_000)),
        "complain" => eprintln!("{}", "talk ".repeat(100_000)),
        "open a file" => std::fs::read("/proc/self/status")
            .map(drop)
            .unwrap_or_else(|_| give_up()),
        "read what is open" => std::io::stdin()
            .read(&mut [0])
            .map(drop)
            .unwrap_or_else(|_| give_up()),
        "open the root" => std::fs::read_dir("/")
            .map(drop)
            .unwrap_or_else(|_| give_up()),
        "open a socket" => std::net::UdpSocket::bind("127.0.0.1:0")
            .map(drop)
            .unwrap_or_else(|_| give_up()),
        "run a program" => Command::new("/bin/true")
            .spawn()
            .map(drop)
            .unwrap_or_else(|_| give_up()),
        "start a thread" => std::thread::Builder::new()
            .spawn(|| ())
            .map(drop)
            .unwrap_or_else(|_| give_up()),
        other => match other.split_once(" to ") {
            Some(("connect", address)) => std::net::TcpStream::connect(address)
                .map(drop)
                .unwrap_or_else(|_| give_up()),
            Some(("write", path)) => std::fs::write(path, "x").unwrap_or_else(|_| give_up()),
            _ => panic!("no such misbehaviour: {other}"),
        },
    }
}

#[expect(unconditional_recursion, reason = "that is what is tested")]
fn deep(left: u64) -> u64 {
    std::hint::black_box(deep(std::hint::black_box(left) - 1)) + 1
}

/// The expected outcome of each misbehaviour. The second list needs the sandbox layers of Linux.
const EVERYWHERE: &[(&str, &str)] = &[
    ("loop", ":too-slow"),
    ("sleep", ":too-slow"),
    ("panic", ":crashed"),
    ("abort", ":crashed"),
    ("exit", ":crashed"),
    ("overflow the stack", ":crashed"),
    ("complain", ""),
];
const ON_LINUX: &[(&str, &str)] = &[
    ("eat", ":too-much-memory"),
    ("eat at once", ":too-much-memory"),
    ("print", ""),
    ("open a file", ":crashed"),
    ("read what is open", ":crashed"),
    ("open the root", ":crashed"),
    ("write to ", ":crashed"),
    ("open a socket", ":crashed"),
    ("connect to ", ":crashed"),
    ("run a program", ":crashed"),
    ("start a thread", ":crashed"),
];

fn every_misbehaviour() {
    let linux = if cfg!(target_os = "linux") {
        ON_LINUX
    } else {
        &[]
    };
    let folder = HostileFolder::new();
    // A real listener, so that only the sandbox can prevent the connection.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let elsewhere = HostileFolder::new();
    let written = elsewhere.path("written");
    let mut expect = Vec::new();
    for (number, (what, code)) in EVERYWHERE.iter().chain(linux).enumerate() {
        let (bad, good) = (format!("{number:02}-a.eml"), format!("{number:02}-b.eml"));
        let target = match *what {
            "connect to " => address.as_str(),
            "write to " => written.to_str().unwrap(),
            _ => "",
        };
        folder
            .write(&bad, mail(&format!("misbehave: {what}{target}")))
            .write(&good, mail("good"));
        expect.extend([format!("{bad}{code}"), good]);
    }
    let limits = Limits {
        max_parse_seconds: 3,
        ..Limits::default()
    };
    // One child at a time, so that each harmless file gets the worker that the file before it left behind.
    let workers = pool("__misbehave", 1);
    assert_eq!(folder.read(&limits, &workers), expect);
    assert!(!written.exists());
    #[cfg(target_os = "linux")]
    crate::set::assert_memory();
}

fn pool(mode: &str, children: usize) -> Arc<ParserPool> {
    let sandbox = SandboxConfig {
        children,
        ..sandbox(mode)
    };
    Arc::new(ParserPool::new(sandbox).unwrap())
}

/// A custom child that performs the handshake and then sends the invalid response that the file asks for.
pub(crate) fn talk_nonsense() -> ExitCode {
    let (mut input, mut output) = (std::io::stdin(), std::io::stdout());
    let mut send = |bytes: &[u8]| output.write_all(bytes).and_then(|()| output.flush());
    // One number for each sandbox layer.
    let hello = [b"H".as_slice(), &24_u32.to_le_bytes(), &[0; 24]].concat();
    send(&hello).unwrap();
    let mut received = Vec::new();
    let mut buffer = [0; 65_536];
    while let Ok(count @ 1..) = input.read(&mut buffer) {
        received.extend(buffer.iter().take(count));
        let text = String::from_utf8_lossy(&received);
        let Some((_, what)) = text.split_once("nonsense: ") else {
            continue;
        };
        let frame = |tag: u8, length: u32| [&[tag], length.to_le_bytes().as_slice()].concat();
        // The file's content is followed by the end mark, four zero bytes.
        let what = what.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        let answer = match what {
            "noise" => b"<html>not an answer</html>".to_vec(),
            "length" => frame(b'D', u32::MAX),
            "unknown frame" => frame(b'?', 0),
            "document" => [frame(b'D', 8), vec![0xFF; 8]].concat(),
            "trailing" => [frame(b'.', 9), vec![0; 9]].concat(),
            "reason" => [frame(b'F', 8), vec![0; 8]].concat(),
            "half" => frame(b'.', 8).split_at(3).0.to_vec(),
            "silence" => Vec::new(),
            "endless" => loop {
                // A skipped item of this file, again and again.
                let mut skipped = text_of("a.eml");
                skipped.extend(0_u64.to_le_bytes());
                skipped.extend(text_of("empty"));
                let head = frame(b'S', u32::try_from(skipped.len()).unwrap());
                if send(&[head, skipped].concat()).is_err() {
                    return ExitCode::FAILURE;
                }
            },
            other => panic!("no such nonsense: {other}"),
        };
        if send(&answer).is_err() || what == "half" {
            return ExitCode::FAILURE;
        }
        received.clear();
    }
    ExitCode::SUCCESS
}

fn text_of(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

fn nonsense() {
    let limits = Limits {
        max_parse_seconds: 3,
        ..Limits::default()
    };
    for (what, code) in [
        ("noise", "crashed"),
        ("length", "crashed"),
        ("unknown frame", "crashed"),
        ("document", "crashed"),
        ("trailing", "crashed"),
        ("reason", "crashed"),
        ("half", "crashed"),
        ("endless", "crashed"),
        ("silence", "too-slow"),
    ] {
        let folder = HostileFolder::new();
        folder.write("a.eml", mail(&format!("nonsense: {what}")));
        let found = folder.read(&limits, &pool("__nonsense", 1));
        assert_eq!(found, [format!("a.eml:{code}")], "{what}");
    }
}

fn replaced() {
    let folder = HostileFolder::new();
    let names: Vec<_> = (0..5).map(|number| format!("{number}.eml")).collect();
    for name in &names {
        folder.write(name, mail("good"));
    }
    let sandbox = SandboxConfig {
        children: 1,
        files_per_child: 2,
        ..sandbox("__parse")
    };
    let workers = Arc::new(ParserPool::new(sandbox).unwrap());
    assert!(workers.confinement().is_none());
    assert_eq!(folder.read(&Limits::default(), &workers), names);
    assert_eq!(workers.started(), 3);
}

fn no_parser() {
    let folder = HostileFolder::new();
    folder.write("a.eml", mail("good")).write("b.md", "ours");
    for program in ["/bin/true", "/no/such/program"] {
        let sandbox = SandboxConfig {
            program: program.into(),
            ..sandbox("__parse")
        };
        let workers = Arc::new(ParserPool::new(sandbox).unwrap());
        let found = folder.read(&Limits::default(), &workers);
        assert_eq!(found, ["a.eml:unreadable", "b.md"], "{program}");
    }
}

fn side_by_side() {
    let folder = HostileFolder::new();
    for number in 0..40 {
        folder.write(&format!("{number}.eml"), mail("good"));
    }
    let workers = pool("__parse", 3);
    let source = FolderSource::open(folder.path(""), Limits::default()).unwrap();
    let source = source.with_workers(workers.clone());
    let entries = source.list().entries;
    std::thread::scope(|scope| {
        for part in entries.chunks(5) {
            scope.spawn(|| {
                part.iter()
                    .for_each(|entry| drop(source.read(entry).unwrap()));
            });
        }
    });
    assert!(
        (1..=3).contains(&workers.started()),
        "{}",
        workers.started()
    );
}

/// The child would sleep for an hour and has a deadline as long, so only closing the pool can end it.
fn closed() {
    let folder = HostileFolder::new();
    folder.write("a.eml", mail("misbehave: sleep"));
    let limits = Limits {
        max_parse_seconds: 3_600,
        ..Limits::default()
    };
    let workers = pool("__misbehave", 1);
    let source = FolderSource::open(folder.path(""), limits).unwrap();
    let source = source.with_workers(workers.clone());
    let entry = source.list().entries.remove(0);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| source.read(&entry));
        while workers.started() == 0 {
            std::thread::yield_now();
        }
        workers.close();
        assert_eq!(reading.join().unwrap().unwrap_err().code(), "gone");
    });
    assert_eq!(source.read(&entry).unwrap_err().code(), "gone");
}

/// More rows than fit into a pipe, a window or a file that is read as a whole, each of them exactly once.
fn long_table() {
    let folder = HostileFolder::new();
    let rows: String = (0..60_000).map(|n| format!("{n},Ellin {n}\n")).collect();
    folder.write("a.csv", format!("id,text\n{rows}"));
    let limits = Limits {
        max_file_bytes: 100_000,
        ..Limits::default()
    };
    let source = FolderSource::open(folder.path(""), limits).unwrap();
    let source = source.with_workers(pool("__parse", 1));
    let entry = source.list().entries.remove(0);
    let mut next = 0;
    let read = source.read_into(&entry, &mut |piece| {
        for document in piece {
            assert_eq!(document.id.as_str(), next.to_string());
            next += 1;
        }
        true
    });
    assert_eq!(read.unwrap().skipped, []);
    assert_eq!(next, 60_000);
    // A reader that wants no more gets no more, and the next file still finds a child.
    let stopped = source.read_into(&entry, &mut |_| false);
    assert_eq!(stopped.unwrap_err().code(), "gone");
    assert_eq!(source.read(&entry).unwrap().documents.len(), 60_000);
}

/// The process ids of all living children of a process.
#[cfg(target_os = "linux")]
fn children_of(parent: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        // The program's name is in brackets and may contain anything.
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let words = stat.rsplit_once(") ").map_or("", |(_, words)| words);
        let mut words = words.split(' ');
        let alive = words.next().is_some_and(|state| state != "Z");
        if alive && words.next() == Some(parent.to_string().as_str()) {
            found.push(pid);
        }
    }
    found
}

#[cfg(target_os = "linux")]
fn sandbox_layers() {
    let folder = HostileFolder::new();
    folder.write("a.eml", mail("good"));
    let workers = pool("__parse", 1);
    assert_eq!(folder.read(&Limits::default(), &workers), ["a.eml"]);
    let sandbox_layers = workers.confinement().unwrap();
    println!("{sandbox_layers:?}");
    // Landlock depends on the kernel, so it is not asserted.
    let enforced = (sandbox_layers.limits, sandbox_layers.seccomp);
    assert_eq!(
        enforced,
        (SandboxLayerStatus::Enforced, SandboxLayerStatus::Enforced),
        "{sandbox_layers:?}"
    );
    let [pid] = children_of(std::process::id()).try_into().unwrap();
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let limits = read("limits");
    for (name, most) in [
        ("Max address space", MAX_MEMORY_BYTES),
        ("Max core file size", 0),
        ("Max file size", 0),
        ("Max open files", 32),
        ("Max stack size", 8 * 1024 * 1024),
    ] {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        let found: Vec<_> = line
            .unwrap_or_default()
            .split_whitespace()
            .take(2)
            .collect();
        assert_eq!(found, [most.to_string(), most.to_string()], "{name}");
    }
    let cpu = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max cpu time"));
    let soft = cpu.unwrap_or_default().split_whitespace().next();
    assert_eq!(soft, Some("21"));
    let status = read("status");
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    assert_eq!(value("NoNewPrivs:").as_deref(), Some("1"));
    assert_eq!(value("Seccomp:").as_deref(), Some("2"));
    assert_eq!(value("Threads:").as_deref(), Some("1"));
    let peak = value("VmPeak:").map(|text| text.trim_end_matches(" kB").parse::<u64>());
    assert!(peak.unwrap().unwrap() <= MAX_MEMORY_BYTES / 1024);
}

/// An idle child killed from outside must not cost the next file.
#[cfg(target_os = "linux")]
fn found_dead() {
    let folder = HostileFolder::new();
    folder.write("a.eml", mail("good"));
    let workers = pool("__parse", 1);
    assert_eq!(folder.read(&Limits::default(), &workers), ["a.eml"]);
    let [pid] = children_of(std::process::id()).try_into().unwrap();
    kill(&pid);
    assert_eq!(folder.read(&Limits::default(), &workers), ["a.eml"]);
    assert_eq!(workers.started(), 2);
}

#[cfg(target_os = "linux")]
fn kill(pid: &str) {
    let killed = Command::new("kill").args(["-9", pid]).status().unwrap();
    assert!(killed.success());
    let gone = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.contains(") Z "))
    };
    assert!(soon(gone), "{pid} lives on");
}

/// Whether a condition becomes true within ten seconds, half of a child's deadline for a file.
#[cfg(target_os = "linux")]
fn soon(is_true: impl Fn() -> bool) -> bool {
    (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_true()
    })
}

/// A parent whose child parses a file forever.
pub(crate) fn parent() -> ExitCode {
    let folder = HostileFolder::new();
    folder.write("a.eml", mail("misbehave: loop"));
    drop(folder.read(&Limits::default(), &pool("__misbehave", 1)));
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
fn none_is_left() {
    let folder = HostileFolder::new();
    folder.write("a.eml", mail("good"));
    let workers = pool("__parse", 1);
    folder.read(&Limits::default(), &workers);
    assert_eq!(children_of(std::process::id()).len(), 1);
    drop(workers);
    assert_eq!(children_of(std::process::id()), [""; 0]);

    let mut parent = Command::new("/proc/self/exe")
        .arg("__parent")
        .spawn()
        .unwrap();
    assert!(soon(|| !children_of(parent.id()).is_empty()));
    let [pid] = children_of(parent.id()).try_into().unwrap();
    // It is busy once it has used some CPU time.
    let busy = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let used = stat.split(' ').nth(13).and_then(|ticks| ticks.parse().ok());
        used.unwrap_or(0_u64) > 20
    };
    assert!(soon(busy));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let gone = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.contains(") Z "))
    };
    assert!(soon(gone), "a busy child outlives its parent");
}
