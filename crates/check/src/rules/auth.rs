//! Rules about OAuth: the 401 challenge, the protected resource metadata, the authorization server metadata, the login,
//! and forged tokens.
//!
//! Most of them apply only where the server asks for a token, for every request or for one tool, and are skipped
//! otherwise. A server on this machine may use `http`, and may name its public URL; both would be faults elsewhere.

mod login;
mod server;
mod tokens;

use serde_json::Value;

use super::{
    ChatGpt, CheckProfile, CheckRule, Claude, Error, Protocol, RuleVerdict, RuleViolation,
    ServerSurvey, Severity, Submission, Warning, corroborated, official, single_report, text,
};
use crate::survey::{MetadataDocument, SignInSurvey};

const SPEC_AUTH: &str = "MCP specification 2025-11-25, basic/authorization";
const OPENAI_AUTH: &str = "OpenAI, plugins/build/auth";
const CLAUDE_AUTH: &str = "Claude, connector authentication, as quoted by those who built for it";
const HOSTS: &[(CheckProfile, Severity)] = &[
    (Protocol, Error),
    (ChatGpt, Error),
    (Claude, Error),
    (Submission, Error),
];

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "auth/absent-404",
        requirement: "a server without sign-in answers 404 at the well-known addresses of OAuth metadata",
        severities: &[(ChatGpt, Warning), (Claude, Warning)],
        source: single_report(
            "a ChatGPT connector that took a 400 there for a broken sign-in",
            "2025-12-25",
        ),
        fix: "answer `/.well-known/oauth-…` with 404, not with 400, 500 or a web page",
        evaluate: absent_404,
    },
    CheckRule {
        id: "auth/challenge",
        requirement: "a 401 has `WWW-Authenticate: Bearer` with `resource_metadata`",
        severities: HOSTS,
        source: official(SPEC_AUTH, "2025-11-25"),
        fix: "send `WWW-Authenticate: Bearer resource_metadata=\"https://…/.well-known/oauth-protected-resource/…\"` with every 401",
        evaluate: challenge,
    },
    CheckRule {
        id: "auth/resource-metadata",
        requirement: "the protected resource metadata is found, as a JSON object",
        severities: HOSTS,
        source: official("RFC 9728", "2025-04-01"),
        fix: "serve it at `/.well-known/oauth-protected-resource` followed by the path of the endpoint, without asking for a token",
        evaluate: resource_metadata,
    },
    CheckRule {
        id: "auth/resource-metadata-both",
        requirement: "the protected resource metadata is found both with the path of the endpoint and at the root",
        severities: &[(ChatGpt, Warning), (Claude, Warning)],
        source: corroborated("clients differ in which they ask for first", "2026-11-15"),
        fix: "serve it at both; each names the resource at its own address",
        evaluate: resource_both,
    },
    CheckRule {
        id: "auth/resource-equal",
        requirement: "`resource` equals the address of the endpoint exactly",
        severities: HOSTS,
        source: official("RFC 9728, section 3.3", "2025-04-01"),
        fix: "set `resource` to the address of the endpoint, path and slash included",
        evaluate: resource_equal,
    },
    CheckRule {
        id: "auth/servers-named",
        requirement: "`authorization_servers` names at least one https address",
        severities: HOSTS,
        source: official(SPEC_AUTH, "2025-11-25"),
        fix: "list the issuer exactly as its own metadata writes it; Claude uses the first only",
        evaluate: servers_named,
    },
    CheckRule {
        id: "auth/no-offline-access",
        requirement: "the protected resource metadata does not list `offline_access`",
        severities: &[(Protocol, Warning), (ChatGpt, Warning)],
        source: official(
            "MCP specification 2026-07-28, basic/authorization",
            "2026-07-28",
        ),
        fix: "leave it out of `scopes_supported` and of challenges; clients add it themselves",
        evaluate: no_offline_access,
    },
    CheckRule {
        id: "auth/server-metadata",
        requirement: "the authorization server metadata is found, as a JSON object",
        severities: HOSTS,
        source: official("RFC 8414; OpenID Connect Discovery 1.0", "2018-06-01"),
        fix: "serve `/.well-known/oauth-authorization-server` or `/.well-known/openid-configuration` at the issuer",
        evaluate: server::server_metadata,
    },
    CheckRule {
        id: "auth/server-alias",
        requirement: "each well-known address of the authorization server returns its complete metadata, or 404",
        severities: &[(ChatGpt, Warning), (Claude, Warning)],
        source: single_report(
            "mgaitan/quilombo#140: half an OpenID document that broke sign-in",
            "2026-11-15",
        ),
        fix: "serve the same document at both places, or 404 at one of them",
        evaluate: server::server_alias,
    },
    CheckRule {
        id: "auth/issuer-equal",
        requirement: "`issuer` is the address under which the metadata was found",
        severities: HOSTS,
        source: official("RFC 8414, section 3.3", "2018-06-01"),
        fix: "write the same issuer in both documents, trailing slash included",
        evaluate: server::issuer_equal,
    },
    CheckRule {
        id: "auth/endpoints",
        requirement: "the authorization server names https endpoints for authorization and tokens",
        severities: HOSTS,
        source: official("RFC 8414, section 2", "2018-06-01"),
        fix: "set `authorization_endpoint` and `token_endpoint`",
        evaluate: server::endpoints,
    },
    CheckRule {
        id: "auth/s256",
        requirement: "the authorization server says that it supports PKCE with S256",
        severities: HOSTS,
        source: official(SPEC_AUTH, "2025-11-25"),
        fix: "add `\"code_challenge_methods_supported\": [\"S256\"]`; clients stop without it",
        evaluate: server::s256,
    },
    CheckRule {
        id: "auth/registration",
        requirement: "an unknown client can register: by a client ID metadata document, or dynamically",
        severities: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Warning)],
        source: official(OPENAI_AUTH, "2026-11-15"),
        fix: "set `client_id_metadata_document_supported`, or offer a `registration_endpoint`; else register each host by hand",
        evaluate: server::registration,
    },
    CheckRule {
        id: "auth/metadata-clients",
        requirement: "where client ID metadata documents are supported, the token endpoint supports the method `none`",
        severities: &[(Claude, Warning)],
        source: corroborated(CLAUDE_AUTH, "2026-11-15"),
        fix: "add `none` to `token_endpoint_auth_methods_supported`; Claude registers anew each time otherwise",
        evaluate: server::metadata_clients,
    },
    CheckRule {
        id: "auth/iss",
        requirement: "authorization responses name their issuer in `iss`",
        severities: &[(Protocol, Warning), (ChatGpt, Warning)],
        source: official(
            "MCP specification 2026-07-28, basic/authorization; RFC 9207",
            "2026-07-28",
        ),
        fix: "send `iss` in every authorization response, and set `authorization_response_iss_parameter_supported`",
        evaluate: server::iss,
    },
    CheckRule {
        id: "auth/refresh",
        requirement: "tokens can be refreshed",
        severities: &[(ChatGpt, Warning), (Claude, Warning)],
        source: corroborated(
            "claude-code#65036, claude-code#36933, liftosaur#560: a new login every hour",
            "2026-11-15",
        ),
        fix: "add `refresh_token` to `grant_types_supported`, and issue refresh tokens",
        evaluate: server::refresh,
    },
    CheckRule {
        id: "auth/forged-tokens",
        requirement: "tokens that are made up, unsigned, expired or for another server are refused with 401",
        severities: HOSTS,
        source: official(SPEC_AUTH, "2025-11-25"),
        fix: "verify signature, issuer, audience and expiry of every token before anything else",
        evaluate: tokens::forged_tokens,
    },
    CheckRule {
        id: "auth/invalid-token",
        requirement: "a refused token is answered with a challenge that says `invalid_token`",
        severities: &[(Protocol, Warning)],
        source: official("RFC 6750, section 3.1", "2012-10-01"),
        fix: "send `WWW-Authenticate: Bearer error=\"invalid_token\", …` so that clients sign in again",
        evaluate: tokens::invalid_token,
    },
    CheckRule {
        id: "auth/tool-challenge",
        requirement: "a tool that asks for sign-in says `error` and `error_description` in `mcp/www_authenticate`",
        severities: &[(ChatGpt, Error), (Submission, Error)],
        source: official(OPENAI_AUTH, "2026-11-15"),
        fix: "put both into the challenge, and set `isError` on the result",
        evaluate: tokens::tool_challenge,
    },
    CheckRule {
        id: "auth/login-register",
        requirement: "a client can register itself",
        severities: HOSTS,
        source: official("RFC 7591", "2015-07-01"),
        fix: "answer a registration with 201 and a `client_id`, and allow loopback redirects",
        evaluate: login::register,
    },
    CheckRule {
        id: "auth/login-return",
        requirement: "the login page sends the user back with a code and the same `state`",
        severities: HOSTS,
        source: official("RFC 6749, section 4.1.2", "2012-10-01"),
        fix: "redirect to the address that was registered, with `code` and `state`",
        evaluate: login::redirect_returned,
    },
    CheckRule {
        id: "auth/login-iss",
        requirement: "the authorization response names the issuer in `iss`, where the metadata promises it",
        severities: HOSTS,
        source: official("RFC 9207, section 2.4", "2022-03-01"),
        fix: "send `iss`, equal to `issuer` to the letter, with every authorization response",
        evaluate: login::issuer,
    },
    CheckRule {
        id: "auth/login-token",
        requirement: "the token endpoint exchanges a code for a bearer token",
        severities: HOSTS,
        source: official("RFC 6749, section 5.1", "2012-10-01"),
        fix: "accept the code and its PKCE verifier as form fields, and return `access_token` and `token_type`",
        evaluate: login::token,
    },
    CheckRule {
        id: "auth/login-refresh",
        requirement: "a login comes with a refresh token that works",
        severities: &[(ChatGpt, Warning), (Claude, Warning)],
        source: corroborated(
            "claude-code#65036, claude-code#36933, liftosaur#560: a new login every hour",
            "2026-11-15",
        ),
        fix: "issue a `refresh_token`, and accept it at the token endpoint",
        evaluate: login::refresh,
    },
    CheckRule {
        id: "auth/login-accepted",
        requirement: "the server accepts the token of a fresh login",
        severities: HOSTS,
        source: official(SPEC_AUTH, "2025-11-25"),
        fix: "issue tokens with the requested `resource` as their audience, and check for the same value",
        evaluate: login::accepted,
    },
    CheckRule {
        id: "auth/login-tampered",
        requirement: "a real token that was tampered with is refused",
        severities: HOSTS,
        source: official(SPEC_AUTH, "2025-11-25"),
        fix: "verify the signature, or look the token up as a whole",
        evaluate: login::tampered,
    },
];

