//! Backpressure: clients that do not read their answers take a bounded amount of memory, other clients are answered
//! meanwhile, and all memory is released when the connections close.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::latency::Latencies;
use crate::process::{ServerProcess, TestDir, until};
use crate::stop_on_drop::StopOnDrop;
use crate::wire::{self, EventStream, MuteConnection};

const MIB: u64 = 1024 * 1024;
/// The limit for the growth of resident memory under both attacks together.
const MAX_GROWTH: u64 = 128 * MIB;
/// Up to this many processors, resident memory stays below the limit with what the allocator keeps.
const FEW_PROCESSORS: usize = 4;
const EVENT_STREAMS: usize = 8;
/// For all streams together 2,608.
const MESSAGES_EACH: usize = 326;
const CONNECTIONS: usize = 24;
const CALLS_EACH: usize = 99;
/// The most answers that one connection requests in search of its limit; far more than its share.
const MAX_FOR_ONE: usize = 100;
/// With half a megabyte each, three times the budget for unread bytes.
const ONE_ANSWER_CONNECTIONS: usize = 400;
/// The fewest measured calls: enough for the p99 to be more than one call.
const MEASURED: usize = 200;
/// The target for the p99 of honest clients during an attack, as a multiple of theirs beside [`BUSY_READERS`].
const MAX_SLOWDOWN: u32 = 3;
/// Number of clients without pauses that read their answers: as many as there are attacking threads. An attack may
/// cost more than they do only because answers are not read, not because the attackers use processors.
const BUSY_READERS: usize = 2;
/// The target for the p99 of honest clients while every connection holds one unread answer. A connection can be evicted
/// after a stall of 50 ms, and the answers that were computed meanwhile go first.
const MAX_EVICTION_WAIT: Duration = Duration::from_millis(250);

fn serve(dir: &TestDir, settings: &[(&str, &str)]) -> ServerProcess {
    wire::long_document(dir);
    let mut command = dir.serve(&["docs", "--no-watch"]);
    command.env("DOCENT_MODEL_NAME", "none");
    // The allocator keeps freed memory for a second, for each thread, which on many processors is more than the server
    // holds.
    if std::thread::available_parallelism().is_ok_and(|threads| threads.get() > FEW_PROCESSORS) {
        command.env("MIMALLOC_PURGE_DELAY", "0");
        command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
    }
    command.envs(settings.iter().copied());
    let server = ServerProcess::of(command);
    server.wait_until_synced();
    server
}

fn fetch() -> String {
    wire::call("fetch", &json!({"id": "long.txt"}))
}

/// Makes calls and reads their answers until `done` is set, and returns their latencies.
fn honest(server: &ServerProcess, done: &AtomicBool) -> Vec<Duration> {
    let question = wire::call("search", &json!({"query": "ferry"}));
    let mut waits = Vec::new();
    while !done.load(Ordering::SeqCst) || waits.len() < MEASURED {
        let before = Instant::now();
        for body in [&question, &fetch()] {
            let (status, answer) = wire::post(server, "/mcp", body);
            assert_eq!(status, 200, "{answer}");
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert!(answer["result"].is_object(), "{answer}");
        }
        waits.push(before.elapsed());
    }
    waits
}

/// Measures honest clients alone, and beside busy clients that read their answers. Returns the second p99.
fn p99_beside_readers(server: &ServerProcess) -> Duration {
    let done = AtomicBool::new(true);
    Latencies::new(honest(server, &done)).report("alone", None);
    done.store(false, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        for _ in 0..BUSY_READERS {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    assert_eq!(wire::post(server, "/mcp", &fetch()).0, 200);
                }
            });
        }
        let beside = Latencies::new(honest(server, &AtomicBool::new(true)));
        drop(stop);
        beside.report("beside readers", None);
        beside.p99()
    })
}

/// Opens event streams and never reads them; returns how many messages the server accepted for each.
fn unread_streams(server: &ServerProcess) -> Vec<(EventStream, usize)> {
    let mut streams: Vec<_> = (0..EVENT_STREAMS)
        .map(|_| (EventStream::open(server).unwrap(), 0))
        .collect();
    for _ in 0..MESSAGES_EACH {
        for (stream, taken) in &mut streams {
            let (status, answer) = wire::post(server, &stream.messages, &fetch());
            assert!(matches!(status, 202 | 404 | 503), "{status} {answer}");
            *taken += usize::from(status == 202);
        }
    }
    streams
}

/// Opens HTTP/2 connections that accept no body; returns how many answers wait on each.
fn mute_connections(server: &ServerProcess) -> Vec<(MuteConnection, usize)> {
    let mut connections: Vec<_> = (0..CONNECTIONS)
        .map(|_| (MuteConnection::open(server), 0))
        .collect();
    for (connection, _) in &mut connections {
        (0..CALLS_EACH).for_each(|_| connection.post(&fetch()));
    }
    for (connection, waiting) in &mut connections {
        let answers = (0..CALLS_EACH).map_while(|_| connection.answered());
        *waiting = answers.filter(|answered| *answered).count();
    }
    connections
}

