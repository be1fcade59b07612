//! The `kanban` example over a real socket, called as a host and its widget would call it.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

#[allow(dead_code, reason = "the example's `main` never returns")]
#[path = "../../examples/kanban.rs"]
mod example;

struct KanbanHost {
    address: std::net::SocketAddr,
    stop: CancellationToken,
}

impl KanbanHost {
    async fn start() -> Self {
        let app = example::board(&example::Tasks::with_examples())
            .build()
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(docent_mcp::http::serve(
            app,
            Default::default(),
            listener,
            stop.clone(),
        ));
        Self { address, stop }
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\nMCP-Protocol-Version: 2025-11-25\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()["result"].clone()
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
            .await
    }
}

impl Drop for KanbanHost {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test]
async fn a_host_shows_the_board_and_its_widget_moves_a_card() {
    let host = KanbanHost::start().await;
    let tools = host.ask("tools/list", json!({})).await["tools"].clone();
    let names: Vec<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(
        names,
        ["list_tasks", "show_board", "update_task", "attach_file"]
    );
    assert_eq!(tools[2]["_meta"]["ui"]["visibility"], json!(["app"]));
    let uri = tools[1]["_meta"]["ui"]["resourceUri"].clone();
    let page = host.ask("resources/read", json!({"uri": uri})).await["contents"][0].clone();
    assert!(
        page["text"]
            .as_str()
            .unwrap()
            .contains("<title>Task board</title>")
    );
    let old = host
        .ask("resources/read", json!({"uri": "ui://widget/kanban.html"}))
        .await;
    assert_eq!(old["contents"][0]["text"], page["text"]);

    let shown = host.call("show_board", json!({})).await;
    let counts = |shown: &Value| -> Vec<u64> {
        let columns = shown["structuredContent"]["columns"]
            .as_array()
            .unwrap()
            .iter();
        columns
            .map(|column| column["count"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(counts(&shown), [2, 1, 1]);
    assert_eq!(shown["_meta"]["tasks"].as_array().unwrap().len(), 4);
    assert!(
        shown["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("3 tasks are not done")
    );

    let moved = host
        .call("update_task", json!({"id": "t1", "status": "done"}))
        .await;
    assert_eq!(moved["structuredContent"]["status"], "done");
    assert_eq!(counts(&host.call("show_board", json!({})).await), [1, 1, 2]);
    let done = host.call("list_tasks", json!({"status": "done"})).await;
    assert_eq!(
        done["structuredContent"]["tasks"].as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn the_board_uses_the_locale_of_the_user() {
    let host = KanbanHost::start().await;
    let call = json!({"name": "show_board", "arguments": {}, "_meta": {"openai/locale": "de-AT"}});
    let shown = host.ask("tools/call", call).await;
    assert_eq!(shown["structuredContent"]["columns"][0]["title"], "Offen");
}

#[tokio::test]
async fn a_file_arrives_as_an_object_or_as_an_id() {
    let host = KanbanHost::start().await;
    let tools = host.ask("tools/list", json!({})).await["tools"].clone();
    assert_eq!(tools[3]["_meta"]["openai/fileParams"], json!(["file"]));
    let file = json!({"file_id": "f1", "download_url": "https://files.example/1", "file_name": "door.png"});
    host.call("attach_file", json!({"id": "t1", "file": file}))
        .await;
    let kept = host
        .call("attach_file", json!({"id": "t1", "file": "file-2"}))
        .await;
    assert_eq!(
        kept["structuredContent"]["files"],
        json!(["door.png", "file-2"])
    );
}

#[tokio::test]
async fn errors_have_the_shapes_that_hosts_read() {
    let host = KanbanHost::start().await;
    let missing = host
        .call("update_task", json!({"id": "t9", "status": "done"}))
        .await;
    assert_eq!(missing["isError"], true);
    assert_eq!(
        missing["structuredContent"],
        json!({"error": "NOT_FOUND", "taskId": "t9"})
    );
    assert!(
        missing["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("`t9`")
    );
    let wrong = host
        .call("update_task", json!({"id": "t1", "status": "later"}))
        .await;
    assert_eq!(wrong["isError"], true);
    let mine = host.call("list_tasks", json!({"mine": true})).await;
    assert_eq!(mine["isError"], true);
    let challenge = mine["_meta"]["mcp/www_authenticate"][0].as_str().unwrap();
    for part in [
        "resource_metadata=\"https://",
        "error=\"",
        "error_description=\"Sign in",
    ] {
        assert!(challenge.contains(part), "{challenge}");
    }
}