const NO_SIGN_IN: RuleVerdict = RuleVerdict::Skipped("the server does not require sign-in");

/// Evaluates a rule if the server requires a token for every request.
fn if_challenged(
    survey: &ServerSurvey,
    judge: impl Fn(&SignInSurvey) -> RuleVerdict,
) -> RuleVerdict {
    match &survey.sign_in {
        Some(sign_in) if sign_in.is_asked() => judge(sign_in),
        Some(_) => NO_SIGN_IN,
        None => RuleVerdict::Skipped("sign-in applies to HTTP servers only"),
    }
}

/// Evaluates a rule if the server requires a token, for every request or for one of its tools.
fn if_sign_in_offered(
    survey: &ServerSurvey,
    judge: impl Fn(&SignInSurvey) -> RuleVerdict,
) -> RuleVerdict {
    let is_oauth = |scheme: &Value| text(scheme, "type") == "oauth2";
    let by_tool = survey.tools.iter().any(|tool| {
        let schemes = tool.get("securitySchemes").and_then(Value::as_array);
        schemes.is_some_and(|schemes| schemes.iter().any(is_oauth))
    });
    match &survey.sign_in {
        Some(sign_in) if by_tool => judge(sign_in),
        _ => if_challenged(survey, judge),
    }
}

/// Evaluates a rule on the protected resource metadata, if it was found.
fn check_resource_metadata(
    survey: &ServerSurvey,
    judge: impl Fn(&Value) -> Option<RuleViolation>,
) -> RuleVerdict {
    if_sign_in_offered(survey, |sign_in| match sign_in.resource_json() {
        Some(found) => {
            RuleVerdict::from_option(judge(found).map(|fault| fault.with_excerpt(found)))
        }
        None => RuleVerdict::Skipped("no protected resource metadata was found"),
    })
}

