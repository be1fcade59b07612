//! Prints the results of a run as Markdown tables, with the ratios to each peer and the goals.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Parser;
use docent_bench::summary::{BenchmarkResult, median};
use serde::Deserialize;

/// The largest number of result files that are read.
const MAX_FILES: usize = 10_000;
/// The server that the others are compared with.
const OURS: &str = "docent";
/// The goal for the time from start to first response with an existing index, in milliseconds.
const STARTUP_GOAL_MS: f64 = 50.0;
/// The goal for docent's requests per second divided by those of each peer.
const GOALS: [(&str, f64); 3] = [("fastmcp", 20.0), ("typescript", 8.0), ("bare-rmcp", 0.85)];

/// Prints the tables of one run. Fails if any response of any server was wrong.
#[derive(Parser)]
struct TableArgs {
    /// Folder with the JSON files of the run
    results: PathBuf,
}

/// The output of `startup` for one server.
#[derive(Deserialize)]
struct StartupTimes {
    server: String,
    runs: u32,
    median_ms: f64,
    max_ms: f64,
}

/// Operation, connections and server, in the order of the table's columns.
type ResultKey = (String, usize, String);

fn main() -> anyhow::Result<()> {
    let options = TableArgs::parse();
    let cells = combine(read(&options, "cell-")?);
    let startups: Vec<StartupTimes> = read(&options, "startup-")?;
    let mut out = stdout().lock();
    write_cells(&mut out, &cells)?;
    write_ratios(&mut out, &cells)?;
    write_startups(&mut out, &startups)?;
    let errors: u64 = cells.values().map(|cell| cell.errors).sum();
    ensure!(
        errors == 0,
        "{errors} wrong responses; the first: {}",
        first_error(&cells)
    );
    Ok(())
}

fn read<T: for<'de> Deserialize<'de>>(options: &TableArgs, prefix: &str) -> anyhow::Result<Vec<T>> {
    let shown = options.results.display();
    let entries =
        fs::read_dir(&options.results).with_context(|| format!("cannot list `{shown}`"))?;
    let mut found = Vec::new();
    for entry in entries.take(MAX_FILES) {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let text = fs::read_to_string(entry.path())?;
            let file = || format!("cannot parse `{}`", entry.path().display());
            found.push(serde_json::from_str(&text).with_context(file)?);
        }
    }
    Ok(found)
}

/// One result for each key. If the run had several rounds, each figure is the median of the rounds.
fn combine(cells: Vec<BenchmarkResult>) -> BTreeMap<ResultKey, BenchmarkResult> {
    let mut groups: BTreeMap<ResultKey, Vec<BenchmarkResult>> = BTreeMap::new();
    for cell in cells {
        let key = (
            cell.operation.clone(),
            cell.connections,
            cell.server.clone(),
        );
        groups.entry(key).or_default().push(cell);
    }
    groups
        .into_iter()
        .filter_map(|(key, rounds)| Some((key, median_of_rounds(&rounds)?)))
        .collect()
}

fn median_of_rounds(rounds: &[BenchmarkResult]) -> Option<BenchmarkResult> {
    let median_of =
        |figure: fn(&BenchmarkResult) -> f64| median(rounds.iter().map(figure).collect());
    let first = rounds.first()?.clone();
    Some(BenchmarkResult {
        rps: median_of(|cell| cell.rps),
        p50_us: median_of(|cell| cell.p50_us as f64) as u64,
        p99_us: median_of(|cell| cell.p99_us as f64) as u64,
        server_cpu_us_per_request: median_of(|cell| cell.server_cpu_us_per_request),
        server_cores: median_of(|cell| cell.server_cores),
        rss_peak_kib: rounds.iter().map(|cell| cell.rss_peak_kib).max()?,
        errors: rounds.iter().map(|cell| cell.errors).sum(),
        first_error: rounds.iter().find_map(|cell| cell.first_error.clone()),
        ..first
    })
}

fn write_cells(
    out: &mut impl Write,
    cells: &BTreeMap<ResultKey, BenchmarkResult>,
) -> anyhow::Result<()> {
    writeln!(
        out,
        "| operation | connections | server | requests/s | docent ÷ this | p50 ms | p99 ms | RSS MiB | CPU µs/request | cores busy | bytes | answer | errors |"
    )?;
    writeln!(out, "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|")?;
    for ((operation, connections, server), cell) in cells {
        writeln!(
            out,
            "| {operation} | {connections} | {server} | {:.0} | {} | {:.2} | {:.2} | {:.1} | {:.0} | {:.2} | {} | {} | {} |",
            cell.rps,
            throughput_ratio(cells, cell).map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}")),
            cell.p50_us as f64 / 1000.0,
            cell.p99_us as f64 / 1000.0,
            cell.rss_peak_kib as f64 / 1024.0,
            cell.server_cpu_us_per_request,
            cell.server_cores,
            cell.answer_bytes,
            if cell.content_type.starts_with("text/event-stream") {
                "SSE"
            } else {
                "JSON"
            },
            cell.errors,
        )?;
    }
    Ok(())
}