#[test]
fn unread_answers_take_a_bounded_part_of_the_memory() {
    let dir = TestDir::small();
    let server = serve(&dir, &[]);
    let ordinary = p99_beside_readers(&server);
    let share = answers_for_one(&server);
    let before = wire::memory(&server, "VmRSS");

    let done = AtomicBool::new(false);
    let (streams, connections) = std::thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        let reading = scope.spawn(|| honest(&server, &done));
        let streams = scope.spawn(|| unread_streams(&server));
        let connections = mute_connections(&server);
        let streams = streams.join().unwrap();
        // The honest clients go on for a while beside the open connections that do not read.
        drop(stop);
        let waits = reading.join().unwrap();
        Latencies::new(waits).report("beside unread answers", Some(ordinary * MAX_SLOWDOWN));
        (streams, connections)
    });
    let after = wire::memory(&server, "VmRSS");
    let peak = wire::memory(&server, "VmHWM");
    let grown = after.saturating_sub(before) / MIB;
    assert!(
        after < before + MAX_GROWTH && peak < before + MAX_GROWTH,
        "grown by {grown} MiB, at most {} MiB",
        (peak - before) / MIB
    );
    // Each attacking connection got a share: some answers, but not all that it requested.
    let taken: usize = connections.iter().map(|(_, waiting)| waiting).sum();
    assert!(taken > 0 && taken < CONNECTIONS * CALLS_EACH, "{taken}");
    let taken: usize = streams.iter().map(|(_, taken)| taken).sum();
    assert!(taken > 0, "{taken}");

    drop((streams, connections));
    let again = until(|| (answers_for_one(&server) == share).then_some(()));
    assert!(again.is_some(), "not everything was let go of");
}

/// Each connection holds one unread answer, below any limit per connection, and a new one replaces each that is
/// evicted.
#[test]
fn connections_with_one_unread_answer_each_starve_nobody() {
    let dir = TestDir::small();
    let server = serve(&dir, &[]);
    honest(&server, &AtomicBool::new(true));
    let before = wire::memory(&server, "VmRSS");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        let reading = scope.spawn(|| honest(&server, &done));
        let mut hoard = std::collections::VecDeque::new();
        for _ in 0..ONE_ANSWER_CONNECTIONS * 2 {
            let mut connection = MuteConnection::open(&server);
            connection.post(&fetch());
            hoard.push_back(connection);
            // The oldest connections have been evicted in favour of the others.
            if hoard.len() > ONE_ANSWER_CONNECTIONS {
                hoard.pop_front();
            }
        }
        let start = Instant::now();
        let in_time = |_: &&mut MuteConnection| start.elapsed() < wire::PATIENCE;
        for connection in hoard.iter_mut().take_while(in_time) {
            connection.answered();
        }
        drop(stop);
        let waits = reading.join().unwrap();
        Latencies::new(waits).report("beside one answer each", Some(MAX_EVICTION_WAIT));
    });
    let peak = wire::memory(&server, "VmHWM");
    let grown = peak.saturating_sub(before);
    assert!(grown < MAX_GROWTH, "{} MiB", grown / MIB);
}

/// The number of unread answers that a single connection may hold while there are no others.
fn answers_for_one(server: &ServerProcess) -> usize {
    let mut connection = MuteConnection::open(server);
    let answered = (0..MAX_FOR_ONE).take_while(|_| {
        connection.post(&fetch());
        connection.answered() == Some(true)
    });
    answered.count()
}

#[test]
fn an_event_stream_that_is_not_read_ends_and_is_not_worked_for() {
    let dir = TestDir::small();
    let server = serve(&dir, &[("DOCENT_LIMITS_UNREAD_BYTES", "4194304")]);
    let mut stream = EventStream::open(&server).unwrap();
    let refused = until(|| {
        let (status, _) = wire::post(&server, &stream.messages, &fetch());
        matches!(status, 404 | 503).then_some(status)
    });
    assert!(refused.is_some());
    // Messages sent before the refusal arrive, and then the stream ends or continues within its limit.
    assert!(stream.next().is_some());
    let fresh = EventStream::open(&server);
    assert!(fresh.is_ok());
    assert_eq!(server.http("GET", "/healthz", None).0, 200);
}

#[test]
fn streams_that_come_and_go_leave_nothing() {
    let dir = TestDir::small();
    let server = serve(&dir, &[("DOCENT_LIMITS_LISTEN_STREAMS", "8")]);
    for _ in 0..100 {
        let opened = until(|| EventStream::open(&server).ok());
        assert!(opened.is_some(), "a place was never given back");
    }
    // Eight streams fill the limit, and a ninth is refused.
    let kept = until(|| {
        let kept: Vec<_> = (0..8)
            .map_while(|_| EventStream::open(&server).ok())
            .collect();
        (kept.len() == 8).then_some(kept)
    });
    assert!(kept.is_some());
    assert_eq!(EventStream::open(&server).err(), Some(503));
}

