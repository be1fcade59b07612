//! Answers that nobody reads: they take a bounded part of the memory, others are answered meanwhile, and everything is
//! let go of with whoever did not read.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{Dir, Server, until};
use crate::stop_on_drop::StopOnDrop;
use crate::wire::{self, EventStream, MuteConnection};

const MIB: u64 = 1024 * 1024;
/// What both attacks together may add to the resident memory.
const MAX_GROWTH: u64 = 128 * MIB;
const EVENT_STREAMS: usize = 8;
const MESSAGES_EACH: usize = 40;
const CONNECTIONS: usize = 24;
const CALLS_EACH: usize = 30;
/// What one connection is asked for until it gets no more; far more than its share.
const MOST_FOR_ONE: usize = 100;
/// Half a megabyte each is three times the budget.
const ONE_ANSWER_CONNECTIONS: usize = 400;
/// Enough for its slowest hundredth to be more than one call.
const MEASURED: usize = 200;

fn serve(dir: &Dir, settings: &[(&str, &str)]) -> Server {
    wire::long_document(dir);
    let mut command = dir.serve(&["docs", "--no-watch"]);
    command.env("DOCENT_MODEL_NAME", "none");
    command.envs(settings.iter().copied());
    let server = Server::of(command);
    server.wait_until_synced();
    server
}

fn fetch() -> String {
    wire::call("fetch", &json!({"id": "long.txt"}))
}

