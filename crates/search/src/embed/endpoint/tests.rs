//! Tests of the client against a real HTTP server on the loopback interface, with scripted replies.

use std::error::Error as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::*;

/// What the fake server does with one connection.
#[derive(Clone)]
enum EndpointReply {
    /// A status line, headers and a body, with a correct content length.
    Full(&'static str, String),
    /// A body that is shorter than its content length.
    Truncated,
    /// No reply until the client hangs up.
    Silence,
    /// A vector of this many numbers for each input; the first is its index in the batch.
    Vectors(usize),
    /// A valid body padded to this many bytes.
    Long(usize),
}

/// A server that records its requests and replies from a script.
struct FakeEndpoint {
    url: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl FakeEndpoint {
    /// Starts the server. It gives each reply to one connection, and the last one to all that follow.
    fn start(replies: Vec<EndpointReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for (at, stream) in listener.incoming().enumerate() {
                let reply = replies[at.min(replies.len() - 1)].clone();
                serve(stream.unwrap(), &reply, &log);
            }
        });
        Self { url, seen }
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.seen.lock().unwrap().clone()
    }

    fn settings(&self) -> EndpointSettings {
        let mut settings = EndpointSettings::new(&self.url, "model");
        settings.dimensions = Some(2);
        settings
    }
}

fn serve(mut stream: TcpStream, reply: &EndpointReply, log: &Mutex<Vec<(String, Value)>>) {
    let (head, body) = request(&mut stream);
    let count = body["input"].as_array().map_or(0, Vec::len);
    log.lock().unwrap().push((head, body));
    match reply {
        EndpointReply::Full(head, body) => write(&mut stream, head, body, body.len()),
        EndpointReply::Truncated => write(&mut stream, "200 OK", r#"{"data":["#, 1000),
        EndpointReply::Silence => {
            // Ends when the client hangs up, so nothing here depends on a clock.
            let _ = stream.read(&mut [0]);
        }
        EndpointReply::Vectors(width) => {
            let items: Vec<String> = (0..count)
                .map(|at| {
                    let zeros = ",1".repeat(width - 1);
                    format!(r#"{{"index":{at},"embedding":[{at}{zeros}]}}"#)
                })
                .collect();
            let body = format!(r#"{{"data":[{}]}}"#, items.join(","));
            write(&mut stream, "200 OK", &body, body.len());
        }
        EndpointReply::Long(bytes) => {
            let vector = r#"{"data":[{"index":0,"embedding":[3,4]}]}"#;
            let body = format!("{vector}{}", " ".repeat(bytes - vector.len()));
            write(&mut stream, "200 OK", &body, body.len());
        }
    }
}

fn request(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return (head.to_owned(), serde_json::from_str(body).unwrap());
            }
        }
        assert!(read > 0, "the request ended early: {text}");
    }
}

fn write(stream: &mut TcpStream, head: &str, body: &str, length: usize) {
    // A client that has read enough hangs up, which is not this server's business.
    let _ = write!(
        stream,
        "HTTP/1.1 {head}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
}

/// An embedder that records its backoff instead of sleeping.
fn connect(settings: &EndpointSettings) -> (EndpointEmbedder, Arc<Mutex<Vec<Duration>>>) {
    let waits = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&waits);
    let endpoint =
        EndpointEmbedder::connect_with_wait(settings, move |wait| log.lock().unwrap().push(wait));
    (endpoint.unwrap(), waits)
}

fn passages(
    replies: Vec<EndpointReply>,
) -> (Result<Vec<Vec<f32>>, SearchError>, usize, Vec<Duration>) {
    let server = FakeEndpoint::start(replies);
    let (endpoint, waits) = connect(&server.settings());
    let answer = endpoint.passages(&["one"]);
    let waits = waits.lock().unwrap().clone();
    (answer, server.requests().len(), waits)
}

fn full(head: &'static str, body: &str) -> EndpointReply {
    EndpointReply::Full(head, body.to_owned())
}

fn message(error: &SearchError) -> String {
    assert!(!error.hint().is_empty());
    error.to_string()
}

