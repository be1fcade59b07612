//! Hostile MCP servers against `docent check` and the stand-alone `docent preview`, which run as real processes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::process::{ServerProcess, TestDir, until};
use crate::wire::{PATIENCE, read_request};

/// A received request: method, path, and JSON body.
type Heard = (String, String, Value);

/// A server on loopback whose raw responses come from a closure.
struct HostileServer {
    address: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl HostileServer {
    fn start(reply: impl Fn(&str, &Heard) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (log, reply, own) = (Arc::clone(&heard), Arc::new(reply), address.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let (log, reply, own) = (Arc::clone(&log), Arc::clone(&reply), own.clone());
                std::thread::spawn(move || {
                    if let Some(request) = request(&stream) {
                        log.lock().unwrap().push(request.clone());
                        let _ = stream.write_all(reply(&own, &request).as_bytes());
                    }
                });
            }
        });
        Self { address, heard }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

fn request(stream: &TcpStream) -> Option<Heard> {
    let request = read_request(stream)?;
    let message = serde_json::from_slice(&request.body).unwrap_or_default();
    Some((request.verb, request.path, message))
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

fn json_answer(message: &Value) -> String {
    answer(
        200,
        "Content-Type: application/json\r\n",
        &message.to_string(),
    )
}

/// An MCP server of the older protocol revisions with these tools; `extra` may answer a request first.
fn speaking(
    tools: Value,
    extra: impl Fn(&str, &Heard) -> Option<String> + Send + Sync + 'static,
) -> HostileServer {
    HostileServer::start(move |own, heard| {
        if let Some(reply) = extra(own, heard) {
            return reply;
        }
        let (_, _, message) = heard;
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "evil\u{1b}]0;owned\u{7}", "version": "1"}}),
            "tools/list" => json!({ "tools": tools }),
            "" => return answer(404, "", ""),
            method if method.starts_with("notifications/") => return answer(202, "", ""),
            "ping" => json!({}),
            _ => {
                let error = json!({"code": -32601, "message": "no\u{1b}[2J"});
                return json_answer(
                    &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
                );
            }
        };
        json_answer(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    })
}

/// The first finding of a rule in a report.
fn finding<'a>(report: &'a Value, rule: &str) -> &'a Value {
    let mut findings = report["findings"].as_array().unwrap().iter();
    let found = findings.find(|finding| finding["rule"] == rule);
    found.unwrap_or_else(|| panic!("nothing of `{rule}`: {report}"))
}

#[test]
fn control_characters_of_a_server_do_not_reach_the_terminal() {
    let tools = json!([{"name": "x\u{1b}[31m<script>alert(1)</script>",
        "description": "\u{9b}2J\u{202e}", "inputSchema": {"type": "object"}}]);
    let server = speaking(tools, |_, _| None);
    let dir = TestDir::new();
    for format in ["text", "markdown", "html", "junit", "json", "sarif"] {
        let args = ["check", &server.url(), "--as", "all", "--format", format];
        let ran = dir.run(&args);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        for hidden in ['\u{1b}', '\u{9b}', '\u{7}', '\u{202e}'] {
            let both = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!both.contains(hidden), "{format} shows {hidden:?}");
        }
        // In Markdown, code spans between backticks are text and not markup.
        let shown: String = match format {
            "markdown" => ran.stdout.split('`').step_by(2).collect(),
            _ => ran.stdout,
        };
        if ["markdown", "html", "junit"].contains(&format) {
            assert!(!shown.contains("<script>alert"), "{format}");
        }
    }
}

