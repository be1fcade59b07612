//! Fault injection: named failpoints of the write path at which a test can crash the process or fail the disk.
//!
//! `DOCENT_FAULT=ledger@3=abort` aborts the process when it reaches the failpoint `ledger` for the third time, and
//! `ledger=error` makes it fail every time as a full disk does. Only builds with debug assertions read the
//! variable; in release builds the calls compile to nothing.

use std::io;

/// All failpoints, so that a test can iterate over them.
pub const POINTS: [&str; 8] = [
    "ledger",
    "ledger-written",
    "words-staged",
    "words-announced",
    "words-named",
    "vectors-written",
    "vectors-prepared",
    "vectors-named",
];

/// Does nothing in release builds, so that the failpoint costs nothing.
#[cfg(not(debug_assertions))]
pub(crate) fn pass(_name: &str) -> io::Result<()> {
    Ok(())
}

/// Triggers the injected fault if it is armed for this failpoint and due.
#[cfg(debug_assertions)]
pub(crate) fn pass(name: &str) -> io::Result<()> {
    debug_assert!(POINTS.contains(&name), "{name}");
    match armed().filter(|fault| fault.name == name) {
        Some(fault) if fault.is_due() => fault.trigger(),
        _ => Ok(()),
    }
}

#[cfg(debug_assertions)]
struct InjectedFault {
    name: String,
    /// Which time the fault triggers; `None` for every time.
    at: Option<usize>,
    aborts: bool,
    hits: std::sync::atomic::AtomicUsize,
}

#[cfg(debug_assertions)]
impl InjectedFault {
    fn parse(text: &str) -> Option<Self> {
        let (failpoint, action) = text.split_once('=')?;
        let (name, at) = match failpoint.split_once('@') {
            Some((name, at)) => (name, Some(at.parse().ok()?)),
            None => (failpoint, None),
        };
        Some(Self {
            name: name.to_owned(),
            at,
            aborts: action == "abort",
            hits: std::sync::atomic::AtomicUsize::new(0),
        })
    }

    fn is_due(&self) -> bool {
        let hits = 1 + self.hits.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.at.is_none_or(|at| at == hits)
    }

    fn trigger(&self) -> io::Result<()> {
        if self.aborts {
            std::process::abort();
        }
        Err(io::ErrorKind::StorageFull.into())
    }
}

#[cfg(debug_assertions)]
fn armed() -> Option<&'static InjectedFault> {
    static ARMED: std::sync::OnceLock<Option<InjectedFault>> = std::sync::OnceLock::new();
    let read = || InjectedFault::parse(&std::env::var("DOCENT_FAULT").ok()?);
    ARMED.get_or_init(read).as_ref()
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn a_fault_triggers_when_it_is_due() {
        let third = InjectedFault::parse("ledger@3=error").unwrap();
        let triggered: Vec<bool> = (0..4).map(|_| third.is_due()).collect();
        assert_eq!(triggered, [false, false, true, false]);
        let every = InjectedFault::parse("words-named=error").unwrap();
        assert!(every.is_due() && every.is_due());
        assert_eq!(
            every.trigger().unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert!(InjectedFault::parse("ledger").is_none());
        assert!(InjectedFault::parse("ledger@x=abort").is_none());
    }
}
