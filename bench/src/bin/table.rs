//! Turns the measured cells of one run into a Markdown table, with the ratios to each peer and the goals.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Parser;
use docent_bench::summary::{Cell, median};
use serde::Deserialize;

/// The most result files that are read.
const MAX_FILES: usize = 10_000;
/// The server that the others are compared with.
const OURS: &str = "docent";
/// From start to first answer with an existing index, in milliseconds.
const STARTUP_GOAL_MS: f64 = 50.0;
/// How many times the requests per second of each peer are aimed at.
const GOALS: [(&str, f64); 3] = [("fastmcp", 20.0), ("typescript", 8.0), ("bare-rmcp", 0.85)];

/// Prints the table of one run. Fails when any answer of any server was wrong.
#[derive(Parser)]
struct Options {
    /// Folder with the JSON files of the run
    results: PathBuf,
}

#[derive(Deserialize)]
struct Startup {
    server: String,
    runs: u32,
    median_ms: f64,
    max_ms: f64,
}

/// Operation, connections, server: the order of the table.
type Key = (String, usize, String);

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let cells = combine(read(&options, "cell-")?);
    let startups: Vec<Startup> = read(&options, "startup-")?;
    let mut out = stdout().lock();
    write_cells(&mut out, &cells)?;
    write_ratios(&mut out, &cells)?;
    write_startups(&mut out, &startups)?;
    let errors: u64 = cells.values().map(|cell| cell.errors).sum();
    ensure!(
        errors == 0,
        "{errors} wrong answers; the first: {}",
        first_error(&cells)
    );
    Ok(())
}

fn read<T: for<'de> Deserialize<'de>>(options: &Options, prefix: &str) -> anyhow::Result<Vec<T>> {
    let shown = options.results.display();
    let entries =
        fs::read_dir(&options.results).with_context(|| format!("cannot list `{shown}`"))?;
    let mut found = Vec::new();
    for entry in entries.take(MAX_FILES) {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let text = fs::read_to_string(entry.path())?;
            let file = || format!("cannot understand `{}`", entry.path().display());
            found.push(serde_json::from_str(&text).with_context(file)?);
        }
    }
    Ok(found)
}

/// One cell for each key. Where a run had several rounds, each figure is their median.
fn combine(cells: Vec<Cell>) -> BTreeMap<Key, Cell> {
    let mut groups: BTreeMap<Key, Vec<Cell>> = BTreeMap::new();
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
        .filter_map(|(key, rounds)| Some((key, middle(&rounds)?)))
        .collect()
}

fn middle(rounds: &[Cell]) -> Option<Cell> {
    let over = |figure: fn(&Cell) -> f64| median(rounds.iter().map(figure).collect());
    let first = rounds.first()?.clone();
    Some(Cell {
        rps: over(|cell| cell.rps),
        p50_us: over(|cell| cell.p50_us as f64) as u64,
        p99_us: over(|cell| cell.p99_us as f64) as u64,
        server_cpu_us_per_request: over(|cell| cell.server_cpu_us_per_request),
        server_cores: over(|cell| cell.server_cores),
        rss_peak_kib: rounds.iter().map(|cell| cell.rss_peak_kib).max()?,
        errors: rounds.iter().map(|cell| cell.errors).sum(),
        first_error: rounds.iter().find_map(|cell| cell.first_error.clone()),
        ..first
    })
}

fn write_cells(out: &mut impl Write, cells: &BTreeMap<Key, Cell>) -> anyhow::Result<()> {
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
            ratio(cells, cell).map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}")),
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

/// How many times the requests per second of `cell` our server did in the same place.
fn ratio(cells: &BTreeMap<Key, Cell>, cell: &Cell) -> Option<f64> {
    let ours = cells.get(&(cell.operation.clone(), cell.connections, OURS.to_owned()))?;
    (cell.rps > 0.0).then(|| ours.rps / cell.rps)
}

fn write_ratios(out: &mut impl Write, cells: &BTreeMap<Key, Cell>) -> anyhow::Result<()> {
    writeln!(
        out,
        "\n| requests/s of docent over | goal | worst cell | median cell | best cell | met in | CPU time of this over docent's, median cell |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    for (peer, goal) in GOALS {
        let of_peer: Vec<&Cell> = cells.values().filter(|cell| cell.server == peer).collect();
        let ratios: Vec<f64> = of_peer
            .iter()
            .filter_map(|cell| ratio(cells, cell))
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

/// How many times our server's processor time per request `cell` spent in the same place.
fn cpu_ratio(cells: &BTreeMap<Key, Cell>, cell: &Cell) -> Option<f64> {
    let ours = cells.get(&(cell.operation.clone(), cell.connections, OURS.to_owned()))?;
    let ours = ours.server_cpu_us_per_request;
    (ours > 0.0).then(|| cell.server_cpu_us_per_request / ours)
}

fn write_startups(out: &mut impl Write, startups: &[Startup]) -> anyhow::Result<()> {
    if startups.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n| start to first correct `search` answer | starts | median ms | longest ms | goal |"
    )?;
    writeln!(out, "|---|--:|--:|--:|---|")?;
    for Startup {
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

fn first_error(cells: &BTreeMap<Key, Cell>) -> String {
    let mut failed = cells.values().filter(|cell| cell.errors > 0);
    let describe = |cell: &Cell| {
        let what = cell.first_error.as_deref().unwrap_or("unknown");
        format!(
            "{} {} {}: {what}",
            cell.server, cell.operation, cell.connections
        )
    };
    failed.next().map_or_else(String::new, describe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(server: &str, rps: f64) -> Cell {
        Cell {
            server_cpu_us_per_request: 1e6 / rps,
            server: server.into(),
            operation: "search".into(),
            connections: 16,
            rps,
            ..Cell::default()
        }
    }

    #[test]
    fn rounds_become_their_median_and_errors_add_up() {
        let wrong = Cell {
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
    fn goals_are_held_against_the_same_cell_of_each_peer() {
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
