//! Measures the time from the start of a server's process to its first correct response.

use std::io::{Read, Write, stdout};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use docent_bench::benchmark_request::{BenchmarkRequest, Operation, PROTOCOL_VERSION};
use docent_bench::loopback_target::LoopbackTarget;
use docent_bench::payload::Payload;
use docent_bench::summary::median;
use serde_json::json;

/// The longest wait for a server's first correct response.
const FIRST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest wait for a server to end after SIGTERM.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait between two connection attempts: short compared with the goal of 50 ms, and the server has the processor
/// meanwhile.
const RETRY_INTERVAL: Duration = Duration::from_micros(200);
/// The largest first response that is read.
const MAX_RESPONSE_BYTES: u64 = 8 * 1024 * 1024;

/// Starts a server several times and prints the time from each start to a correct response to `search`.
#[derive(Parser)]
struct StartupArgs {
    /// Loopback endpoint at which the server will listen
    #[arg(long)]
    url: LoopbackTarget,
    /// Payload file with the query and the expected response
    #[arg(long)]
    payload: PathBuf,
    /// Number of starts, 1 to 100
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
    let options = StartupArgs::parse();
    let request = BenchmarkRequest::new(Operation::Search, &Payload::read(&options.payload)?)?;
    let mut times = Vec::with_capacity(options.runs as usize);
    for _ in 0..options.runs {
        times.push(time_one_start(&options, &request)?.as_secs_f64() * 1000.0);
    }
    let longest = times.iter().copied().fold(0.0, f64::max);
    let report = json!({
        "server": options.server, "runs": options.runs,
        "median_ms": median(times.clone()), "max_ms": longest, "all_ms": times,
    });
    Ok(writeln!(stdout(), "{report}")?)
}

fn time_one_start(options: &StartupArgs, request: &BenchmarkRequest) -> anyhow::Result<Duration> {
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
    let outcome = wait_for_response(&options.url, request, started, &mut server);
    let elapsed = started.elapsed();
    shut_down(&mut server)?;
    outcome.map(|()| elapsed)
}

/// Sends requests until a response contains the marker.
fn wait_for_response(
    target: &LoopbackTarget,
    request: &BenchmarkRequest,
    started: Instant,
    server: &mut Child,
) -> anyhow::Result<()> {
    while started.elapsed() < FIRST_RESPONSE_TIMEOUT {
        if let Some(status) = server.try_wait()? {
            bail!("the server ended before its first response: {status}");
        }
        // A refused connection and a response without the marker both mean that the server is not ready yet.
        if is_ready(target, request).unwrap_or(false) {
            return Ok(());
        }
        sleep(RETRY_INTERVAL);
    }
    bail!("no correct response within {FIRST_RESPONSE_TIMEOUT:?}")
}

/// True if the server responds with status 200 and the marker.
fn is_ready(target: &LoopbackTarget, request: &BenchmarkRequest) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(target.address())?;
    stream.set_read_timeout(Some(FIRST_RESPONSE_TIMEOUT))?;
    stream.write_all(&http_request(
        target.address(),
        target.path(),
        &request.body,
    ))?;
    let mut response = Vec::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut response)?;
    let has_marker = memchr::memmem::find(&response, request.marker.as_bytes()).is_some();
    Ok(response.starts_with(b"HTTP/1.1 200") && has_marker)
}

fn http_request(address: SocketAddr, path: &str, body: &[u8]) -> Vec<u8> {
    // With `Connection: close`, the response ends with the stream, so its headers need not be parsed.
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {PROTOCOL_VERSION}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Ends the server with SIGTERM, as a service manager does, and with SIGKILL if that takes too long.
fn shut_down(server: &mut Child) -> anyhow::Result<()> {
    Command::new("kill").arg(server.id().to_string()).status()?;
    let signalled = Instant::now();
    while signalled.elapsed() < SHUTDOWN_TIMEOUT {
        if server.try_wait()?.is_some() {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
    server.kill()?;
    server.wait()?;
    bail!("the server did not end within {SHUTDOWN_TIMEOUT:?} of SIGTERM")
}
