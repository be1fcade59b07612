//! Output and input schemas: for any Rust type of a tool's result, clients of every protocol revision get a schema and
//! a result that they accept.

use docent_mcp::{Answer, App, Context, Failure, Tool, ToolAnnotations, ToolDescriptor};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::server::{LEGACY, MODERN, RouterServer};

#[allow(dead_code, reason = "the example's `main` serves forever")]
#[path = "../../examples/outputs.rs"]
mod example;

/// Expected results by server URL. The conformance tests check the same file with real clients.
const EXPECTED: &str = include_str!("../../../../conformance/clients/kit.json");

fn expected(address: &str) -> Map<String, Value> {
    let all: Value = serde_json::from_str(EXPECTED).unwrap();
    all[address].as_object().unwrap().clone()
}

async fn tools(server: &RouterServer, revision: &str) -> Vec<Value> {
    let list = server.ask(revision, "tools/list", json!({})).await.json();
    list["result"]["tools"].as_array().unwrap().clone()
}

async fn call(server: &RouterServer, revision: &str, tool: &str, arguments: Value) -> Value {
    let call = json!({"name": tool, "arguments": arguments});
    server.ask(revision, "tools/call", call).await.json()["result"].clone()
}

/// Whether a schema has the form that clients of 2025 require; they hide all tools of a server when one fails.
fn is_root(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    schema["type"] == "object" && properties.is_none_or(|all| all.values().all(Value::is_object))
}

/// Asserts the rules that hold for every tool and every result.
fn assert_acceptable(tool: &Value, result: &Value) {
    assert!(is_root(&tool["inputSchema"]), "{tool}");
    let data = result.get("structuredContent");
    assert!(data.is_none_or(Value::is_object), "{result}");
    assert_eq!(result.get("isError"), None, "{result}");
    if let Some(schema) = tool.get("outputSchema") {
        assert!(is_root(schema), "{schema}");
        let data =
            data.unwrap_or_else(|| panic!("{tool} returned no structured content: {result}"));
        let schema = jsonschema::draft202012::new(schema).unwrap();
        assert!(schema.is_valid(data), "{tool}\n{data}");
    }
}

#[tokio::test]
async fn every_output_type_is_listed_and_called_in_every_revision() {
    let expected = expected("http://127.0.0.1:8125/mcp");
    let server = RouterServer::new(example::app().unwrap());
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let tools = tools(&server, revision).await;
        let names: Vec<&str> = tools
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names, expected.keys().collect::<Vec<_>>());
        for tool in &tools {
            let name = tool["name"].as_str().unwrap();
            let result = call(&server, revision, name, json!({})).await;
            assert_acceptable(tool, &result);
            let wanted = &expected[name];
            let text = match (wanted.get("text"), wanted.get("data")) {
                (Some(text), _) => Some(text.as_str().unwrap().to_owned()),
                (None, data) => data.map(Value::to_string),
            };
            assert_eq!(
                result.get("structuredContent"),
                wanted.get("data"),
                "{name}"
            );
            let content = text.map(|text| json!({"type": "text", "text": text}));
            assert_eq!(
                result["content"],
                json!(content.into_iter().collect::<Vec<_>>()),
                "{name}"
            );
        }
    }
}

#[test]
fn the_guides_show_the_programs_that_are_run() {
    for (page, program) in [
        (
            include_str!("../../../../docs/kit.md"),
            include_str!("../../examples/guides/kit.rs"),
        ),
        (
            include_str!("../../../../docs/apps.md"),
            include_str!("../../examples/guides/apps.rs"),
        ),
        (
            include_str!("../../../../docs/guides/app.md"),
            include_str!("../../examples/guides/app.rs"),
        ),
    ] {
        let block = page.split("```rust").nth(1).unwrap();
        let (_, block) = block.split_once('\n').unwrap();
        let (block, _) = block.split_once("```").unwrap();
        assert_eq!(block, program);
    }
}

/// Tool that returns a fixed value, with an optional schema and text of its own.
struct OutputTool<T> {
    output: T,
    schema: Option<Value>,
    text: Option<&'static str>,
}

