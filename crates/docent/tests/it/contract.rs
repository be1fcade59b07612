//! Property tests of the contract of `search` and `fetch`: for any corpus and any query, the router returns what hosts
//! require on the wire. They run in process, without a socket.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use docent::knowledge_base::KnowledgeBase;
use docent::links::UrlTemplate;
use docent::settings::Settings;
use docent::tools::search_notes;
use docent_mcp::{DualFormat, TextForm};
use docent_search::{
    AllowedReaders, DocId, Document, DocumentChange, DocumentValue as Field, Engine as _,
    MAX_SNIPPET_CHARS, MemoryEngine,
};
use http_body_util::{BodyExt as _, Full};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Posts one request to the router of an app, and returns the JSON-RPC response.
pub(crate) async fn post(app: &docent_mcp::App, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25")
        .body(Full::new(Bytes::from(message.to_string())))
        .unwrap();
    let options = docent_mcp::http::HttpOptions::default();
    let guard = options.guard(([127, 0, 0, 1], 8787).into()).unwrap();
    let router = docent_mcp::http::router(app.clone(), options, guard);
    let answer = router.oneshot(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

/// Server in this process with the documents that it must return, and the output schemas of its tools.
struct ContractHarness {
    documents: BTreeMap<String, Document>,
    max_chars: usize,
    app: docent_mcp::App,
    schemas: BTreeMap<String, Validator>,
}

impl ContractHarness {
    async fn new(documents: Vec<Document>, max_chars: usize, template: bool) -> Self {
        let engine = MemoryEngine::new();
        let changes = documents.iter().cloned().map(DocumentChange::Put).collect();
        engine.apply(changes).await.unwrap();
        let settings = Settings {
            fetch_max_chars: max_chars,
            documents_url: template
                .then(|| UrlTemplate::parse("https://docs.example.org/{id}").unwrap()),
            ..Settings::default()
        };
        let knowledge = Arc::new(KnowledgeBase::new(Arc::new(engine), &settings, "world"));
        let app = docent::app::app(&knowledge, DualFormat::Auto, TextForm::Json).unwrap();
        // Of two documents with one id the later one wins.
        let documents = documents
            .into_iter()
            .map(|d| (d.id.as_str().to_owned(), d))
            .collect();
        let mut harness = Self {
            documents,
            max_chars,
            app,
            schemas: BTreeMap::new(),
        };
        let list = harness.mcp("tools/list", json!({})).await;
        for tool in list["tools"].as_array().unwrap() {
            let schema = jsonschema::draft202012::new(&tool["outputSchema"]).unwrap();
            harness
                .schemas
                .insert(tool["name"].as_str().unwrap().to_owned(), schema);
        }
        harness
    }

    async fn mcp(&self, method: &str, params: Value) -> Value {
        let mut answer = post(&self.app, method, params).await;
        answer
            .get_mut("result")
            .map(Value::take)
            .unwrap_or_else(|| panic!("{answer}"))
    }

    /// Calls a tool, checks the result against the requirements of hosts, and returns the structured content.
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let mut result = self
            .mcp("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        let data = result["structuredContent"].take();
        let items = result["content"].as_array().unwrap();
        assert_eq!(items.len(), 1);
        assert_eq!(items[0]["type"], "text");
        let text: Value = serde_json::from_str(items[0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, data);
        let schema = &self.schemas[tool];
        assert!(
            schema.is_valid(&data),
            "{:?}",
            schema.iter_errors(&data).next()
        );
        data
    }

    /// Searches, checks every result, and returns the ids.
    async fn search(&self, query: &str) -> Vec<String> {
        let data = self.call("search", json!({"query": query})).await;
        assert_eq!(
            data.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["results"]
        );
        let results = data["results"].as_array().unwrap();
        // The pseudo result with notes about the search itself comes last.
        let is_about = |result: &&Value| {
            result["id"] == search_notes::ID && !self.documents.contains_key(search_notes::ID)
        };
        let results = match results.split_last() {
            Some((last, rest)) if is_about(&last) => rest,
            _ => results.as_slice(),
        };
        assert!(results.len() <= 10);
        if query.trim().is_empty() {
            assert!(results.is_empty());
        }
        let mut ids = Vec::new();
        for result in results {
            let id = result["id"].as_str().unwrap();
            assert!(self.documents.contains_key(id), "{id:?}");
            assert!(!result["title"].as_str().unwrap().is_empty());
            assert!(result["text"].as_str().unwrap().chars().count() <= MAX_SNIPPET_CHARS);
            check_url(result["url"].as_str().unwrap());
            ids.push(id.to_owned());
        }
        ids
    }

    /// Fetches a document part by part, checks every part, and compares the whole with the original.
    async fn read(&self, id: &str) {
        let document = &self.documents[id];
        let (mut part_id, mut whole, mut number) = (id.to_owned(), String::new(), 1);
        loop {
            let data = self.call("fetch", json!({"id": part_id})).await;
            assert_eq!(data["id"], part_id);
            check_url(data["url"].as_str().unwrap());
            let text = data["text"].as_str().unwrap();
            assert!(text.chars().count() <= self.max_chars);
            whole.push_str(text);
            let metadata = &data["metadata"];
            let next = metadata.get("next").and_then(Value::as_str);
            assert_eq!(metadata.get("truncated").is_some(), next.is_some());
            if next.is_some() || number > 1 {
                let part = metadata["part"].as_str().unwrap();
                assert!(part.starts_with(&format!("{number} of ")), "{part}");
                let total = document.text.chars().count().to_string();
                assert_eq!(metadata["total_chars"], total);
            }
            let Some(next) = next else { break };
            assert!(
                !self.documents.contains_key(next),
                "the part id {next:?} belongs to another document"
            );
            part_id = next.to_owned();
            number += 1;
        }
        assert_eq!(whole, document.text);
    }
}

fn check_url(url: &str) {
    let absolute = url::Url::parse(url)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    assert!(url.is_empty() || absolute, "{url:?}");
}

/// Generates ids that resemble each other, part ids, path traversal, and ids of the maximum length.
fn ids() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "doc#{0,3}(p[23])?",
        2 => "doc(#{1,2}p2){1,2}",
        2 => "[a-c]{1,2}(/[a-c]\\.md)?",
        1 => "\\PC{1,20}",
        1 => Just("..".to_owned()),
        1 => Just("é".repeat(256)),
        1 => Just(format!("x{}", "#".repeat(511))),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-e \\n]{0,200}",
        "\\PC{0,200}",
        ".{0,50}",
        // Longer than one part, with and without whitespace to split at.
        ("[a-z]{1,8}[ \\n]{1,2}", 2_000_usize..4_000)
            .prop_map(|(word, times)| word.repeat(times / word.len())),
        ("[a-zé😀]{3}", 700_usize..1_300).prop_map(|(word, times)| word.repeat(times)),
    ]
}

