//! A faulty (Byzantine) node: whatever it answers, no reader is shown restricted documents, and nothing
//! grows, waits or goes elsewhere beyond its bound.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::layout::FORMAT;
use super::*;
use crate::document::tests::plain;
use crate::query::SortOrder;
use crate::reader_identity::{AllowedReaders, Principal};
use crate::stored_document::StoredDocument;

/// The node's answer to a request for documents, by the request's path. Requests for the index head are
/// always answered.
type FakeAnswer = dyn Fn(&str, &mut TcpStream) -> Option<Value> + Send + Sync;

/// A future that is polled outside of a runtime completes on this thread.
fn block_on<T>(future: BoxFuture<'_, T>) -> T {
    future.now_or_never().unwrap()
}

struct LyingNode {
    address: String,
    requests: Arc<AtomicUsize>,
}

impl LyingNode {
    /// Answers with what `lie` returns, unless that has written to the stream itself.
    fn start(lie: impl Fn(&str, &mut TcpStream) -> Option<Value> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (lie, requests): (Arc<FakeAnswer>, _) = (Arc::new(lie), Arc::new(AtomicUsize::new(0)));
        let counted = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let lie = lie.clone();
                std::thread::spawn(move || drop(answer(stream, &*lie)));
            }
        });
        Self { address, requests }
    }

    fn open(&self) -> ClusterEngine {
        let settings = ClusterSettings {
            timeout: Duration::from_secs(1),
            write_timeout: Duration::from_secs(2),
            ..ClusterSettings::new(vec![self.address.clone()])
        };
        ClusterEngine::open_read_only(settings, None).unwrap()
    }
}

fn answer(mut stream: TcpStream, lie: &FakeAnswer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let path = first.split(' ').nth(1).unwrap_or_default();
    let result = if path.contains("-head-") {
        Some(json!([{"id": "head", "payload": head()}]))
    } else {
        lie(path, &mut stream)
    };
    if let Some(result) = result {
        send_json(&mut stream, &json!({"result": result}).to_string())?;
    }
    Ok(())
}

fn send_json(stream: &mut TcpStream, body: &str) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn head() -> Value {
    let head = IndexHead {
        format: FORMAT,
        generation: 1,
        documents: 3,
        restricted: 1,
        ..IndexHead::default()
    };
    serde_json::to_value(head).unwrap()
}

/// A point with a document, under an id that the node chose.
fn point(name: &str, id: &str, readers: AllowedReaders) -> Value {
    let mut document = plain("The quay is wet.");
    document.id = DocId::parse(id).unwrap();
    document.readers = readers;
    let stored = serde_json::to_string(&StoredDocument::from(&document)).unwrap();
    json!({"id": name, "score": 1e39, "payload": {"id": id, "stored": stored}})
}

fn hr() -> Principal {
    Principal::parse("group:hr").unwrap()
}

fn for_hr() -> AllowedReaders {
    AllowedReaders::Only(BTreeSet::from([hr()]))
}

fn fetched(cluster: &ClusterEngine, id: &str, reader: ReaderIdentity) -> Option<String> {
    let found = block_on(cluster.fetch(DocId::parse(id).unwrap(), reader)).unwrap();
    found.map(|document| document.id.as_str().to_owned())
}

#[test]
fn a_document_for_others_or_of_another_id_is_not_shown() {
    let node = LyingNode::start(|_, _| Some(json!({"points": [point("v", "pay", for_hr())]})));
    let cluster = node.open();
    assert_eq!(fetched(&cluster, "pay", ReaderIdentity::everyone()), None);
    let other = ReaderIdentity::holder([Principal::parse("group:it").unwrap()]);
    assert_eq!(fetched(&cluster, "pay", other), None);
    let reader = ReaderIdentity::holder([hr()]);
    assert_eq!(
        fetched(&cluster, "pay", reader.clone()).as_deref(),
        Some("pay")
    );
    // What was cached for one reader is not shown to the next.
    assert_eq!(fetched(&cluster, "pay", ReaderIdentity::everyone()), None);
    // A document other than the requested one counts as none, even where it may be read.
    assert_eq!(fetched(&cluster, "ferry", reader), None);
}

