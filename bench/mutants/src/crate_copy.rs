//! Writes a copy of the crate that contains all mutants, and compiles it. Mutants that do not compile are excluded.

#![allow(
    clippy::indexing_slicing,
    reason = "a member that a JSON value lacks is null, not a panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::mutated_source::{ExcludedSites, MutatedSource, render};
use crate::mutation_site::{FileSites, Mutant, find};

/// The module that every mutant calls to find out whether it is on.
const SWITCH: &str = include_str!("switch.rs");
/// The declaration of that module, which is appended to the crate's root.
const MODULE: &str = "\nmod mutant;\n";
/// The compiler stops after the first of its phases that has errors, so several builds are needed to find all of them.
const MAX_BUILDS: usize = 40;

/// The code that is mutated, the folder of the copy, and the tests that run on it.
pub(crate) struct MutationPlan {
    /// The root folder of the repository.
    pub(crate) root: PathBuf,
    /// The folder that the copy is written to.
    pub(crate) scratch: PathBuf,
    /// The crate's folder in the repository.
    pub(crate) krate: String,
    /// Files or folders to mutate, in the repository.
    pub(crate) files: Vec<String>,
    /// Integration tests that run besides the unit tests.
    pub(crate) tests: Vec<String>,
    /// The name or path of `cargo`.
    pub(crate) cargo: String,
}

/// A source file with its mutants.
pub(crate) struct MutatedFile {
    pub(crate) name: String,
    text: String,
    sites: FileSites,
    /// The number of its first mutant.
    first: usize,
    excluded: ExcludedSites,
    rendered: MutatedSource,
}

impl MutatedFile {
    /// All mutants with their numbers, and whether they compile.
    pub(crate) fn mutants(&self) -> impl Iterator<Item = (usize, &Mutant, bool)> {
        let all = self.sites.mutants.iter().enumerate();
        all.map(|(n, one)| (self.first + n, one, !self.excluded.mutants.contains(&n)))
    }

