//! The hostile files by name, with the expected outcome of each. All are generated deterministically.

mod archives;
pub(crate) mod craft;
mod mails;
mod office;
mod pdfs;
mod texts;
mod webpages;

use std::path::Path;
use std::process::ExitCode;

/// The expected outcome of a file.
#[derive(Debug, Clone, Copy)]
enum Expect {
    /// The file is read into this many documents.
    Documents(usize),
    /// The file is rejected with this code.
    Code(&'static str),
    /// The file is read or rejected, the same way each time. Third-party parsers may change their behaviour
    /// between releases, so all we ask of them is to terminate.
    Either,
}

/// A hostile file with its expected outcome.
struct Hostile {
    name: String,
    bytes: Vec<u8>,
    expect: Expect,
}

impl Hostile {
    fn new(name: &str, bytes: impl Into<Vec<u8>>, expect: Expect) -> Self {
        Self {
            name: name.to_owned(),
            bytes: bytes.into(),
            expect,
        }
    }
}

fn all() -> Vec<Hostile> {
    [
        archives::all(),
        office::all(),
        webpages::all(),
        pdfs::all(),
        mails::all(),
        texts::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Writes every file into a folder and prints the expected outcomes to stdout. This runs in a process of
/// its own because it needs a lot of memory, and the system counts the memory of a parent at the time of
/// the fork as the child's.
pub(crate) fn write(folder: &Path) -> ExitCode {
    for (number, hostile) in all().iter().enumerate() {
        // Interleaved with the harmless files, two of which come between each.
        let name = format!("{:03}-{}", number * 2, hostile.name);
        std::fs::write(folder.join(&name), &hostile.bytes).unwrap();
        let expect = match hostile.expect {
            Expect::Documents(count) => format!("{count} documents"),
            Expect::Code(code) => code.to_owned(),
            Expect::Either => String::new(),
        };
        println!("{name}\t{expect}");
    }
    ExitCode::SUCCESS
}
