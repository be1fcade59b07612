//! Hostile files between harmless ones, parsed by real child processes. The binary also serves as the child
//! process, so it has its own `main` instead of the test harness.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a child that prints is one of the tests"
)]
#![expect(
    clippy::too_many_lines,
    reason = "a table of files is as long as it is"
)]
#![expect(
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed test panics"
)]

mod files;
mod golden;
mod misbehave;
mod set;
mod structure;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use docent_ingest::{FolderSource, Limits, ParserPool, SandboxConfig};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mode = std::env::args().nth(1).unwrap_or_default();
    match mode.as_str() {
        "__parse" => docent_ingest::serve_parser(),
        "__misbehave" => docent_ingest::serve_parser_after(&misbehave::happen),
        "__nonsense" => misbehave::talk_nonsense(),
        "__write" => {
            let folder = std::env::args_os().nth(2).unwrap();
            files::write(folder.as_ref())
        }
        "__parent" => misbehave::parent(),
        _ => {
            // Run the tests one after the other, because they inspect this process's children and their
            // memory.
            let mut arguments = Arguments::from_args();
            arguments.test_threads = Some(1);
            // The set runs first: its children's peak memory is measured, and one of the misbehaving
            // children uses all it may have.
            let trials = [
                set::trials(),
                golden::trials(),
                structure::trials(),
                misbehave::trials(),
            ];
            libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
        }
    }
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Child processes that run this binary in another mode.
fn sandbox(mode: &str) -> SandboxConfig {
    SandboxConfig::of_this_program(mode).unwrap()
}

/// A temporary folder that is removed at the end of a test.
struct HostileFolder(tempfile::TempDir);

impl HostileFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path(relative), content).unwrap();
        self
    }

    /// The outcome of every file in name order, as `name` or `name:code`.
    fn read(&self, limits: &Limits, workers: &Arc<ParserPool>) -> Vec<String> {
        let source = FolderSource::open(self.0.path(), limits.clone()).unwrap();
        let source = source.with_workers(workers.clone());
        let listing = source.list();
        let read = |entry| match source.read(entry) {
            Ok(_) => entry.path().to_owned(),
            Err(reason) => format!("{}:{}", entry.path(), reason.code()),
        };
        listing.entries.iter().map(read).collect()
    }
}

/// A well-formed e-mail, which only a child parses.
fn mail(text: &str) -> String {
    format!(
        "From: Kerrin Vale <kerrin@tarnport.example>\nDate: Tue, 12 Mar 2024 10:30:00 +0000\n\
         Subject: Ferry\nMessage-ID: <1@tarnport.example>\n\n{text}\n"
    )
}
