//! Sign-in, step by step: the challenge, the metadata of the resource, the metadata of the
//! authorization server, and tokens that must be refused.

mod login;
mod server;
mod tokens;

use serde_json::Value;

use super::{
    ChatGpt, Claude, Error, Fault, Profile, Protocol, Rule, Seen, Severity, Submission, Verdict,
    Warning, owner, report, several, text,
};
use crate::survey::{Document, SignIn};

const SPEC_AUTH: &str = "MCP specification 2025-11-25, basic/authorization";
const OPENAI_AUTH: &str = "OpenAI, plugins/build/auth";
const CLAUDE_AUTH: &str = "Claude, connector authentication, as quoted by those who built for it";
const HOSTS: &[(Profile, Severity)] = &[
    (Protocol, Error),
    (ChatGpt, Error),
    (Claude, Error),
    (Submission, Error),
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "auth/absent-404",
        demand: "a server without sign-in answers 404 where metadata of sign-in would be",
        weights: &[(ChatGpt, Warning), (Claude, Warning)],
        source: report(
            "a ChatGPT connector that took a 400 there for a broken sign-in",
            "2025-12-25",
        ),
        fix: "answer `/.well-known/oauth-…` with 404, not with 400, 500 or a web page",
        judge: absent_404,
    },
    Rule {
        id: "auth/challenge",
        demand: "a 401 has `WWW-Authenticate: Bearer` with `resource_metadata`",
        weights: HOSTS,
        source: owner(SPEC_AUTH, "2025-11-25"),
        fix: "send `WWW-Authenticate: Bearer resource_metadata=\"https://…/.well-known/oauth-protected-resource/…\"` with every 401",
        judge: challenge,
    },
    Rule {
        id: "auth/resource-metadata",
        demand: "the metadata of the resource is found, as a JSON object",
        weights: HOSTS,
        source: owner("RFC 9728", "2025-04-01"),
        fix: "serve it at `/.well-known/oauth-protected-resource` followed by the path of the endpoint, without asking for a token",
        judge: resource_metadata,
    },
    Rule {
        id: "auth/resource-metadata-both",
        demand: "the metadata of the resource is found with the path of the endpoint and at the root",
        weights: &[(ChatGpt, Warning), (Claude, Warning)],
        source: several("clients differ in which they ask for first", "2026-11-15"),
        fix: "serve it at both; each names the resource at its own address",
        judge: resource_both,
    },
    Rule {
        id: "auth/resource-equal",
        demand: "`resource` is the address that people type, to the letter",
        weights: HOSTS,
        source: owner("RFC 9728, section 3.3", "2025-04-01"),
        fix: "set `resource` to the address of the endpoint, path and slash included",
        judge: resource_equal,
    },
    Rule {
        id: "auth/servers-named",
        demand: "`authorization_servers` names at least one https address",
        weights: HOSTS,
        source: owner(SPEC_AUTH, "2025-11-25"),
        fix: "list the issuer exactly as its own metadata writes it; Claude uses the first only",
        judge: servers_named,
    },
    Rule {
        id: "auth/no-offline-access",
        demand: "the metadata of the resource does not ask for `offline_access`",
        weights: &[(Protocol, Warning), (ChatGpt, Warning)],
        source: owner(
            "MCP specification 2026-07-28, basic/authorization",
            "2026-07-28",
        ),
        fix: "leave it out of `scopes_supported` and of challenges; clients add it themselves",
        judge: no_offline_access,
    },
    Rule {
        id: "auth/server-metadata",
        demand: "the metadata of the authorization server is found, as a JSON object",
        weights: HOSTS,
        source: owner("RFC 8414; OpenID Connect Discovery 1.0", "2018-06-01"),
        fix: "serve `/.well-known/oauth-authorization-server` or `/.well-known/openid-configuration` at the issuer",
        judge: server::server_metadata,
    },
    Rule {
        id: "auth/server-alias",
        demand: "each place that answers for the authorization server answers with its metadata",
        weights: &[(ChatGpt, Warning), (Claude, Warning)],
        source: report(
            "mgaitan/quilombo#140: half an OpenID document that broke sign-in",
            "2026-11-15",
        ),
        fix: "serve the same document at both places, or 404 at one of them",
        judge: server::server_alias,
    },
    Rule {
        id: "auth/issuer-equal",
        demand: "`issuer` is the address under which the metadata was found",
        weights: HOSTS,
        source: owner("RFC 8414, section 3.3", "2018-06-01"),
        fix: "write the issuer alike in both documents, slash included",
        judge: server::issuer_equal,
    },
    Rule {
        id: "auth/endpoints",
        demand: "the authorization server names https endpoints for authorization and tokens",
        weights: HOSTS,
        source: owner("RFC 8414, section 2", "2018-06-01"),
        fix: "set `authorization_endpoint` and `token_endpoint`",
        judge: server::endpoints,
    },
    Rule {
        id: "auth/s256",
        demand: "the authorization server says that it supports PKCE with S256",
        weights: HOSTS,
        source: owner(SPEC_AUTH, "2025-11-25"),
        fix: "add `\"code_challenge_methods_supported\": [\"S256\"]`; clients stop without it",
        judge: server::s256,
    },
    Rule {
        id: "auth/registration",
        demand: "a client that nobody knows can register: by a metadata document, or dynamically",
        weights: &[(ChatGpt, Warning), (Claude, Warning), (Submission, Warning)],
        source: owner(OPENAI_AUTH, "2026-11-15"),
        fix: "set `client_id_metadata_document_supported`, or offer a `registration_endpoint`; else register each host by hand",
        judge: server::registration,
    },
    Rule {
        id: "auth/metadata-clients",
        demand: "where clients are known by a metadata document, `none` is among the token endpoint's methods",
        weights: &[(Claude, Warning)],
        source: several(CLAUDE_AUTH, "2026-11-15"),
        fix: "add `none` to `token_endpoint_auth_methods_supported`; Claude registers anew each time otherwise",
        judge: server::metadata_clients,
    },
    Rule {
        id: "auth/iss",
        demand: "authorization responses say who they are from",
        weights: &[(Protocol, Warning), (ChatGpt, Warning)],
        source: owner(
            "MCP specification 2026-07-28, basic/authorization; RFC 9207",
            "2026-07-28",
        ),
        fix: "send `iss` in every authorization response, and set `authorization_response_iss_parameter_supported`",
        judge: server::iss,
    },
    Rule {
        id: "auth/refresh",
        demand: "tokens can be refreshed",
        weights: &[(ChatGpt, Warning), (Claude, Warning)],
        source: several(
            "claude-code#65036, claude-code#36933, liftosaur#560: a new login every hour",
            "2026-11-15",
        ),
        fix: "add `refresh_token` to `grant_types_supported`, and hand such tokens out",
        judge: server::refresh,
    },
    Rule {
        id: "auth/forged-tokens",
        demand: "tokens that are made up, unsigned, expired or for another server are refused with 401",
        weights: HOSTS,
        source: owner(SPEC_AUTH, "2025-11-25"),
        fix: "verify signature, issuer, audience and expiry of every token before anything else",
        judge: tokens::forged_tokens,
    },
    Rule {
        id: "auth/invalid-token",
        demand: "a refused token is answered with a challenge that says `invalid_token`",
        weights: &[(Protocol, Warning)],
        source: owner("RFC 6750, section 3.1", "2012-10-01"),
        fix: "send `WWW-Authenticate: Bearer error=\"invalid_token\", …` so that clients sign in again",
        judge: tokens::invalid_token,
    },
    Rule {
        id: "auth/tool-challenge",
        demand: "a tool that asks for sign-in says `error` and `error_description` in `mcp/www_authenticate`",
        weights: &[(ChatGpt, Error), (Submission, Error)],
        source: owner(OPENAI_AUTH, "2026-11-15"),
        fix: "put both into the challenge, and set `isError` on the result",
        judge: tokens::tool_challenge,
    },
    Rule {
        id: "auth/login-register",
        demand: "a client can register itself",
        weights: HOSTS,
        source: owner("RFC 7591", "2015-07-01"),
        fix: "answer a registration with 201 and a `client_id`, and allow loopback redirects",
        judge: login::register,
    },
    Rule {
        id: "auth/login-return",
        demand: "the login page sends the user back with a code and the same `state`",
        weights: HOSTS,
        source: owner("RFC 6749, section 4.1.2", "2012-10-01"),
        fix: "redirect to the address that was registered, with `code` and `state`",
        judge: login::returned,
    },
    Rule {
        id: "auth/login-iss",
        demand: "what comes back names the issuer, where that was promised",
        weights: HOSTS,
        source: owner("RFC 9207, section 2.4", "2022-03-01"),
        fix: "send `iss`, equal to `issuer` to the letter, with every authorization response",
        judge: login::issuer,
    },
    Rule {
        id: "auth/login-token",
        demand: "a code is traded for a bearer token",
        weights: HOSTS,
        source: owner("RFC 6749, section 5.1", "2012-10-01"),
        fix: "take the code with its verifier as a form, and return `access_token` and `token_type`",
        judge: login::token,
    },
    Rule {
        id: "auth/login-refresh",
        demand: "a login comes with a refresh token that works",
        weights: &[(ChatGpt, Warning), (Claude, Warning)],
        source: several(
            "claude-code#65036, claude-code#36933, liftosaur#560: a new login every hour",
            "2026-11-15",
        ),
        fix: "hand out a `refresh_token`, and take it at the token endpoint",
        judge: login::refresh,
    },
    Rule {
        id: "auth/login-accepted",
        demand: "the server accepts the token of a fresh login",
        weights: HOSTS,
        source: owner(SPEC_AUTH, "2025-11-25"),
        fix: "issue tokens for the address that was asked for in `resource`, and compare with the same",
        judge: login::accepted,
    },
    Rule {
        id: "auth/login-tampered",
        demand: "a real token that was tampered with is refused",
        weights: HOSTS,
        source: owner(SPEC_AUTH, "2025-11-25"),
        fix: "verify the signature, or look the token up as a whole",
        judge: login::tampered,
    },
];

