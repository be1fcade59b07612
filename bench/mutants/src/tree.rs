//! A copy of the crate with every mutant in it, compiled; mutants that do not compile go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::render::{Dead, Rendered, render};
use crate::site::{Mutant, Sites, find};

/// What every mutant asks.
const SWITCH: &str = include_str!("switch.rs");
/// Each round of the compiler shows the mistakes that the ones before hid; there are only so many phases.
const MAX_ROUNDS: usize = 40;

/// What is mutated, where the copy goes, and what it is tested with.
pub(crate) struct Plan {
    /// The repository.
    pub(crate) root: PathBuf,
    /// The copy.
    pub(crate) scratch: PathBuf,
    /// The crate's folder in the repository.
    pub(crate) krate: String,
    /// Files or folders to mutate, in the repository.
    pub(crate) files: Vec<String>,
    /// Integration tests beside the unit tests.
    pub(crate) tests: Vec<String>,
    /// The program that builds.
    pub(crate) cargo: String,
}

/// A file that is mutated.
pub(crate) struct Source {
    pub(crate) name: String,
    text: String,
    sites: Sites,
    /// The number of its first mutant.
    first: usize,
    dead: Dead,
    rendered: Rendered,
}

impl Source {
    /// The mutants with their numbers; the last tells whether it compiles.
    pub(crate) fn mutants(&self) -> impl Iterator<Item = (usize, &Mutant, bool)> {
        let all = self.sites.mutants.iter().enumerate();
        all.map(|(n, one)| (self.first + n, one, !self.dead.mutants.contains(&n)))
    }

    /// What changes when something else can be changed in the file; its tests are none of that.
    fn print(&self) -> String {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        for mutant in &self.sites.mutants {
            (&mutant.function, &mutant.what).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}

/// Finds the files and what can be changed in them.
pub(crate) fn sources(plan: &Plan) -> Result<Vec<Source>> {
    let mut names = BTreeSet::new();
    for file in &plan.files {
        list(&plan.root, Path::new(file), &mut names)?;
    }
    let mut sources = Vec::new();
    let mut only_tests = BTreeSet::new();
    for name in names.iter().filter(|name| name.ends_with(".rs")) {
        let text = fs::read_to_string(plan.root.join(name)).with_context(|| name.clone())?;
        let sites = find(&text).with_context(|| format!("cannot read {name}"))?;
        let folder = children(name);
        for module in &sites.test_modules {
            only_tests.insert(format!("{folder}/{module}.rs"));
            only_tests.insert(format!("{folder}/{module}/"));
        }
        sources.push(Source {
            name: name.clone(),
            text,
            sites,
            first: 0,
            dead: Dead::default(),
            rendered: Rendered::default(),
        });
    }
    let is_test = |name: &str| {
        only_tests
            .iter()
            .any(|one| name == one || (one.ends_with('/') && name.starts_with(one.as_str())))
    };
    sources.retain(|source| !is_test(&source.name));
    // Zero is nobody's number: it stands for the product as it is.
    let mut next = 1;
    for source in &mut sources {
        source.first = next;
        next += source.sites.mutants.len();
    }
    Ok(sources)
}

/// The folder in which the modules of a file have theirs.
fn children(name: &str) -> String {
    let whole = name.trim_end_matches(".rs");
    match whole.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder.to_owned(),
        _ => whole.to_owned(),
    }
}

/// All files under a path, relative to the root.
fn list(root: &Path, at: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    let path = root.join(at);
    if path.is_dir() {
        for entry in fs::read_dir(&path)? {
            let name = entry?.file_name();
            if name != "target" {
                list(root, &at.join(name), names)?;
            }
        }
    } else if path.is_file() {
        names.insert(at.to_string_lossy().replace('\\', "/"));
    } else {
        bail!("there is no `{}`", at.display());
    }
    Ok(())
}

/// A program that runs tests.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// What did not compile the last time does not compile now, as long as its file reads the same but for tests.
fn recall(path: &Path, sources: &mut [Source]) {
    let text = fs::read_to_string(path).unwrap_or_default();
    for line in text.lines() {
        let mut parts = line.split('\t');
        let mut part = || parts.next().unwrap_or_default();
        let (name, print, mutants, constant) = (part(), part(), part(), part());
        let known = |source: &&mut Source| source.name == name && source.print() == print;
        if let Some(source) = sources.iter_mut().find(known) {
            source.dead.mutants = mutants.split(',').filter_map(|n| n.parse().ok()).collect();
            let names = constant.split(',').filter(|name| !name.is_empty());
            source.dead.constant = names.map(str::to_owned).collect();
        }
    }
}

fn remember(path: &Path, sources: &[Source]) -> Result<()> {
    let mut text = String::new();
    for source in sources {
        let mutants: Vec<_> = source.dead.mutants.iter().map(usize::to_string).collect();
        let constant: Vec<_> = source.dead.constant.iter().cloned().collect();
        let parts = [
            source.name.clone(),
            source.print(),
            mutants.join(","),
            constant.join(","),
        ];
        text.push_str(&parts.join("\t"));
        text.push('\n');
    }
    put(path, text.as_bytes())
}

/// Writes the copy and compiles it, again and again until what is left compiles.
pub(crate) fn compile(
    plan: &Plan,
    sources: &mut [Source],
    say: &dyn Fn(&str),
) -> Result<Vec<Program>> {
    let mutated: BTreeSet<String> = sources.iter().map(|one| one.name.clone()).collect();
    write_rest(plan, &mutated)?;
    let memory = plan.scratch.join("uncompiled.tsv");
    recall(&memory, sources);
    for round in 1..=MAX_ROUNDS {
        for source in sources.iter_mut() {
            source.rendered = render(
                &source.text,
                &source.sites.sites,
                &source.dead,
                source.first,
            );
            put(
                &plan.scratch.join(&source.name),
                source.rendered.text.as_bytes(),
            )?;
        }
        let (programs, errors) = build(plan)?;
        if errors.is_empty() {
            return Ok(programs);
        }
        let mut dropped = 0;
        for error in &errors {
            dropped += usize::from(blame(error, sources));
        }
        remember(&memory, sources)?;
        say(&format!(
            "round {round}: {} errors, {dropped} mutants dropped",
            errors.len()
        ));
        if dropped == 0 {
            let shown = errors.iter().filter_map(|error| error["rendered"].as_str());
            bail!(
                "the copy does not compile:\n{}",
                shown.take(5).collect::<String>()
            );
        }
    }
    bail!("after {MAX_ROUNDS} rounds the copy still does not compile")
}

/// Everything of the copy that has no mutants. The workspace is the one crate, so that nothing else is built.
fn write_rest(plan: &Plan, mutated: &BTreeSet<String>) -> Result<()> {
    let manifest = fs::read_to_string(plan.root.join("Cargo.toml"))?;
    let (before, rest) = manifest
        .split_once("members = [")
        .context("the workspace has no members")?;
    let (_, after) = rest
        .split_once(']')
        .context("the list of members has no end")?;
    let manifest = format!("{before}members = [\"{}\"]{after}", plan.krate);
    put(&plan.scratch.join("Cargo.toml"), manifest.as_bytes())?;
    if !plan.scratch.join("Cargo.lock").exists() {
        fs::copy(
            plan.root.join("Cargo.lock"),
            plan.scratch.join("Cargo.lock"),
        )?;
    }
    let mut wanted = BTreeSet::new();
    list(&plan.root, Path::new(&plan.krate), &mut wanted)?;
    let (lib, switch) = (
        format!("{}/src/lib.rs", plan.krate),
        format!("{}/src/mutant.rs", plan.krate),
    );
    for name in &wanted {
        let mut bytes = fs::read(plan.root.join(name))?;
        if *name == lib {
            bytes.extend_from_slice(b"\nmod mutant;\n");
        }
        if !mutated.contains(name) {
            put(&plan.scratch.join(name), &bytes)?;
        }
    }
    put(&plan.scratch.join(&switch), SWITCH.as_bytes())?;
    wanted.insert(switch);
    let mut there = BTreeSet::new();
    list(&plan.scratch, Path::new(&plan.krate), &mut there)?;
    for gone in there.difference(&wanted) {
        fs::remove_file(plan.scratch.join(gone))?;
    }
    Ok(())
}

/// A file that stays the same is not written, and so not compiled again.
fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn build(plan: &Plan) -> Result<(Vec<Program>, Vec<Value>)> {
    let mut command = Command::new(&plan.cargo);
    command.args(["test", "--no-run", "--message-format", "json", "--lib"]);
    for test in &plan.tests {
        command.args(["--test", test]);
    }
    command
        .current_dir(&plan.scratch)
        .env("CARGO_TARGET_DIR", plan.scratch.join("target"))
        .stderr(Stdio::null());
    let output = command.output().with_context(|| plan.cargo.clone())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (mut programs, mut errors) = (BTreeMap::new(), Vec::new());
    for line in text.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if let Some(path) = message["executable"].as_str() {
            let name = message["target"]["name"].as_str().unwrap_or_default();
            programs.insert(name.to_owned(), PathBuf::from(path));
        }
        let told = &message["message"];
        if told["level"] == "error" && told["spans"].as_array().is_some_and(|all| !all.is_empty()) {
            errors.push(told.clone());
        }
    }
    if !output.status.success() && errors.is_empty() {
        bail!(
            "`{} test --no-run` fails in {}: run it there",
            plan.cargo,
            plan.scratch.display()
        );
    }
    let program = |(name, path)| Program { name, path };
    Ok((programs.into_iter().map(program).collect(), errors))
}

