use docent_mcp::{Answer, App, Context, Failure, Tool, ToolAnnotations, ToolDescriptor, http};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name { name: String }

struct Greet;
impl Tool for Greet {
    type Input = Name;
    type Output = String;
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::new("greet", "Greet", "Use this to greet someone.", ToolAnnotations::READ_ONLY)
    }
    async fn call(&self, input: Name, _: Context) -> Result<Answer<String>, Failure> {
        Ok(Answer::new(format!("Hello, {}", input.name)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = App::builder("greeter", "1.0.0").tool(Greet).build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8787").await?;
    Ok(http::serve(app, Default::default(), listener, Default::default()).await?)
}
