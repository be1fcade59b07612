//! Tests of the guarded HTTP client: which requests succeed, and which it refuses to send.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::*;

/// A server that answers a single request and then shuts down.
fn once(answer: impl Into<Vec<u8>>) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let answer = answer.into();
    let request = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 64 * 1024];
        let mut request = String::new();
        while !request.contains("\r\n\r\n") {
            let size = stream.read(&mut bytes).unwrap();
            request.push_str(&String::from_utf8_lossy(&bytes[..size]));
            if size == 0 {
                break;
            }
        }
        // The client may close the connection early.
        let _ = stream.write_all(&answer);
        request
    });
    (url, request)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let size = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {size}\r\nconnection: close\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_small_answer_is_fetched() {
    let (url, request) = once(answer("200 OK", "", "{}"));
    assert_eq!(HttpFetcher::new(true).get(url).await, Ok(b"{}".to_vec()));
    let request = request.join().unwrap().to_ascii_lowercase();
    assert!(request.starts_with("get /x "), "{request}");
    assert!(request.contains("accept: application/json"), "{request}");
    assert!(request.contains("user-agent: docent/"), "{request}");
    assert!(!request.contains("authorization"), "{request}");
}

#[tokio::test]
async fn a_form_is_sent_with_what_it_needs() {
    let (url, request) = once(answer("200 OK", "", "{}"));
    let form = FormPost {
        authorization: Some("Basic abc".to_owned()),
        body: "token=x".to_owned(),
    };
    assert_eq!(
        HttpFetcher::new(true).post(url, form).await,
        Ok(b"{}".to_vec())
    );
    let request = request.join().unwrap().to_ascii_lowercase();
    assert!(request.starts_with("post /x "), "{request}");
    assert!(request.contains("authorization: basic abc"), "{request}");
    assert!(
        request.contains("application/x-www-form-urlencoded"),
        "{request}"
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (elsewhere, _) = once(answer("200 OK", "", "{}"));
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let (url, _) = once(answer(status, &format!("location: {elsewhere}\r\n"), ""));
        let code = status[..3].parse().unwrap();
        assert_eq!(
            HttpFetcher::new(true).get(url).await,
            Err(HttpFetchError::Status(code))
        );
    }
    for (status, code) in [
        ("404 Not Found", 404),
        ("500 Oh", 500),
        ("204 No Content", 204),
    ] {
        let (url, _) = once(answer(status, "", ""));
        assert_eq!(
            HttpFetcher::new(true).get(url).await,
            Err(HttpFetchError::Status(code))
        );
    }
}

#[tokio::test]
async fn an_answer_has_a_bound() {
    let most = usize::try_from(MAX_ANSWER_BYTES).unwrap();
    let (url, _) = once(answer("200 OK", "", &"x".repeat(most)));
    assert_eq!(
        HttpFetcher::new(true).get(url).await.map(|body| body.len()),
        Ok(most)
    );
    let (url, _) = once(answer("200 OK", "", &"x".repeat(most + 1)));
    assert_eq!(
        HttpFetcher::new(true).get(url).await,
        Err(HttpFetchError::TooLong)
    );
}

#[tokio::test]
async fn only_the_owner_opens_private_networks() {
    let web = HttpFetcher::new(false);
    for url in [
        "https://127.0.0.1:1/x",
        "https://localhost:1/x",
        "https://10.0.0.1/x",
        "https://[::1]:1/x",
    ] {
        assert_eq!(
            web.get(url.to_owned()).await,
            Err(HttpFetchError::Private),
            "{url}"
        );
    }
    for url in [
        "http://127.0.0.1:1/x",
        "http://a.example/x",
        "ftp://a.example",
        "a.example",
        "",
    ] {
        assert_eq!(
            web.get(url.to_owned()).await,
            Err(HttpFetchError::Scheme),
            "{url}"
        );
    }
    let form = FormPost {
        authorization: None,
        body: String::new(),
    };
    assert_eq!(
        web.post("http://127.0.0.1:1/".to_owned(), form).await,
        Err(HttpFetchError::Scheme)
    );
    // http is allowed to a loopback address only, even where private networks are allowed.
    let private = HttpFetcher::new(true);
    assert_eq!(
        private.get("http://10.0.0.1/x".to_owned()).await,
        Err(HttpFetchError::Scheme)
    );
    let gone = private.get("http://127.0.0.1:1/x".to_owned()).await;
    assert_eq!(gone, Err(HttpFetchError::Unreachable));
}

#[test]
fn addresses_are_public_or_not() {
    let public = [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.0.0.1",
        "128.0.0.1",
        "169.253.0.1",
        "169.255.0.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.0.1.1",
        "192.167.0.1",
        "192.169.0.1",
        "192.88.98.1",
        "198.17.0.1",
        "198.20.0.1",
        "198.51.99.1",
        "203.0.112.1",
        "223.255.255.255",
        "2606:4700::1",
        "2001:4860::1",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::1",
        "3fff::1",
    ];
    let private = [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.1.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::1",
        "2002:a00:1::1",
        "2001::1",
        "2001:db8::1",
        "fc00::1",
        "fd00::1",
        "fe80::1",
        "ff02::1",
        "4000::1",
        "100::1",
    ];
    for ip in public {
        assert!(is_public(ip.parse().unwrap()), "{ip}");
    }
    for ip in private {
        assert!(!is_public(ip.parse().unwrap()), "{ip}");
    }
}

#[test]
fn this_machine_has_few_names() {
    for here in ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "[::1]"] {
        assert!(is_loopback_host(here), "{here}");
    }
    for there in [
        "localhost.example",
        "a.localhost",
        "10.0.0.1",
        "[::2]",
        "127.1",
        "",
    ] {
        assert!(!is_loopback_host(there), "{there}");
    }
}
