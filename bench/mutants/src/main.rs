//! Mutation testing with one build: all mutants of the chosen files are compiled into one program, each behind a switch
//! that is read at run time. README.md explains how it works.

mod crate_copy;
mod mutated_source;
mod mutation_site;
mod report;
mod return_values;
mod test_runner;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;

use crate_copy::{MutatedFile, MutationPlan};
use report::{MutantKey, MutantRow};
use test_runner::{MutantOutcome, TestCase, TestRunner};

/// Makes small changes to the source, one at a time, and reports which of them no test detects.
#[derive(Parser)]
struct CliArgs {
    /// The folder of the crate to mutate.
    #[arg(long = "crate", default_value = KIT)]
    krate: String,
    /// Files or folders to mutate, relative to the repository; by default the authentication of the kit, or all sources
    /// of another crate.
    #[arg(long = "file")]
    files: Vec<String>,
    /// Run the unit tests whose names begin with this; by default those of the files above.
    #[arg(long = "unit")]
    units: Vec<String>,
    /// Integration tests to run; by default `auth` for the kit, none for another crate.
    #[arg(long = "test")]
    tests: Vec<String>,
    /// Number of mutants to test at the same time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Seconds that the tests of a mutant may take in addition to five times their usual time.
    #[arg(long, default_value_t = 20)]
    patience: u64,
    /// Only test the mutants that the last run did not kill.
    #[arg(long)]
    again: bool,
    /// Only build, so that a later run starts faster.
    #[arg(long)]
    build: bool,
    /// Only list the mutants.
    #[arg(long)]
    list: bool,
    /// The share of mutants that tests must detect, in percent.
    #[arg(long, default_value_t = 95)]
    least: usize,
    /// Folder for the copy and its build; `target/mutants` in the repository by default.
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// The name or path of `cargo`.
    #[arg(long, default_value = "cargo")]
    cargo: String,
}

/// The crate of the kit. Only its authentication is mutated by default.
const KIT: &str = "crates/mcp";

impl CliArgs {
    /// Fills in what to mutate and which tests to run, where the command line does not say.
    fn with_defaults(mut self) -> Self {
        let is_kit = self.krate == KIT;
        let default = |list: &mut Vec<String>, of_kit: &str, of_other: Option<String>| {
            if list.is_empty() {
                list.extend(if is_kit {
                    Some(of_kit.to_owned())
                } else {
                    of_other
                });
            }
        };
        let sources = format!("{}/src", self.krate);
        default(&mut self.files, "crates/mcp/src/auth", Some(sources));
        default(&mut self.units, "auth::", Some(String::new()));
        default(&mut self.tests, "auth", None);
        self
    }

    /// The list of equivalent mutants of the crate, which not every crate has.
    fn equivalent_list(&self, folder: &Path) -> PathBuf {
        let name = self.krate.rsplit('/').next().unwrap_or_default();
        folder.join("equivalent").join(format!("{name}.txt"))
    }
}

fn log(text: &str) {
    // If stderr is closed, nobody reads the progress.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn main() -> Result<ExitCode> {
    let args = CliArgs::parse().with_defaults();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("../..").canonicalize()?;
    let scratch = args.scratch.clone();
    let plan = MutationPlan {
        scratch: scratch.unwrap_or_else(|| root.join("target/mutants")),
        root,
        krate: args.krate.clone(),
        files: args.files.clone(),
        tests: args.tests.clone(),
        cargo: args.cargo.clone(),
    };
    std::fs::create_dir_all(&plan.scratch)?;
    let mut sources = crate_copy::mutated_files(&plan)?;
    if args.list {
        return list(&rows(&sources, &BTreeMap::new()));
    }
    let programs = crate_copy::compile(&plan, &mut sources, &log)?;
    if args.build {
        return Ok(ExitCode::SUCCESS);
    }
    let mut runner = TestRunner::new(
        programs,
        plan.scratch.join(&plan.krate),
        plan.scratch.join("tmp"),
        Duration::from_secs(args.patience),
    );
    runner.copy_programs()?;
    let library = library_name(&plan.scratch.join(&plan.krate))?;
    let tests = runner.measure_tests(&args.units, &library, &log)?;
    let saved = plan.scratch.join("outcomes.tsv");
    let outcomes = test_all(&args, &sources, &runner, &tests, &saved)?;
    std::fs::remove_dir_all(plan.scratch.join("tmp"))?;
    let rows = rows(&sources, &outcomes);
    report::save(&saved, &rows)?;
    let equivalents = report::equivalents(&args.equivalent_list(here), &rows)?;
    let table = report::table(&rows, &equivalents);
    std::io::stdout().write_all(table.as_bytes())?;
    Ok(verdict(&rows, &equivalents, args.least))
}