#[test]
fn a_request_says_what_the_settings_say() {
    let server = FakeEndpoint::start(vec![EndpointReply::Vectors(2)]);
    let mut settings = server.settings();
    settings.key = Some(ServiceKey::new("sesame"));
    settings.query_prefix = "query: ".to_owned();
    settings.passage_prefix = "passage: ".to_owned();
    let (endpoint, _) = connect(&settings);
    assert_eq!(endpoint.query("why").unwrap(), vec![0.0, 1.0]);
    assert_eq!(endpoint.passages(&["a", " "]).unwrap().len(), 2);

    let requests = server.requests();
    let (head, body) = &requests[0];
    assert!(head.starts_with("POST /v1/embeddings HTTP/1.1"), "{head}");
    assert!(
        head.to_lowercase().contains("authorization: bearer sesame"),
        "{head}"
    );
    assert_eq!(
        *body,
        json!({"model": "model", "input": ["query: why"], "dimensions": 2})
    );
    assert_eq!(requests[1].1["input"], json!(["passage: a", "passage: ."]));
}

#[test]
fn dimensions_are_asked_for_once_where_nobody_gave_them() {
    let server = FakeEndpoint::start(vec![EndpointReply::Vectors(3)]);
    let mut settings = server.settings();
    settings.dimensions = None;
    let (endpoint, _) = connect(&settings);
    assert_eq!(endpoint.dimensions(), 3);
    endpoint.query("why").unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests
            .iter()
            .all(|(_, body)| body.get("dimensions").is_none())
    );
}

#[test]
fn many_passages_go_in_batches_and_come_back_in_order() {
    let server = FakeEndpoint::start(vec![EndpointReply::Vectors(2)]);
    let (endpoint, _) = connect(&server.settings());
    let texts = vec!["x"; MAX_INPUTS + 1];
    let vectors = endpoint.passages(&texts).unwrap();
    assert_eq!(vectors.len(), MAX_INPUTS + 1);
    assert_eq!(vectors[MAX_INPUTS], vec![0.0, 1.0]);
    assert!(vectors[1][0] < vectors[2][0]);
    assert_eq!(server.requests().len(), 2);
    assert!(endpoint.passages(&[]).unwrap().is_empty());
}

#[test]
fn batches_keep_within_both_limits() {
    let sizes =
        |inputs: &[String]| -> Vec<usize> { batches(inputs).iter().map(|b| b.len()).collect() };
    assert_eq!(sizes(&vec!["x".to_owned(); MAX_INPUTS]), [MAX_INPUTS]);
    assert_eq!(
        sizes(&vec!["x".to_owned(); MAX_INPUTS + 1]),
        [MAX_INPUTS, 1]
    );
    let eighth = "x".repeat(MAX_BATCH_BYTES / 8);
    assert_eq!(sizes(&vec![eighth.clone(); 8]), [8]);
    let mut over = vec![eighth; 8];
    over[0].push('x');
    assert_eq!(sizes(&over), [7, 1]);
    assert!(sizes(&[]).is_empty());
}

#[test]
fn a_text_is_cut_at_its_limit_between_characters() {
    assert_eq!(input("", &"x".repeat(MAX_TEXT_BYTES)).len(), MAX_TEXT_BYTES);
    assert_eq!(
        input("", &"x".repeat(MAX_TEXT_BYTES + 1)).len(),
        MAX_TEXT_BYTES
    );
    let wide = format!("x{}", "é".repeat(MAX_TEXT_BYTES / 2));
    assert_eq!(input("", &wide).len(), MAX_TEXT_BYTES - 1);
}

#[test]
fn a_busy_endpoint_is_asked_again_when_it_says() {
    let busy = full("429 Too Many Requests\r\nretry-after: 7", "{}");
    let (answer, requests, waits) = passages(vec![busy, EndpointReply::Vectors(2)]);
    assert!(answer.is_ok());
    assert_eq!(requests, 2);
    assert_eq!(waits, [Duration::from_secs(7)]);
}

#[test]
fn an_endpoint_that_asks_for_too_much_time_gets_none() {
    for (seconds, tries) in [("60", 2), ("61", 1)] {
        let head = if seconds == "60" {
            "503 Busy\r\nretry-after: 60"
        } else {
            "503 Busy\r\nretry-after: 61"
        };
        let (answer, requests, _) = passages(vec![full(head, "{}")]);
        assert!(answer.is_err());
        assert_eq!(requests, tries, "{seconds}");
    }
}

