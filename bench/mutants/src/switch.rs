//! Which mutant is on. This file is put into the crate under test; every mutant asks it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

static ON: LazyLock<u32> = LazyLock::new(|| {
    let id = std::env::var("DOCENT_MUTANT").ok();
    id.and_then(|id| id.parse().ok()).unwrap_or(0)
});

type Reached = Mutex<(BTreeSet<u32>, File)>;

static REACHED: LazyLock<Option<Reached>> = LazyLock::new(|| {
    let path = std::env::var_os("DOCENT_MUTANTS_REACHED")?;
    let file = OpenOptions::new().create(true).append(true).open(path);
    Some(Mutex::new((BTreeSet::new(), file.ok()?)))
});

/// True when this mutant is to be what runs.
pub(crate) fn on(id: u32) -> bool {
    if let Some(reached) = REACHED.as_ref() {
        let mut reached = reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.0.insert(id) {
            let _ = writeln!(reached.1, "{id}");
        }
    }
    *ON == id
}

/// A truth value, or its opposite.
pub(crate) fn flip(id: u32, value: bool) -> bool {
    on(id) != value
}

/// A truth value, or always this one, or always that one.
pub(crate) fn pick(always: u32, never: u32, value: bool) -> bool {
    let (always, never) = (on(always), on(never));
    always || (value && !never)
}
