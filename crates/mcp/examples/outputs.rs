//! Output fixtures: a server with one tool for every kind of output type, to test how clients handle each schema and
//! result.
//!
//! It exists for tests only: `cargo run -p docent-mcp --example outputs -- 127.0.0.1:8125`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use docent_mcp::{
    Answer, App, AppBuilder, BuildError, Context, Failure, Tool, ToolAnnotations, ToolDescriptor,
    http,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A tool that returns the same output at every call.
struct ConstantTool<T>(&'static str, T);

impl<T: Serialize + JsonSchema + Clone + Send + Sync + 'static> Tool for ConstantTool<T> {
    type Input = ();
    type Output = T;

    fn descriptor(&self) -> ToolDescriptor {
        let text = "Use this to see what becomes of an output.";
        ToolDescriptor::new(self.0, self.0, text, ToolAnnotations::READ_ONLY)
    }

    async fn call(&self, (): (), _: Context) -> Result<Answer<T>, Failure> {
        Ok(Answer::new(self.1.clone()))
    }
}

#[derive(Clone, Serialize, JsonSchema)]
struct Place {
    /// What people call it.
    name: String,
    height: Option<i64>,
}

#[derive(Clone, Serialize, JsonSchema)]
struct Nested {
    place: Place,
    places: Vec<Place>,
    /// Left out where it is empty, so that no client may miss it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(rename(serialize = "written"))]
    read: bool,
    level: Level,
    anything: Value,
    #[serde(flatten)]
    rest: BTreeMap<String, i64>,
}

#[derive(Clone, Serialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[derive(Clone, Serialize, JsonSchema)]
struct Label(String);

#[derive(Clone, Serialize, JsonSchema)]
struct Metres(f64);

#[derive(Clone, Serialize, JsonSchema)]
struct Named(Place);

#[derive(Clone, Serialize, JsonSchema)]
struct Anything(Value);

#[derive(Clone, Serialize, JsonSchema)]
struct Point(f64, f64);

#[derive(Clone, Serialize, JsonSchema)]
struct UnitStruct;

#[derive(Clone, Serialize, JsonSchema)]
struct EmptyStruct {}

#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    Low,
    #[expect(dead_code, reason = "only its schema is looked at")]
    High,
}

#[derive(Clone, Serialize, JsonSchema)]
enum Documented {
    /// The tide comes in.
    Rising,
    /// The tide goes out.
    #[expect(dead_code, reason = "only its schema is looked at")]
    Falling,
}

#[derive(Clone, Serialize, JsonSchema)]
enum Only {
    One,
}

/// A unit variant is a string on the wire, the other an object.
#[derive(Clone, Serialize, JsonSchema)]
enum Mixed {
    Nowhere,
    At(Place),
}

#[derive(Clone, Serialize, JsonSchema)]
enum External {
    #[expect(dead_code, reason = "only its schema is looked at")]
    Here {
        depth: i64,
    },
    At(Place),
}

#[derive(Clone, Serialize, JsonSchema)]
#[serde(tag = "kind")]
enum Internal {
    Nowhere,
    At(Place),
}

#[derive(Clone, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "value")]
enum Adjacent {
    Number(i64),
    #[expect(dead_code, reason = "only its schema is looked at")]
    Nowhere,
}

#[derive(Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    At(Place),
}

#[derive(Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum UntaggedObjects {
    #[expect(dead_code, reason = "only its schema is looked at")]
    Tree(Tree),
    At(Place),
}

/// Refers to itself from inside a schema whose root is no object.
#[derive(Clone, Serialize, JsonSchema)]
enum Sum {
    Number(i64),
    Of(Vec<Sum>),
    Nothing,
}

fn place() -> Place {
    Place {
        name: "Port Ellin".to_owned(),
        height: None,
    }
}

fn tree() -> Tree {
    let leaf = |name: &str| Tree {
        name: name.to_owned(),
        children: Vec::new(),
    };
    Tree {
        name: "root".to_owned(),
        children: vec![leaf("a"), leaf("b")],
    }
}

fn nested() -> Nested {
    Nested {
        place: place(),
        places: vec![place()],
        tags: Vec::new(),
        read: true,
        level: Level::Low,
        anything: json!(["a", 1]),
        rest: BTreeMap::from([("extra".to_owned(), 7)]),
    }
}

/// Output types that become plain text without structured data.
fn texts(app: AppBuilder) -> AppBuilder {
    app.tool(ConstantTool(
        "string",
        "a \"quoted\" word\nand a line".to_owned(),
    ))
    .tool(ConstantTool("string_empty", String::new()))
    .tool(ConstantTool("str", "plain"))
    .tool(ConstantTool("cow", Cow::Borrowed("plain")))
    .tool(ConstantTool("newtype_string", Label("plain".to_owned())))
    .tool(ConstantTool("char", 'x'))
    .tool(ConstantTool("unit", ()))
    .tool(ConstantTool("unit_struct", UnitStruct))
}

