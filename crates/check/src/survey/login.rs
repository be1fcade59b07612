//! OAuth login as a host does it: dynamic client registration, authorization code with PKCE over a loopback redirect,
//! token exchange and refresh. The outcome of each step is recorded; codes and tokens are not.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::auth_discovery::challenge_parameter;
use super::{SurveySession, handshake};
use crate::connection::OutgoingRequest;
use crate::exchange::RecordedExchange;
use crate::request_builder::{LEGACY_REVISIONS, McpRequestBuilder};

/// How long the user has to sign in, and how many connections the loopback listener accepts meanwhile.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_VISITORS: usize = 20;
/// The most bytes of a request to the loopback redirect.
const MAX_REQUEST: usize = 16 * 1024;
/// The timeout of registration and token requests: hosts give them ten seconds.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// The outcome of a login: each step that was reached, with what was wrong with it.
#[derive(Default)]
pub(crate) struct LoginFlow {
    pub steps: Vec<(LoginStep, Option<String>)>,
    /// A request with the new token, and one with a tampered copy of it.
    pub accepted: Option<Arc<RecordedExchange>>,
    pub tampered: Option<Arc<RecordedExchange>>,
}

/// The steps of a login that rules judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginStep {
    Register,
    Return,
    Issuer,
    Token,
    Refresh,
}

impl LoginFlow {
    /// Records a step; true where it succeeded.
    fn note(&mut self, step: LoginStep, fault: Option<String>) -> bool {
        let good = fault.is_none();
        self.steps.push((step, fault));
        good
    }
}

/// What a login needs from the discovered metadata.
struct AuthEndpoints {
    issuer: String,
    authorize: String,
    token: String,
    register: Option<String>,
    promises_issuer: bool,
    scope: String,
}

pub(super) fn sign_in(ctx: &mut SurveySession) {
    let mut login = LoginFlow::default();
    let token = auth_endpoints(ctx).and_then(|endpoints| run_flow(ctx, &endpoints, &mut login));
    if let (Some(token), Some(http)) = (token, ctx.wire.as_http()) {
        http.sign_in(&token);
        (ctx.progress)("handshake");
        handshake::negotiate(ctx);
        let handshake = ctx.survey.handshakes.first();
        login.accepted = handshake.map(|(_, exchange)| Arc::clone(exchange));
        let builder = McpRequestBuilder::new(ctx.identity, LEGACY_REVISIONS[0]);
        let request = builder.initialize(LEGACY_REVISIONS[0]).anonymous();
        let bearer = format!("Bearer {}", tampered(&token));
        login.tampered = Some(ctx.wire.send(request.with_header("Authorization", &bearer)));
    }
    ctx.survey.login = Some(login);
}

fn auth_endpoints(ctx: &SurveySession) -> Option<AuthEndpoints> {
    let sign_in = ctx.survey.sign_in.as_ref()?;
    let server = sign_in.server_json()?;
    let text = |key: &str| server.get(key).and_then(Value::as_str).map(str::to_owned);
    let requested_scope = sign_in
        .header()
        .and_then(|header| challenge_parameter(header, "scope"));
    let listed = sign_in
        .resource_json()
        .and_then(|resource| resource.get("scopes_supported"));
    let listed = listed.and_then(Value::as_array).map(|all| {
        let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
        all.join(" ")
    });
    // The SSRF guard applies to the user's browser as well as to the check.
    let http = ctx.wire.as_http()?;
    let address = |key: &str| text(key).filter(|url| http.may_request(url));
    Some(AuthEndpoints {
        issuer: text("issuer")?,
        authorize: address("authorization_endpoint")?,
        token: address("token_endpoint")?,
        register: address("registration_endpoint"),
        promises_issuer: server.get("authorization_response_iss_parameter_supported")
            == Some(&Value::Bool(true)),
        scope: requested_scope.or(listed).unwrap_or_default(),
    })
}

