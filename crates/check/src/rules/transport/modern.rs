//! Headers and bodies of revision 2026-07-28 that do not fit each other.

use super::super::{Fault, Seen, Verdict, of_probe};
use crate::exchange::Exchange;

const NOT_MODERN: Verdict = Verdict::Skipped("the server does not speak 2026-07-28");

/// A refusal with this status and code.
fn refused(seen: &Seen, probe: &str, (status, code): (u16, i64), what: &str) -> Verdict {
    if seen.is_http() && !seen.modern {
        return NOT_MODERN;
    }
    of_probe(seen, probe, |exchange| {
        if exchange.status() == Some(status) && exchange.code() == Some(code) {
            return None;
        }
        let code_seen = exchange
            .code()
            .map_or("no code".to_owned(), |code| format!("code {code}"));
        let status_seen = exchange
            .status()
            .map_or("nothing".to_owned(), |status| format!("status {status}"));
        Some(Fault::new(format!(
            "{what} is answered with {status_seen} and {code_seen}, not {status} and {code}"
        )))
    })
}

pub(super) fn later_version(seen: &Seen) -> Verdict {
    let refused = refused(
        seen,
        "later-version",
        (400, -32022),
        "an unsupported revision",
    );
    let Verdict::Judged(faults) = &refused else {
        return refused;
    };
    let listed = seen.probe("later-version").and_then(Exchange::error);
    let listed = listed.and_then(|error| error.get("data")?.get("supported")?.as_array());
    if faults.is_empty() && listed.is_none() {
        let what = "the refusal of an unsupported revision does not say which ones are supported";
        return of_probe(seen, "later-version", |_| Some(Fault::new(what)));
    }
    refused
}

pub(super) fn header_mismatch(seen: &Seen) -> Verdict {
    let mut faults = Vec::new();
    let differs = "an `Mcp-Method` that differs from the body";
    match refused(seen, "method-differs", (400, -32020), differs) {
        Verdict::Judged(found) => faults.extend(found),
        skipped @ Verdict::Skipped(_) => return skipped,
    }
    let missing = "a missing `MCP-Protocol-Version`";
    // Without it a server of both eras may take the request for an older one, and refuse that.
    let is_refused = seen.probe("no-version-header").and_then(Exchange::status) == Some(400);
    if !is_refused
        && let Verdict::Judged(found) = refused(seen, "no-version-header", (400, -32020), missing)
    {
        faults.extend(found);
    }
    Verdict::Judged(faults)
}

pub(super) fn missing_meta(seen: &Seen) -> Verdict {
    refused(
        seen,
        "no-meta",
        (400, -32602),
        "a request of 2026-07-28 without `_meta`",
    )
}

pub(super) fn modern_unknown_method(seen: &Seen) -> Verdict {
    refused(
        seen,
        "modern-unknown-method",
        (404, -32601),
        "a method that does not exist in 2026-07-28",
    )
}
