//! Entry point of the `docent` program. All logic is in the library of the same name.

use std::process::ExitCode;

// Importing the crate links its `memcpy`, which replaces the slower one of musl.
use docent_memory as _;

fn main() -> ExitCode {
    // A parser process enters its sandbox before it opens a file or starts a thread: it reads untrusted documents.
    let first = std::env::args_os().nth(1);
    if first.is_some_and(|first| first == docent::corpus::PARSER) {
        return docent_ingest::serve_parser();
    }
    docent::main()
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