/// Docent's requests per second in the same cell, divided by those of `cell`.
fn throughput_ratio(
    cells: &BTreeMap<ResultKey, BenchmarkResult>,
    cell: &BenchmarkResult,
) -> Option<f64> {
    let ours = cells.get(&(cell.operation.clone(), cell.connections, OURS.to_owned()))?;
    (cell.rps > 0.0).then(|| ours.rps / cell.rps)
}

fn write_ratios(
    out: &mut impl Write,
    cells: &BTreeMap<ResultKey, BenchmarkResult>,
) -> anyhow::Result<()> {
    writeln!(
        out,
        "\n| requests/s of docent over | goal | worst cell | median cell | best cell | met in | CPU time of this over docent's, median cell |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    for (peer, goal) in GOALS {
        let of_peer: Vec<&BenchmarkResult> =
            cells.values().filter(|cell| cell.server == peer).collect();
        let ratios: Vec<f64> = of_peer
            .iter()
            .filter_map(|cell| throughput_ratio(cells, cell))
            .collect();
        if ratios.is_empty() {
            writeln!(out, "| {peer} | {goal} | – | – | – | not measured | – |")?;
            continue;
        }
        let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let best = ratios.iter().copied().fold(0.0, f64::max);
        let met = ratios.iter().filter(|ratio| **ratio >= goal).count();
        let (middle, of) = (median(ratios.clone()), ratios.len());
        let cpu = median(
            of_peer
                .iter()
                .filter_map(|cell| cpu_ratio(cells, cell))
                .collect(),
        );
        writeln!(
            out,
            "| {peer} | {goal} | {worst:.2} | {middle:.2} | {best:.2} | {met} of {of} | {cpu:.2} |"
        )?;
    }
    Ok(())
}

/// The processor time per request in `cell`, divided by docent's in the same cell.
fn cpu_ratio(cells: &BTreeMap<ResultKey, BenchmarkResult>, cell: &BenchmarkResult) -> Option<f64> {
    let ours = cells.get(&(cell.operation.clone(), cell.connections, OURS.to_owned()))?;
    let ours = ours.server_cpu_us_per_request;
    (ours > 0.0).then(|| cell.server_cpu_us_per_request / ours)
}

fn write_startups(out: &mut impl Write, startups: &[StartupTimes]) -> anyhow::Result<()> {
    if startups.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n| start to first correct `search` answer | starts | median ms | longest ms | goal |"
    )?;
    writeln!(out, "|---|--:|--:|--:|---|")?;
    for StartupTimes {
        server,
        runs,
        median_ms,
        max_ms,
    } in startups
    {
        let goal = match (server == OURS, *median_ms < STARTUP_GOAL_MS) {
            (false, _) => "–".to_owned(),
            (true, true) => format!("< {STARTUP_GOAL_MS} ms: met"),
            (true, false) => format!("< {STARTUP_GOAL_MS} ms: missed"),
        };
        writeln!(
            out,
            "| {server} | {runs} | {median_ms:.1} | {max_ms:.1} | {goal} |"
        )?;
    }
    Ok(())
}

fn first_error(cells: &BTreeMap<ResultKey, BenchmarkResult>) -> String {
    let mut failed = cells.values().filter(|cell| cell.errors > 0);
    let describe = |cell: &BenchmarkResult| {
        let error = cell.first_error.as_deref().unwrap_or("unknown");
        format!(
            "{} {} {}: {error}",
            cell.server, cell.operation, cell.connections
        )
    };
    failed.next().map_or_else(String::new, describe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(server: &str, rps: f64) -> BenchmarkResult {
        BenchmarkResult {
            server_cpu_us_per_request: 1e6 / rps,
            server: server.into(),
            operation: "search".into(),
            connections: 16,
            rps,
            ..BenchmarkResult::default()
        }
    }

    #[test]
    fn rounds_become_their_median_and_errors_add_up() {
        let wrong = BenchmarkResult {
            errors: 2,
            first_error: Some("status 503".into()),
            ..cell("docent", 9.0)
        };
        let cells = combine(vec![cell("docent", 10.0), wrong, cell("docent", 900.0)]);
        let only = cells.values().next().unwrap();
        assert!((only.rps - 10.0).abs() < f64::EPSILON);
        assert_eq!(only.errors, 2);
        assert_eq!(first_error(&cells), "docent search 16: status 503");
    }

    #[test]
    fn goals_are_compared_with_the_same_cell_of_each_peer() {
        let cells = combine(vec![
            cell("docent", 2000.0),
            cell("fastmcp", 90.0),
            cell("bare-rmcp", 2500.0),
        ]);
        let mut out = Vec::new();
        write_ratios(&mut out, &cells).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("| fastmcp | 20 | 22.22 | 22.22 | 22.22 | 1 of 1 | 22.22 |"),
            "{text}"
        );
        assert!(
            text.contains("| bare-rmcp | 0.85 | 0.80 | 0.80 | 0.80 | 0 of 1 | 0.80 |"),
            "{text}"
        );
        assert!(
            text.contains("| typescript | 8 | – | – | – | not measured | – |"),
            "{text}"
        );
    }
}