/// Output types without a schema, where each value decides how it is represented.
fn values(app: AppBuilder) -> AppBuilder {
    app.tool(ConstantTool("value_object", json!({"a": [1, null]})))
        .tool(ConstantTool("value_list", json!([1, "b"])))
        .tool(ConstantTool("value_string", json!("plain")))
        .tool(ConstantTool("value_number", json!(1.5)))
        .tool(ConstantTool("value_null", Value::Null))
        .tool(ConstantTool("value_option", Some(json!({"a": 1}))))
        .tool(ConstantTool("value_newtype", Anything(json!(false))))
}

/// Output types that are not JSON objects and are therefore wrapped in the member `result`.
fn wrapped(app: AppBuilder) -> AppBuilder {
    app.tool(ConstantTool("list", vec![place()]))
        .tool(ConstantTool("list_empty", Vec::<Place>::new()))
        .tool(ConstantTool("list_of_strings", vec!["a".to_owned()]))
        .tool(ConstantTool(
            "list_of_values",
            vec![json!({"a": 1}), json!(2)],
        ))
        .tool(ConstantTool("list_of_trees", vec![tree()]))
        .tool(ConstantTool("set", BTreeSet::from([3, 1])))
        .tool(ConstantTool("array", [1, 2, 3]))
        .tool(ConstantTool("tuple", ("a".to_owned(), 2_i64)))
        .tool(ConstantTool("tuple_struct", Point(1.5, -2.0)))
        .tool(ConstantTool("option_struct", Some(place())))
        .tool(ConstantTool("option_struct_none", None::<Place>))
        .tool(ConstantTool("option_tree", Some(tree())))
        .tool(ConstantTool("option_string", Some("a".to_owned())))
        .tool(ConstantTool("option_string_none", None::<String>))
        .tool(ConstantTool("integer", -7_i64))
        .tool(ConstantTool("integer_large", u64::MAX))
        .tool(ConstantTool("float", 0.25_f64))
        .tool(ConstantTool("newtype_float", Metres(2.5)))
        .tool(ConstantTool("bool", false))
        .tool(ConstantTool("enum_plain", Level::Low))
        .tool(ConstantTool("enum_documented", Documented::Rising))
        .tool(ConstantTool("enum_of_one", Only::One))
        .tool(ConstantTool("enum_mixed", Mixed::Nowhere))
        .tool(ConstantTool("enum_mixed_object", Mixed::At(place())))
        .tool(ConstantTool("enum_untagged", Untagged::Number(3)))
        .tool(ConstantTool("enum_untagged_object", Untagged::At(place())))
        .tool(ConstantTool(
            "enum_recursive",
            Sum::Of(vec![Sum::Number(1), Sum::Of(vec![Sum::Nothing])]),
        ))
}

/// Output types that are JSON objects and pass unchanged.
fn objects(app: AppBuilder) -> AppBuilder {
    app.tool(ConstantTool("struct", place()))
        .tool(ConstantTool("struct_empty", EmptyStruct {}))
        .tool(ConstantTool("struct_nested", nested()))
        .tool(ConstantTool("struct_recursive", tree()))
        .tool(ConstantTool("newtype_struct", Named(place())))
        .tool(ConstantTool("box", Box::new(place())))
        .tool(ConstantTool(
            "map",
            BTreeMap::from([("a".to_owned(), 1_i64)]),
        ))
        .tool(ConstantTool("map_empty", BTreeMap::<String, Place>::new()))
        .tool(ConstantTool(
            "map_of_values",
            Map::from_iter([("a".to_owned(), json!([true]))]),
        ))
        .tool(ConstantTool("enum_external", External::At(place())))
        .tool(ConstantTool("enum_internal", Internal::At(place())))
        .tool(ConstantTool("enum_internal_unit", Internal::Nowhere))
        .tool(ConstantTool("enum_adjacent", Adjacent::Number(4)))
        .tool(ConstantTool(
            "enum_untagged_objects",
            UntaggedObjects::At(place()),
        ))
        .tool(ConstantTool("result", Ok::<Place, String>(place())))
}

pub(crate) fn app() -> Result<App, BuildError> {
    let app = App::builder("outputs", "1.0.0");
    objects(wrapped(values(texts(app)))).build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8125".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(http::serve(app()?, Default::default(), listener, Default::default()).await?)
}