/// Calls that read their answers, until told to stop: how long each took.
fn honest(server: &Server, done: &AtomicBool) -> Vec<Duration> {
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

/// Event streams to which answers are sent that nobody reads, and how many messages each took.
fn unread_streams(server: &Server) -> Vec<(EventStream, usize)> {
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

/// HTTP/2 connections that take nothing, and how many answers wait on each.
fn mute_connections(server: &Server) -> Vec<(MuteConnection, usize)> {
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

/// Tells how long whoever read had to wait, for people: how fast a machine is decides nothing here. What is asserted is
/// that each of their calls is answered. The bar, a p99 of three times that alone, is for a release build on a machine
/// that does nothing else:
/// `cargo test --release -p docent --test attacks unread_answers -- --nocapture --test-threads 1`. Beside other tests on
/// two cores either number is mostly the time that the kernel gives to others.
#[allow(clippy::print_stderr, reason = "a measurement for people")]
fn report(name: &str, mut waits: Vec<Duration>) {
    waits.sort();
    let at = |percent: usize| waits[(waits.len() * percent / 100).min(waits.len() - 1)];
    eprintln!("{name}: {} p50 {:?} p99 {:?}", waits.len(), at(50), at(99));
}

#[test]
fn unread_answers_take_a_bounded_part_of_the_memory() {
    let dir = Dir::small();
    let server = serve(&dir, &[]);
    report("alone", honest(&server, &AtomicBool::new(true)));
    let share = answers_for_one(&server);
    let before = wire::memory(&server, "VmRSS");

    let done = AtomicBool::new(false);
    let (streams, connections) = std::thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        let reading = scope.spawn(|| honest(&server, &done));
        let streams = scope.spawn(|| unread_streams(&server));
        let connections = mute_connections(&server);
        let streams = streams.join().unwrap();
        // Whoever reads goes on for a while beside those who are still there and read nothing.
        drop(stop);
        report("meanwhile", reading.join().unwrap());
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
    // Nobody got all they asked for, and nobody nothing.
    let taken: usize = connections.iter().map(|(_, waiting)| waiting).sum();
    assert!(taken > 0 && taken < CONNECTIONS * CALLS_EACH, "{taken}");
    let taken: usize = streams.iter().map(|(_, taken)| taken).sum();
    assert!(taken > 0, "{taken}");

    drop((streams, connections));
    let again = until(|| (answers_for_one(&server) == share).then_some(()));
    assert!(again.is_some(), "not everything was let go of");
}

/// Connections that hold one unread answer each, and are opened again whenever one is cut: no share stops them.
#[test]
fn connections_with_one_unread_answer_each_starve_nobody() {
    let dir = Dir::small();
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
            // Those that were opened first have been cut for the others.
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
        report("beside one answer each", reading.join().unwrap());
    });
    let peak = wire::memory(&server, "VmHWM");
    let grown = peak.saturating_sub(before);
    assert!(grown < MAX_GROWTH, "{} MiB", grown / MIB);
}

/// How many unread answers one connection may have when there are no others.
fn answers_for_one(server: &Server) -> usize {
    let mut connection = MuteConnection::open(server);
    let answered = (0..MOST_FOR_ONE).take_while(|_| {
        connection.post(&fetch());
        connection.answered() == Some(true)
    });
    answered.count()
}

#[test]
fn an_event_stream_that_is_not_read_ends_and_is_not_worked_for() {
    let dir = Dir::small();
    let server = serve(&dir, &[("DOCENT_LIMITS_UNREAD_BYTES", "4194304")]);
    let mut stream = EventStream::open(&server).unwrap();
    let refused = until(|| {
        let (status, _) = wire::post(&server, &stream.messages, &fetch());
        matches!(status, 404 | 503).then_some(status)
    });
    assert!(refused.is_some());
    // What was sent before arrives, and then the stream ends or goes on with what fits.
    assert!(stream.next().is_some());
    let fresh = EventStream::open(&server);
    assert!(fresh.is_ok());
    assert_eq!(server.http("GET", "/healthz", None).0, 200);
}

#[test]
fn streams_that_come_and_go_leave_nothing() {
    let dir = Dir::small();
    let server = serve(&dir, &[("DOCENT_LIMITS_LISTEN_STREAMS", "8")]);
    for _ in 0..100 {
        let opened = until(|| EventStream::open(&server).ok());
        assert!(opened.is_some(), "a place was never given back");
    }
    // Eight places, and one more.
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
    let dir = Dir::small();
    let server = serve(&dir, &[]);
    honest(&server, &AtomicBool::new(true));
    let before = wire::memory(&server, "VmRSS");
    let body = fetch();
    let request = wire::post_head("/mcp", "application/json", body.len()) + &body;
    let mut connections = Vec::new();
    for _ in 0..16 {
        let mut stream = wire::connect(&server);
        stream.set_nonblocking(true).unwrap();
        // As many as the server is willing to hear.
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
    // Whoever reads after all gets what they asked for.
    let mut stream = connections.pop().unwrap();
    stream.set_nonblocking(false).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
}

/// The program on pipes, which ends with the test.
struct PipedServer(Child);

impl Drop for PipedServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The name of the thread that writes into a pipe, as the kernel keeps it.
const WRITER: &str = "pipe-writer";

/// How often the threads of a process whose names begin like this have had the processor; nothing where there are none,
/// or where one of them has it or waits for it.
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

/// The same as `until`, for what takes many answers of half a megabyte.
fn until_late<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    (0..5).find_map(|_| until(&mut ask))
}

#[test]
fn a_client_that_does_not_read_its_pipe_is_not_read_either() {
    const LINES: usize = 200;
    // What fits in the pipe, is worked on at once, or waits as an answer: 49 lines. Were answers counted and not their
    // bytes, it would be 109.
    const MOST_HEARD: usize = 80;
    let dir = Dir::small();
    wire::long_document(&dir);
    // Before it serves: a pipe is heard while the folder is still being read.
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
    // Long lines fill the pipe sooner.
    let padding = format!(":{}", " ".repeat(4_000));
    let line = fetch().replacen(':', &padding, 1) + "\n";

    // The first answer is read: from here on nobody waits for the server to begin.
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
    // The pipes fill up, and then nothing moves: the writer sleeps, which it does for room in the pipe alone, and for a
    // second no thread of the server had the processor or waited for it. A slow machine only comes there later.
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
    assert!(count < MOST_HEARD, "{count} lines were heard");

    // Reading sets it going again.
    let reading = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let written = until_late(|| writing.is_finished().then_some(()));
    assert!(written.is_some(), "the server hears nothing any more");
    assert_eq!(heard.load(Ordering::SeqCst), LINES);
    let ended = until_late(|| server.0.try_wait().unwrap());
    assert!(ended.is_some(), "the server did not end with its pipe");
    assert!(reading.join().unwrap().unwrap() > 4 * MIB);
}