#[test]
fn a_search_shows_what_was_asked_for_and_may_be_read() {
    let node = LyingNode::start(|path, _| {
        let all = json!([
            point("v1", "pay", for_hr()),
            point("v2", "ferry", AllowedReaders::Everyone),
            point("v2", "ferry", AllowedReaders::Everyone),
        ]);
        if path.contains("/facet") {
            return Some(json!({"hits": [{"value": "en", "count": 3}]}));
        }
        if path.contains("/scroll") || path.contains("/query") {
            return Some(json!({"points": all, "next_page_offset": "v1"}));
        }
        // Whole documents: the requested ones, and one more.
        let mut whole = all;
        let more = point("v9", "unasked", AllowedReaders::Everyone);
        whole.as_array_mut().unwrap().push(more);
        Some(whole)
    });
    let cluster = node.open();
    let shown = |reader: ReaderIdentity| {
        let query = Query::new("", 10, reader).sort(SortOrder::Newest);
        let found = block_on(cluster.search(query)).unwrap();
        assert!(found.hits.iter().all(|hit| hit.score.is_finite()));
        let ids = found.hits.iter().map(|hit| hit.id.as_str().to_owned());
        ids.collect::<BTreeSet<_>>()
    };
    let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    assert_eq!(
        shown(ReaderIdentity::holder([hr()])),
        set(&["ferry", "pay"])
    );
    // The documents are cached by now, and still not for everyone.
    assert_eq!(shown(ReaderIdentity::everyone()), set(&["ferry"]));
}

#[test]
fn pages_without_end_end() {
    // One page leads to itself, the other kind is always empty and leads on.
    for is_empty in [false, true] {
        let count = AtomicUsize::new(0);
        let node = LyingNode::start(move |_, _| {
            let next = if is_empty {
                count.fetch_add(1, Ordering::SeqCst)
            } else {
                7
            };
            let held = json!({"id": "a", "source": "a", "hash": "b"});
            let points = if is_empty {
                json!([])
            } else {
                json!([{"id": "v", "payload": held}])
            };
            Some(json!({"points": points, "next_page_offset": next}))
        });
        let cluster = node.open();
        let held = block_on(cluster.inventory()).unwrap();
        assert!(held.len() <= 2, "{}", held.len());
        assert!(node.requests.load(Ordering::SeqCst) <= 4);
    }
}

#[test]
fn endless_late_deep_and_broken_answers_are_errors_in_time() {
    let endless = |stream: &mut TcpStream| -> std::io::Result<()> {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"result\":\"")?;
        loop {
            stream.write_all(&[b'x'; 65_536])?;
        }
    };
    let drip = |stream: &mut TcpStream| -> std::io::Result<()> {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
        loop {
            stream.write_all(b" ")?;
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let deep = |stream: &mut TcpStream| {
        send_json(stream, &format!("{{\"result\":{}", "[".repeat(1_000_000)))
    };
    let deep_document = |stream: &mut TcpStream| {
        let stored = "{\"id\":".repeat(100_000);
        let points = json!({"points": [{"id": "v", "payload": {"stored": stored}}]});
        send_json(stream, &json!({"result": points}).to_string())
    };
    let longer = |stream: &mut TcpStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}")
    };
    let lies: [fn(&mut TcpStream) -> std::io::Result<()>; 5] =
        [endless, drip, deep, deep_document, longer];
    for (number, lie) in lies.into_iter().enumerate() {
        let node = LyingNode::start(move |_, stream| {
            let _ = lie(stream);
            None
        });
        let found = block_on(
            node.open()
                .fetch(DocId::parse("a").unwrap(), ReaderIdentity::everyone()),
        );
        assert!(found.is_err(), "{number}");
    }
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = LyingNode::start(|_, _| Some(json!({"points": []})));
    let address = elsewhere.address.clone();
    let node = LyingNode::start(move |path, stream| {
        let head = "HTTP/1.1 307 Temporary Redirect\r\nConnection: close\r\nContent-Length: 0\r\n";
        let _ = write!(stream, "{head}Location: {address}{path}\r\n\r\n");
        None
    });
    let found = block_on(
        node.open()
            .fetch(DocId::parse("a").unwrap(), ReaderIdentity::everyone()),
    );
    assert!(found.is_err());
    assert_eq!(elsewhere.requests.load(Ordering::SeqCst), 0);
}

#[test]
fn scores_beyond_all_numbers_are_worth_nothing() {
    let point = |score: &str| {
        let text = format!(r#"{{"id":"v","score":{score}}}"#);
        serde_json::from_str::<qdrant_response::ScoredPoint>(&text).map(|point| point.score)
    };
    assert_eq!(point("1e39").unwrap(), 0.0);
    assert_eq!(point("-1e39").unwrap(), 0.0);
    assert_eq!(point("0.5").unwrap(), 0.5);
    for bad in ["NaN", "1e999", "\"1\"", "null", "[]"] {
        assert!(point(bad).is_err(), "{bad}");
    }
}