#[test]
fn an_endpoint_that_keeps_failing_is_given_up_on() {
    let (answer, requests, waits) = passages(vec![full("500 Oops", "no")]);
    assert_eq!(
        message(&answer.unwrap_err()),
        "the endpoint refuses with status 500"
    );
    assert_eq!(requests, 5);
    let expected = [500, 1000, 2000, 4000].map(Duration::from_millis);
    assert_eq!(waits, expected);
}

#[test]
fn a_question_is_not_kept_waiting() {
    let server = FakeEndpoint::start(vec![full("500 Oops", "no")]);
    let (endpoint, waits) = connect(&server.settings());
    assert!(endpoint.query("why").is_err());
    assert_eq!(server.requests().len(), 2);
    assert!(waits.lock().unwrap().iter().sum::<Duration>() <= Duration::from_secs(1));
}

#[test]
fn permanent_errors_are_not_retried() {
    let refusal =
        r#"{"error":{"message":"Incorrect key sesame for `one`","code":"invalid_api_key"}}"#;
    let (answer, requests, _) = passages(vec![full("401 Unauthorized", refusal)]);
    let error = answer.unwrap_err();
    assert_eq!(
        message(&error),
        "the endpoint refuses with status 401, `invalid_api_key`"
    );
    assert_eq!(error.hint(), "check the endpoint's key");
    assert_eq!(requests, 1);
}

#[test]
fn wrong_answers_are_refused_at_once() {
    for (body, expected) in [
        (
            r#"{"data":[]}"#,
            "the endpoint answered with 0 vectors for 1 inputs",
        ),
        (
            r#"{"data":[{"index":0,"embedding":[NaN,1]}]}"#,
            "the endpoint answered with something that is not a list of embeddings",
        ),
        (
            r#"{"data":[{"index":0,"embedding":[1,2,3]}]}"#,
            "the endpoint answered with a vector of 3 numbers instead of 2",
        ),
        (
            "<html>",
            "the endpoint answered with something that is not a list of embeddings",
        ),
    ] {
        let (answer, requests, _) = passages(vec![full("200 OK", body)]);
        assert_eq!(message(&answer.unwrap_err()), expected);
        assert_eq!(requests, 1);
    }
}

#[test]
fn a_body_that_breaks_off_is_asked_for_again() {
    let (answer, requests, _) = passages(vec![EndpointReply::Truncated, EndpointReply::Vectors(2)]);
    assert!(answer.is_ok());
    assert_eq!(requests, 2);
    let (answer, requests, _) = passages(vec![EndpointReply::Truncated]);
    assert_eq!(
        message(&answer.unwrap_err()),
        "the endpoint cannot be reached"
    );
    assert_eq!(requests, 5);
}

#[test]
fn a_silent_endpoint_is_left_after_its_time() {
    let server = FakeEndpoint::start(vec![EndpointReply::Silence]);
    let mut settings = server.settings();
    settings.timeout = Duration::from_millis(30);
    settings.query_timeout = Duration::from_millis(30);
    let (endpoint, _) = connect(&settings);
    let error = endpoint.passages(&["one"]).unwrap_err();
    assert_eq!(message(&error), "the endpoint did not answer in time");
    assert!(error.source().is_some());
    assert!(endpoint.query("one").is_err());
    assert_eq!(server.requests().len(), 2 + 1);
}

#[test]
fn an_answer_may_be_as_long_as_the_limit_and_not_a_byte_longer() {
    let limit = usize::try_from(client::MAX_ANSWER_BYTES).unwrap();
    let (answer, ..) = passages(vec![EndpointReply::Long(limit)]);
    assert_eq!(answer.unwrap(), [[0.6, 0.8]]);
    let (answer, requests, _) = passages(vec![EndpointReply::Long(limit + 1)]);
    let expected = "the endpoint's answer is over the limit of 16777216 bytes";
    assert_eq!(message(&answer.unwrap_err()), expected);
    assert_eq!(requests, 1);
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = FakeEndpoint::start(vec![EndpointReply::Vectors(2)]);
    let head: &'static str = Box::leak(
        format!("307 Elsewhere\r\nlocation: {}/embeddings", elsewhere.url).into_boxed_str(),
    );
    let (answer, requests, _) = passages(vec![full(head, "")]);
    let expected = "the endpoint answers with a redirect, status 307";
    assert_eq!(message(&answer.unwrap_err()), expected);
    assert_eq!(requests, 1);
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn an_unreachable_endpoint_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut settings = EndpointSettings::new(url, "model");
    settings.key = Some(ServiceKey::new("sesame"));
    let error = EndpointEmbedder::connect_with_wait(&settings, |_| ())
        .err()
        .unwrap();
    assert_eq!(message(&error), "the endpoint cannot be reached");
    assert!(!format!("{error:?}").contains("sesame"));
}

