//! Every hostile file by name, with what must become of it. All are built here, the same each time.

mod archives;
pub(crate) mod craft;
mod mails;
mod office;
mod pdfs;
mod texts;
mod webpages;

use std::path::Path;
use std::process::ExitCode;

/// What must become of a file.
#[derive(Debug, Clone, Copy)]
enum Expect {
    /// It is read, into so many documents.
    Documents(usize),
    /// It is refused with this code.
    Code(&'static str),
    /// It is read or refused, in the same way each time: parsers of other people may change their mind from
    /// one release to the next, and all we ask of them is an end.
    Either,
}

/// A file that should do no harm.
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

/// Writes every file into a folder and tells on stdout what must become of it. A process of its own does this:
/// the system counts the memory of whoever starts a child as the child's, and this takes a lot.
pub(crate) fn write(folder: &Path) -> ExitCode {
    for (number, hostile) in all().iter().enumerate() {
        // Spread over the neighbours, which are two for each.
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