#[test]
fn a_check_is_led_to_no_other_network_and_writes_nothing() {
    let touched = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&touched);
    let tools = json!([
        // One tool requires authentication, so the check follows the metadata and still examines all else.
        {"name": "wipe", "inputSchema": {"type": "object"},
            "securitySchemes": [{"type": "oauth2", "scopes": ["wipe"]}]},
        {"name": "send", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": false}},
        {"name": "drop", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}},
    ]);
    let server = speaking(tools, move |own, (_, path, message)| {
        if message["method"] == "tools/call"
            && ["wipe", "send", "drop"].contains(&message["params"]["name"].as_str()?)
        {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        // SSRF: the metadata points to the cloud metadata service and to a local file.
        path.contains("oauth-protected-resource").then(|| {
            let away = ["https://169.254.169.254", "file:///etc/passwd"];
            json_answer(
                &json!({"resource": format!("http://{own}/mcp"), "authorization_servers": away}),
            )
        })
    });
    let dir = TestDir::new();
    let ran = dir.run(&["check", &server.url(), "--as", "all", "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let report = ran.json();
    assert!(report["passed"].as_array().unwrap().len() > 20);
    let metadata = finding(&report, "auth/server-metadata");
    let received = metadata["received"].as_str().unwrap();
    assert!(
        received.contains("169.254.169.254") && received.contains("the address was not called"),
        "{received}"
    );
    assert_eq!(touched.load(Ordering::SeqCst), 0);
    assert!(server.heard().len() <= 400);
}

#[test]
fn a_failed_handshake_is_one_finding_with_its_own_hint() {
    let server = HostileServer::start(|_, _| {
        answer(
            403,
            "Content-Type: text/html\r\n",
            "<html><title>Blocked\u{1b}[5m</title>",
        )
    });
    let dir = TestDir::new();
    let ran = dir.run(&["check", &server.url(), "--as", "all", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["errors"]), (Some(1), &json!(1)));
    let finding = &report["findings"][0];
    assert_eq!(
        finding["message"],
        "the server answers `initialize` with status 403 and `text/html`, a page called `Blocked\u{FFFD}[5m`"
    );
    assert!(finding["fix"].as_str().unwrap().contains("bot protection"));
    let ran = dir.run(&[
        "check",
        "--json",
        "--stdio",
        "--",
        "sh",
        "-c",
        "echo no key >&2; exit 7",
    ]);
    let report = ran.json();
    let finding = &report["findings"][0];
    assert_eq!(
        finding["message"],
        "the program ended with exit status: 7 before it answered `initialize`"
    );
    assert!(
        finding["received"]
            .as_str()
            .unwrap()
            .contains("stderr: no key")
    );
}

/// The peak resident memory of a process, in KiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Answers with hundreds of thousands of JSON values, and programs that flood stdout and stderr during the whole check.
#[test]
fn floods_cost_a_check_bounded_memory() {
    let many = format!("[{}[]]", "[],".repeat(390_000));
    let server = speaking(json!([]), move |_, (_, _, message)| {
        let method = message["method"].as_str()?;
        let id = &message["id"];
        ["tools/list", "prompts/list", "resources/list", "ping"]
            .contains(&method)
            .then(|| {
                let body = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"tools\":[],\"x\":{many}}}}}"
                );
                answer(200, "Content-Type: application/json\r\n", &body)
            })
    });
    let flood = "yes 0123456789 >&2 & yes 0123456789";
    let url = server.url();
    for (args, rule, message) in [
        (
            vec!["check", &url, "--as", "all", "--json"],
            "limits/answer-bytes",
            "the JSON of an answer takes more than 32 MiB of memory",
        ),
        (
            vec![
                "check", "--as", "all", "--json", "--stdio", "--", "sh", "-c", flood,
            ],
            "lifecycle/answers",
            "more than 1000 lines came before the answer",
        ),
    ] {
        let dir = TestDir::new();
        let path = dir.path().join("report.json");
        let mut command = dir.docent(&args);
        let mut child = command
            .stdout(std::fs::File::create(&path).unwrap())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut highest = 0;
        let ended = until(|| {
            highest = highest.max(peak(child.id()));
            child.try_wait().unwrap()
        });
        let _ = child.kill();
        let code = ended.expect("the check never ended").code();
        assert_eq!(code, Some(1), "{args:?}");
        assert!(
            (1..400 * 1024).contains(&highest),
            "{highest} KiB: {args:?}"
        );
        let report = std::fs::read_to_string(&path).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(finding(&report, rule)["message"], message);
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Sends one request with exactly these headers.
fn ask(address: &str, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Answer {
        status: head
            .get(9..12)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

fn secret(address: &str) -> String {
    let page = ask(address, "GET /preview", &[("Host", address)], "");
    let (_, rest) = page.body.split_once("id=\"config\">").unwrap();
    let config: Value = serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap();
    config["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_preview_calls_its_server_and_nobody_else() {
    let server = HostileServer::start(|_, _| {
        answer(
            200,
            "Content-Type: text/html\r\nSet-Cookie: a=b\r\nLocation: /x\r\n",
            "<script>alert(1)</script>",
        )
    });
    let stranger = HostileServer::start(|_, _| answer(200, "", "secrets"));
    let dir = TestDir::new();
    let preview = ServerProcess::preview(&dir, &[&server.url()]);
    let address = preview.address.as_str();
    let token = secret(address);
    let through = |target: &str| {
        let headers = [
            ("Host", address),
            ("x-docent-token", token.as_str()),
            ("x-docent-target", target),
        ];
        ask(address, "POST /preview/proxy", &headers, "{}")
    };
    let own = through(&server.url());
    assert_eq!(own.status, 200);
    // Proxied answers must not become pages or cookies of the preview's own origin.
    assert!(
        own.head.contains("content-type: text/plain"),
        "{}",
        own.head
    );
    assert!(!own.head.contains("set-cookie") && !own.head.contains("location:"));
    for other in [
        stranger.url(),
        server.url().replace("/mcp", "/admin"),
        format!("http://{}@{}/mcp", server.address, stranger.address),
        "http://169.254.169.254/latest".to_owned(),
        "file:///etc/passwd".to_owned(),
        String::new(),
    ] {
        let status = through(&other).status;
        assert!(matches!(status, 400 | 403), "{other}: {status}");
    }
    assert_eq!(stranger.heard(), []);
    assert!(server.heard().iter().all(|(_, path, _)| path == "/mcp"));
}

#[test]
fn a_preview_answers_its_own_page_alone() {
    let server = HostileServer::start(|_, _| json_answer(&json!({})));
    let dir = TestDir::new();
    let preview = ServerProcess::preview(&dir, &[&server.url()]);
    let address = preview.address.as_str();
    let (token, url) = (secret(address), server.url());
    let here = ("Host", address);
    let (known, target) = (
        ("x-docent-token", token.as_str()),
        ("x-docent-target", url.as_str()),
    );
    let status = |line: &str, headers: &[(&str, &str)]| ask(address, line, headers, "{}").status;
    // DNS rebinding: a foreign `Host` that resolves to this machine is refused.
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "",
    ] {
        for line in ["GET /preview", "POST /preview/proxy", "POST /preview/frame"] {
            let got = status(line, &[("Host", host), known, target]);
            assert!(matches!(got, 400 | 403 | 421), "{line} as {host}: {got}");
        }
    }
    // Requests from pages of other sites, and from sandboxed widgets.
    for headers in [
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors")],
        [
            ("Sec-Fetch-Site", "same-site"),
            ("Sec-Fetch-Mode", "no-cors"),
        ],
        [("Origin", "null"), ("Sec-Fetch-Site", "cross-site")],
        [
            ("Origin", "https://evil.example"),
            ("Sec-Fetch-Site", "cross-site"),
        ],
    ] {
        let mut with = vec![here, known, target];
        with.extend(headers);
        for line in ["GET /preview", "POST /preview/proxy", "POST /preview/frame"] {
            assert_eq!(status(line, &with), 403, "{line} with {headers:?}");
        }
    }
    let framed = [
        here,
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "iframe"),
    ];
    assert_eq!(status("GET /preview", &framed), 403);
    // Wrong CSRF tokens, including near misses.
    for guess in ["", "0", &token[1..], &format!("{token}0")] {
        let got = status(
            "POST /preview/proxy",
            &[here, ("x-docent-token", guess), target],
        );
        assert_eq!(got, 403, "{guess}");
    }
    assert_eq!(server.heard(), []);
    // WebSocket upgrades, and path traversal.
    let upgrade = [
        here,
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    assert_ne!(status("GET /preview/proxy", &upgrade), 101);
    for path in [
        "/preview/frame/../../etc/passwd",
        "/preview/%2e%2e/%2e%2e/etc/passwd",
        "/preview//etc/passwd",
        "/../etc/passwd",
    ] {
        let got = ask(address, &format!("GET {path}"), &[here], "");
        assert!(
            got.status >= 400 && !got.body.contains("root:"),
            "{path}: {}",
            got.status
        );
    }
}

#[test]
fn an_oversized_answer_is_not_passed_on() {
    let server = HostileServer::start(|_, _| {
        answer(
            200,
            "Content-Type: application/json\r\n",
            &" ".repeat(17 * 1024 * 1024),
        )
    });
    let dir = TestDir::new();
    let preview = ServerProcess::preview(&dir, &[&server.url()]);
    let address = preview.address.as_str();
    let (token, url) = (secret(address), server.url());
    let headers = [
        ("Host", address),
        ("x-docent-token", token.as_str()),
        ("x-docent-target", url.as_str()),
    ];
    let got = ask(address, "POST /preview/proxy", &headers, "{}");
    assert_eq!(got.status, 502);
    assert!(got.body.len() < 1_000);
}
