//! `memcpy` and `memmove` for the static x86-64 program, in place of those of musl.
//!
//! musl's `memcpy` for x86-64 is one `rep movs` instruction, whose startup takes longer than most copies of a search:
//! a search makes about 450, half of them of fewer than 128 bytes, and they were a ninth of its time. Programs that are
//! linked with another C library keep its functions. A dependency on this crate is enough to link it.

#![no_std]

#[cfg(all(target_arch = "x86_64", any(target_env = "musl", test)))]
mod copy;