/// Runs the authorization code flow and returns the access token; the first step that fails ends it.
fn run_flow(
    ctx: &SurveySession,
    endpoints: &AuthEndpoints,
    login: &mut LoginFlow,
) -> Option<String> {
    let listener = TcpListener::bind("127.0.0.1:0").ok()?;
    let redirect = format!(
        "http://127.0.0.1:{}/callback",
        listener.local_addr().ok()?.port()
    );
    let client = match &ctx.options.client_id {
        Some(client) => client.clone(),
        None => register(ctx, endpoints, &redirect, login)?,
    };
    let (state, verifier) = (random_secret(), random_secret() + &random_secret());
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let resource = ctx.survey.url.clone().unwrap_or_default();
    let query = form(&[
        ("response_type", "code"),
        ("client_id", &client),
        ("redirect_uri", &redirect),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("state", &state),
        ("scope", &endpoints.scope),
        ("resource", &resource),
    ]);
    let separator = if endpoints.authorize.contains('?') {
        '&'
    } else {
        '?'
    };
    (ctx.progress)(&format!(
        "sign in at {}{separator}{query}",
        endpoints.authorize
    ));
    let returned = wait_for_return(&listener);
    let code = judge_return(&returned, &state, endpoints, login)?;
    let answer = request_token(
        ctx,
        endpoints,
        &[
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &redirect),
            ("client_id", &client),
            ("code_verifier", &verifier),
            ("resource", &resource),
        ],
    );
    let token = extract_token(&answer, LoginStep::Token, login)?;
    let refresh = answer
        .ok()
        .and_then(|answer| answer.get("refresh_token")?.as_str().map(str::to_owned));
    let Some(refresh) = refresh else {
        login.note(
            LoginStep::Refresh,
            Some("no refresh token was issued".to_owned()),
        );
        return Some(token);
    };
    let again = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &refresh),
        ("client_id", &client),
        ("resource", &resource),
    ];
    let answer = request_token(ctx, endpoints, &again);
    Some(extract_token(&answer, LoginStep::Refresh, login).unwrap_or(token))
}

fn register(
    ctx: &SurveySession,
    endpoints: &AuthEndpoints,
    redirect: &str,
    login: &mut LoginFlow,
) -> Option<String> {
    let Some(url) = &endpoints.register else {
        let what = "there is no `registration_endpoint`, and no client id was given";
        login.note(LoginStep::Register, Some(what.to_owned()));
        return None;
    };
    let body = json!({
        "client_name": "docent check", "redirect_uris": [redirect], "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"], "token_endpoint_auth_method": "none",
    });
    let request = OutgoingRequest {
        url: Some(url.clone()),
        ..OutgoingRequest::post(body.to_string())
    };
    let exchange = ctx
        .wire
        .send_unlogged(request.anonymous().with_timeout(STEP_TIMEOUT));
    let client = exchange.received().and_then(|received| {
        let client = received.messages.first()?.get("client_id")?.as_str()?;
        received.is_ok().then(|| client.to_owned())
    });
    let fault = client
        .is_none()
        .then(|| format!("`{url}` is answered with {}", status_summary(&exchange)));
    login.note(LoginStep::Register, fault);
    client
}

/// Validates the authorization response (`state`, `iss`) and returns its code.
fn judge_return(
    returned: &Option<String>,
    state: &str,
    endpoints: &AuthEndpoints,
    login: &mut LoginFlow,
) -> Option<String> {
    let Some(query) = returned else {
        login.note(
            LoginStep::Return,
            Some("the browser did not return from the login page within five minutes".to_owned()),
        );
        return None;
    };
    let fault = match (
        query_parameter(query, "code"),
        query_parameter(query, "state"),
    ) {
        (None, _) => Some(format!(
            "no code came back, but `{}`",
            query_parameter(query, "error").unwrap_or_default()
        )),
        (_, Some(found)) if found == state => None,
        _ => Some("the `state` in the response does not match".to_owned()),
    };
    let good = login.note(LoginStep::Return, fault);
    if endpoints.promises_issuer {
        let issuer = query_parameter(query, "iss");
        let fault = (issuer.as_deref() != Some(&endpoints.issuer)).then(|| {
            format!(
                "`iss` is `{}`, the issuer is `{}`",
                issuer.unwrap_or_default(),
                endpoints.issuer
            )
        });
        login.note(LoginStep::Issuer, fault);
    }
    query_parameter(query, "code").filter(|_| good)
}

