//! Records a server's responses in a payload file, or compares a peer's responses with such a file.

use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Parser;
use docent_bench::benchmark_request::{AcceptHeader, fetch, search, tools_list};
use docent_bench::http_connection::HttpConnection;
use docent_bench::loopback_target::LoopbackTarget;
use docent_bench::payload::{Payload, first_difference, first_hit};
use serde_json::Value;

/// Records the responses that peers are to return, or with `--check` tests that a peer returns them.
#[derive(Parser)]
struct RecordArgs {
    /// Loopback endpoint, for example `http://127.0.0.1:8787/mcp`
    #[arg(long)]
    url: LoopbackTarget,
    /// The file to write, or with `--check` to read
    #[arg(long)]
    payload: PathBuf,
    /// The text to search for; it must have a hit
    #[arg(long, default_value = "water")]
    query: String,
    /// Media types to accept
    #[arg(long, default_value = "both")]
    accept: AcceptHeader,
    /// Compare instead of record
    #[arg(long)]
    check: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = RecordArgs::parse();
    let mut server = HttpConnection::open(&options.url, options.accept).await?;
    let known = options
        .check
        .then(|| Payload::read(&options.payload))
        .transpose()?;
    let query = known
        .as_ref()
        .map_or(&options.query, |payload| &payload.query);
    let answers = record(
        &mut server,
        query,
        known.as_ref().map(|payload| payload.id.as_str()),
    )
    .await?;
    match known {
        None => answers.write(&options.payload),
        Some(known) => compare(&known, &answers),
    }
}

async fn record(
    server: &mut HttpConnection,
    query: &str,
    id: Option<&str>,
) -> anyhow::Result<Payload> {
    let tools_list = result(server, &tools_list()).await.context("tools/list")?;
    let search = result(server, &search(query)).await.context("search")?;
    let hit = first_hit(&search).with_context(|| format!("no hit for `{query}`"))?;
    let id = id.unwrap_or(hit).to_owned();
    let fetch = result(server, &fetch(&id)).await.context("fetch")?;
    Ok(Payload {
        query: query.to_owned(),
        id,
        tools_list,
        search,
        fetch,
    })
}

async fn result(server: &mut HttpConnection, request: &Value) -> anyhow::Result<Value> {
    let answer = server.post(request.to_string().as_bytes()).await?;
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status == 200, "status {}: {text}", answer.status);
    // An event stream carries the same object in its last `data:` line.
    let data = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data:"))
        .unwrap_or(&text);
    let mut message: Value =
        serde_json::from_str(data).with_context(|| format!("not JSON: {text}"))?;
    let result = message.get_mut("result").map(Value::take);
    let result = result.with_context(|| format!("no result: {text}"))?;
    ensure!(
        result.get("isError") != Some(&Value::Bool(true)),
        "the tool reports an error: {text}"
    );
    Ok(result)
}

fn compare(known: &Payload, answers: &Payload) -> anyhow::Result<()> {
    for (name, expected, actual) in [
        ("tools/list", &known.tools_list, &answers.tools_list),
        ("search", &known.search, &answers.search),
        ("fetch", &known.fetch, &answers.fetch),
    ] {
        if let Some(place) = first_difference(expected, actual) {
            anyhow::bail!("the answer to {name} differs from the recorded one at `{place}`");
        }
        let (expected, actual) = (expected.to_string().len(), actual.to_string().len());
        writeln!(
            stdout(),
            "{name}: same content, {actual} bytes (recorded: {expected})"
        )?;
    }
    Ok(())
}
