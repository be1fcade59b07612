//! Named moments of writing at which a test can end the process or have the disk refuse.
//!
//! `DOCENT_FAULT=ledger@3=abort` ends the process at the third passing of the moment `ledger`, and
//! `ledger=error` makes every passing fail as a full disk does. Only builds with debug assertions
//! look at it; in others nothing is left of this file.

use std::io;

/// Every moment there is, so that a test can go through them.
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

/// Passes a moment.
#[cfg(not(debug_assertions))]
pub(crate) fn pass(_name: &str) -> io::Result<()> {
    Ok(())
}

/// Passes a moment.
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
    /// Which passing; nothing for all of them.
    at: Option<usize>,
    aborts: bool,
    passed: std::sync::atomic::AtomicUsize,
}

#[cfg(debug_assertions)]
impl InjectedFault {
    fn parse(text: &str) -> Option<Self> {
        let (place, action) = text.split_once('=')?;
        let (name, at) = match place.split_once('@') {
            Some((name, at)) => (name, Some(at.parse().ok()?)),
            None => (place, None),
        };
        Some(Self {
            name: name.to_owned(),
            at,
            aborts: action == "abort",
            passed: std::sync::atomic::AtomicUsize::new(0),
        })
    }

    fn is_due(&self) -> bool {
        let passed = 1 + self
            .passed
            .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.at.is_none_or(|at| at == passed)
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
    fn a_fault_strikes_when_it_is_due() {
        let third = InjectedFault::parse("ledger@3=error").unwrap();
        let struck: Vec<bool> = (0..4).map(|_| third.is_due()).collect();
        assert_eq!(struck, [false, false, true, false]);
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
