//! How a login went, step by step.

use super::super::{Fault, Seen, Verdict};
use crate::survey::{Login, Step};

fn logged(seen: &Seen, judge: impl Fn(&Login) -> Verdict) -> Verdict {
    match &seen.login {
        Some(login) => judge(login),
        None => {
            Verdict::Skipped("a login is tried only with `--login`, where the server asks for one")
        }
    }
}

/// What was wrong with one step, if it was reached.
fn step(seen: &Seen, wanted: Step) -> Verdict {
    logged(seen, |login| {
        match login.steps.iter().find(|(step, _)| *step == wanted) {
            Some((_, fault)) => Verdict::one(fault.clone().map(Fault::new)),
            None => Verdict::Skipped("the login did not come so far"),
        }
    })
}

pub(super) fn register(seen: &Seen) -> Verdict {
    step(seen, Step::Register)
}

pub(super) fn returned(seen: &Seen) -> Verdict {
    step(seen, Step::Return)
}

pub(super) fn issuer(seen: &Seen) -> Verdict {
    step(seen, Step::Issuer)
}

pub(super) fn token(seen: &Seen) -> Verdict {
    step(seen, Step::Token)
}

pub(super) fn refresh(seen: &Seen) -> Verdict {
    step(seen, Step::Refresh)
}

pub(super) fn accepted(seen: &Seen) -> Verdict {
    logged(seen, |login| match &login.accepted {
        Some(exchange) => {
            let refused = exchange.result().is_none();
            Verdict::one(
                refused.then(|| Fault::new("the token of a fresh login is refused").from(exchange)),
            )
        }
        None => Verdict::Skipped("the login did not come so far"),
    })
}

pub(super) fn tampered(seen: &Seen) -> Verdict {
    logged(seen, |login| match &login.tampered {
        Some(exchange) => {
            let taken = exchange.result().is_some();
            Verdict::one(
                taken.then(|| {
                    Fault::new("a token that was tampered with is accepted").from(exchange)
                }),
            )
        }
        None => Verdict::Skipped("the login did not come so far"),
    })
}
