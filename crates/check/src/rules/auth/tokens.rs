//! Tokens that must be refused, and tools that ask for sign-in by themselves.

use serde_json::Value;

use super::super::{Call, Fault, Seen, Verdict, Warning};
use super::asked;

pub(super) fn forged_tokens(seen: &Seen) -> Verdict {
    asked(seen, |sign_in| {
        let wrong = sign_in
            .forged
            .iter()
            .filter(|(_, exchange)| !exchange.is_unsent() && exchange.status() != Some(401));
        let fault = |(what, exchange): &(&str, std::sync::Arc<crate::exchange::Exchange>)| {
            let status = exchange
                .status()
                .map_or("nothing".to_owned(), |status| format!("status {status}"));
            let fault =
                Fault::new(format!("{what} is answered with {status}, not 401")).from(exchange);
            // Refused in another way, it is refused all the same.
            let let_in = exchange
                .received()
                .is_some_and(crate::exchange::Received::is_ok);
            if let_in {
                fault
            } else {
                fault.at_most(Warning)
            }
        };
        Verdict::Judged(wrong.map(fault).collect())
    })
}

pub(super) fn invalid_token(seen: &Seen) -> Verdict {
    asked(seen, |sign_in| {
        let header = |exchange: &crate::exchange::Exchange| {
            let received = exchange
                .received()
                .filter(|received| received.status == 401);
            received.map(|received| {
                received
                    .header("www-authenticate")
                    .unwrap_or_default()
                    .to_owned()
            })
        };
        let silent = sign_in.forged.iter().find(|(_, exchange)| {
            header(exchange).is_some_and(|header| !header.contains("invalid_token"))
        });
        Verdict::one(silent.map(|(what, exchange)| {
            Fault::new(format!("{what} is refused without `invalid_token`")).from(exchange)
        }))
    })
}

pub(super) fn tool_challenge(seen: &Seen) -> Verdict {
    let challenged: Vec<_> = seen
        .calls
        .iter()
        .filter_map(|call| {
            let meta = call.result()?.get("_meta")?.get("mcp/www_authenticate")?;
            Some((call, meta))
        })
        .collect();
    if challenged.is_empty() {
        return Verdict::Skipped("no tool asks for sign-in");
    }
    let fault = |(call, meta): (&Call, &Value)| {
        let words = meta.to_string();
        let good =
            words.contains("error=") && words.contains("error_description=") && call.is_error();
        (!good).then(|| {
            Fault::new(format!(
                "the challenge of `{}` lacks `error`, `error_description` or `isError`",
                call.tool
            ))
            .seen(meta)
        })
    };
    Verdict::Judged(challenged.into_iter().filter_map(fault).collect())
}
