//! Rules about sessions that are unknown, missing or ended, and about concurrent requests that share an id.
//!
//! A server may lose its sessions, such as in a restart. A client starts a new one when the answer is 404, so another
//! status strands it. A server that answers all the same breaks nobody, and that is a note.

use super::super::{NOT_HTTP, Note, RuleVerdict, RuleViolation, ServerSurvey, Warning, for_probe};
use crate::exchange::RecordedExchange;

const NO_SESSIONS: RuleVerdict = RuleVerdict::Skipped("the server keeps no sessions");

pub(super) fn lost_session(survey: &ServerSurvey) -> RuleVerdict {
    if survey.is_http() && !survey.has_session {
        return NO_SESSIONS;
    }
    for_probe(survey, "lost-session", |exchange| {
        let status = exchange.status();
        if status == Some(404) {
            return None;
        }
        let what = status.map_or("nothing".to_owned(), |status| format!("status {status}"));
        // A server that answers nevertheless breaks no client.
        let fault = RuleViolation::new(format!(
            "a session that does not exist is answered with {what}, not 404"
        ));
        Some(
            if exchange
                .answer()
                .is_some_and(|answer| answer.get("result").is_some())
            {
                fault.at_most(Note)
            } else {
                fault
            },
        )
    })
}

pub(super) fn no_session(survey: &ServerSurvey) -> RuleVerdict {
    if survey.is_http() && !survey.has_session {
        return NO_SESSIONS;
    }
    for_probe(survey, "no-session", |exchange| {
        let works = exchange.result().is_some();
        let refused = exchange.status() == Some(400);
        if works || refused {
            return None;
        }
        let what = exchange
            .status()
            .map_or("nothing".to_owned(), |status| format!("status {status}"));
        Some(RuleViolation::new(format!(
            "a request without its session id is answered with {what}, not 400"
        )))
    })
}

pub(super) fn session_end(survey: &ServerSurvey) -> RuleVerdict {
    if survey.is_http() && !survey.has_session {
        return NO_SESSIONS;
    }
    let after = survey.probe("session-ended");
    for_probe(survey, "session-end", |end| {
        let received = end.received()?;
        if matches!(received.status, 404 | 405) {
            return None;
        }
        if !received.is_ok() {
            let what = format!(
                "ending a session is answered with status {}",
                received.status
            );
            return Some(RuleViolation::new(what).at_most(Warning));
        }
        let after = after?;
        (after.status() != Some(404)).then(|| {
            let what = after
                .status()
                .map_or("nothing".to_owned(), |status| format!("status {status}"));
            let fault = RuleViolation::new(format!(
                "a request in a session that was ended is answered with {what}, not 404"
            ))
            .with_exchange(after);
            // A server that answers nevertheless breaks no client.
            if after.result().is_some() {
                fault.at_most(Note)
            } else {
                fault
            }
        })
    })
}

pub(super) fn same_id(survey: &ServerSurvey) -> RuleVerdict {
    let (Some(list), Some(ping)) = (survey.probe("same-id-list"), survey.probe("same-id-ping"))
    else {
        return if survey.is_http() {
            RuleVerdict::Skipped("the server speaks 2026-07-28 only")
        } else {
            NOT_HTTP
        };
    };
    let tools = |exchange: &RecordedExchange| {
        exchange
            .result()
            .is_some_and(|result| result.get("tools").is_some())
    };
    let what = if tools(ping) || (list.result().is_some() && !tools(list)) {
        "one of two requests with the same id got the answer to the other"
    } else if list.answer().is_none() || ping.answer().is_none() {
        "one of two requests with the same id got no answer"
    } else {
        return RuleVerdict::Evaluated(Vec::new());
    };
    let worse = if list.answer().is_none() || !tools(list) {
        list
    } else {
        ping
    };
    RuleVerdict::from_option(Some(RuleViolation::new(what).with_exchange(worse)))
}
