//! Defects of OAuth: challenge, metadata, forged tokens and login.

use serde_json::{Value, json};

use super::{Broken, edited};
use crate::server::CannedReply;

/// Changes the metadata at paths that contain this word.
fn metadata(word: &'static str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Broken {
    let broken = Broken::reply(move |_, call, reply| {
        if call.path.contains(word) && reply.status == 200 {
            edited(reply, |document| change(document))
        } else {
            reply
        }
    });
    broken.sign_in()
}

const RESOURCE: &str = "oauth-protected-resource";
const SERVER: &str = "oauth-authorization-server";

/// Changes the challenge of every refusal.
fn challenge(change: fn(&str) -> String) -> Broken {
    let broken = Broken::reply(move |_, _, mut reply| {
        for (name, value) in &mut reply.headers {
            if name == "WWW-Authenticate" {
                *value = change(value);
            }
        }
        reply
    });
    broken.sign_in()
}

/// A server with one tool that requires sign-in, with this challenge.
pub(crate) fn asking(words: &'static str) -> Broken {
    Broken::call("show_status", move |_, result| {
        *result = json!({
            "isError": true, "content": [{"type": "text", "text": "Sign in first."}], "resultType": "complete",
            "_meta": {"mcp/www_authenticate": [words]},
        });
    })
}

/// A server that requires sign-in, checked with `login`.
pub(crate) fn signing_in(
    defect: impl Fn(&str, &crate::server::ReceivedCall, CannedReply) -> CannedReply
    + Send
    + Sync
    + 'static,
) -> Broken {
    Broken::reply(defect)
        .sign_in()
        .checked(|options| options.login = true)
}

pub(super) fn auth(name: &str) -> Option<Broken> {
    Some(match name {
        "absent-404" => Broken::reply(|_, call, reply| {
            if call.path.contains("oauth") {
                CannedReply::status(400)
            } else {
                reply
            }
        }),
        "challenge" => challenge(|_| "Basic realm=x".to_owned()),
        "resource-metadata" => Broken::reply(|_, call, reply| {
            if call.path.contains(RESOURCE) {
                CannedReply::raw("text/html", "<p>")
            } else {
                reply
            }
        })
        .sign_in(),
        "resource-metadata-both" => Broken::reply(|_, call, reply| {
            if call.path.ends_with(RESOURCE) {
                CannedReply::status(404)
            } else {
                reply
            }
        })
        .sign_in(),
        "resource-equal" => metadata(RESOURCE, |document| {
            document["resource"] = json!("https://a.example")
        }),
        "servers-named" => metadata(RESOURCE, |document| {
            document["authorization_servers"] = json!([])
        }),
        "no-offline-access" => metadata(RESOURCE, |document| {
            document["scopes_supported"] = json!(["offline_access"])
        }),
        "server-metadata" => Broken::reply(|_, call, reply| {
            if call.path.contains(SERVER) {
                CannedReply::status(404)
            } else {
                reply
            }
        })
        .sign_in(),
        "server-alias" => Broken::reply(|_, call, reply| {
            if call.path.contains("openid") {
                CannedReply::json(&json!({"jwks": []}))
            } else {
                reply
            }
        })
        .sign_in(),
        "issuer-equal" => metadata(SERVER, |document| {
            document["issuer"] = json!("https://other.example")
        }),
        "endpoints" => metadata(SERVER, |document| {
            document["token_endpoint"] = json!("/token")
        }),
        "s256" => metadata(SERVER, |document| {
            document["code_challenge_methods_supported"] = json!(["plain"])
        }),
        "registration" => metadata(SERVER, |document| {
            document["registration_endpoint"] = Value::Null;
            document["client_id_metadata_document_supported"] = json!(false);
        }),
        "metadata-clients" => metadata(SERVER, |document| {
            document["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"])
        }),
        "iss" => metadata(SERVER, |document| {
            document["authorization_response_iss_parameter_supported"] = json!(false)
        }),
        "refresh" => metadata(SERVER, |document| {
            document["grant_types_supported"] = json!(["authorization_code"])
        }),
        "forged-tokens" => Broken::reply(|_, call, reply| {
            let token = call.header("authorization").unwrap_or_default();
            // An unsigned token ends with its last dot.
            if token.ends_with('.') {
                super::result_of(call, &json!({}))
            } else {
                reply
            }
        })
        .sign_in(),
        "invalid-token" => challenge(|header| header.replace("error=\"invalid_token\", ", "")),
        "login-register" => signing_in(|_, call, reply| {
            if call.path == "/register" {
                CannedReply::status(403)
            } else {
                reply
            }
        }),
        "login-return" => signing_in(|_, call, mut reply| {
            for (_, value) in reply
                .headers
                .iter_mut()
                .filter(|_| call.path.starts_with("/authorize"))
            {
                *value = value.replace("&state=", "&state=x");
            }
            reply
        }),
        "login-iss" => signing_in(|_, call, mut reply| {
            for (_, value) in reply
                .headers
                .iter_mut()
                .filter(|_| call.path.starts_with("/authorize"))
            {
                *value = value.replace("&iss=", "&iss=x");
            }
            reply
        }),
        "login-token" => signing_in(|_, call, reply| {
            if call.path == "/token" {
                CannedReply::status(400)
            } else {
                reply
            }
        }),
        "login-refresh" => signing_in(|_, call, reply| {
            if call.path == "/token" && call.text.contains("grant_type=refresh_token") {
                CannedReply::status(400)
            } else {
                reply
            }
        }),
        "login-accepted" => signing_in(|_, call, reply| {
            if call.method() == "initialize" {
                CannedReply::status(401)
            } else {
                reply
            }
        }),
        "login-tampered" => signing_in(|_, call, reply| {
            let tampered = call.header("authorization") == Some("Bearer Aood-token");
            if tampered {
                super::result_of(call, &json!({}))
            } else {
                reply
            }
        }),
        "tool-challenge" => asking("Bearer resource_metadata=\"https://a.example\""),
        _ => return None,
    })
}
