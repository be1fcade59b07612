//! Widgets (MCP Apps) and their tools, with the metadata that hosts read on the wire.

use docent_mcp::{
    Answer, App, AppBuilder, BuildError, Context, Failure, FileParam, Icon, Security, Tool,
    ToolAnnotations, ToolAudience, ToolDescriptor, Widget,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::{LEGACY, MODERN, RouterServer};

const PAGE: &str = "<!doctype html><title>Board</title><p>";

#[derive(Deserialize, JsonSchema)]
struct NoWidgetInput {}

/// Tool with a given descriptor and an empty result.
struct WidgetTool(ToolDescriptor);

impl Tool for WidgetTool {
    type Input = NoWidgetInput;
    type Output = ();
    fn descriptor(&self) -> ToolDescriptor {
        self.0.clone()
    }
    async fn call(&self, _: NoWidgetInput, _: Context) -> Result<Answer<()>, Failure> {
        Ok(Answer::new(()).text("done"))
    }
}

#[derive(Deserialize, JsonSchema)]
struct UploadInput {
    /// The picture to crop.
    picture: FileParam,
    mask: Option<FileParam>,
}

struct CropTool;

impl Tool for CropTool {
    type Input = UploadInput;
    type Output = Vec<String>;
    fn descriptor(&self) -> ToolDescriptor {
        described("crop")
    }
    async fn call(&self, input: UploadInput, _: Context) -> Result<Answer<Vec<String>>, Failure> {
        let ids = [Some(input.picture), input.mask]
            .into_iter()
            .flatten()
            .map(|file| file.id);
        Ok(Answer::new(ids.collect()))
    }
}

fn described(name: &str) -> ToolDescriptor {
    ToolDescriptor::new(
        name,
        "Title",
        "Use this to test.",
        ToolAnnotations::READ_ONLY,
    )
}

fn board() -> Widget {
    Widget::new("board", "Board", "A board of tasks.", PAGE).border(true)
}

fn building() -> AppBuilder {
    App::builder("Task App", "1.0.0").widget(board())
}

async fn listed(app: App) -> Vec<Value> {
    let answer = RouterServer::new(app)
        .ask("2025-11-25", "tools/list", json!({}))
        .await
        .json();
    answer["result"]["tools"].as_array().unwrap().clone()
}

fn refusal(app: AppBuilder, tool: ToolDescriptor) -> String {
    app.tool(WidgetTool(tool))
        .build()
        .err()
        .expect("the app must not build")
        .to_string()
}

#[tokio::test]
async fn a_widget_is_listed_and_read_with_all_its_metadata_in_every_revision() {
    let widget = board()
        .connect_domain("https://api.example.com")
        .redirect_domain("https://shop.example.com")
        .chatgpt_domain("https://board.example.com");
    let app = App::builder("Task App", "1.0.0")
        .widget(widget)
        .build()
        .unwrap();
    let server = RouterServer::new(app);
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let list = server
            .ask(revision, "resources/list", json!({}))
            .await
            .json();
        let entry = list["result"]["resources"][0].clone();
        assert_eq!(entry["mimeType"], "text/html;profile=mcp-app", "{revision}");
        assert_eq!(entry["title"], "Board");
        let uri = entry["uri"].as_str().unwrap();
        assert!(uri.starts_with("ui://task-app/board-") && uri.ends_with(".html"));
        let read = server
            .ask(revision, "resources/read", json!({"uri": uri}))
            .await
            .json();
        let contents = read["result"]["contents"][0].clone();
        assert_eq!(
            (&contents["uri"], &contents["text"]),
            (&entry["uri"], &json!(PAGE))
        );
        assert_eq!(contents["mimeType"], entry["mimeType"]);
        assert_eq!(contents["_meta"], entry["_meta"], "{revision}");
        let meta = &contents["_meta"];
        assert_eq!(
            meta["ui"]["csp"]["connectDomains"],
            json!(["https://api.example.com"])
        );
        let old = &meta["openai/widgetCSP"];
        assert_eq!(old["connect_domains"], json!(["https://api.example.com"]));
        assert_eq!(old["redirect_domains"], json!(["https://shop.example.com"]));
        assert_eq!(meta["openai/widgetDomain"], "https://board.example.com");
        assert!(meta["ui"].get("domain").is_none(), "Claude would refuse it");
        assert_eq!(meta["openai/widgetPrefersBorder"], true);
    }
}

#[tokio::test]
async fn an_address_of_an_earlier_version_reads_the_present_page() {
    let app = App::builder("a", "1").widget(board().formerly("ui://widget/board.html"));
    let server = RouterServer::new(app.build().unwrap());
    for uri in [
        "ui://widget/board.html",
        "ui://a/board-v1.html",
        "ui://a/board-00000000.skybridge.html",
    ] {
        let read = server
            .ask(MODERN, "resources/read", json!({"uri": uri}))
            .await
            .json();
        let contents = &read["result"]["contents"][0];
        assert_eq!(
            (contents["uri"].as_str(), contents["text"].as_str()),
            (Some(uri), Some(PAGE))
        );
    }
    let answer = server
        .ask(
            MODERN,
            "resources/read",
            json!({"uri": "ui://a/other-v1.html"}),
        )
        .await;
    assert_eq!(answer.code(), -32602);
}

