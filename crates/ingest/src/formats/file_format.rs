//! The declaration of a format: its name, how it is recognized and how it is parsed.

use std::io::Read;

use cap_std::fs::File;

use crate::error::IngestError;
use crate::formats::package::PackageFormat;
use crate::parser::{ParsedFile, ParserInput};

/// One format: how to recognize it and how to parse it. Everything that depends on the format of a file is a field here,
/// so that whoever adds one cannot overlook anything.
#[derive(Debug)]
pub(crate) struct FileFormat {
    /// The name of the format in the protocol of parser processes and in outcomes.
    pub name: &'static str,
    /// The name of its files in reports, where an extension says more to the owner than the name of the format.
    pub kind: &'static str,
    /// Extensions in lower case, without the dot; an empty string stands for a name without an extension.
    /// They decide only for files that no signature identified.
    pub extensions: &'static [&'static str],
    /// Whether the first [`HEAD_BYTES`](crate::parser::HEAD_BYTES) of a file identify the format, whatever the name is.
    pub has_signature: fn(&[u8]) -> bool,
    /// Parses a whole file. The parser is a pure function from bytes to documents, so that it can run in a
    /// sandboxed process unchanged.
    pub parse: FileParser,
    /// Parses a file as a stream, so that it may be of any length. Only lists of records have such a parser: each record
    /// is complete in itself, while other formats have to be known as a whole before the first text can be rendered.
    pub stream: Option<StreamParser>,
    /// Whether files are parsed in the server process: the parser is our own code and bounds everything that it does.
    /// All others are parsed in a sandboxed child process.
    pub is_trusted: bool,
    /// For a container, what tells the kind of its content.
    pub kind_inside: Option<KindDetector>,
    /// The formats that share this one's signature, which the parts of a package tell apart.
    pub packages: &'static [PackageFormat],
}

impl FileFormat {
    /// All extensions of the format, those of its packages too.
    pub(crate) fn all_extensions(&self) -> impl Iterator<Item = &'static str> {
        let packages = self.packages.iter().flat_map(|package| package.extensions);
        self.extensions.iter().chain(packages).copied()
    }
}

/// Tells the kind of what is inside a container, from the file and its head.
pub(crate) type KindDetector = fn(&File, &[u8]) -> Option<&'static str>;

/// A parser that receives the whole content of a file.
pub(crate) type FileParser = fn(&ParserInput<'_>) -> Result<ParsedFile, IngestError>;

/// A parser that consumes a file as a stream.
pub(crate) type StreamParser =
    fn(&ParserInput<'_>, &mut dyn Read) -> Result<ParsedFile, IngestError>;

/// The signature check of plain text formats, which have none.
pub(crate) fn no_signature(_head: &[u8]) -> bool {
    false
}
