//! Test harness for `find` and its relatives: a server in this process on an in-memory engine, with a few documents.

use std::sync::Arc;

use docent::knowledge_base::KnowledgeBase;
use docent::settings::Settings;
use docent_mcp::{DualFormat, TextForm};
use docent_search::{Document, DocumentChange, DocumentValue as Field, Engine as _, MemoryEngine};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::contract;

/// Server in this process, with its engine and knowledge base at hand, so that a test can change documents.
pub(super) struct FindHarness {
    pub(super) engine: Arc<MemoryEngine>,
    pub(super) knowledge: Arc<KnowledgeBase>,
    pub(super) app: docent_mcp::App,
}

impl FindHarness {
    pub(super) async fn new(documents: Vec<Document>, settings: &Settings) -> Self {
        let engine = Arc::new(MemoryEngine::new());
        let knowledge = Arc::new(KnowledgeBase::new(engine.clone(), settings, "world"));
        let app = docent::app::app(&knowledge, DualFormat::Auto, TextForm::Json).unwrap();
        let harness = Self {
            engine,
            knowledge,
            app,
        };
        harness.put(documents).await;
        harness
    }

    /// Adds documents and notifies clients, as the folder synchronization does.
    pub(super) async fn put(&self, documents: Vec<Document>) {
        let changes = documents.into_iter().map(DocumentChange::Put).collect();
        self.engine.apply(changes).await.unwrap();
        if self.knowledge.refresh_counts().await.unwrap() {
            self.app.changes().tools();
        }
    }

    pub(super) async fn rpc(&self, method: &str, params: Value) -> Value {
        contract::post(&self.app, method, params).await
    }

    pub(super) async fn mcp(&self, method: &str, params: Value) -> Value {
        let mut answer = self.rpc(method, params).await;
        let result = answer.get_mut("result").map(Value::take);
        result.unwrap_or_else(|| panic!("{answer}"))
    }

    pub(super) async fn tool(&self, name: &str) -> Value {
        let list = self.mcp("tools/list", json!({})).await;
        tool(&list, name)
    }

    /// Calls a tool, validates the result against its output schema, and returns the structured content.
    pub(super) async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let result = self.mcp("tools/call", params).await;
        assert!(
            result.get("isError").is_none_or(|is| is == false),
            "{result}"
        );
        checked(&self.tool(name).await, &result)
    }

    pub(super) async fn find(&self, arguments: Value) -> Value {
        self.call("find", arguments).await
    }

    /// Calls a tool that must return a tool error, and returns its text.
    pub(super) async fn refusal(&self, name: &str, arguments: Value) -> String {
        let params = json!({"name": name, "arguments": arguments});
        let result = self.mcp("tools/call", params).await;
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

pub(super) fn tool(list: &Value, name: &str) -> Value {
    let tools = list["tools"].as_array().unwrap();
    let found = tools.iter().find(|tool| tool["name"] == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {list}"))
        .clone()
}

/// Returns the structured content of a result, after checking that it equals the text and matches the schema.
pub(super) fn checked(tool: &Value, result: &Value) -> Value {
    let data = &result["structuredContent"];
    let items = result["content"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    let text: Value = serde_json::from_str(items[0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, *data);
    let schema = jsonschema::draft202012::new(&tool["outputSchema"]).unwrap();
    let wrong = schema.iter_errors(data).next();
    assert!(wrong.is_none(), "{wrong:?} {data}");
    data.clone()
}

pub(super) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

pub(super) fn document(number: usize, party: &str, date: &str) -> Document {
    let texts = |list: &[&str]| Field::List(list.iter().map(|&item| item.to_owned()).collect());
    Document {
        date: Some(date.to_owned()),
        fields: vec![
            ("party".to_owned(), Field::Text(party.to_owned())),
            ("pages".to_owned(), Field::Number(number as f64)),
            ("open".to_owned(), Field::Bool(number.is_multiple_of(2))),
            (
                "tags".to_owned(),
                texts(&["sea", if number < 2 { "tax" } else { "law" }]),
            ),
        ],
        ..contract::long(
            &format!("d{number}"),
            format!("The ferry sails, said speaker {number}."),
        )
    }
}

pub(super) fn speeches() -> Vec<Document> {
    vec![
        document(0, "Labor", "2024-01-10"),
        document(1, "Greens", "2024-02-10"),
        document(2, "Civic Union", "2024-03-10"),
        document(3, "Labor", "2024-04-10"),
        document(4, "Labor", "2024-05-10"),
    ]
}

pub(super) fn ids(data: &Value) -> Vec<&str> {
    let results = data["results"].as_array().unwrap();
    results
        .iter()
        .map(|one| one["document_id"].as_str().unwrap())
        .collect()
}

pub(super) fn names(schema: &Value) -> Vec<&str> {
    let properties = schema["properties"].as_object().unwrap();
    properties.keys().map(String::as_str).collect()
}

pub(super) fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
