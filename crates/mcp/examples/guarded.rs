//! A server whose only tool requires sign-in: it starts with API keys, and refuses to start without authentication.
//!
//! It exists for tests only: `cargo run -p docent-mcp --example guarded -- 127.0.0.1:8129 [keys.json]`.

use docent_mcp::{
    Answer, ApiKeyStore, App, Auth, Context, Failure, Security, Tool, ToolAnnotations,
    ToolDescriptor, http,
};

struct GuardedTool;

impl Tool for GuardedTool {
    type Input = ();
    type Output = String;

    fn descriptor(&self) -> ToolDescriptor {
        let text = "Use this to read the private notes.";
        ToolDescriptor::new("notes", "Notes", text, ToolAnnotations::READ_ONLY)
            .security([Security::oauth2(["notes.read"])])
    }

    async fn call(&self, (): (), _: Context) -> Result<Answer<String>, Failure> {
        Ok(Answer::new("Sell the ferry.".to_owned()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("usage: guarded ADDRESS [KEYS]")?;
    let mut options = http::HttpOptions::default();
    if let Some(keys) = arguments.next() {
        let auth = Auth::builder([format!("http://{address}")]).keys(ApiKeyStore::open(keys)?);
        options.auth = Some(auth.build()?);
    }
    let app = App::builder("guarded", "1.0.0").tool(GuardedTool).build()?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(http::serve(app, options, listener, Default::default()).await?)
}
