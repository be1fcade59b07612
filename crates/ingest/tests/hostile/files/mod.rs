//! Every hostile file by name, with what must become of it. All are built here, the same each time.

mod archives;
mod craft;
mod mails;
mod office;
mod pdfs;
mod texts;
mod webpages;

/// What must become of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// It is read, into so many documents.
    Documents(usize),
    /// It is refused with this code.
    Code(&'static str),
    /// It is read or refused, in the same way each time: parsers of other people may change their mind from
    /// one release to the next, and all we ask of them is an end.
    Either,
}

/// A file that should do no harm.
pub(crate) struct Hostile {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expect: Expect,
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

pub(crate) fn all() -> Vec<Hostile> {
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
