//! Files that attack their parser, read by real child processes among good neighbours. This binary is also the
//! child, so that it has a `main` of its own instead of the compiler's.
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
            // One after the other: tests look at the children of this process and at the memory they took.
            let mut arguments = Arguments::from_args();
            arguments.test_threads = Some(1);
            // The set first: its children's memory is measured, and one misbehaviour takes all it may have.
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

/// Children that are this binary in one of its other modes.
fn sandbox(mode: &str) -> SandboxConfig {
    SandboxConfig::of_this_program(mode).unwrap()
}

/// A folder that is removed at the end of a test.
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

    /// What every file gave, in the order of their names: `name` or `name:code`.
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

/// A good e-mail, which a child must read.
fn mail(text: &str) -> String {
    format!(
        "From: Kerrin Vale <kerrin@tarnport.example>\nDate: Tue, 12 Mar 2024 10:30:00 +0000\n\
         Subject: Ferry\nMessage-ID: <1@tarnport.example>\n\n{text}\n"
    )
}
