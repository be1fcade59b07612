//! The switch that turns one mutant on while tests run. This file is added to the crate under test, and every mutant in
//! it calls one of these functions.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The number of the mutant that is on; zero if none is.
static ACTIVE_MUTANT: LazyLock<u32> = LazyLock::new(|| {
    let id = std::env::var("DOCENT_MUTANT").ok();
    id.and_then(|id| id.parse().ok()).unwrap_or(0)
});

/// The mutants that ran in this process, and the file that lists them.
type ReachedMutants = Mutex<(BTreeSet<u32>, File)>;

static REACHED: LazyLock<Option<ReachedMutants>> = LazyLock::new(|| {
    let path = std::env::var_os("DOCENT_MUTANTS_REACHED")?;
    let file = OpenOptions::new().create(true).append(true).open(path);
    Some(Mutex::new((BTreeSet::new(), file.ok()?)))
});

/// True if this mutant is on. Records that the code of the mutant was reached.
pub(crate) fn on(id: u32) -> bool {
    if let Some(reached) = REACHED.as_ref() {
        let mut reached = reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.0.insert(id) {
            let _ = writeln!(reached.1, "{id}");
        }
    }
    *ACTIVE_MUTANT == id
}

/// The value, or its negation if the mutant is on.
pub(crate) fn flip(id: u32, value: bool) -> bool {
    on(id) != value
}

/// The value of a match guard, or `true` or `false` if one of its two mutants is on.
pub(crate) fn pick(always: u32, never: u32, value: bool) -> bool {
    let (always, never) = (on(always), on(never));
    always || (value && !never)
}