#[tokio::test]
async fn older_clients_get_a_page_of_their_own_when_the_app_wants_it() {
    let render = || WidgetTool(described("show").widget("board"));
    let app = App::builder("a", "1")
        .widget(board().skybridge())
        .tool(render())
        .build()
        .unwrap();
    let server = RouterServer::new(app.clone());
    let list = server
        .ask("2025-11-25", "resources/list", json!({}))
        .await
        .json();
    let kinds = list["result"]["resources"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds
        .map(|entry| (entry["uri"].clone(), entry["mimeType"].clone()))
        .collect();
    assert_eq!(kinds[0].1, "text/html;profile=mcp-app");
    assert_eq!(kinds[1].1, "text/html+skybridge");
    let meta = listed(app).await[0]["_meta"].clone();
    assert_eq!(meta["ui"]["resourceUri"], kinds[0].0);
    assert_eq!(meta["openai/outputTemplate"], kinds[1].0);
}

#[tokio::test]
async fn a_tool_names_its_widget_and_its_callers_in_every_spelling() {
    let app = building()
        .tool(WidgetTool(
            described("show")
                .widget("board")
                .status("Loading board…", "Board ready"),
        ))
        .tool(WidgetTool(
            described("update").audience(ToolAudience::Widgets),
        ))
        .tool(WidgetTool(
            described("secret").audience(ToolAudience::Model),
        ))
        .tool(WidgetTool(described("plain")));
    let tools = listed(app.build().unwrap()).await;
    let meta = &tools[0]["_meta"];
    let uri = meta["ui"]["resourceUri"].as_str().unwrap();
    assert!(uri.starts_with("ui://task-app/board-"));
    assert_eq!(meta["ui/resourceUri"], uri);
    assert_eq!(meta["openai/outputTemplate"], uri);
    assert_eq!(meta["ui"]["visibility"], json!(["model", "app"]));
    assert_eq!(meta["openai/widgetAccessible"], true);
    assert_eq!(meta["openai/toolInvocation/invoking"], "Loading board…");
    assert_eq!(meta["openai/toolInvocation/invoked"], "Board ready");
    assert!(meta.get("openai/visibility").is_none());
    assert_eq!(
        tools[1]["_meta"],
        json!({"openai/widgetAccessible": true, "openai/visibility": "private", "ui": {"visibility": ["app"]}})
    );
    assert_eq!(
        tools[2]["_meta"],
        json!({"openai/widgetAccessible": false, "ui": {"visibility": ["model"]}})
    );
    assert!(tools[3].get("_meta").is_none());
}

#[tokio::test]
async fn the_widget_capability_is_announced_to_hosts() {
    for (app, expected) in [
        (building(), json!({})),
        (App::builder("a", "1"), Value::Null),
    ] {
        let server = RouterServer::new(app.build().unwrap());
        let discovered = server
            .ask(MODERN, "server/discover", json!({}))
            .await
            .json();
        let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}});
        let greeted = server
            .ask("2025-11-25", "initialize", greeting)
            .await
            .json();
        for answer in [discovered, greeted] {
            let extension =
                &answer["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/ui"];
            assert_eq!(*extension, expected);
        }
    }
}

#[tokio::test]
async fn files_are_listed_by_their_type_and_both_forms_arrive() {
    let app = App::builder("a", "1").tool(CropTool).build().unwrap();
    let tool = listed(app.clone()).await[0].clone();
    assert_eq!(
        tool["_meta"]["openai/fileParams"],
        json!(["picture", "mask"])
    );
    let schema = &tool["inputSchema"]["properties"]["picture"];
    assert_eq!(schema["required"], json!(["download_url", "file_id"]));
    assert_eq!(schema["description"], "The picture to crop.");
    assert!(
        !tool.to_string().contains("x-docent"),
        "an internal marker on the wire: {tool}"
    );
    let server = RouterServer::new(app);
    let object = json!({"file_id": "f1", "download_url": "https://files.example/1"});
    let call = json!({"name": "crop", "arguments": {"picture": object, "mask": "f2"}});
    let answer = server.ask(MODERN, "tools/call", call).await.json();
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({"result": ["f1", "f2"]})
    );
    let call = json!({"name": "crop", "arguments": {"picture": {"file_id": "f1", "download_url": "ftp://x"}}});
    let answer = server.ask(MODERN, "tools/call", call).await.json();
    assert_eq!(answer["result"]["isError"], true);
    assert!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("https")
    );
}

#[tokio::test]
async fn security_schemes_stand_at_the_top_and_in_the_metadata() {
    let ways = [Security::NoAuth, Security::oauth2(["tasks.read"])];
    let app = App::builder("a", "1")
        .tool(WidgetTool(described("t").security(ways)))
        .build()
        .unwrap();
    let tool = listed(app).await[0].clone();
    let expected = json!([{"type": "noauth"}, {"type": "oauth2", "scopes": ["tasks.read"]}]);
    assert_eq!(tool["securitySchemes"], expected);
    assert_eq!(tool["_meta"]["securitySchemes"], expected);
}

