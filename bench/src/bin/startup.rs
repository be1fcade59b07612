//! Turns a server's command line into the time from its start to its first correct answer.

use std::io::{Read, Write, stdout};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use docent_bench::payload::Payload;
use docent_bench::question::{Operation, PROTOCOL_VERSION, Question};
use docent_bench::summary::median;
use docent_bench::target::Target;
use serde_json::json;

/// The longest wait for a server's first answer.
const FIRST_ANSWER_DEADLINE: Duration = Duration::from_secs(30);
/// The longest wait for a server to end after it was asked to.
const END_DEADLINE: Duration = Duration::from_secs(10);
/// Between two tries to connect: short beside the goal, and it leaves the processor to the server.
const BETWEEN_TRIES: Duration = Duration::from_micros(200);
/// The largest first answer that is read.
const MAX_ANSWER_BYTES: u64 = 8 * 1024 * 1024;

/// Starts a server again and again and prints how long each start took up to a correct `search` answer.
#[derive(Parser)]
struct Options {
    /// Loopback endpoint at which the server will listen
    #[arg(long)]
    url: Target,
    /// File with the question and the answer expected
    #[arg(long)]
    payload: PathBuf,
    /// How many starts, 1 to 100
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Name of the server in the table
    #[arg(long, default_value = "server")]
    server: String,
    /// The server and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let question = Question::new(Operation::Search, &Payload::read(&options.payload)?)?;
    let mut times = Vec::with_capacity(options.runs as usize);
    for _ in 0..options.runs {
        times.push(time_one_start(&options, &question)?.as_secs_f64() * 1000.0);
    }
    let most = times.iter().copied().fold(0.0, f64::max);
    let report = json!({
        "server": options.server, "runs": options.runs,
        "median_ms": median(times.clone()), "max_ms": most, "all_ms": times,
    });
    Ok(writeln!(stdout(), "{report}")?)
}

fn time_one_start(options: &Options, question: &Question) -> anyhow::Result<Duration> {
    let address = options.url.address();
    ensure!(
        TcpStream::connect(address).is_err(),
        "something listens at `{address}` already"
    );
    let (program, arguments) = options.command.split_first().context("no command")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = Instant::now();
    let mut server = command
        .spawn()
        .with_context(|| format!("cannot start `{program}`"))?;
    let outcome = first_answer(&options.url, question, started, &mut server);
    let took = started.elapsed();
    end(&mut server)?;
    outcome.map(|()| took)
}

/// Waits for the port, then for an answer that holds the marker.
fn first_answer(
    target: &Target,
    question: &Question,
    started: Instant,
    server: &mut Child,
) -> anyhow::Result<()> {
    while started.elapsed() < FIRST_ANSWER_DEADLINE {
        if let Some(status) = server.try_wait()? {
            bail!("the server ended before its first answer: {status}");
        }
        // A refused connection and a server that listens but is not ready are the same thing here:
        // not yet an answer.
        if is_answered(target, question).unwrap_or(false) {
            return Ok(());
        }
        sleep(BETWEEN_TRIES);
    }
    bail!("no correct answer within {FIRST_ANSWER_DEADLINE:?}")
}

/// Whether a request gets status 200 and the marker.
fn is_answered(target: &Target, question: &Question) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(target.address())?;
    stream.set_read_timeout(Some(FIRST_ANSWER_DEADLINE))?;
    stream.write_all(&request(target.address(), target.path(), &question.body))?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    let marked = memchr::memmem::find(&answer, question.marker.as_bytes()).is_some();
    Ok(answer.starts_with(b"HTTP/1.1 200") && marked)
}

fn request(address: SocketAddr, path: &str, body: &[u8]) -> Vec<u8> {
    // `Connection: close` makes the end of the stream the end of the answer, so nothing is parsed here.
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {PROTOCOL_VERSION}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Asks the server to end as a service manager would, and kills it only when it does not.
fn end(server: &mut Child) -> anyhow::Result<()> {
    Command::new("kill").arg(server.id().to_string()).status()?;
    let asked = Instant::now();
    while asked.elapsed() < END_DEADLINE {
        if server.try_wait()?.is_some() {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
    server.kill()?;
    server.wait()?;
    bail!("the server did not end within {END_DEADLINE:?} of being asked to")
}