fn fields() -> impl Strategy<Value = Vec<(String, Field)>> {
    let value = prop_oneof![
        "\\PC{0,30}".prop_map(Field::Text),
        any::<f64>().prop_map(Field::Number),
        any::<bool>().prop_map(Field::Bool),
        prop::collection::vec(".{0,9}", 0..3).prop_map(Field::List),
    ];
    let name = prop_oneof![
        Just("next".to_owned()),
        Just("truncated".to_owned()),
        ".{0,8}"
    ];
    prop::collection::vec((name, value), 0..4)
}

pub(crate) fn documents() -> impl Strategy<Value = Document> {
    let title = prop_oneof![
        "[a-e ]{0,20}",
        ".{0,40}",
        Just("t".repeat(2_000)),
        Just(String::new())
    ];
    let url = prop_oneof![
        Just(None),
        Just(Some("https://a.example/x?y=1#z".to_owned())),
        Just(Some("x-coredata://1/2".to_owned())),
        Just(Some("javascript:alert(1)".to_owned())),
        "\\PC{0,20}".prop_map(Some),
        "https?://\\PC{0,12}".prop_map(Some),
    ];
    let date = prop_oneof![Just(None), Just(Some("2024-02-29".to_owned()))];
    (ids(), title, texts(), url, date, fields()).prop_map(|(id, title, text, url, date, fields)| {
        Document {
            id: DocId::parse(&id).unwrap(),
            title,
            text,
            url,
            date,
            fields,
            source: "a.md".to_owned(),
            hash: String::new(),
            readers: AllowedReaders::Everyone,
        }
    })
}