impl<T: Serialize + JsonSchema + Clone + Send + Sync + 'static> Tool for OutputTool<T> {
    type Input = ();
    type Output = T;
    fn descriptor(&self) -> ToolDescriptor {
        let tool = ToolDescriptor::new(
            "give",
            "Give",
            "Use this to test.",
            ToolAnnotations::READ_ONLY,
        );
        match &self.schema {
            Some(schema) => tool.output_schema(schema.clone()),
            None => tool,
        }
    }
    async fn call(&self, (): (), _: Context) -> Result<Answer<T>, Failure> {
        let answer = Answer::new(self.output.clone());
        Ok(match self.text {
            Some(text) => answer.text(text),
            None => answer,
        })
    }
}

fn giving<T>(output: T, schema: Option<Value>) -> Result<App, docent_mcp::BuildError>
where
    T: Serialize + JsonSchema + Clone + Send + Sync + 'static,
{
    let tool = OutputTool {
        output,
        schema,
        text: None,
    };
    App::builder("a", "1").tool(tool).build()
}

#[tokio::test]
async fn an_explicit_text_replaces_the_derived_one() {
    let tool = OutputTool {
        output: "from the output".to_owned(),
        schema: None,
        text: Some("from the answer"),
    };
    let server = RouterServer::new(App::builder("a", "1").tool(tool).build().unwrap());
    let result = call(&server, MODERN, "give", json!({})).await;
    assert_eq!(
        result["content"],
        json!([{"type": "text", "text": "from the answer"}])
    );
    assert_eq!(result.get("structuredContent"), None);
}

#[test]
fn an_output_schema_that_clients_refuse_does_not_build() {
    let object = json!({"type": "object", "properties": {"a": {}}, "required": ["a"]});
    assert!(giving(json!({"a": 1}), Some(object.clone())).is_ok());
    assert!(giving(json!({}), Some(json!({"type": "object"}))).is_ok());
    for (schema, named) in [
        (json!({}), "root"),
        (json!(true), "root"),
        (json!({"type": "array"}), "root"),
        (json!({"type": ["object", "null"]}), "root"),
        (json!({"oneOf": [{"type": "object"}]}), "root"),
        (
            json!({"type": "object", "properties": {"a": true}}),
            "property",
        ),
        (json!({"type": "object", "properties": []}), "property"),
        (json!({"type": "object", "required": "a"}), "required"),
        (json!({"type": "object", "required": [1]}), "required"),
    ] {
        let error = giving(json!({}), Some(schema.clone())).err().unwrap();
        assert!(error.to_string().contains(named), "{schema}: {error}");
    }
    // A client that sees a schema expects structured content, which a text result does not have.
    for error in [
        giving("text".to_owned(), Some(object.clone())).err(),
        giving((), Some(object.clone())).err(),
    ] {
        assert!(error.unwrap().to_string().contains("gives no data"));
    }
}

/// A client that saw a schema rejects a result that breaks it, so the server reports an internal error instead.
#[tokio::test]
async fn a_value_that_breaks_its_schema_is_an_internal_error() {
    let schema = json!({"type": "object"});
    for value in [json!([1]), json!("text"), json!(1), Value::Null] {
        let server = RouterServer::new(giving(value.clone(), Some(schema.clone())).unwrap());
        let call = json!({"name": "give", "arguments": {}});
        let answer = server.ask(MODERN, "tools/call", call).await;
        assert_eq!(answer.code(), -32603, "{value}");
    }
}

/// The data of a tool error is wrapped into an object too, as structured content must be one.
#[tokio::test]
async fn the_data_of_a_tool_error_is_an_object() {
    struct FailingTool(Value);
    impl Tool for FailingTool {
        type Input = ();
        type Output = ();
        fn descriptor(&self) -> ToolDescriptor {
            ToolDescriptor::new(
                "fail",
                "Fail",
                "Use this to test.",
                ToolAnnotations::READ_ONLY,
            )
        }
        async fn call(&self, (): (), _: Context) -> Result<Answer<()>, Failure> {
            Err(Failure::caller("no").data(self.0.clone()))
        }
    }
    for (data, seen) in [
        (json!({"a": 1}), json!({"a": 1})),
        (json!([1]), json!({"result": [1]})),
        (json!("text"), json!({"result": "text"})),
    ] {
        let server = RouterServer::new(
            App::builder("a", "1")
                .tool(FailingTool(data))
                .build()
                .unwrap(),
        );
        let result = call(&server, LEGACY[3], "fail", json!({})).await;
        assert_eq!(result["structuredContent"], seen);
        assert_eq!(result["isError"], true);
    }
}