/// Evaluates a rule on the authorization server metadata, if it was found.
fn check_server_metadata(
    survey: &ServerSurvey,
    judge: impl Fn(&Value) -> Option<RuleViolation>,
) -> RuleVerdict {
    if_sign_in_offered(survey, |sign_in| match sign_in.server_json() {
        Some(found) => {
            RuleVerdict::from_option(judge(found).map(|fault| fault.with_excerpt(found)))
        }
        None => RuleVerdict::Skipped("no authorization server metadata was found"),
    })
}

fn absent_404(survey: &ServerSurvey) -> RuleVerdict {
    let Some(sign_in) = &survey.sign_in else {
        return RuleVerdict::Skipped("sign-in applies to HTTP servers only");
    };
    let any = sign_in.resource_json().is_some() || sign_in.server_json().is_some();
    if sign_in.is_asked() || any {
        return RuleVerdict::Skipped("the server offers sign-in");
    }
    if !survey.is_connected {
        return RuleVerdict::Skipped("the server did not answer");
    }
    let odd = |document: &&MetadataDocument| {
        document
            .status()
            .is_some_and(|status| !matches!(status, 404 | 405 | 410))
    };
    let found = sign_in.resource.iter().chain(&sign_in.server).find(odd);
    RuleVerdict::from_option(found.map(|document| {
        let status = document.status().unwrap_or_default();
        RuleViolation::new(format!(
            "`{}` is answered with status {status}, though there is no sign-in",
            document.url
        ))
        .with_exchange(&document.exchange)
    }))
}

