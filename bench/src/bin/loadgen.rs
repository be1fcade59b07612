//! Turns command-line options into one measured cell, printed as one JSON object.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use docent_bench::load::{Load, run};
use docent_bench::payload::Payload;
use docent_bench::question::{Accept, Operation, Question};
use docent_bench::summary::Cell;
use docent_bench::target::Target;

/// Asks one MCP server the same question over and over and prints how it did.
#[derive(Parser)]
struct Options {
    /// Loopback endpoint, for example `http://127.0.0.1:8787/mcp`
    #[arg(long)]
    url: Target,
    /// File with the questions and the answers expected
    #[arg(long)]
    payload: PathBuf,
    /// What to ask
    #[arg(long)]
    operation: Operation,
    /// Connections that ask at once, 1 to 1024
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Measured seconds, 1 to 120
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Milliseconds before answers are counted
    #[arg(long, default_value_t = 1000)]
    warm_up_ms: u64,
    /// Kinds of answer to accept: `both` is what ChatGPT sends
    #[arg(long, default_value = "both")]
    accept: Accept,
    /// Process id of the server, to read its memory and processor time
    #[arg(long)]
    pid: Option<u32>,
    /// Name of the server in the table
    #[arg(long, default_value = "server")]
    server: String,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let load = Load {
        question: Question::new(options.operation, &Payload::read(&options.payload)?)?,
        target: options.url,
        accept: options.accept,
        connections: options.connections,
        warm_up: Duration::from_millis(options.warm_up_ms),
        measured: Duration::from_secs(options.seconds),
        pid: options.pid,
    };
    let operation = options.operation.to_possible_value();
    let operation = operation.map_or_else(String::new, |value| value.get_name().to_owned());
    let cell = Cell {
        server: options.server,
        operation,
        ..runtime()?.block_on(run(&load))?
    };
    Ok(writeln!(stdout(), "{}", serde_json::to_string(&cell)?)?)
}

/// On one core a second thread only costs switches, so the plain runtime is the faster client there.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let alone = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
    let mut builder = if alone {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    // Answers are looked for as often as the task that stays awake has its turn.
    builder.enable_all().event_interval(1).build()
}
