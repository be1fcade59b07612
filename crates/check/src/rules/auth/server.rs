//! Rules about the authorization server metadata (RFC 8414).
//!
//! Clients read this document before they sign in, and some stop when a member is missing. An absent list counts as
//! what the RFC assumes for it, not as what the server probably means. A trailing slash that differs in the issuer is
//! only a warning.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, Warning, text};
use super::{check_server_metadata, if_sign_in_offered, is_address};
use crate::survey::{MetadataDocument, SignInSurvey};

pub(super) fn server_metadata(survey: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(survey, |sign_in| {
        if sign_in.issuer().is_none() && sign_in.server_json().is_none() {
            return RuleVerdict::Skipped("no authorization server is named");
        }
        if sign_in.server_json().is_some() {
            return RuleVerdict::Evaluated(Vec::new());
        }
        let tried: Vec<String> = sign_in
            .server
            .iter()
            .map(|document| format!("{}: {}", document.url, document.exchange.received_line()))
            .collect();
        RuleVerdict::from_option(Some(
            RuleViolation::new("no authorization server metadata was found")
                .with_excerpt(&tried.join(" | ")),
        ))
    })
}

pub(super) fn server_alias(survey: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(survey, |sign_in| {
        if sign_in.server_json().is_none() {
            return RuleVerdict::Skipped("no authorization server metadata was found");
        }
        let complete = |found: &Value| {
            !text(found, "issuer").is_empty() && !text(found, "token_endpoint").is_empty()
        };
        let half = |document: &&MetadataDocument| {
            document.status() == Some(200) && !document.json().is_some_and(complete)
        };
        let found = sign_in.server.iter().find(half);
        RuleVerdict::from_option(found.map(|document| {
            RuleViolation::new(format!(
                "`{}` answers with something other than complete metadata",
                document.url
            ))
            .with_exchange(&document.exchange)
        }))
    })
}

pub(super) fn issuer_equal(survey: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(survey, |sign_in| {
        let (Some(issuer), Some(found)) = (sign_in.issuer(), sign_in.server_json()) else {
            return RuleVerdict::Skipped("no authorization server metadata was found");
        };
        let named = text(found, "issuer");
        RuleVerdict::from_option((named != issuer).then(|| {
            let fault = RuleViolation::new(format!(
                "`issuer` is `{named}`, the resource names `{issuer}`"
            ))
            .with_excerpt(found);
            let slash = named.trim_end_matches('/') == issuer.trim_end_matches('/');
            if slash { fault.at_most(Warning) } else { fault }
        }))
    })
}

pub(super) fn endpoints(survey: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(survey, |found| {
        let keys = ["authorization_endpoint", "token_endpoint"];
        let missing = keys
            .into_iter()
            .find(|key| !found.get(key).is_some_and(|url| is_address(survey, url)))?;
        Some(RuleViolation::new(format!(
            "`{missing}` is no https address"
        )))
    })
}

/// Whether a list in the metadata contains a value.
fn lists(found: &Value, key: &str, value: &str) -> bool {
    found
        .get(key)
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|one| one == value))
}

pub(super) fn s256(survey: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(survey, |found| {
        let good = lists(found, "code_challenge_methods_supported", "S256");
        (!good)
            .then(|| RuleViolation::new("`code_challenge_methods_supported` does not list `S256`"))
    })
}

fn by_document(found: &Value) -> bool {
    found.get("client_id_metadata_document_supported") == Some(&Value::Bool(true))
}

pub(super) fn registration(survey: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(survey, |found| {
        let good = by_document(found) || !text(found, "registration_endpoint").is_empty();
        (!good).then(|| {
            RuleViolation::new(
                "clients can register neither by a client ID metadata document nor dynamically",
            )
        })
    })
}

pub(super) fn metadata_clients(survey: &ServerSurvey) -> RuleVerdict {
    let knows = survey
        .sign_in
        .as_ref()
        .and_then(SignInSurvey::server_json)
        .is_some_and(by_document);
    if !knows {
        return RuleVerdict::Skipped("the server does not support client ID metadata documents");
    }
    check_server_metadata(survey, |found| {
        let good = lists(found, "token_endpoint_auth_methods_supported", "none");
        (!good).then(|| {
            RuleViolation::new("`token_endpoint_auth_methods_supported` does not list `none`")
        })
    })
}

pub(super) fn iss(survey: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(survey, |found| {
        let good =
            found.get("authorization_response_iss_parameter_supported") == Some(&Value::Bool(true));
        (!good).then(|| {
            RuleViolation::new("`authorization_response_iss_parameter_supported` is not true")
        })
    })
}

pub(super) fn refresh(survey: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(survey, |found| {
        // Without this list, RFC 8414 assumes `authorization_code` and `implicit`.
        let good = lists(found, "grant_types_supported", "refresh_token");
        (!good).then(|| RuleViolation::new("`grant_types_supported` does not list `refresh_token`"))
    })
}
