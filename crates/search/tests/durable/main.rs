//! Whatever ends the process or changes the files, what was acknowledged is there afterwards, once and
//! as it was, and nothing else is.

mod faults;
mod kills;
mod mutations;
mod world;
