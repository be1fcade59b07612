use docent_mcp::{Answer, App, Context, Failure, Tool, ToolAnnotations, ToolDescriptor, Widget, http};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TideRequest {
    /// A harbour, such as `Port Ellin`.
    harbour: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Tides { high: Vec<String> }

struct ShowTides;
impl Tool for ShowTides {
    type Input = TideRequest;
    type Output = Tides;
    fn descriptor(&self) -> ToolDescriptor {
        let text = "Use this when the user wants to see today's tides of a harbour.";
        ToolDescriptor::new("show_tides", "Show tides", text, ToolAnnotations::READ_ONLY)
            .widget("tides")
            .status("Looking at the tables…", "Tides ready")
    }
    async fn call(&self, input: TideRequest, _: Context) -> Result<Answer<Tides>, Failure> {
        if input.harbour != "Port Ellin" {
            return Err(Failure::caller(format!("there are no tables for `{}`", input.harbour))
                .hint("known is `Port Ellin`"));
        }
        let high = vec!["04:12".to_owned(), "16:40".to_owned()];
        Ok(Answer::new(Tides { high }).meta("harbour", json!(input.harbour)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let page = r#"<!doctype html><title>Tides</title><h1>High water</h1><ul></ul><script>
      addEventListener("message", ({ source, data }) => {
        if (source !== parent || data?.method !== "ui/notifications/tool-result") return;
        const list = document.querySelector("ul");
        list.replaceChildren(...data.params.structuredContent.high.map((time) => {
          const item = document.createElement("li");
          item.textContent = time;
          return item;
        }));
      });
      const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
      send({ id: 1, method: "ui/initialize", params: {
        protocolVersion: "2026-01-26", appInfo: { name: "tides", version: "1" }, appCapabilities: {} } });
      send({ method: "ui/notifications/initialized", params: {} });
    </script>"#;
    let app = App::builder("tides", "0.1.0")
        .title("Tides")
        .tool(ShowTides)
        .widget(Widget::new("tides", "Tides", "The times of high water today.", page))
        .build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8124").await?;
    Ok(http::serve(app, Default::default(), listener, Default::default()).await?)
}
