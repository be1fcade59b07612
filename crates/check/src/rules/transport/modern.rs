//! Rules about requests of revision 2026-07-28 whose headers and bodies contradict each other.
//!
//! This revision has no handshake: each request repeats its revision and its method in headers, where proxies can read
//! them. If server and proxy trusted different copies, a request could pass a filter as something else.

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, for_probe};
use crate::exchange::RecordedExchange;

const NOT_MODERN: RuleVerdict = RuleVerdict::Skipped("the server does not speak 2026-07-28");

/// How a server has to refuse a request: HTTP status and JSON-RPC error code.
#[derive(Clone, Copy)]
struct ExpectedRefusal {
    status: u16,
    code: i64,
}

const UNSUPPORTED_REVISION: ExpectedRefusal = ExpectedRefusal {
    status: 400,
    code: -32022,
};
const HEADER_MISMATCH: ExpectedRefusal = ExpectedRefusal {
    status: 400,
    code: -32020,
};
const INVALID_PARAMS: ExpectedRefusal = ExpectedRefusal {
    status: 400,
    code: -32602,
};
const UNKNOWN_METHOD: ExpectedRefusal = ExpectedRefusal {
    status: 404,
    code: -32601,
};

/// Checks that a probe is refused as expected.
fn check_refusal(
    survey: &ServerSurvey,
    probe: &str,
    refusal: ExpectedRefusal,
    what: &str,
) -> RuleVerdict {
    let ExpectedRefusal { status, code } = refusal;
    if survey.is_http() && !survey.modern {
        return NOT_MODERN;
    }
    for_probe(survey, probe, |exchange| {
        if exchange.status() == Some(status) && exchange.error_code() == Some(code) {
            return None;
        }
        let code_seen = exchange
            .error_code()
            .map_or("no code".to_owned(), |code| format!("code {code}"));
        let status_seen = exchange
            .status()
            .map_or("nothing".to_owned(), |status| format!("status {status}"));
        Some(RuleViolation::new(format!(
            "{what} is answered with {status_seen} and {code_seen}, not {status} and {code}"
        )))
    })
}

pub(super) fn later_version(survey: &ServerSurvey) -> RuleVerdict {
    let refused = check_refusal(
        survey,
        "later-version",
        UNSUPPORTED_REVISION,
        "an unsupported revision",
    );
    let RuleVerdict::Evaluated(faults) = &refused else {
        return refused;
    };
    let listed = survey
        .probe("later-version")
        .and_then(RecordedExchange::error);
    let listed = listed.and_then(|error| error.get("data")?.get("supported")?.as_array());
    if faults.is_empty() && listed.is_none() {
        let what = "the refusal of an unsupported revision does not say which ones are supported";
        return for_probe(survey, "later-version", |_| Some(RuleViolation::new(what)));
    }
    refused
}

pub(super) fn header_mismatch(survey: &ServerSurvey) -> RuleVerdict {
    let mut faults = Vec::new();
    let differs = "an `Mcp-Method` that differs from the body";
    match check_refusal(survey, "method-differs", HEADER_MISMATCH, differs) {
        RuleVerdict::Evaluated(found) => faults.extend(found),
        skipped @ RuleVerdict::Skipped(_) => return skipped,
    }
    let missing = "a missing `MCP-Protocol-Version`";
    // A server of both eras may take such a request for a legacy one, and refuse it with another code.
    let is_refused = survey
        .probe("no-version-header")
        .and_then(RecordedExchange::status)
        == Some(400);
    if !is_refused
        && let RuleVerdict::Evaluated(found) =
            check_refusal(survey, "no-version-header", HEADER_MISMATCH, missing)
    {
        faults.extend(found);
    }
    RuleVerdict::Evaluated(faults)
}

pub(super) fn missing_meta(survey: &ServerSurvey) -> RuleVerdict {
    check_refusal(
        survey,
        "no-meta",
        INVALID_PARAMS,
        "a request of 2026-07-28 without `_meta`",
    )
}

pub(super) fn modern_unknown_method(survey: &ServerSurvey) -> RuleVerdict {
    check_refusal(
        survey,
        "modern-unknown-method",
        UNKNOWN_METHOD,
        "a method that does not exist in 2026-07-28",
    )
}