const OPEN: Verdict = Verdict::Skipped("the server asks for no sign-in");

/// Judges a server that asks for sign-in at the door.
fn asked(seen: &Seen, judge: impl Fn(&SignIn) -> Verdict) -> Verdict {
    match &seen.sign_in {
        Some(sign_in) if sign_in.is_asked() => judge(sign_in),
        Some(_) => OPEN,
        None => Verdict::Skipped("sign-in belongs to servers with an address"),
    }
}

/// Judges a server that asks for sign-in at the door or for one of its tools.
fn offered(seen: &Seen, judge: impl Fn(&SignIn) -> Verdict) -> Verdict {
    let is_oauth = |scheme: &Value| text(scheme, "type") == "oauth2";
    let by_tool = seen.tools.iter().any(|tool| {
        let schemes = tool.get("securitySchemes").and_then(Value::as_array);
        schemes.is_some_and(|schemes| schemes.iter().any(is_oauth))
    });
    match &seen.sign_in {
        Some(sign_in) if by_tool => judge(sign_in),
        _ => asked(seen, judge),
    }
}

/// Judges the metadata of the resource, where there is such.
fn resource(seen: &Seen, judge: impl Fn(&Value) -> Option<Fault>) -> Verdict {
    offered(seen, |sign_in| match sign_in.resource_json() {
        Some(found) => Verdict::one(judge(found).map(|fault| fault.seen(found))),
        None => Verdict::Skipped("the metadata of the resource was not found"),
    })
}

