//! The contract of the kit, over real sockets, in process and on pipes.

mod defects;
mod protocol;
mod server;
mod stdio;
mod streams;
