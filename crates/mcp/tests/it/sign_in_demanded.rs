//! Tools that require sign-in on a server without authentication: the server does not start, and an embedded router
//! refuses the calls.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use docent_mcp::http::limits::HttpLimits;
use docent_mcp::http::{HttpOptions, router, serve};
use docent_mcp::stdio;
use docent_mcp::{Answer, App, Context, Failure, Security, Tool, ToolAnnotations, ToolDescriptor};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

struct GuardedTool(&'static str, Vec<Security>);

impl Tool for GuardedTool {
    type Input = ();
    type Output = String;
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::new(self.0, "T", "Use this to test.", ToolAnnotations::READ_ONLY)
            .security(self.1.clone())
    }
    async fn call(&self, (): (), _: Context) -> Result<Answer<String>, Failure> {
        Ok(Answer::new("the secret".to_owned()))
    }
}

fn app(schemes: &[Security]) -> App {
    let open = GuardedTool("open", vec![Security::NoAuth]);
    let app = App::builder("t", "1.0.0").tool(open);
    app.tool(GuardedTool("guarded", schemes.to_vec()))
        .build()
        .unwrap()
}

/// Lists of security schemes, each with whether it requires sign-in.
fn schemes() -> [(Vec<Security>, bool); 4] {
    let (none, some) = (Security::oauth2([""; 0]), Security::oauth2(["docs.read"]));
    [
        (vec![none], true),
        (vec![some.clone(), Security::oauth2(["docs.write"])], true),
        (vec![Security::NoAuth, some.clone()], false),
        (vec![some, Security::NoAuth], false),
    ]
}

#[tokio::test]
async fn a_server_without_sign_in_does_not_start_with_a_tool_that_requires_it() {
    for (schemes, required) in schemes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let served = serve(app(&schemes), HttpOptions::default(), listener, stop).await;
        match served {
            Ok(()) => assert!(!required, "{schemes:?}"),
            Err(error) => {
                assert!(required, "{schemes:?}");
                let text = error.to_string();
                assert!(text.contains("`guarded` requires sign-in"), "{text}");
                assert!(text.contains("set `auth`"), "{text}");
            }
        }
    }
}

/// A child process that is killed when the test ends.
struct ChildProcess(Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the built example with a tool that requires sign-in, at a free port.
fn guarded_program(keys: Option<&Path>) -> (ChildProcess, SocketAddr) {
    // Cargo builds the examples of a package with its tests, into the folder beside that of the tests.
    let tests = std::env::current_exe().unwrap();
    let target = tests.parent().and_then(Path::parent).unwrap();
    let name = format!("guarded{}", std::env::consts::EXE_SUFFIX);
    let program = target.join("examples").join(name);
    assert!(
        program.is_file(),
        "{} is not built; run `cargo build -p docent-mcp --examples`",
        program.display()
    );
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let child = Command::new(program)
        .arg(address.to_string())
        .args(keys)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (ChildProcess(child), address)
}

/// Waits until a program ends or its server accepts connections; returns the exit status if it ended.
fn ended_or_serves(program: &mut ChildProcess, address: SocketAddr) -> Option<ExitStatus> {
    loop {
        if let Some(status) = program.0.try_wait().unwrap() {
            return Some(status);
        }
        if std::net::TcpStream::connect(address).is_ok() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_program_without_sign_in_exits_and_names_the_tool_that_requires_it() {
    let (mut program, address) = guarded_program(None);
    let status = ended_or_serves(&mut program, address).expect("the server started");
    assert!(!status.success(), "{status}");
    let mut said = String::new();
    let mut stderr = program.0.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("`notes` requires sign-in"), "{said}");
    assert!(said.contains("set `auth`"), "{said}");

    // With sign-in, the same program serves.
    let folder = tempfile::tempdir().unwrap();
    let (mut program, address) = guarded_program(Some(&folder.path().join("keys.json")));
    assert_eq!(ended_or_serves(&mut program, address), None);
}

#[tokio::test]
async fn an_embedded_router_refuses_anonymous_calls_of_such_a_tool() {
    for (schemes, required) in schemes() {
        for (tool, refused) in [("guarded", required), ("open", false)] {
            let options = HttpOptions::default();
            let guard = options.guard("127.0.0.1:80".parse().unwrap()).unwrap();
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": {}}});
            let request = Request::post("/mcp")
                .header("host", "127.0.0.1:80")
                .header("content-type", "application/json")
                .header("accept", "application/json")
                .header("mcp-protocol-version", "2025-06-18")
                .body(axum::body::Body::from(body.to_string()))
                .unwrap();
            let answer = router(app(&schemes), options, guard).oneshot(request).await;
            let bytes = answer.unwrap().into_body().collect().await.unwrap();
            let answer: Value = serde_json::from_slice(&bytes.to_bytes()).unwrap();
            let text = answer.to_string();
            assert_eq!(answer["result"]["isError"] == true, refused, "{text}");
            assert_eq!(text.contains("the secret"), !refused, "{text}");
        }
    }
}

#[tokio::test]
async fn over_stdio_the_owner_of_the_process_may_call_it() {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "guarded", "arguments": {}}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let input = format!("{initialize}\n{call}\n");
    let (output, mut from) = tokio::io::duplex(1 << 20);
    let app = app(&[Security::oauth2(["docs.read"])]);
    let stop = CancellationToken::new();
    stdio::run(app, HttpLimits::default(), input.as_bytes(), output, stop)
        .await
        .unwrap();
    let mut printed = String::new();
    from.read_to_string(&mut printed).await.unwrap();
    assert!(printed.contains("the secret"), "{printed}");
}