/// Judges the metadata of the authorization server, where there is such.
fn server(seen: &Seen, judge: impl Fn(&Value) -> Option<Fault>) -> Verdict {
    offered(seen, |sign_in| match sign_in.server_json() {
        Some(found) => Verdict::one(judge(found).map(|fault| fault.seen(found))),
        None => Verdict::Skipped("the metadata of the authorization server was not found"),
    })
}

fn absent_404(seen: &Seen) -> Verdict {
    let Some(sign_in) = &seen.sign_in else {
        return Verdict::Skipped("sign-in belongs to servers with an address");
    };
    let any = sign_in.resource_json().is_some() || sign_in.server_json().is_some();
    if sign_in.is_asked() || any {
        return Verdict::Skipped("the server offers sign-in");
    }
    if !seen.is_open {
        return Verdict::Skipped("the server did not answer");
    }
    let odd = |document: &&Document| {
        document
            .status()
            .is_some_and(|status| !matches!(status, 404 | 405 | 410))
    };
    let found = sign_in.resource.iter().chain(&sign_in.server).find(odd);
    Verdict::one(found.map(|document| {
        let status = document.status().unwrap_or_default();
        Fault::new(format!(
            "`{}` is answered with status {status}, though there is no sign-in",
            document.url
        ))
        .from(&document.exchange)
    }))
}

