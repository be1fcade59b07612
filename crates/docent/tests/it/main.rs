//! The contract of the program: the tools through the real router, and the real process.

mod cli;
mod contract;
mod process;
mod serving;
