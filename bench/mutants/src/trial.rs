//! Which tests reach which mutants, and whether they notice them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::tree::Program;

/// Tests that take less go first, together.
const QUICK: Duration = Duration::from_millis(300);
/// A mutant may ask for memory without end. In KiB of addresses, so with room for what is never touched.
const MAX_MEMORY: u64 = 8 * 1024 * 1024;

/// One test of one program.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    program: usize,
    name: String,
    took: Duration,
    reaches: BTreeSet<usize>,
}

/// How a mutant fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A test failed.
    Killed,
    /// The tests did not come to an end.
    Hung,
    /// All tests passed.
    Survived,
    /// No test comes to the place.
    Unreached,
}

/// Runs programs of tests.
pub(crate) struct Trial {
    programs: Vec<Program>,
    /// Where tests run, as under cargo.
    pub(crate) folder: PathBuf,
    /// What is thrown away after each run.
    pub(crate) temporary: PathBuf,
    /// The least time for a group of tests.
    pub(crate) patience: Duration,
}

impl Trial {
    pub(crate) const fn new(
        programs: Vec<Program>,
        folder: PathBuf,
        temporary: PathBuf,
        patience: Duration,
    ) -> Self {
        Self {
            programs,
            folder,
            temporary,
            patience,
        }
    }

    /// Copies the programs aside, so that a build in the meantime changes nothing.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let folder = self.temporary.join("programs");
        fs::create_dir_all(&folder)?;
        for program in &mut self.programs {
            let aside = folder.join(format!("{}-{}", program.name, std::process::id()));
            fs::copy(&program.path, &aside)?;
            program.path = aside;
        }
        Ok(())
    }

    /// Runs each test alone, to learn how long it takes and what it reaches. Unit tests count whose name begins
    /// with one of `units`.
    pub(crate) fn survey(
        &self,
        units: &[String],
        library: &str,
        say: &dyn Fn(&str),
    ) -> Result<Vec<Test>> {
        let mut tests = Vec::new();
        for (program, at) in self.programs.iter().enumerate() {
            let output = Command::new(&at.path)
                .arg("--list")
                .current_dir(&self.folder)
                .output()?;
            let listed = String::from_utf8_lossy(&output.stdout).into_owned();
            let names: Vec<_> = listed
                .lines()
                .filter_map(|line| line.strip_suffix(": test"))
                .filter(|name| {
                    at.name != library || units.iter().any(|unit| name.starts_with(unit))
                })
                .collect();
            say(&format!("{}: {} tests", at.name, names.len()));
            for name in names {
                tests.push(self.alone(program, name)?);
            }
        }
        tests.sort_by_key(|test| (test.program, test.took));
        Ok(tests)
    }

    fn alone(&self, program: usize, name: &str) -> Result<Test> {
        let at = self.programs.get(program).context("a program")?;
        let folder = self.temporary.join("survey");
        fs::create_dir_all(&folder)?;
        let list = folder.join("reached");
        let begun = Instant::now();
        let mut command = self.command(&at.path, &folder);
        command
            .env("DOCENT_MUTANTS_REACHED", &list)
            .args(["--exact", name]);
        let limit = self.patience * 10;
        let fate = ended(command.spawn()?, limit)?;
        let took = begun.elapsed();
        let reached = fs::read_to_string(&list).unwrap_or_default();
        fs::remove_dir_all(&folder)?;
        if fate != Fate::Survived {
            bail!("the test `{name}` fails without a mutant: {fate:?}");
        }
        Ok(Test {
            program,
            name: name.to_owned(),
            took,
            reaches: reached
                .lines()
                .filter_map(|line| line.parse().ok())
                .collect(),
        })
    }

    fn command(&self, program: &Path, temporary: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -v {MAX_MEMORY}; exec \"$0\" \"$@\""))
            .arg(program)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("TMPDIR", temporary)
            .env("RUST_BACKTRACE", "0")
            .env_remove("DOCENT_MUTANT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    /// Runs the tests that reach each mutant, `jobs` mutants at a time.
    pub(crate) fn all(
        &self,
        mutants: &[usize],
        tests: &[Test],
        jobs: usize,
        say: &(dyn Fn(usize, Fate) + Sync),
    ) -> Result<BTreeMap<usize, Fate>> {
        let (next, fates) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let work = |job: usize| -> Result<()> {
            while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                let fate = self.one(*mutant, tests, job)?;
                say(*mutant, fate);
                if let Ok(mut fates) = fates.lock() {
                    fates.insert(*mutant, fate);
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs)
                .map(|job| scope.spawn(move || work(job)))
                .collect();
            for thread in threads {
                match thread.join() {
                    Ok(done) => done?,
                    Err(_) => bail!("a thread of the trial failed"),
                }
            }
            Ok(())
        })?;
        fates
            .into_inner()
            .ok()
            .context("a thread of the trial failed")
    }

    fn one(&self, mutant: usize, tests: &[Test], job: usize) -> Result<Fate> {
        let mut groups: BTreeMap<(bool, usize), Vec<&Test>> = BTreeMap::new();
        for test in tests.iter().filter(|test| test.reaches.contains(&mutant)) {
            groups
                .entry((test.took > QUICK, test.program))
                .or_default()
                .push(test);
        }
        let mut fate = Fate::Unreached;
        for ((_, program), group) in groups {
            let at = self.programs.get(program).context("a program")?;
            let folder = self.temporary.join(format!("job-{job}"));
            fs::create_dir_all(&folder)?;
            let mut command = self.command(&at.path, &folder);
            command
                .env("DOCENT_MUTANT", mutant.to_string())
                .args(["--exact", "--test-threads", "2"])
                .args(group.iter().map(|test| &test.name));
            let usual: Duration = group.iter().map(|test| test.took).sum();
            fate = ended(command.spawn()?, self.patience + usual * 5)?;
            // What a killed process leaves behind may still be written to by nobody.
            let _ = fs::remove_dir_all(&folder);
            if fate != Fate::Survived {
                break;
            }
        }
        Ok(fate)
    }
}

/// Waits until the tests are done, one of them has failed, or the time is up.
fn ended(mut child: Child, limit: Duration) -> Result<Fate> {
    let until = Instant::now() + limit;
    let stdout = child.stdout.take().context("no output")?;
    let (told, heard) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("test ") && line.ends_with("FAILED") {
                // Nobody listens any more where the time was up.
                let _ = told.send(());
                return;
            }
        }
    });
    let left = until.saturating_duration_since(Instant::now());
    let mut fate = match heard.recv_timeout(left) {
        Ok(()) => Fate::Killed,
        Err(RecvTimeoutError::Timeout) => Fate::Hung,
        Err(RecvTimeoutError::Disconnected) => Fate::Survived,
    };
    if fate == Fate::Survived {
        fate = loop {
            if let Some(status) = child.try_wait()? {
                break if status.success() {
                    Fate::Survived
                } else {
                    Fate::Killed
                };
            }
            if Instant::now() > until {
                break Fate::Hung;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
    }
    // It may have ended by itself in the meantime.
    let _ = child.kill();
    child.wait()?;
    let _ = reader.join();
    Ok(fate)
}