struct InputTool<T>(std::marker::PhantomData<fn() -> T>, Option<Value>);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Tool for InputTool<T> {
    type Input = T;
    type Output = String;
    fn descriptor(&self) -> ToolDescriptor {
        let tool = ToolDescriptor::new(
            "take",
            "Take",
            "Use this to test.",
            ToolAnnotations::READ_ONLY,
        );
        match &self.1 {
            Some(schema) => tool.input_schema(schema.clone()),
            None => tool,
        }
    }
    async fn call(&self, _: T, _: Context) -> Result<Answer<String>, Failure> {
        Ok(Answer::new("taken".to_owned()))
    }
}

fn taking<T>(schema: Option<Value>) -> Result<App, String>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let tool = InputTool::<T>(std::marker::PhantomData, schema);
    let built = App::builder("a", "1").tool(tool).build();
    built.map_err(|error| error.to_string())
}

#[derive(serde::Deserialize, JsonSchema)]
struct UnitInput;

#[derive(serde::Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct AnyInput {
    anything: Value,
}

#[derive(serde::Deserialize, JsonSchema)]
enum PlainInput {
    A,
    B,
}

#[derive(serde::Deserialize, JsonSchema)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "only its schema is used")]
enum TaggedInput {
    A { a: i64 },
    B { b: i64 },
}

#[derive(serde::Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct FlattenedInput {
    name: String,
    #[serde(flatten)]
    rest: TaggedInput,
}

#[tokio::test]
async fn a_tool_without_input_accepts_an_empty_object() {
    for app in [taking::<()>(None), taking::<UnitInput>(None)] {
        let server = RouterServer::new(app.unwrap());
        for revision in LEGACY.into_iter().chain([MODERN]) {
            let tool = &tools(&server, revision).await[0];
            assert_eq!(
                tool["inputSchema"],
                json!({"type": "object", "properties": {}, "additionalProperties": false})
            );
            let result = call(&server, revision, "take", json!({})).await;
            assert_eq!(result["content"][0]["text"], "taken");
            let result = call(&server, revision, "take", json!({"a": 1})).await;
            assert_eq!(result["isError"], true);
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("unknown field `a`"), "{text}");
        }
        let without = server
            .ask(MODERN, "tools/call", json!({"name": "take"}))
            .await
            .json();
        assert_eq!(without["result"]["content"][0]["text"], "taken");
    }
}

#[tokio::test]
async fn an_input_that_is_no_object_does_not_build() {
    for refused in [
        taking::<Vec<String>>(None),
        taking::<String>(None),
        taking::<i64>(None),
        taking::<Option<AnyInput>>(None),
        taking::<(i64, i64)>(None),
        taking::<Value>(None),
        taking::<PlainInput>(None),
    ] {
        let error = refused.err().expect("the app must not build");
        assert!(error.contains("use a struct with named fields"), "{error}");
    }
    for refused in [taking::<TaggedInput>(None), taking::<FlattenedInput>(None)] {
        let error = refused.err().expect("the app must not build");
        assert!(error.contains("one struct with optional fields"), "{error}");
    }
    let by_hand = json!({"type": "object", "properties": {"a": true}});
    let error = taking::<Value>(Some(by_hand)).err().unwrap();
    assert!(error.contains("property"), "{error}");
    // `anyOf` in a schema written by hand is deliberate and accepted.
    let by_hand = json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert!(taking::<Value>(Some(by_hand)).is_ok());
    let server = RouterServer::new(taking::<AnyInput>(None).unwrap());
    let tool = &tools(&server, MODERN).await[0];
    assert_eq!(tool["inputSchema"]["properties"]["anything"], json!({}));
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ValueHolder {
    value: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<Value>,
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn assert_given<T>(output: T)
where
    T: Serialize + JsonSchema + Clone + Send + Sync + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = RouterServer::new(giving(output, None).unwrap());
        let tool = tools(&server, LEGACY[3]).await.remove(0);
        let result = call(&server, LEGACY[3], "give", json!({})).await;
        assert_acceptable(&tool, &result);
        if let Some(data) = result.get("structuredContent") {
            let text = result["content"][0]["text"].as_str().unwrap();
            let read: Value = serde_json::from_str(text).unwrap();
            assert_eq!(&read, data);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn clients_accept_any_value(value in any_value(), other in any_value()) {
        assert_given(value.clone());
        assert_given(vec![value.clone(), other.clone()]);
        assert_given(Some(ValueHolder { value: value.clone(), other: None }));
        assert_given(ValueHolder { value, other: Some(other) });
    }
}