/// Drops the mutant that an error is about; false when it is about none, or one that is gone already.
fn blame(error: &Value, sources: &mut [Source]) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    if error["code"]["code"] == "E0015" {
        let path = message.split('`').nth(1).unwrap_or_default();
        let name = path.rsplit("::").next().unwrap_or_default().to_owned();
        // A function of ours that is needed as a constant stays one, and has no mutants then.
        if !["on", "flip", "pick"].contains(&name.as_str()) {
            let mut new = false;
            for source in sources.iter_mut() {
                new |= source.dead.constant.insert(name.clone());
            }
            return new;
        }
    }
    let mut places = Vec::new();
    collect(error, &mut places);
    // What the compiler points at comes before what it only mentions.
    places.sort_by_key(|(primary, ..)| !primary);
    for (_, file, range) in places {
        let Some(source) = sources.iter_mut().find(|source| source.name == file) else {
            continue;
        };
        let around = source.rendered.stretches.iter();
        let around = around.filter(|(at, _)| at.start <= range.start && range.end <= at.end);
        if let Some((_, mutant)) = around.min_by_key(|(at, _)| at.len()) {
            return source.dead.mutants.insert(*mutant);
        }
    }
    false
}

/// Where an error and its notes point at.
fn collect(error: &Value, places: &mut Vec<(bool, String, Range<usize>)>) {
    let list = |name: &str| error[name].as_array().cloned().unwrap_or_default();
    for span in list("spans") {
        let number = |name: &str| span[name].as_u64().and_then(|n| usize::try_from(n).ok());
        if let (Some(file), Some(start), Some(end)) = (
            span["file_name"].as_str(),
            number("byte_start"),
            number("byte_end"),
        ) {
            let primary = span["is_primary"] == true;
            places.push((primary, file.to_owned(), start..end));
        }
    }
    for child in list("children") {
        collect(&child, places);
    }
}
