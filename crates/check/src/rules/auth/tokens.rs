//! Rules about forged tokens, which must be refused, and about tools that require sign-in by themselves.
//!
//! Only a forged token that gets a successful answer has its full severity. A refusal with another status than 401 is
//! still a refusal, so it is a warning: clients do not sign in again, but nobody gets in.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, SurveyedCall, Warning};
use super::if_challenged;

pub(super) fn forged_tokens(survey: &ServerSurvey) -> RuleVerdict {
    if_challenged(survey, |sign_in| {
        let wrong = sign_in
            .forged
            .iter()
            .filter(|(_, exchange)| !exchange.was_not_sent() && exchange.status() != Some(401));
        let fault =
            |(what, exchange): &(&str, std::sync::Arc<crate::exchange::RecordedExchange>)| {
                let status = exchange
                    .status()
                    .map_or("nothing".to_owned(), |status| format!("status {status}"));
                let fault =
                    RuleViolation::new(format!("{what} is answered with {status}, not 401"))
                        .with_exchange(exchange);
                // A refusal with another status is still a refusal.
                let is_accepted = exchange
                    .received()
                    .is_some_and(crate::exchange::ReceivedResponse::is_ok);
                if is_accepted {
                    fault
                } else {
                    fault.at_most(Warning)
                }
            };
        RuleVerdict::Evaluated(wrong.map(fault).collect())
    })
}

pub(super) fn invalid_token(survey: &ServerSurvey) -> RuleVerdict {
    if_challenged(survey, |sign_in| {
        let header = |exchange: &crate::exchange::RecordedExchange| {
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
        RuleVerdict::from_option(silent.map(|(what, exchange)| {
            RuleViolation::new(format!("{what} is refused without `invalid_token`"))
                .with_exchange(exchange)
        }))
    })
}

pub(super) fn tool_challenge(survey: &ServerSurvey) -> RuleVerdict {
    let challenged: Vec<_> = survey
        .calls
        .iter()
        .filter_map(|call| {
            let meta = call.result()?.get("_meta")?.get("mcp/www_authenticate")?;
            Some((call, meta))
        })
        .collect();
    if challenged.is_empty() {
        return RuleVerdict::Skipped("no tool asks for sign-in");
    }
    let fault = |(call, meta): (&SurveyedCall, &Value)| {
        let words = meta.to_string();
        let good =
            words.contains("error=") && words.contains("error_description=") && call.is_error();
        (!good).then(|| {
            RuleViolation::new(format!(
                "the challenge of `{}` lacks `error`, `error_description` or `isError`",
                call.tool
            ))
            .with_excerpt(meta)
        })
    };
    RuleVerdict::Evaluated(challenged.into_iter().filter_map(fault).collect())
}
