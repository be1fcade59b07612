//! Minimal browser and OAuth client: forms, cookies, hidden inputs, PKCE, and the token endpoint.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::Serializer;

pub(super) const CALLBACK: &str = "https://app.example/cb";
/// Upper bound on every wait for a response, so that a hung test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// PKCE code verifier and its challenge, from appendix B of RFC 7636.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Raw HTTP request, before the `Host` and `Content-Length` headers are added.
pub(super) struct HttpRequest<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    /// Header lines, each ended by CRLF.
    pub(super) headers: String,
    pub(super) body: String,
}

/// HTTP response as text: the status, the whole head and the body.
pub(super) struct HttpReply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

/// Browser and OAuth client of one server. Cookies are passed by hand, so that a test can leave them out.
#[derive(Clone)]
pub(super) struct Browser {
    pub(super) address: String,
}

pub(super) fn form(values: &[(&str, &str)]) -> String {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(values);
    form.finish()
}

impl HttpReply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The cookie of `Set-Cookie`, in the form of a `Cookie` header.
    pub(super) fn cookie(&self) -> String {
        let cookie = self.header("set-cookie").unwrap_or_default();
        cookie.split(';').next().unwrap_or_default().to_owned()
    }

    fn hidden(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let found = self.body.split_once(&mark);
        let rest = found.unwrap_or_else(|| panic!("{}", self.body)).1;
        unescaped(rest.split('"').next().unwrap())
    }

    /// A query parameter of the URL that the page redirects the browser to.
    pub(super) fn redirect_parameter(&self, name: &str) -> String {
        let found = self.body.split_once("url=");
        let rest = found.unwrap_or_else(|| panic!("{}", self.body)).1;
        let url = Url::parse(&unescaped(rest.split('"').next().unwrap())).unwrap();
        let mut pairs = url.query_pairs();
        let value = pairs.find(|(key, _)| key == name);
        value.unwrap_or_else(|| panic!("{url}")).1.into_owned()
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

impl Browser {
    pub(super) fn send(&self, sent: &HttpRequest<'_>) -> HttpReply {
        let HttpRequest {
            method,
            target,
            headers,
            body,
        } = sent;
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        // A server that refuses early may close before everything is written.
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        HttpReply {
            status: status.unwrap_or_else(|| panic!("no answer to {request}: {text}")),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub(super) fn get(&self, target: &str, headers: &str) -> HttpReply {
        self.send(&HttpRequest {
            method: "GET",
            target,
            headers: headers.to_owned(),
            body: String::new(),
        })
    }

    pub(super) fn post(&self, target: &str, values: &[(&str, &str)], headers: &str) -> HttpReply {
        let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.send(&HttpRequest {
            method: "POST",
            target,
            headers: format!("{kind}{headers}"),
            body: form(values),
        })
    }

    /// Posts a JSON-RPC request with the headers that the MCP endpoint requires.
    pub(super) fn rpc(
        &self,
        target: &str,
        headers: &str,
        method: &str,
        params: &Value,
    ) -> HttpReply {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send(&HttpRequest {
            method: "POST",
            target,
            headers: format!(
                "Content-Type: application/json\r\nAccept: application/json\r\n\
                 MCP-Protocol-Version: 2025-11-25\r\n{headers}"
            ),
            body: body.to_string(),
        })
    }

    /// Registers a client dynamically (RFC 7591), and returns its id.
    pub(super) fn register(&self) -> String {
        let got = self.send(&HttpRequest {
            method: "POST",
            target: "/register",
            headers: "Content-Type: application/json\r\n".to_owned(),
            body: json!({"client_name": "Chart room", "redirect_uris": [CALLBACK]}).to_string(),
        });
        assert_eq!(got.status, 201, "{}", got.body);
        got.json()["client_id"].as_str().unwrap().to_owned()
    }

    /// Requests the consent page of the authorization endpoint.
    pub(super) fn authorize(&self, client: &str) -> HttpReply {
        let query = form(&[
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", CALLBACK),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("state", "s1"),
            ("scope", "docs.read"),
        ]);
        self.get(&format!("/authorize?{query}"), "")
    }

    /// Submits the form of the consent page, with its hidden inputs and cookie.
    pub(super) fn submit_consent(&self, page: &HttpReply, values: &[(&str, &str)]) -> HttpReply {
        let (request, token) = (page.hidden("request"), page.hidden("token"));
        let mut all = vec![
            ("request", request.as_str()),
            ("token", token.as_str()),
            ("decision", "allow"),
        ];
        all.extend(values);
        let headers = format!("Cookie: {}\r\n", page.cookie());
        self.post("/authorize", &all, &headers)
    }

    /// Exchanges an authorization code for tokens.
    pub(super) fn redeem(&self, client: &str, code: &str) -> HttpReply {
        let values = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        self.post("/token", &values, "")
    }

    pub(super) fn refresh(&self, client: &str, token: &str) -> HttpReply {
        let values = [
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", token),
        ];
        self.post("/token", &values, "")
    }
}
