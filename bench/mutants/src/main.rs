//! Mutation testing with one build: every mutant of the chosen files is compiled in at once, behind a switch.
//!
//! See README.md beside this package.

mod render;
mod report;
mod site;
#[cfg(test)]
mod tests;
mod tree;
mod trial;
mod value;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;

use report::{Name, Row};
use tree::{Plan, Source};
use trial::{Fate, Trial};

/// Changes the source in every small way a switch can express, and says which changes no test notices.
#[derive(Parser)]
struct Args {
    /// Files or folders to change, in the repository.
    #[arg(long = "file", default_value = "crates/mcp/src/auth")]
    files: Vec<String>,
    /// The folder of the crate that they belong to.
    #[arg(long = "crate", default_value = "crates/mcp")]
    krate: String,
    /// Unit tests to run: those whose names begin so.
    #[arg(long = "unit", default_value = "auth::")]
    units: Vec<String>,
    /// Integration tests to run.
    #[arg(long = "test", default_value = "auth")]
    tests: Vec<String>,
    /// Mutants to try at once.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Seconds that the tests of a mutant have in any case, before it counts as hanging.
    #[arg(long, default_value_t = 20)]
    patience: u64,
    /// Only try what the last run did not kill.
    #[arg(long)]
    again: bool,
    /// Only build, so that a later run begins at once.
    #[arg(long)]
    build: bool,
    /// Only say what would be changed.
    #[arg(long)]
    list: bool,
    /// The least share of mutants that must be noticed, in per cent.
    #[arg(long, default_value_t = 95)]
    least: usize,
    /// Where the copy and its build go; `target/mutants` in the repository otherwise.
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// The program that builds.
    #[arg(long, default_value = "cargo")]
    cargo: String,
}

fn say(text: &str) {
    // Where nobody reads, nobody misses it.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("../..").canonicalize()?;
    let scratch = args.scratch.clone();
    let plan = Plan {
        scratch: scratch.unwrap_or_else(|| root.join("target/mutants")),
        root,
        krate: args.krate.clone(),
        files: args.files.clone(),
        tests: args.tests.clone(),
        cargo: args.cargo.clone(),
    };
    std::fs::create_dir_all(&plan.scratch)?;
    let mut sources = tree::sources(&plan)?;
    if args.list {
        return list(&rows(&sources, &BTreeMap::new()));
    }
    let programs = tree::compile(&plan, &mut sources, &say)?;
    if args.build {
        return Ok(ExitCode::SUCCESS);
    }
    let mut trial = Trial::new(
        programs,
        plan.scratch.join(&plan.krate),
        plan.scratch.join("tmp"),
        Duration::from_secs(args.patience),
    );
    trial.settle()?;
    let library = library(&plan.scratch.join(&plan.krate))?;
    let tests = trial.survey(&args.units, &library, &say)?;
    let saved = plan.scratch.join("fates.tsv");
    let fates = try_all(&args, &sources, &trial, &tests, &saved)?;
    std::fs::remove_dir_all(plan.scratch.join("tmp"))?;
    let rows = rows(&sources, &fates);
    report::save(&saved, &rows)?;
    let equivalents = report::equivalents(&here.join("equivalent.txt"), &rows)?;
    let table = report::table(&rows, &equivalents);
    std::io::stdout().write_all(table.as_bytes())?;
    Ok(verdict(&rows, &equivalents, args.least))
}

/// The name of the crate's unit tests as cargo calls them.
fn library(krate: &Path) -> Result<String> {
    let manifest = std::fs::read_to_string(krate.join("Cargo.toml"))?;
    let name = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = "));
    let name = name.context("the crate has no name")?;
    Ok(name.trim_matches('"').replace('-', "_"))
}

fn list(rows: &[Row]) -> Result<ExitCode> {
    let mut out = std::io::stdout();
    for row in rows {
        let Name {
            file,
            function,
            what,
            ..
        } = &row.name;
        writeln!(out, "{file}:{}: {function}: {what}", row.line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rows(sources: &[Source], fates: &BTreeMap<usize, Fate>) -> Vec<Row> {
    let mut seen: BTreeMap<Name, usize> = BTreeMap::new();
    let mut rows = Vec::new();
    for source in sources {
        for (number, mutant, compiles) in source.mutants() {
            let mut name = Name {
                file: source.name.clone(),
                function: mutant.function.clone(),
                what: mutant.what.clone(),
                nth: 0,
            };
            let count = seen.entry(name.clone()).or_default();
            name.nth = *count;
            *count += 1;
            let fate = fates.get(&number).copied().unwrap_or(Fate::Unreached);
            rows.push(Row {
                name,
                line: mutant.line,
                fate: compiles.then_some(fate),
            });
        }
    }
    rows
}

fn try_all(
    args: &Args,
    sources: &[Source],
    trial: &Trial,
    tests: &[trial::Test],
    saved: &Path,
) -> Result<BTreeMap<usize, Fate>> {
    let numbers: Vec<_> = sources.iter().flat_map(Source::mutants).collect();
    let before = if args.again {
        report::killed_before(saved)
    } else {
        BTreeMap::new()
    };
    let names = rows(sources, &BTreeMap::new());
    let mut fates = BTreeMap::new();
    let mut left = Vec::new();
    for ((number, _, compiles), row) in numbers.iter().zip(&names) {
        match before.get(&row.name) {
            _ if !compiles => {}
            Some(fate) => {
                fates.insert(*number, *fate);
            }
            None => left.push(*number),
        }
    }
    say(&format!(
        "{} mutants in all, {} to try",
        numbers.len(),
        left.len()
    ));
    let done = std::sync::atomic::AtomicUsize::new(0);
    let total = left.len();
    let tell = |number: usize, fate: Fate| {
        let n = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if fate != Fate::Killed || n % 100 == 0 {
            say(&format!("{n}/{total}: mutant {number}: {fate:?}"));
        }
    };
    fates.extend(trial.all(&left, tests, args.jobs.max(1), &tell)?);
    Ok(fates)
}

fn verdict(rows: &[Row], equivalents: &std::collections::BTreeSet<Name>, least: usize) -> ExitCode {
    let (mut dead, mut all) = (0, 0);
    for row in rows.iter().filter(|row| row.fate.is_some()) {
        let noticed = matches!(row.fate, Some(Fate::Killed | Fate::Hung));
        dead += usize::from(noticed);
        all += usize::from(noticed || !equivalents.contains(&row.name));
    }
    if dead * 100 >= all * least {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
