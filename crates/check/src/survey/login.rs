//! Signs in as a host would: registers, sends the user to the login page, takes the code, trades it for
//! tokens, refreshes them. What happened at each step is kept; secrets are not.

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

/// How long the user has, and how many others may knock meanwhile.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_VISITORS: usize = 20;
/// The most bytes of a request to the page that the browser comes back to.
const MAX_REQUEST: usize = 16 * 1024;
/// Hosts give the token endpoint ten seconds.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// How a login went: for each step that was reached, what was wrong with it.
#[derive(Default)]
pub(crate) struct LoginFlow {
    pub steps: Vec<(LoginStep, Option<String>)>,
    /// A request with the token, and one with a token that was tampered with.
    pub accepted: Option<Arc<RecordedExchange>>,
    pub tampered: Option<Arc<RecordedExchange>>,
}

/// The steps of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginStep {
    Register,
    Return,
    Issuer,
    Token,
    Refresh,
}

impl LoginFlow {
    /// Notes a step; whether all is well with it.
    fn note(&mut self, step: LoginStep, fault: Option<String>) -> bool {
        let good = fault.is_none();
        self.steps.push((step, fault));
        good
    }
}

/// What the metadata says that a login needs.
struct AuthEndpoints {
    issuer: String,
    authorize: String,
    token: String,
    register: Option<String>,
    says_issuer: bool,
    scope: String,
}

pub(super) fn sign_in(visit: &mut SurveySession) {
    let mut login = LoginFlow::default();
    let token = auth_endpoints(visit).and_then(|places| run_flow(visit, &places, &mut login));
    if let (Some(token), Some(http)) = (token, visit.wire.as_http()) {
        http.sign_in(&token);
        (visit.progress)("greeting");
        handshake::negotiate(visit);
        let greeted = visit.survey.greetings.first();
        login.accepted = greeted.map(|(_, exchange)| Arc::clone(exchange));
        let voice = McpRequestBuilder::new(visit.identity, LEGACY_REVISIONS[0]);
        let ask = voice.initialize(LEGACY_REVISIONS[0]).anonymous();
        let bearer = format!("Bearer {}", tampered(&token));
        login.tampered = Some(visit.wire.send(ask.with_header("Authorization", &bearer)));
    }
    visit.survey.login = Some(login);
}

fn auth_endpoints(visit: &SurveySession) -> Option<AuthEndpoints> {
    let sign_in = visit.survey.sign_in.as_ref()?;
    let server = sign_in.server_json()?;
    let text = |key: &str| server.get(key).and_then(Value::as_str).map(str::to_owned);
    let asked = sign_in
        .header()
        .and_then(|header| challenge_parameter(header, "scope"));
    let listed = sign_in
        .resource_json()
        .and_then(|resource| resource.get("scopes_supported"));
    let listed = listed.and_then(Value::as_array).map(|all| {
        let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
        all.join(" ")
    });
    // Nobody is sent anywhere else, neither the user's browser nor the check.
    let http = visit.wire.as_http()?;
    let address = |key: &str| text(key).filter(|url| http.may_request(url));
    Some(AuthEndpoints {
        issuer: text("issuer")?,
        authorize: address("authorization_endpoint")?,
        token: address("token_endpoint")?,
        register: address("registration_endpoint"),
        says_issuer: server.get("authorization_response_iss_parameter_supported")
            == Some(&Value::Bool(true)),
        scope: asked.or(listed).unwrap_or_default(),
    })
}

/// Step by step up to the token; the first step that fails ends it.
fn run_flow(
    visit: &SurveySession,
    places: &AuthEndpoints,
    login: &mut LoginFlow,
) -> Option<String> {
    let listener = TcpListener::bind("127.0.0.1:0").ok()?;
    let redirect = format!(
        "http://127.0.0.1:{}/callback",
        listener.local_addr().ok()?.port()
    );
    let client = match &visit.options.client_id {
        Some(client) => client.clone(),
        None => register(visit, places, &redirect, login)?,
    };
    let (state, verifier) = (random_secret(), random_secret() + &random_secret());
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let resource = visit.survey.url.clone().unwrap_or_default();
    let query = form(&[
        ("response_type", "code"),
        ("client_id", &client),
        ("redirect_uri", &redirect),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("state", &state),
        ("scope", &places.scope),
        ("resource", &resource),
    ]);
    let joint = if places.authorize.contains('?') {
        '&'
    } else {
        '?'
    };
    (visit.progress)(&format!("sign in at {}{joint}{query}", places.authorize));
    let returned = wait_for_return(&listener);
    let code = judge_return(&returned, &state, places, login)?;
    let answer = request_token(
        visit,
        places,
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
            Some("no refresh token was handed out".to_owned()),
        );
        return Some(token);
    };
    let again = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &refresh),
        ("client_id", &client),
        ("resource", &resource),
    ];
    let answer = request_token(visit, places, &again);
    Some(extract_token(&answer, LoginStep::Refresh, login).unwrap_or(token))
}

