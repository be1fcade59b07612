//! Fates into a table, and the list of mutants that change nothing anybody could notice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::trial::Fate;

/// A mutant by which it is known again when numbers and lines have changed: file, function, change, and which of
/// several that read the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) file: String,
    pub(crate) function: String,
    pub(crate) what: String,
    pub(crate) nth: usize,
}

/// A mutant and what became of it; without a fate it did not compile.
pub(crate) struct Row {
    pub(crate) name: Name,
    pub(crate) line: usize,
    pub(crate) fate: Option<Fate>,
}

/// Reads `file | function | change | reason` lines. Every one has to be about a mutant that is there.
pub(crate) fn equivalents(path: &Path, rows: &[Row]) -> Result<BTreeSet<Name>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut names = BTreeSet::new();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let parts: Vec<_> = line.split(" | ").collect();
        let [file, function, what, reason] = parts.as_slice() else {
            bail!("`{line}` is not `file | function | change | reason`");
        };
        let same = |row: &&Row| {
            row.name.file.ends_with(file)
                && row.name.function == *function
                && row.name.what == *what
        };
        let found: Vec<_> = rows
            .iter()
            .filter(same)
            .map(|row| row.name.clone())
            .collect();
        if found.is_empty() || reason.trim().is_empty() {
            bail!("no mutant is `{line}`, or it has no reason");
        }
        names.extend(found);
    }
    Ok(names)
}

#[derive(Default, Clone, Copy)]
struct Count {
    killed: usize,
    hung: usize,
    survived: usize,
    equivalent: usize,
    uncompiled: usize,
}

impl Count {
    fn add(&mut self, row: &Row, equivalent: bool) {
        *match row.fate {
            None => &mut self.uncompiled,
            Some(Fate::Killed) => &mut self.killed,
            Some(Fate::Hung) => &mut self.hung,
            Some(Fate::Survived | Fate::Unreached) if equivalent => &mut self.equivalent,
            Some(Fate::Survived | Fate::Unreached) => &mut self.survived,
        } += 1;
    }

    fn line(self, name: &str) -> String {
        let dead = self.killed + self.hung;
        let all = dead + self.survived;
        let score = if all == 0 { 1000 } else { dead * 1000 / all };
        format!(
            "| {name} | {} | {} | {} | {} | {} | {}.{} % |\n",
            self.killed,
            self.hung,
            self.survived,
            self.equivalent,
            self.uncompiled,
            score / 10,
            score % 10
        )
    }
}

/// The table, by file, and every survivor.
pub(crate) fn table(rows: &[Row], equivalents: &BTreeSet<Name>) -> String {
    let mut files: BTreeMap<&str, Count> = BTreeMap::new();
    let mut total = Count::default();
    let mut survivors = String::new();
    for row in rows {
        let equivalent = equivalents.contains(&row.name);
        files
            .entry(&row.name.file)
            .or_default()
            .add(row, equivalent);
        total.add(row, equivalent);
        let Name {
            file,
            function,
            what,
            ..
        } = &row.name;
        let why = match row.fate {
            Some(Fate::Survived) if !equivalent => "survived",
            Some(Fate::Unreached) if !equivalent => "not reached",
            // A mutant that a test notices is not one that nobody could notice.
            Some(Fate::Killed | Fate::Hung) if equivalent => "listed as equivalent, but noticed",
            _ => continue,
        };
        // Writing to a String cannot fail.
        let _ = writeln!(survivors, "{file}:{}: {function}: {what} ({why})", row.line);
    }
    let mut out = String::from(
        "| file | killed | hung | survived | equivalent | not compiled | score |\n|---|---|---|---|---|---|---|\n",
    );
    for (file, count) in files {
        out.push_str(&count.line(file));
    }
    out.push_str(&total.line("all"));
    out.push('\n');
    out.push_str(&survivors);
    out
}

/// One line for each mutant, to begin from the next time.
pub(crate) fn save(path: &Path, rows: &[Row]) -> Result<()> {
    let mut text = String::new();
    for row in rows {
        let Name {
            file,
            function,
            what,
            nth,
        } = &row.name;
        let fate = row.fate.map_or("uncompiled", |fate| match fate {
            Fate::Killed => "killed",
            Fate::Hung => "hung",
            Fate::Survived => "survived",
            Fate::Unreached => "unreached",
        });
        let _ = writeln!(text, "{fate}\t{file}\t{function}\t{what}\t{nth}");
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// What a run before this one killed.
pub(crate) fn killed_before(path: &Path) -> BTreeMap<Name, Fate> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let read = |line: &str| {
        let mut parts = line.split('\t');
        let fate = match parts.next()? {
            "killed" => Fate::Killed,
            "hung" => Fate::Hung,
            _ => return None,
        };
        let mut part = || parts.next().map(str::to_owned);
        let name = Name {
            file: part()?,
            function: part()?,
            what: part()?,
            nth: part()?.parse().ok()?,
        };
        Some((name, fate))
    };
    text.lines().filter_map(read).collect()
}
