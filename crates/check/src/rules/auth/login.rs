//! Rules about the OAuth login, one for each of its steps.
//!
//! The steps build on each other: without a code there is no token. So a rule is judged only if its step was reached,
//! and skipped otherwise. A failure is not followed by findings about steps that could not happen.

use super::super::{RuleVerdict, RuleViolation, ServerSurvey};
use crate::survey::{LoginFlow, LoginStep};

fn if_login_tried(survey: &ServerSurvey, judge: impl Fn(&LoginFlow) -> RuleVerdict) -> RuleVerdict {
    match &survey.login {
        Some(login) => judge(login),
        None => RuleVerdict::Skipped(
            "a login is tried only with `--login`, where the server requires sign-in",
        ),
    }
}

/// Evaluates one step of the login, if it was reached.
fn check_step(survey: &ServerSurvey, wanted: LoginStep) -> RuleVerdict {
    if_login_tried(survey, |login| {
        match login.steps.iter().find(|(step, _)| *step == wanted) {
            Some((_, fault)) => RuleVerdict::from_option(fault.clone().map(RuleViolation::new)),
            None => RuleVerdict::Skipped("the login did not reach this step"),
        }
    })
}

pub(super) fn register(survey: &ServerSurvey) -> RuleVerdict {
    check_step(survey, LoginStep::Register)
}

pub(super) fn redirect_returned(survey: &ServerSurvey) -> RuleVerdict {
    check_step(survey, LoginStep::Return)
}

pub(super) fn issuer(survey: &ServerSurvey) -> RuleVerdict {
    check_step(survey, LoginStep::Issuer)
}

pub(super) fn token(survey: &ServerSurvey) -> RuleVerdict {
    check_step(survey, LoginStep::Token)
}

pub(super) fn refresh(survey: &ServerSurvey) -> RuleVerdict {
    check_step(survey, LoginStep::Refresh)
}

pub(super) fn accepted(survey: &ServerSurvey) -> RuleVerdict {
    if_login_tried(survey, |login| match &login.accepted {
        Some(exchange) => {
            let refused = exchange.result().is_none();
            RuleVerdict::from_option(refused.then(|| {
                RuleViolation::new("the token of a fresh login is refused").with_exchange(exchange)
            }))
        }
        None => RuleVerdict::Skipped("the login did not reach this step"),
    })
}

pub(super) fn tampered(survey: &ServerSurvey) -> RuleVerdict {
    if_login_tried(survey, |login| match &login.tampered {
        Some(exchange) => {
            let taken = exchange.result().is_some();
            RuleVerdict::from_option(taken.then(|| {
                RuleViolation::new("a token that was tampered with is accepted")
                    .with_exchange(exchange)
            }))
        }
        None => RuleVerdict::Skipped("the login did not reach this step"),
    })
}