fn challenge(survey: &ServerSurvey) -> RuleVerdict {
    if_challenged(survey, |sign_in| {
        let header = sign_in.header().unwrap_or_default();
        let bearer = header
            .get(..6)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
        let what = if header.is_empty() {
            "the 401 has no `WWW-Authenticate`"
        } else if !bearer {
            "the challenge is not `Bearer`"
        } else if !header.contains("resource_metadata=") {
            "the challenge has no `resource_metadata`"
        } else {
            return RuleVerdict::Evaluated(Vec::new());
        };
        let fault = RuleViolation::new(what).with_excerpt(&header);
        // Clients that try the well-known addresses find the metadata nevertheless.
        let found = bearer && sign_in.resource_json().is_some();
        RuleVerdict::from_option(Some(if found { fault.at_most(Warning) } else { fault }))
    })
}

fn resource_metadata(survey: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(survey, |sign_in| {
        if sign_in.resource_json().is_some() {
            return RuleVerdict::Evaluated(Vec::new());
        }
        let tried: Vec<String> = sign_in
            .resource
            .iter()
            .map(|document| format!("{}: {}", document.url, document.exchange.received_line()))
            .collect();
        RuleVerdict::from_option(Some(
            RuleViolation::new("no protected resource metadata was found")
                .with_excerpt(&tried.join(" | ")),
        ))
    })
}

fn resource_both(survey: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(survey, |sign_in| {
        if sign_in.resource_json().is_none() {
            return RuleVerdict::Skipped("no protected resource metadata was found");
        }
        let named = |document: &&MetadataDocument| document.place == "named by the challenge";
        let missing = sign_in
            .resource
            .iter()
            .find(|document| !named(document) && document.json().is_none());
        RuleVerdict::from_option(missing.map(|document| {
            RuleViolation::new(format!(
                "the protected resource metadata is not found {}",
                document.place
            ))
            .with_exchange(&document.exchange)
        }))
    })
}

fn resource_equal(survey: &ServerSurvey) -> RuleVerdict {
    if_sign_in_offered(survey, |sign_in| {
        // Clients of this endpoint use the document with its path; the one at the root may name the root.
        let at_root = |document: &&MetadataDocument| document.place == "at the root";
        let own = sign_in
            .resource
            .iter()
            .filter(|document| !at_root(document))
            .find_map(MetadataDocument::json);
        let Some(found) = own.or_else(|| sign_in.resource_json()) else {
            return RuleVerdict::Skipped("no protected resource metadata was found");
        };
        let url = survey.url.as_deref().unwrap_or_default();
        let named = text(found, "resource");
        RuleVerdict::from_option((named != url).then(|| {
            let fault =
                RuleViolation::new(format!("`resource` is `{named}`, the address is `{url}`"))
                    .with_excerpt(found);
            // A server on this machine may legitimately name its public URL.
            if survey.is_local {
                fault.at_most(Warning)
            } else {
                fault
            }
        }))
    })
}

fn is_address(survey: &ServerSurvey, value: &Value) -> bool {
    let url = value.as_str().unwrap_or_default();
    url.starts_with("https://") || (survey.is_local && url.starts_with("http://"))
}

fn servers_named(survey: &ServerSurvey) -> RuleVerdict {
    check_resource_metadata(survey, |found| {
        let servers = found.get("authorization_servers").and_then(Value::as_array);
        let good = servers
            .is_some_and(|all| !all.is_empty() && all.iter().all(|one| is_address(survey, one)));
        (!good).then(|| RuleViolation::new("`authorization_servers` names no https address"))
    })
}

fn no_offline_access(survey: &ServerSurvey) -> RuleVerdict {
    check_resource_metadata(survey, |found| {
        let scopes = found.get("scopes_supported").and_then(Value::as_array);
        let is_listed =
            scopes.is_some_and(|scopes| scopes.iter().any(|scope| scope == "offline_access"));
        is_listed
            .then(|| RuleViolation::new("`scopes_supported` of the resource has `offline_access`"))
    })
}