#[test]
fn the_key_is_in_no_output() {
    let mut settings = EndpointSettings::new("http://127.0.0.1:9/v1/", "model");
    settings.key = Some(ServiceKey::new("sesame"));
    settings.dimensions = Some(2);
    assert!(!format!("{settings:?}").contains("sesame"));
    let (endpoint, _) = connect(&settings);
    assert!(!endpoint.fingerprint().contains("sesame"));
    settings.key = Some(ServiceKey::new("sesame\n"));
    let error = EndpointEmbedder::connect(&settings).err().unwrap();
    assert!(!format!("{error:?} {error}").contains("sesame"));
}

#[test]
fn a_fingerprint_names_everything_but_the_key() {
    let mut base = EndpointSettings::new("http://127.0.0.1:9/v1", "model");
    base.dimensions = Some(2);
    let print = |settings: &EndpointSettings| connect(settings).0.fingerprint().to_owned();
    let first = print(&base);
    let changed = |change: fn(&mut EndpointSettings)| {
        let mut settings = base.clone();
        change(&mut settings);
        print(&settings)
    };
    assert_eq!(first, changed(|s| s.key = Some(ServiceKey::new("sesame"))));
    assert_eq!(
        first,
        changed(|s| s.url = "http://127.0.0.1:9/v1/embeddings/".to_owned())
    );
    for other in [
        changed(|s| s.url = "http://127.0.0.1:9".to_owned()),
        changed(|s| s.model = "other".to_owned()),
        changed(|s| s.dimensions = Some(3)),
        changed(|s| s.query_prefix = "a".to_owned()),
        changed(|s| s.passage_prefix = "a".to_owned()),
    ] {
        assert_ne!(first, other);
    }
}

#[test]
fn settings_that_cannot_work_are_refused_before_anything_is_sent() {
    let refused = |change: fn(&mut EndpointSettings)| {
        let mut settings = EndpointSettings::new("http://127.0.0.1:9/v1", "model");
        settings.dimensions = Some(2);
        change(&mut settings);
        EndpointEmbedder::connect_with_wait(&settings, |_| ())
            .err()
            .map(|error| message(&error))
    };
    assert_eq!(refused(|_| ()), None);
    for change in [
        (|s| s.url = "localhost:11434".to_owned()) as fn(&mut EndpointSettings),
        |s| s.url = "ftp://localhost/v1".to_owned(),
        |s| s.url = "http://user:sesame@localhost/v1".to_owned(),
        |s| s.url = "http://localhost/v1?x=1".to_owned(),
        |s| s.url = String::new(),
    ] {
        assert_eq!(
            refused(change).unwrap(),
            "the endpoint's address cannot be used"
        );
    }
    assert_eq!(
        refused(|s| s.model = " ".to_owned()).unwrap(),
        "the endpoint's model has no name"
    );
    assert!(refused(|s| s.dimensions = Some(0)).is_some());
    assert!(refused(|s| s.dimensions = Some(MAX_DIMENSIONS)).is_none());
    assert!(refused(|s| s.dimensions = Some(MAX_DIMENSIONS + 1)).is_some());
    assert!(refused(|s| s.model = "m".repeat(MAX_SETTING_BYTES)).is_none());
    for change in [
        (|s| s.model = "m".repeat(MAX_SETTING_BYTES + 1)) as fn(&mut EndpointSettings),
        |s| s.query_prefix = "m".repeat(MAX_SETTING_BYTES + 1),
        |s| s.passage_prefix = "m".repeat(MAX_SETTING_BYTES + 1),
        |s| s.url = format!("http://localhost/{}", "m".repeat(MAX_SETTING_BYTES)),
    ] {
        assert!(refused(change).unwrap().contains("is over the limit"));
    }
}
