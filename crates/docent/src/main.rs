//! The `docent` program: everything it does is in the library of the same name.

use std::process::ExitCode;

// Named, so that it is linked.
use docent_memory as _;

fn main() -> ExitCode {
    // A process that reads untrusted files shuts itself in before anything else is opened or started.
    let first = std::env::args_os().nth(1);
    if first.is_some_and(|first| first == docent::corpus::PARSER) {
        return docent_ingest::serve_parser();
    }
    docent::main()
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