/// Metadata that hosts reject is a build error, and its message names the fix.
#[test]
fn descriptors_that_hosts_reject_do_not_build() {
    let long = "x".repeat(65);
    let none = || App::builder("a", "1");
    let destructive = ToolAnnotations {
        destructive: true,
        ..ToolAnnotations::READ_ONLY
    };
    let icon = |src: &str| Icon {
        src: src.to_owned(),
        mime_type: "image/png".to_owned(),
        sizes: Vec::new(),
    };
    let rows = [
        (
            building(),
            described("t").status(long.clone(), "done"),
            "hosts take 1 to 64",
        ),
        (
            building(),
            described("t").status("working", " "),
            "hosts take 1 to 64",
        ),
        (
            building(),
            described("t").meta("openai/toolInvocation/invoked", long),
            "hosts take 1 to 64",
        ),
        (
            building(),
            described("t").widget("bord"),
            "`AppBuilder::widget` (it has: board)",
        ),
        (none(), described("t").widget("board"), "(it has: none)"),
        (
            building(),
            described("t").meta("openai/outputTemplate", "ui://x/y.html"),
            "which is not a resource of the app",
        ),
        (
            building(),
            described("t").meta("ui", 1).widget("board"),
            "that is no object",
        ),
        (
            building(),
            described("t").meta("ui", json!({"resourceUri": 1})),
            "which is not a resource of the app",
        ),
        (
            none(),
            described("t").audience(ToolAudience::Widgets),
            "for widgets only, but the app has none",
        ),
        (
            none(),
            described("t").meta("openai/fileParams", json!(["x"])),
            "file parameter \"x\"",
        ),
        (
            none(),
            ToolDescriptor::new("t", "T", "D", destructive),
            "read-only and destructive",
        ),
        (
            none(),
            described("t").security([]),
            "has an empty list of security schemes",
        ),
        (
            none(),
            described("t").icon(icon("http://a.example/i.png")),
            "not the address of an icon",
        ),
        (
            none().icon(icon("icon.png")),
            described("t"),
            "not the address of an icon",
        ),
    ];
    for (app, tool, part) in rows {
        let message = refusal(app, tool);
        assert!(message.contains(part), "{message}");
    }
    let exact = described("t")
        .status("x".repeat(64), "é".repeat(64))
        .icon(icon("https://a.example/i.png"));
    assert!(building().tool(WidgetTool(exact)).build().is_ok());
}

#[test]
fn a_file_inside_another_object_does_not_build() {
    #[derive(Deserialize, JsonSchema)]
    struct NestedFileInput {
        #[expect(dead_code, reason = "only its schema is used")]
        files: Vec<FileParam>,
    }
    struct NestedFileTool;
    impl Tool for NestedFileTool {
        type Input = NestedFileInput;
        type Output = ();
        fn descriptor(&self) -> ToolDescriptor {
            described("nested")
        }
        async fn call(&self, _: NestedFileInput, _: Context) -> Result<Answer<()>, Failure> {
            Ok(Answer::new(()))
        }
    }
    let error = App::builder("a", "1").tool(NestedFileTool).build().err();
    assert!(
        matches!(error, Some(BuildError::Tool { what, .. }) if what.contains("top level of the input"))
    );
}

/// Tool errors with data, and with an authentication challenge, in the form that hosts read.
#[tokio::test]
async fn mistakes_carry_data_and_a_challenge() {
    struct TaskTool;
    impl Tool for TaskTool {
        type Input = NoWidgetInput;
        type Output = Vec<String>;
        fn descriptor(&self) -> ToolDescriptor {
            described("task")
        }
        async fn call(
            &self,
            _: NoWidgetInput,
            cx: Context,
        ) -> Result<Answer<Vec<String>>, Failure> {
            if cx.meta("sign-in").is_some() {
                return Err(Failure::sign_in(
                    "https://a.example/.well-known/x",
                    "Sign in to \"go\" on",
                ));
            }
            Err(Failure::caller("Task not found")
                .data(json!({"error": "NOT_FOUND", "taskId": "t9"})))
        }
    }
    let server = RouterServer::new(App::builder("a", "1").tool(TaskTool).build().unwrap());
    let call = json!({"name": "task", "arguments": {}});
    let result = server.ask(MODERN, "tools/call", call).await.json()["result"].clone();
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["structuredContent"],
        json!({"error": "NOT_FOUND", "taskId": "t9"})
    );
    assert_eq!(result["content"][0]["text"], "Task not found");
    let call = json!({"name": "task", "arguments": {}, "_meta": {"sign-in": true}});
    let result = server.ask(MODERN, "tools/call", call).await.json()["result"].clone();
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["_meta"]["mcp/www_authenticate"],
        json!([
            "Bearer resource_metadata=\"https://a.example/.well-known/x\", error=\"insufficient_scope\", \
                error_description=\"Sign in to go on\""
        ])
    );
}
