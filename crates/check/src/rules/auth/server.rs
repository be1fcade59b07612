//! The metadata of the authorization server.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, Warning, text};
use super::{check_server_metadata, if_sign_in_offered, is_address};
use crate::survey::{MetadataDocument, SignInSurvey};

pub(super) fn server_metadata(seen: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(seen, |sign_in| {
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
            RuleViolation::new("the metadata of the authorization server is nowhere")
                .with_excerpt(&tried.join(" | ")),
        ))
    })
}

pub(super) fn server_alias(seen: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(seen, |sign_in| {
        if sign_in.server_json().is_none() {
            return RuleVerdict::Skipped("the metadata of the authorization server was not found");
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
                "`{}` answers with something else than metadata",
                document.url
            ))
            .with_exchange(&document.exchange)
        }))
    })
}

pub(super) fn issuer_equal(seen: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(seen, |sign_in| {
        let (Some(issuer), Some(found)) = (sign_in.issuer(), sign_in.server_json()) else {
            return RuleVerdict::Skipped("the metadata of the authorization server was not found");
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

pub(super) fn endpoints(seen: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(seen, |found| {
        let keys = ["authorization_endpoint", "token_endpoint"];
        let missing = keys
            .into_iter()
            .find(|key| !found.get(key).is_some_and(|url| is_address(seen, url)))?;
        Some(RuleViolation::new(format!(
            "`{missing}` is no https address"
        )))
    })
}

/// Whether a list in the metadata has a value.
fn lists(found: &Value, key: &str, value: &str) -> bool {
    found
        .get(key)
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|one| one == value))
}

pub(super) fn s256(seen: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(seen, |found| {
        let good = lists(found, "code_challenge_methods_supported", "S256");
        (!good)
            .then(|| RuleViolation::new("`code_challenge_methods_supported` does not list `S256`"))
    })
}

fn by_document(found: &Value) -> bool {
    found.get("client_id_metadata_document_supported") == Some(&Value::Bool(true))
}

pub(super) fn registration(seen: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(seen, |found| {
        let good = by_document(found) || !text(found, "registration_endpoint").is_empty();
        (!good).then(|| {
            RuleViolation::new(
                "clients can register neither by a metadata document nor dynamically",
            )
        })
    })
}

pub(super) fn metadata_clients(seen: &ServerSurvey) -> RuleVerdict {
    let knows = seen
        .sign_in
        .as_ref()
        .and_then(SignInSurvey::server_json)
        .is_some_and(by_document);
    if !knows {
        return RuleVerdict::Skipped("clients are not known by metadata documents");
    }
    check_server_metadata(seen, |found| {
        let good = lists(found, "token_endpoint_auth_methods_supported", "none");
        (!good).then(|| {
            RuleViolation::new("`token_endpoint_auth_methods_supported` does not list `none`")
        })
    })
}

pub(super) fn iss(seen: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(seen, |found| {
        let good =
            found.get("authorization_response_iss_parameter_supported") == Some(&Value::Bool(true));
        (!good).then(|| {
            RuleViolation::new("`authorization_response_iss_parameter_supported` is not true")
        })
    })
}

pub(super) fn refresh(seen: &ServerSurvey) -> RuleVerdict {
    check_server_metadata(seen, |found| {
        // Left out, the list means authorization code and implicit.
        let good = lists(found, "grant_types_supported", "refresh_token");
        (!good).then(|| RuleViolation::new("`grant_types_supported` does not list `refresh_token`"))
    })
}
