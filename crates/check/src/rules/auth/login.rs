//! How a login went, step by step.

use super::super::{RuleVerdict, RuleViolation, ServerSurvey};
use crate::survey::{LoginFlow, LoginStep};

fn if_login_tried(seen: &ServerSurvey, judge: impl Fn(&LoginFlow) -> RuleVerdict) -> RuleVerdict {
    match &seen.login {
        Some(login) => judge(login),
        None => RuleVerdict::Skipped(
            "a login is tried only with `--login`, where the server asks for one",
        ),
    }
}

/// What was wrong with one step, if it was reached.
fn check_step(seen: &ServerSurvey, wanted: LoginStep) -> RuleVerdict {
    if_login_tried(seen, |login| {
        match login.steps.iter().find(|(step, _)| *step == wanted) {
            Some((_, fault)) => RuleVerdict::from_option(fault.clone().map(RuleViolation::new)),
            None => RuleVerdict::Skipped("the login did not come so far"),
        }
    })
}

pub(super) fn register(seen: &ServerSurvey) -> RuleVerdict {
    check_step(seen, LoginStep::Register)
}

pub(super) fn redirect_returned(seen: &ServerSurvey) -> RuleVerdict {
    check_step(seen, LoginStep::Return)
}

pub(super) fn issuer(seen: &ServerSurvey) -> RuleVerdict {
    check_step(seen, LoginStep::Issuer)
}

pub(super) fn token(seen: &ServerSurvey) -> RuleVerdict {
    check_step(seen, LoginStep::Token)
}

pub(super) fn refresh(seen: &ServerSurvey) -> RuleVerdict {
    check_step(seen, LoginStep::Refresh)
}

pub(super) fn accepted(seen: &ServerSurvey) -> RuleVerdict {
    if_login_tried(seen, |login| match &login.accepted {
        Some(exchange) => {
            let refused = exchange.result().is_none();
            RuleVerdict::from_option(refused.then(|| {
                RuleViolation::new("the token of a fresh login is refused").with_exchange(exchange)
            }))
        }
        None => RuleVerdict::Skipped("the login did not come so far"),
    })
}

pub(super) fn tampered(seen: &ServerSurvey) -> RuleVerdict {
    if_login_tried(seen, |login| match &login.tampered {
        Some(exchange) => {
            let taken = exchange.result().is_some();
            RuleVerdict::from_option(taken.then(|| {
                RuleViolation::new("a token that was tampered with is accepted")
                    .with_exchange(exchange)
            }))
        }
        None => RuleVerdict::Skipped("the login did not come so far"),
    })
}