fn challenge(seen: &Seen) -> Verdict {
    asked(seen, |sign_in| {
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
            return Verdict::Judged(Vec::new());
        };
        let fault = Fault::new(what).seen(&header);
        // Clients that ask at the well-known places find it all the same.
        let found = bearer && sign_in.resource_json().is_some();
        Verdict::one(Some(if found { fault.at_most(Warning) } else { fault }))
    })
}

fn resource_metadata(seen: &Seen) -> Verdict {
    offered(seen, |sign_in| {
        if sign_in.resource_json().is_some() {
            return Verdict::Judged(Vec::new());
        }
        let tried: Vec<String> = sign_in
            .resource
            .iter()
            .map(|document| format!("{}: {}", document.url, document.exchange.received_line()))
            .collect();
        Verdict::one(Some(
            Fault::new("the metadata of the resource is nowhere").seen(&tried.join(" | ")),
        ))
    })
}

fn resource_both(seen: &Seen) -> Verdict {
    offered(seen, |sign_in| {
        if sign_in.resource_json().is_none() {
            return Verdict::Skipped("the metadata of the resource was not found");
        }
        let named = |document: &&Document| document.place == "named by the challenge";
        let missing = sign_in
            .resource
            .iter()
            .find(|document| !named(document) && document.json().is_none());
        Verdict::one(missing.map(|document| {
            Fault::new(format!(
                "the metadata of the resource is not found {}",
                document.place
            ))
            .from(&document.exchange)
        }))
    })
}

fn resource_equal(seen: &Seen) -> Verdict {
    offered(seen, |sign_in| {
        // The document that a client of this address uses: the root's may name the root.
        let at_root = |document: &&Document| document.place == "at the root";
        let own = sign_in
            .resource
            .iter()
            .filter(|document| !at_root(document))
            .find_map(Document::json);
        let Some(found) = own.or_else(|| sign_in.resource_json()) else {
            return Verdict::Skipped("the metadata of the resource was not found");
        };
        let url = seen.url.as_deref().unwrap_or_default();
        let named = text(found, "resource");
        Verdict::one((named != url).then(|| {
            let fault =
                Fault::new(format!("`resource` is `{named}`, the address is `{url}`")).seen(found);
            // On this machine the server may rightly name its public address.
            if seen.is_local {
                fault.at_most(Warning)
            } else {
                fault
            }
        }))
    })
}

fn is_address(seen: &Seen, value: &Value) -> bool {
    let url = value.as_str().unwrap_or_default();
    url.starts_with("https://") || (seen.is_local && url.starts_with("http://"))
}

fn servers_named(seen: &Seen) -> Verdict {
    resource(seen, |found| {
        let servers = found.get("authorization_servers").and_then(Value::as_array);
        let good = servers
            .is_some_and(|all| !all.is_empty() && all.iter().all(|one| is_address(seen, one)));
        (!good).then(|| Fault::new("`authorization_servers` names no https address"))
    })
}

fn no_offline_access(seen: &Seen) -> Verdict {
    resource(seen, |found| {
        let scopes = found.get("scopes_supported").and_then(Value::as_array);
        let asked =
            scopes.is_some_and(|scopes| scopes.iter().any(|scope| scope == "offline_access"));
        asked.then(|| Fault::new("`scopes_supported` of the resource has `offline_access`"))
    })
}
