//! The `docent` program: everything it does is in the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    docent::main()
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