fn queries() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-e ]{0,10}",
        ".{0,40}",
        "\\PC{0,40}",
        Just("\"a OR b\" AND (c".to_owned()),
        Just("a ".repeat(2_000))
    ]
}

fn check(documents: Vec<Document>, max_chars: usize, template: bool, queries: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let harness = ContractHarness::new(documents, max_chars, template).await;
        for query in queries {
            for id in harness.search(query).await {
                harness.read(&id).await;
            }
        }
        for id in harness.documents.keys() {
            harness.read(id).await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_corpus_and_any_query_fulfil_the_contract(
        documents in prop::collection::vec(documents(), 0..8),
        queries in prop::collection::vec(queries(), 1..4),
        max_chars in prop_oneof![Just(1_000_usize), Just(60_000)],
        template in any::<bool>(),
    ) {
        check(documents, max_chars, template, &queries);
    }
}

pub(crate) fn long(id: &str, text: String) -> Document {
    Document {
        id: DocId::parse(id).unwrap(),
        title: id.to_owned(),
        text,
        url: None,
        date: None,
        fields: Vec::new(),
        source: String::new(),
        hash: String::new(),
        readers: AllowedReaders::Everyone,
    }
}

/// Documents just at, just above and far above the default size of a part.
#[test]
fn two_hundred_thousand_characters_come_back_whole() {
    let documents = vec![
        long("exact", "é".repeat(60_000)),
        long("over", "é".repeat(60_001)),
        long(
            "words",
            "zeppelin over the harbour\n\n".repeat(200_000 / 27 + 1),
        ),
        long("solid", "x".repeat(200_000)),
    ];
    check(documents, 60_000, true, &["zeppelin".to_owned()]);
}

/// The ids that parts would usually get are ids of documents here, so parts need others.
#[test]
fn parts_find_a_name_even_where_documents_took_the_first_ones() {
    let taken = [
        "doc",
        "doc#p2",
        "doc##p2",
        "doc####p2",
        "doc#",
        "doc##",
        "doc###p2",
        "doc#p2#p2",
        "doc#p3",
    ];
    let documents = taken
        .iter()
        .map(|id| long(id, format!("{id} ").repeat(800)))
        .collect();
    check(documents, 1_000, false, &["doc".to_owned()]);
}

#[test]
fn an_unknown_id_is_an_error_that_the_model_can_read() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let harness =
            ContractHarness::new(vec![long("doc", "x".repeat(1_500))], 1_000, false).await;
        let most = "n".repeat(80);
        for (id, shown) in [
            ("nope", "nope"),
            ("", ""),
            ("doc#p1", "doc#p1"),
            ("doc#p3", "doc#p3"),
            ("doc#p02", "doc#p02"),
            (&most, &most),
            (&"n".repeat(81), &format!("{most}…")),
            ("a\u{7}b", "a\u{FFFD}b"),
        ] {
            let result = harness
                .mcp(
                    "tools/call",
                    json!({"name": "fetch", "arguments": {"id": id}}),
                )
                .await;
            assert_eq!(result["isError"], true);
            let expected = format!(
                "no document with id `{shown}`\nhint: ids come from `search`; search again"
            );
            assert_eq!(result["content"][0]["text"], expected);
        }
    });
}