fn register(
    visit: &SurveySession,
    places: &AuthEndpoints,
    redirect: &str,
    login: &mut LoginFlow,
) -> Option<String> {
    let Some(url) = &places.register else {
        let what = "there is no `registration_endpoint`; give a client id";
        login.note(LoginStep::Register, Some(what.to_owned()));
        return None;
    };
    let body = json!({
        "client_name": "docent check", "redirect_uris": [redirect], "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"], "token_endpoint_auth_method": "none",
    });
    let ask = OutgoingRequest {
        url: Some(url.clone()),
        ..OutgoingRequest::post(body.to_string())
    };
    let exchange = visit
        .wire
        .send_unlogged(ask.anonymous().with_timeout(STEP_TIMEOUT));
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

/// The code in what the browser brought back, if that is as it should be.
fn judge_return(
    returned: &Option<String>,
    state: &str,
    places: &AuthEndpoints,
    login: &mut LoginFlow,
) -> Option<String> {
    let Some(query) = returned else {
        login.note(
            LoginStep::Return,
            Some("nobody came back within five minutes".to_owned()),
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
        _ => Some("another `state` came back".to_owned()),
    };
    let good = login.note(LoginStep::Return, fault);
    if places.says_issuer {
        let issuer = query_parameter(query, "iss");
        let fault = (issuer.as_deref() != Some(&places.issuer)).then(|| {
            format!(
                "`iss` is `{}`, the issuer is `{}`",
                issuer.unwrap_or_default(),
                places.issuer
            )
        });
        login.note(LoginStep::Issuer, fault);
    }
    query_parameter(query, "code").filter(|_| good)
}

/// One request to the token endpoint: what it says, or what was seen instead.
fn request_token(
    visit: &SurveySession,
    places: &AuthEndpoints,
    fields: &[(&str, &str)],
) -> Result<Value, String> {
    let ask = OutgoingRequest {
        url: Some(places.token.clone()),
        ..OutgoingRequest::post(form(fields))
    };
    let ask = ask
        .with_header("Content-Type", "application/x-www-form-urlencoded")
        .with_header("Accept", "application/json");
    let exchange = visit
        .wire
        .send_unlogged(ask.anonymous().with_timeout(STEP_TIMEOUT));
    let received = exchange.received().filter(|received| received.is_ok());
    let answer = received.and_then(|received| received.messages.first());
    answer.cloned().ok_or_else(|| status_summary(&exchange))
}

/// The token in an answer of the token endpoint.
fn extract_token(
    answer: &Result<Value, String>,
    step: LoginStep,
    login: &mut LoginFlow,
) -> Option<String> {
    let text =
        |answer: &Value, key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
    let (token, fault) = match answer {
        Err(seen) => (
            None,
            Some(format!("the token endpoint answers with {seen}")),
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

/// Status and error of an answer, and nothing else of it: the rest may be secret.
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

/// The query of the first request for the page that the browser is sent back to.
fn wait_for_return(listener: &TcpListener) -> Option<String> {
    listener.set_nonblocking(true).ok()?;
    let end = Instant::now() + LOGIN_TIMEOUT;
    let mut visitors = 0;
    while Instant::now() < end && visitors < MAX_VISITORS {
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

/// A value in a query, decoded.
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

/// Fields as a form or a query; empty ones are left out.
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

/// The token with one character of its end changed.
fn tampered(token: &str) -> String {
    let mut characters: Vec<char> = token.chars().collect();
    // The very last one of a signature may carry bits that count for nothing.
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
