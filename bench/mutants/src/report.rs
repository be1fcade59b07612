//! Reads and writes results: the table, the list of equivalent mutants, and the outcomes that a later run reuses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::test_runner::MutantOutcome;

/// Identifies a mutant across runs, independent of line numbers. `nth` counts mutants of a function that read the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MutantKey {
    pub(crate) file: String,
    pub(crate) function: String,
    pub(crate) change: String,
    pub(crate) nth: usize,
}

/// A mutant and its outcome, which is absent if it does not compile.
pub(crate) struct MutantRow {
    pub(crate) key: MutantKey,
    pub(crate) line: usize,
    pub(crate) outcome: Option<MutantOutcome>,
}

/// Reads the list of equivalent mutants, which has lines of the form `file | function | change | reason`. A line that
/// matches no mutant is an error. Without a file, no mutant is equivalent.
pub(crate) fn equivalents(path: &Path, rows: &[MutantRow]) -> Result<BTreeSet<MutantKey>> {
    if !path.exists() {
        return Ok(BTreeSet::new());
    }
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut keys = BTreeSet::new();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let parts: Vec<_> = line.split(" | ").collect();
        let [file, function, change, reason] = parts.as_slice() else {
            bail!("`{line}` is not `file | function | change | reason`");
        };
        let same = |row: &&MutantRow| {
            row.key.file.ends_with(file)
                && row.key.function == *function
                && row.key.change == *change
        };
        let found: Vec<_> = rows
            .iter()
            .filter(same)
            .map(|row| row.key.clone())
            .collect();
        if found.is_empty() || reason.trim().is_empty() {
            bail!("no mutant is `{line}`, or it has no reason");
        }
        keys.extend(found);
    }
    Ok(keys)
}

/// The number of mutants of a file with each outcome.
#[derive(Default, Clone, Copy)]
struct OutcomeCounts {
    killed: usize,
    timed_out: usize,
    survived: usize,
    equivalent: usize,
    uncompiled: usize,
}

impl OutcomeCounts {
    fn add(&mut self, row: &MutantRow, equivalent: bool) {
        *match row.outcome {
            None => &mut self.uncompiled,
            Some(MutantOutcome::Killed) => &mut self.killed,
            Some(MutantOutcome::TimedOut) => &mut self.timed_out,
            Some(MutantOutcome::Survived | MutantOutcome::NotReached) if equivalent => {
                &mut self.equivalent
            }
            Some(MutantOutcome::Survived | MutantOutcome::NotReached) => &mut self.survived,
        } += 1;
    }

    fn line(self, name: &str) -> String {
        let detected = self.killed + self.timed_out;
        let all = detected + self.survived;
        let score = (detected * 1000).checked_div(all).unwrap_or(1000);
        format!(
            "| {name} | {} | {} | {} | {} | {} | {}.{} % |\n",
            self.killed,
            self.timed_out,
            self.survived,
            self.equivalent,
            self.uncompiled,
            score / 10,
            score % 10
        )
    }
}

/// The table, by file, and every survivor.
pub(crate) fn table(rows: &[MutantRow], equivalents: &BTreeSet<MutantKey>) -> String {
    let mut files: BTreeMap<&str, OutcomeCounts> = BTreeMap::new();
    let mut total = OutcomeCounts::default();
    let mut survivors = String::new();
    for row in rows {
        let equivalent = equivalents.contains(&row.key);
        files.entry(&row.key.file).or_default().add(row, equivalent);
        total.add(row, equivalent);
        let MutantKey {
            file,
            function,
            change,
            ..
        } = &row.key;
        let verdict = match row.outcome {
            Some(MutantOutcome::Survived) if !equivalent => "survived",
            Some(MutantOutcome::NotReached) if !equivalent => "not reached",
            // A mutant that a test detects is not equivalent, so the list is wrong.
            Some(MutantOutcome::Killed | MutantOutcome::TimedOut) if equivalent => {
                "listed as equivalent, but detected"
            }
            _ => continue,
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            survivors,
            "{file}:{}: {function}: {change} ({verdict})",
            row.line
        );
    }
    let mut out = String::from(
        "| file | killed | timed out | survived | equivalent | not compiled | score |\n|---|---|---|---|---|---|---|\n",
    );
    for (file, count) in files {
        out.push_str(&count.line(file));
    }
    out.push_str(&total.line("all"));
    out.push('\n');
    out.push_str(&survivors);
    out
}

/// Saves the outcome of each mutant for a later run with `--again`.
pub(crate) fn save(path: &Path, rows: &[MutantRow]) -> Result<()> {
    let mut text = String::new();
    for row in rows {
        let MutantKey {
            file,
            function,
            change,
            nth,
        } = &row.key;
        let outcome = row.outcome.map_or("uncompiled", |outcome| match outcome {
            MutantOutcome::Killed => "killed",
            MutantOutcome::TimedOut => "timed out",
            MutantOutcome::Survived => "survived",
            MutantOutcome::NotReached => "unreached",
        });
        let _ = writeln!(text, "{outcome}\t{file}\t{function}\t{change}\t{nth}");
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// The mutants that the last run killed or stopped.
pub(crate) fn killed_before(path: &Path) -> BTreeMap<MutantKey, MutantOutcome> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let read = |line: &str| {
        let mut parts = line.split('\t');
        let outcome = match parts.next()? {
            "killed" => MutantOutcome::Killed,
            "timed out" => MutantOutcome::TimedOut,
            _ => return None,
        };
        let mut part = || parts.next().map(str::to_owned);
        let key = MutantKey {
            file: part()?,
            function: part()?,
            change: part()?,
            nth: part()?.parse().ok()?,
        };
        Some((key, outcome))
    };
    text.lines().filter_map(read).collect()
}
