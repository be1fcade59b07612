//! The load generator: measures one cell of the table and prints it as a JSON object.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use docent_bench::benchmark_request::{AcceptHeader, BenchmarkRequest, Operation};
use docent_bench::load::{LoadSettings, run};
use docent_bench::loopback_target::LoopbackTarget;
use docent_bench::payload::Payload;
use docent_bench::summary::BenchmarkResult;

/// Sends the same request to an MCP server again and again, and prints latency and throughput.
#[derive(Parser)]
struct LoadgenArgs {
    /// Loopback endpoint, for example `http://127.0.0.1:8787/mcp`
    #[arg(long)]
    url: LoopbackTarget,
    /// Payload file with the arguments of the requests and the expected responses
    #[arg(long)]
    payload: PathBuf,
    /// The operation to measure
    #[arg(long)]
    operation: Operation,
    /// Concurrent connections, 1 to 1024
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Measured seconds, 1 to 120
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Milliseconds before responses are counted
    #[arg(long, default_value_t = 1000)]
    warm_up_ms: u64,
    /// Media types to accept: `both` is what ChatGPT sends
    #[arg(long, default_value = "both")]
    accept: AcceptHeader,
    /// Process id of the server, to read its memory and processor time
    #[arg(long)]
    pid: Option<u32>,
    /// Name of the server in the table
    #[arg(long, default_value = "server")]
    server: String,
}

fn main() -> anyhow::Result<()> {
    let options = LoadgenArgs::parse();
    let load = LoadSettings {
        request: BenchmarkRequest::new(options.operation, &Payload::read(&options.payload)?)?,
        target: options.url,
        accept: options.accept,
        connections: options.connections,
        warm_up: Duration::from_millis(options.warm_up_ms),
        measured: Duration::from_secs(options.seconds),
        pid: options.pid,
    };
    let operation = options.operation.to_possible_value();
    let operation = operation.map_or_else(String::new, |value| value.get_name().to_owned());
    let result = BenchmarkResult {
        server: options.server,
        operation,
        ..runtime()?.block_on(run(&load))?
    };
    Ok(writeln!(stdout(), "{}", serde_json::to_string(&result)?)?)
}

/// On one core, a second thread would only add context switches, so the single-threaded runtime is faster there.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let alone = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
    let mut builder = if alone {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    // Poll the sockets after every turn of the tasks that keep the threads busy.
    builder.enable_all().event_interval(1).build()
}