/// Sends one request to the token endpoint; an error is a summary without secrets.
fn request_token(
    ctx: &SurveySession,
    endpoints: &AuthEndpoints,
    fields: &[(&str, &str)],
) -> Result<Value, String> {
    let request = OutgoingRequest {
        url: Some(endpoints.token.clone()),
        ..OutgoingRequest::post(form(fields))
    };
    let request = request
        .with_header("Content-Type", "application/x-www-form-urlencoded")
        .with_header("Accept", "application/json");
    let exchange = ctx
        .wire
        .send_unlogged(request.anonymous().with_timeout(STEP_TIMEOUT));
    let received = exchange.received().filter(|received| received.is_ok());
    let answer = received.and_then(|received| received.messages.first());
    answer.cloned().ok_or_else(|| status_summary(&exchange))
}

/// The access token in a response of the token endpoint; records the step.
fn extract_token(
    answer: &Result<Value, String>,
    step: LoginStep,
    login: &mut LoginFlow,
) -> Option<String> {
    let text =
        |answer: &Value, key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
    let (token, fault) = match answer {
        Err(summary) => (
            None,
            Some(format!("the token endpoint answers with {summary}")),
        ),
        Ok(answer) => {
            let bearer =
                text(answer, "token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
            match text(answer, "access_token") {
                None => (
                    None,
                    Some("the token endpoint returns no `access_token`".to_owned()),
                ),
                token if bearer => (token, None),
                token => (token, Some("`token_type` is not `Bearer`".to_owned())),
            }
        }
    };
    login.note(step, fault);
    token
}

/// The status and the error code of a response. Nothing else of it is shown, since the rest may be secret.
fn status_summary(exchange: &RecordedExchange) -> String {
    match &exchange.outcome {
        Err(failure) => failure.to_string(),
        Ok(received) => {
            let error = received
                .messages
                .first()
                .and_then(|message| message.get("error")?.as_str());
            format!("status {} {}", received.status, error.unwrap_or_default())
        }
    }
}

/// Waits for the redirect to the loopback listener and returns its query string.
fn wait_for_return(listener: &TcpListener) -> Option<String> {
    listener.set_nonblocking(true).ok()?;
    let deadline = Instant::now() + LOGIN_TIMEOUT;
    let mut visitors = 0;
    while Instant::now() < deadline && visitors < MAX_VISITORS {
        match listener.accept() {
            Ok((stream, _)) => {
                visitors += 1;
                if let Some(query) = receive_callback(stream) {
                    return Some(query);
                }
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    None
}

fn receive_callback(mut stream: TcpStream) -> Option<String> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") && request.len() < MAX_REQUEST {
        match stream.read(&mut piece) {
            Ok(length) if length > 0 => request.extend_from_slice(piece.get(..length)?),
            _ => break,
        }
    }
    let page = "You can close this page.";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
    let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len());
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1)?;
    path.strip_prefix("/callback?").map(str::to_owned)
}

/// A parameter of a query string, percent-decoded.
fn query_parameter(query: &str, key: &str) -> Option<String> {
    let pair = query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))?;
    let mut bytes = Vec::new();
    let mut rest = pair.1.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Encodes fields as a form or a query string; empty fields are left out.
fn form(fields: &[(&str, &str)]) -> String {
    const STRANGE: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    let fields = fields.iter().filter(|(_, value)| !value.is_empty());
    let fields: Vec<String> = fields
        .map(|(key, value)| format!("{key}={}", utf8_percent_encode(value, STRANGE)))
        .collect();
    fields.join("&")
}

fn random_secret() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// A copy of the token with one character near its end changed.
fn tampered(token: &str) -> String {
    let mut characters: Vec<char> = token.chars().collect();
    // The last character of a base64 signature may carry padding bits, so an earlier one is changed.
    let at = characters.len().saturating_sub(10);
    if let Some(character) = characters.get_mut(at) {
        *character = if *character == 'A' { 'B' } else { 'A' };
    }
    characters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_written_and_read() {
        let written = form(&[("a", "x y&z=ü"), ("b", ""), ("c", "1")]);
        assert_eq!(written, "a=x%20y%26z%3D%C3%BC&c=1");
        assert_eq!(query_parameter(&written, "a").as_deref(), Some("x y&z=ü"));
        assert_eq!(query_parameter("a=%zz", "a"), None);
        assert_eq!(query_parameter("a=1", "b"), None);
    }

    #[test]
    fn a_tampered_token_differs_in_one_character() {
        assert_eq!(tampered("good-token"), "Aood-token");
        assert_eq!(tampered("A"), "B");
        assert_eq!(tampered(""), "");
    }
}