    /// A hash of all mutants. It stays the same if only the tests in the file change.
    fn fingerprint(&self) -> String {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        for mutant in &self.sites.mutants {
            (&mutant.function, &mutant.change).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}

/// Finds the files to mutate and their mutants.
pub(crate) fn mutated_files(plan: &MutationPlan) -> Result<Vec<MutatedFile>> {
    let mut names = BTreeSet::new();
    for file in &plan.files {
        list_files(&plan.root, Path::new(file), &mut names)?;
    }
    let mut sources = Vec::new();
    let mut only_tests = BTreeSet::new();
    for name in names.iter().filter(|name| name.ends_with(".rs")) {
        let text = fs::read_to_string(plan.root.join(name)).with_context(|| name.clone())?;
        let sites = find(&text).with_context(|| format!("cannot read {name}"))?;
        let folder = module_folder(name);
        for module in &sites.test_modules {
            only_tests.insert(format!("{folder}/{module}.rs"));
            only_tests.insert(format!("{folder}/{module}/"));
        }
        sources.push(MutatedFile {
            name: name.clone(),
            text,
            sites,
            first: 0,
            excluded: ExcludedSites::default(),
            rendered: MutatedSource::default(),
        });
    }
    let is_test = |name: &str| {
        only_tests
            .iter()
            .any(|one| name == one || (one.ends_with('/') && name.starts_with(one.as_str())))
    };
    sources.retain(|source| !is_test(&source.name));
    // Number zero stands for the unchanged product.
    let mut next = 1;
    for source in &mut sources {
        source.first = next;
        next += source.sites.mutants.len();
    }
    Ok(sources)
}

/// The folder with the submodules of a file.
fn module_folder(name: &str) -> String {
    let whole = name.trim_end_matches(".rs");
    match whole.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder.to_owned(),
        _ => whole.to_owned(),
    }
}

/// Adds all files below a path, relative to the root.
fn list_files(root: &Path, at: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    let path = root.join(at);
    if path.is_dir() {
        for entry in fs::read_dir(&path)? {
            let name = entry?.file_name();
            if name != "target" {
                list_files(root, &at.join(name), names)?;
            }
        }
    } else if path.is_file() {
        names.insert(at.to_string_lossy().replace('\\', "/"));
    } else {
        bail!("there is no `{}`", at.display());
    }
    Ok(())
}

/// A compiled program of tests.
pub(crate) struct TestProgram {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// Excludes the mutants that did not compile in an earlier run, for each file whose mutants are still the same.
fn load_exclusions(path: &Path, sources: &mut [MutatedFile]) {
    let text = fs::read_to_string(path).unwrap_or_default();
    for line in text.lines() {
        let mut parts = line.split('\t');
        let mut part = || parts.next().unwrap_or_default();
        let (name, fingerprint, mutants, constant) = (part(), part(), part(), part());
        let known =
            |source: &&mut MutatedFile| source.name == name && source.fingerprint() == fingerprint;
        if let Some(source) = sources.iter_mut().find(known) {
            source.excluded.mutants = mutants.split(',').filter_map(|n| n.parse().ok()).collect();
            let names = constant.split(',').filter(|name| !name.is_empty());
            source.excluded.const_functions = names.map(str::to_owned).collect();
        }
    }
}

fn save_exclusions(path: &Path, sources: &[MutatedFile]) -> Result<()> {
    let mut text = String::new();
    for source in sources {
        let mutants: Vec<_> = source
            .excluded
            .mutants
            .iter()
            .map(usize::to_string)
            .collect();
        let constant: Vec<_> = source.excluded.const_functions.iter().cloned().collect();
        let parts = [
            source.name.clone(),
            source.fingerprint(),
            mutants.join(","),
            constant.join(","),
        ];
        text.push_str(&parts.join("\t"));
        text.push('\n');
    }
    write_if_changed(path, text.as_bytes())
}

/// Writes the copy and builds it again and again, without the mutants that failed, until it compiles.
pub(crate) fn compile(
    plan: &MutationPlan,
    sources: &mut [MutatedFile],
    log: &dyn Fn(&str),
) -> Result<Vec<TestProgram>> {
    let mutated: BTreeSet<String> = sources.iter().map(|one| one.name.clone()).collect();
    write_unchanged_files(plan, &mutated)?;
    let saved = plan.scratch.join("uncompiled.tsv");
    load_exclusions(&saved, sources);
    for build in 1..=MAX_BUILDS {
        for source in sources.iter_mut() {
            source.rendered = render(
                &source.text,
                &source.sites.sites,
                &source.excluded,
                source.first,
            );
            // The module is declared at the end, where it moves no mutant.
            let declaration = if source.name == library(plan) {
                MODULE
            } else {
                ""
            };
            let text = format!("{}{declaration}", source.rendered.text);
            write_if_changed(&plan.scratch.join(&source.name), text.as_bytes())?;
        }
        let (programs, errors) = build_tests(plan)?;
        if errors.is_empty() {
            return Ok(programs);
        }
        let mut excluded = 0;
        for error in &errors {
            excluded += usize::from(exclude_culprit(error, sources));
        }
        save_exclusions(&saved, sources)?;
        log(&format!(
            "build {build}: {} errors, {excluded} mutants excluded",
            errors.len()
        ));
        if excluded == 0 {
            let shown = errors.iter().filter_map(|error| error["rendered"].as_str());
            bail!(
                "the copy does not compile:\n{}",
                shown.take(5).collect::<String>()
            );
        }
    }
    bail!("the copy still does not compile after {MAX_BUILDS} builds")
}

/// Writes all files of the copy that have no mutants. The workspace contains only this crate and those of the repository
/// that it depends on, so that nothing else is built.
fn write_unchanged_files(plan: &MutationPlan, mutated: &BTreeSet<String>) -> Result<()> {
    let manifest = fs::read_to_string(plan.root.join("Cargo.toml"))?;
    let (before, rest) = manifest
        .split_once("members = [")
        .context("the workspace has no members")?;
    let (_, after) = rest
        .split_once(']')
        .context("the list of members has no end")?;
    let manifest = format!("{before}members = [\"{}\"]{after}", plan.krate);
    write_if_changed(&plan.scratch.join("Cargo.toml"), manifest.as_bytes())?;
    if !plan.scratch.join("Cargo.lock").exists() {
        fs::copy(
            plan.root.join("Cargo.lock"),
            plan.scratch.join("Cargo.lock"),
        )?;
    }
    for folder in local_dependencies(plan, &manifest)? {
        copy_folder(plan, &folder)?;
    }
    let mut wanted = BTreeSet::new();
    list_files(&plan.root, Path::new(&plan.krate), &mut wanted)?;
    let (lib, switch) = (library(plan), format!("{}/src/mutant.rs", plan.krate));
    for name in &wanted {
        let mut bytes = fs::read(plan.root.join(name))?;
        if *name == lib {
            bytes.extend_from_slice(MODULE.as_bytes());
        }
        if !mutated.contains(name) {
            write_if_changed(&plan.scratch.join(name), &bytes)?;
        }
    }
    write_if_changed(&plan.scratch.join(&switch), SWITCH.as_bytes())?;
    wanted.insert(switch);
    remove_others(plan, &plan.krate, &wanted)
}

/// The folders of the crates in the repository that the mutated crate depends on, directly or not.
fn local_dependencies(plan: &MutationPlan, workspace: &str) -> Result<BTreeSet<String>> {
    let mut folders = BTreeMap::new();
    for line in workspace.lines() {
        if let Some((name, rest)) = line.split_once(" = { path = \"")
            && let Some((folder, _)) = rest.split_once('"')
        {
            folders.insert(name, folder.to_owned());
        }
    }
    let mut found = BTreeSet::new();
    let mut waiting = vec![plan.krate.clone()];
    while let Some(folder) = waiting.pop() {
        let manifest = fs::read_to_string(plan.root.join(&folder).join("Cargo.toml"))?;
        for line in manifest.lines() {
            let name = line.split(['.', ' ']).next().unwrap_or_default();
            if let Some(dependency) = folders.get(name)
                && found.insert(dependency.clone())
            {
                waiting.push(dependency.clone());
            }
        }
    }
    Ok(found)
}

/// Copies a folder as it is, over what an earlier run has left there.
fn copy_folder(plan: &MutationPlan, folder: &str) -> Result<()> {
    let mut wanted = BTreeSet::new();
    list_files(&plan.root, Path::new(folder), &mut wanted)?;
    for name in &wanted {
        write_if_changed(&plan.scratch.join(name), &fs::read(plan.root.join(name))?)?;
    }
    remove_others(plan, folder, &wanted)
}

/// Removes the files of a copied folder that are not wanted.
fn remove_others(plan: &MutationPlan, folder: &str, wanted: &BTreeSet<String>) -> Result<()> {
    let mut there = BTreeSet::new();
    list_files(&plan.scratch, Path::new(folder), &mut there)?;
    for gone in there.difference(wanted) {
        fs::remove_file(plan.scratch.join(gone))?;
    }
    Ok(())
}

/// The root module of the crate.
fn library(plan: &MutationPlan) -> String {
    format!("{}/src/lib.rs", plan.krate)
}

/// Writes a file unless it has these bytes already, because Cargo compiles every file again that was written.
fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn build_tests(plan: &MutationPlan) -> Result<(Vec<TestProgram>, Vec<Value>)> {
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
        let diagnostic = &message["message"];
        if diagnostic["level"] == "error"
            && diagnostic["spans"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        {
            errors.push(diagnostic.clone());
        }
    }
    if !output.status.success() && errors.is_empty() {
        bail!(
            "`{} test --no-run` fails in {}; run it there to see why",
            plan.cargo,
            plan.scratch.display()
        );
    }
    let program = |(name, path)| TestProgram { name, path };
    Ok((programs.into_iter().map(program).collect(), errors))
}

/// Excludes the mutant that a compiler error points at. Returns false if there is none, or if it was excluded already.
fn exclude_culprit(error: &Value, sources: &mut [MutatedFile]) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    if error["code"]["code"] == "E0015" {
        let path = message.split('`').nth(1).unwrap_or_default();
        let name = path.rsplit("::").next().unwrap_or_default().to_owned();
        // The function is called in a constant, so it has to stay `const` and gets no mutants.
        if !["on", "flip", "pick"].contains(&name.as_str()) {
            let mut is_new = false;
            for source in sources.iter_mut() {
                is_new |= source.excluded.const_functions.insert(name.clone());
            }
            return is_new;
        }
    }
    let mut places = Vec::new();
    collect_spans(error, &mut places);
    // Primary spans come before those that the compiler only mentions.
    places.sort_by_key(|(primary, ..)| !primary);
    for (_, file, range) in places {
        let Some(source) = sources.iter_mut().find(|source| source.name == file) else {
            continue;
        };
        let around = source.rendered.mutant_ranges.iter();
        let around = around.filter(|(at, _)| at.start <= range.start && range.end <= at.end);
        if let Some((_, mutant)) = around.min_by_key(|(at, _)| at.len()) {
            return source.excluded.mutants.insert(*mutant);
        }
    }
    false
}

/// Adds the primary and secondary spans of an error and its notes, each with its file.
fn collect_spans(error: &Value, places: &mut Vec<(bool, String, Range<usize>)>) {
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
        collect_spans(&child, places);
    }
}
