//! Runs the tests: once without mutants, to learn which mutants each test reaches, and then for each mutant the tests
//! that reach it.

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

use crate::crate_copy::TestProgram;

/// Tests that take less than this run first, in one process.
const QUICK_TEST_LIMIT: Duration = Duration::from_millis(300);
/// The address space of a test process in KiB, because a mutant may allocate without end. It is larger than the memory
/// that tests need, because it counts reserved addresses too.
const MAX_ADDRESS_SPACE_KIB: u64 = 8 * 1024 * 1024;

/// A test, with its usual duration and the mutants that it reaches.
#[derive(Debug, Clone)]
pub(crate) struct TestCase {
    program: usize,
    name: String,
    duration: Duration,
    reaches: BTreeSet<usize>,
}

/// The result of running the tests on a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MutantOutcome {
    Killed,
    /// The tests did not end in time.
    TimedOut,
    Survived,
    /// No test reaches the mutant.
    NotReached,
}

/// Runs the test programs and evaluates their results.
pub(crate) struct TestRunner {
    programs: Vec<TestProgram>,
    /// The working directory of tests: the folder of the crate, as with Cargo.
    pub(crate) folder: PathBuf,
    /// The folder for temporary files, which are deleted after each test process.
    pub(crate) temporary: PathBuf,
    /// The time that a group of tests may take in addition to five times its usual duration.
    pub(crate) grace_period: Duration,
}

impl TestRunner {
    pub(crate) const fn new(
        programs: Vec<TestProgram>,
        folder: PathBuf,
        temporary: PathBuf,
        grace_period: Duration,
    ) -> Self {
        Self {
            programs,
            folder,
            temporary,
            grace_period,
        }
    }

    /// Copies the programs, so that a concurrent build does not replace them.
    pub(crate) fn copy_programs(&mut self) -> Result<()> {
        let folder = self.temporary.join("programs");
        fs::create_dir_all(&folder)?;
        for program in &mut self.programs {
            let copy = folder.join(format!("{}-{}", program.name, std::process::id()));
            fs::copy(&program.path, &copy)?;
            program.path = copy;
        }
        Ok(())
    }

    /// Runs each test alone and records its duration and the mutants that it reaches. Of the unit tests, only those run
    /// whose name begins with one of `units`.
    pub(crate) fn measure_tests(
        &self,
        units: &[String],
        library: &str,
        log: &dyn Fn(&str),
    ) -> Result<Vec<TestCase>> {
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
            log(&format!("{}: {} tests", at.name, names.len()));
            for name in names {
                tests.push(self.measure_test(program, name)?);
            }
        }
        tests.sort_by_key(|test| (test.program, test.duration));
        Ok(tests)
    }

    fn measure_test(&self, program: usize, name: &str) -> Result<TestCase> {
        let at = self.programs.get(program).context("a program")?;
        let folder = self.temporary.join("measure");
        fs::create_dir_all(&folder)?;
        let list = folder.join("reached");
        let started = Instant::now();
        let mut command = self.command(&at.path, &folder);
        command
            .env("DOCENT_MUTANTS_REACHED", &list)
            .args(["--exact", name]);
        let limit = self.grace_period * 10;
        let outcome = wait_for_outcome(command.spawn()?, limit)?;
        let duration = started.elapsed();
        let reached = fs::read_to_string(&list).unwrap_or_default();
        fs::remove_dir_all(&folder)?;
        if outcome != MutantOutcome::Survived {
            bail!("the test `{name}` fails without a mutant: {outcome:?}");
        }
        Ok(TestCase {
            program,
            name: name.to_owned(),
            duration,
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
            .arg(format!(
                "ulimit -v {MAX_ADDRESS_SPACE_KIB}; exec \"$0\" \"$@\""
            ))
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
    pub(crate) fn test_mutants(
        &self,
        mutants: &[usize],
        tests: &[TestCase],
        jobs: usize,
        report: &(dyn Fn(usize, MutantOutcome) + Sync),
    ) -> Result<BTreeMap<usize, MutantOutcome>> {
        let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let work = |job: usize| -> Result<()> {
            while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcome = self.test_mutant(*mutant, tests, job)?;
                report(*mutant, outcome);
                if let Ok(mut outcomes) = outcomes.lock() {
                    outcomes.insert(*mutant, outcome);
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
                    Err(_) => bail!("a test thread panicked"),
                }
            }
            Ok(())
        })?;
        outcomes.into_inner().ok().context("a test thread panicked")
    }

    fn test_mutant(&self, mutant: usize, tests: &[TestCase], job: usize) -> Result<MutantOutcome> {
        let mut groups: BTreeMap<(bool, usize), Vec<&TestCase>> = BTreeMap::new();
        for test in tests.iter().filter(|test| test.reaches.contains(&mutant)) {
            groups
                .entry((test.duration > QUICK_TEST_LIMIT, test.program))
                .or_default()
                .push(test);
        }
        let mut outcome = MutantOutcome::NotReached;
        for ((_, program), group) in groups {
            let at = self.programs.get(program).context("a program")?;
            let folder = self.temporary.join(format!("job-{job}"));
            fs::create_dir_all(&folder)?;
            let mut command = self.command(&at.path, &folder);
            command
                .env("DOCENT_MUTANT", mutant.to_string())
                .args(["--exact", "--test-threads", "2"])
                .args(group.iter().map(|test| &test.name));
            let usual: Duration = group.iter().map(|test| test.duration).sum();
            outcome = wait_for_outcome(command.spawn()?, self.grace_period + usual * 5)?;
            // A killed process may have left files that cannot be deleted, which does no harm.
            let _ = fs::remove_dir_all(&folder);
            if outcome != MutantOutcome::Survived {
                break;
            }
        }
        Ok(outcome)
    }
}

/// Waits until all tests have passed, one of them has failed, or the time limit is reached. Then it ends the process.
fn wait_for_outcome(mut child: Child, limit: Duration) -> Result<MutantOutcome> {
    let deadline = Instant::now() + limit;
    let stdout = child.stdout.take().context("no output")?;
    let (sender, receiver) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("test ") && line.ends_with("FAILED") {
                // The receiver is gone if the time limit was reached.
                let _ = sender.send(());
                return;
            }
        }
    });
    let left = deadline.saturating_duration_since(Instant::now());
    let mut outcome = match receiver.recv_timeout(left) {
        Ok(()) => MutantOutcome::Killed,
        Err(RecvTimeoutError::Timeout) => MutantOutcome::TimedOut,
        Err(RecvTimeoutError::Disconnected) => MutantOutcome::Survived,
    };
    if outcome == MutantOutcome::Survived {
        outcome = loop {
            if let Some(status) = child.try_wait()? {
                break if status.success() {
                    MutantOutcome::Survived
                } else {
                    MutantOutcome::Killed
                };
            }
            if Instant::now() > deadline {
                break MutantOutcome::TimedOut;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
    }
    // An error means that the process has ended already.
    let _ = child.kill();
    child.wait()?;
    let _ = reader.join();
    Ok(outcome)
}