/// The name that Cargo gives to the program with the unit tests of the crate.
fn library_name(krate: &Path) -> Result<String> {
    let manifest = std::fs::read_to_string(krate.join("Cargo.toml"))?;
    let name = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = "));
    let name = name.context("the crate has no name")?;
    Ok(name.trim_matches('"').replace('-', "_"))
}

fn list(rows: &[MutantRow]) -> Result<ExitCode> {
    let mut out = std::io::stdout();
    for row in rows {
        let MutantKey {
            file,
            function,
            change,
            ..
        } = &row.key;
        writeln!(out, "{file}:{}: {function}: {change}", row.line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rows(sources: &[MutatedFile], outcomes: &BTreeMap<usize, MutantOutcome>) -> Vec<MutantRow> {
    let mut seen: BTreeMap<MutantKey, usize> = BTreeMap::new();
    let mut rows = Vec::new();
    for source in sources {
        for (number, mutant, compiles) in source.mutants() {
            let mut key = MutantKey {
                file: source.name.clone(),
                function: mutant.function.clone(),
                change: mutant.change.clone(),
                nth: 0,
            };
            let count = seen.entry(key.clone()).or_default();
            key.nth = *count;
            *count += 1;
            let outcome = outcomes
                .get(&number)
                .copied()
                .unwrap_or(MutantOutcome::NotReached);
            rows.push(MutantRow {
                key,
                line: mutant.line,
                outcome: compiles.then_some(outcome),
            });
        }
    }
    rows
}

fn test_all(
    args: &CliArgs,
    sources: &[MutatedFile],
    runner: &TestRunner,
    tests: &[TestCase],
    saved: &Path,
) -> Result<BTreeMap<usize, MutantOutcome>> {
    let numbers: Vec<_> = sources.iter().flat_map(MutatedFile::mutants).collect();
    let before = if args.again {
        report::killed_before(saved)
    } else {
        BTreeMap::new()
    };
    let names = rows(sources, &BTreeMap::new());
    let mut outcomes = BTreeMap::new();
    let mut left = Vec::new();
    for ((number, _, compiles), row) in numbers.iter().zip(&names) {
        match before.get(&row.key) {
            _ if !compiles => {}
            Some(outcome) => {
                outcomes.insert(*number, *outcome);
            }
            None => left.push(*number),
        }
    }
    log(&format!(
        "{} mutants in all, {} to test",
        numbers.len(),
        left.len()
    ));
    let done = std::sync::atomic::AtomicUsize::new(0);
    let total = left.len();
    let report = |number: usize, outcome: MutantOutcome| {
        let n = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if outcome != MutantOutcome::Killed || n.is_multiple_of(100) {
            log(&format!("{n}/{total}: mutant {number}: {outcome:?}"));
        }
    };
    outcomes.extend(runner.test_mutants(&left, tests, args.jobs.max(1), &report)?);
    Ok(outcomes)
}

fn verdict(
    rows: &[MutantRow],
    equivalents: &std::collections::BTreeSet<MutantKey>,
    least: usize,
) -> ExitCode {
    let (mut detected, mut all) = (0, 0);
    for row in rows.iter().filter(|row| row.outcome.is_some()) {
        let is_detected = matches!(
            row.outcome,
            Some(MutantOutcome::Killed | MutantOutcome::TimedOut)
        );
        detected += usize::from(is_detected);
        all += usize::from(is_detected || !equivalents.contains(&row.key));
    }
    if detected * 100 >= all * least {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