#[test]
fn pipelined_questions_wait_for_their_reader() {
    let dir = TestDir::small();
    let server = serve(&dir, &[]);
    honest(&server, &AtomicBool::new(true));
    let before = wire::memory(&server, "VmRSS");
    let body = fetch();
    let request = wire::post_head("/mcp", "application/json", body.len()) + &body;
    let mut connections = Vec::new();
    for _ in 0..16 {
        let mut stream = wire::connect(&server);
        stream.set_nonblocking(true).unwrap();
        // As many requests as the server accepts before backpressure stops it.
        for _ in 0..200 {
            if !matches!(stream.write(request.as_bytes()), Ok(sent) if sent == request.len()) {
                break;
            }
        }
        connections.push(stream);
    }
    honest(&server, &AtomicBool::new(true));
    let after = wire::memory(&server, "VmRSS");
    assert!(
        after < before + MAX_GROWTH,
        "{} MiB",
        (after - before) / MIB
    );
    // A client that reads at last gets its answers.
    let mut stream = connections.pop().unwrap();
    stream.set_nonblocking(false).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
}

/// A server on stdio, which is killed when the test ends.
struct PipedServer(Child);

impl Drop for PipedServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The name of the thread that writes into the pipe; the kernel keeps up to 15 bytes of it.
const WRITER: &str = "pipe-writer";

/// The context-switch counts of all threads of a process whose names begin with `name`; `None` if there are none or if
/// one of them is not sleeping. Two equal results mean that no thread ran in between.
fn asleep(process: &str, name: &str) -> Option<Vec<String>> {
    let mut turns = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).ok()?;
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        if !value("Name:\t")?.starts_with(name) {
            continue;
        }
        if !value("State:\t")?.starts_with('S') {
            return None;
        }
        let (own, forced) = (
            value("voluntary_ctxt_switches:")?,
            value("nonvoluntary_ctxt_switches:")?,
        );
        turns.push(format!("{own} {forced}"));
    }
    (!turns.is_empty()).then_some(turns)
}

/// `until` with five times its timeout, for steps with many answers of half a megabyte.
fn until_late<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    (0..5).find_map(|_| until(&mut ask))
}

#[test]
fn a_client_that_does_not_read_its_pipe_is_not_read_either() {
    const LINES: usize = 200;
    // 49 lines are read: those that fit into the pipe, run concurrently, or wait as answers. If the limit counted
    // answers instead of bytes, it would be 109.
    const MAX_HEARD: usize = 80;
    let dir = TestDir::small();
    wire::long_document(&dir);
    // Indexed beforehand, because a stdio server answers while its first sync still runs.
    let mut index = dir.docent(&["index", "docs"]);
    assert!(
        index
            .env("DOCENT_MODEL_NAME", "none")
            .status()
            .unwrap()
            .success()
    );
    let mut command = dir.docent(&["serve", "docs", "--stdio", "--no-watch"]);
    command.env("DOCENT_MODEL_NAME", "none");
    command.env("DOCENT_LIMITS_UNREAD_BYTES", "4194304");
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = PipedServer(child);
    let mut stdin = server.0.stdin.take().unwrap();
    let mut stdout = BufReader::new(server.0.stdout.take().unwrap());
    // Long lines fill the pipe with fewer requests.
    let padding = format!(":{}", " ".repeat(4_000));
    let line = fetch().replacen(':', &padding, 1) + "\n";

    // After the first answer, startup no longer influences the counts.
    stdin.write_all(line.as_bytes()).unwrap();
    let first = std::thread::spawn(move || {
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        (stdout, answer)
    });
    let is_there = until_late(|| first.is_finished().then_some(()));
    assert!(is_there.is_some(), "the first line was not answered");
    let (mut stdout, answer) = first.join().unwrap();
    assert!(answer.len() > 400_000, "{} bytes", answer.len());

    let heard = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&heard);
    let writer = std::thread::Builder::new().name(WRITER.to_owned());
    let writing = writer.spawn(move || {
        for _ in 0..LINES {
            if stdin.write_all(line.as_bytes()).is_err() {
                return;
            }
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let writing = writing.unwrap();
    // The pipes fill up until nothing moves: the writer sleeps, which it does only while the pipe is full, and no
    // thread of the server has run for a second. A slow machine just gets there later.
    let process = server.0.id().to_string();
    let look = || Some((asleep("self", WRITER)?, asleep(&process, "")?));
    let stuck = until_late(|| {
        if writing.is_finished() {
            return Some(false);
        }
        let before = look()?;
        std::thread::sleep(Duration::from_secs(1));
        (look()? == before).then_some(true)
    });
    let count = heard.load(Ordering::SeqCst);
    assert_eq!(stuck, Some(true), "{count} of {LINES} lines were heard");
    assert!(count < MAX_HEARD, "{count} lines were heard");

    // Reading the answers resumes the server.
    let reading = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let written = until_late(|| writing.is_finished().then_some(()));
    assert!(written.is_some(), "the server hears nothing any more");
    assert_eq!(heard.load(Ordering::SeqCst), LINES);
    let ended = until_late(|| server.0.try_wait().unwrap());
    assert!(ended.is_some(), "the server did not end with its pipe");
    assert!(reading.join().unwrap().unwrap() > 4 * MIB);
}
