//! The real program as a child process with a temporary folder, and a raw HTTP and MCP client for it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Upper bound on every wait, so that a hung test fails. It says nothing about how long an operation should take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Temporary folder that is removed when the test ends.
pub(crate) struct TestDir(tempfile::TempDir);

impl TestDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates a folder with three documents: Markdown, plain text and JSON Lines.
    pub(crate) fn small() -> Self {
        let dir = Self::new();
        dir.write(
            "docs/ferry.md",
            "---\ntitle: The ferry\nspeaker: Ilke\n---\nThe ferry sails at nine.\n",
        );
        dir.write("docs/slate.txt", "Slate is mined in Highfell.\n");
        dir.write("docs/records.jsonl", "{\"id\":\"r1\",\"title\":\"Levee\",\"text\":\"The levee holds.\",\"url\":\"https://a.example/r1\"}\n");
        dir
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.0.path().join(path)).unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    /// The program with these arguments in this folder. The environment is cleared, so that settings of the developer's
    /// machine change no result.
    pub(crate) fn docent(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_docent"));
        let kept = std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "SYSTEMROOT");
        command
            .env_clear()
            .envs(kept)
            .env("HOME", self.path())
            .current_dir(self.path())
            .args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> ProcessOutput {
        ProcessOutput::of(self.docent(args).output().unwrap())
    }

    /// The command `docent serve` on a free port, not yet started.
    pub(crate) fn serve(&self, args: &[&str]) -> Command {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(args);
        self.docent(&all)
    }

    /// Runs `docent serve --stdio`, writes these lines to stdin, and waits for the exit.
    pub(crate) fn stdio(
        &self,
        args: &[&str],
        lines: impl Iterator<Item = String>,
    ) -> ProcessOutput {
        let mut all = vec!["serve", "docs", "--stdio"];
        all.extend(args);
        let mut command = self.docent(&all);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for line in lines {
            writeln!(stdin, "{line}").unwrap();
        }
        drop(stdin);
        ProcessOutput::of(child.wait_with_output().unwrap())
    }
}

/// Exit code and output of a finished process.
#[derive(Debug)]
pub(crate) struct ProcessOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProcessOutput {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Server process that is killed when the test ends. Its standard error is collected as the log.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: String,
    log: Arc<Mutex<String>>,
}

impl ServerProcess {
    /// Starts `docent serve` on a free port, and waits until it listens.
    pub(crate) fn start(dir: &TestDir, args: &[&str]) -> Self {
        Self::of(dir.serve(args))
    }

    /// Starts a command that runs `docent serve`, and waits until it listens.
    pub(crate) fn of(command: Command) -> Self {
        Self::run(command, "listening on http")
    }

    /// Starts `docent preview` on a free port, and waits until it listens.
    pub(crate) fn preview(dir: &TestDir, args: &[&str]) -> Self {
        let mut all = vec!["preview", "--no-open", "--listen", "127.0.0.1:0"];
        all.extend(args);
        let mut server = Self::run(dir.docent(&all), "preview at http://");
        server.address = server.address.trim_end_matches("/preview").to_owned();
        server
    }

    /// Starts a command, and waits for the log line with these words, which ends with the address.
    fn run(mut command: Command, words: &str) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let collected = log.clone();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                collected.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let mut server = Self {
            child,
            address: String::new(),
            log,
        };
        let line = server.wait_for(words);
        // The address follows the scheme, which is http or https.
        let address = line.split_once("://").map(|(_, address)| address);
        server.address = address.unwrap_or_default().to_owned();
        server
    }

    /// Waits for a log line with these words, and returns it.
    pub(crate) fn wait_for(&self, words: &str) -> String {
        until(|| {
            let log = self.log.lock().unwrap();
            log.lines()
                .find(|line| line.contains(words))
                .map(str::to_owned)
        })
        .unwrap_or_else(|| panic!("`{words}` was never logged: {}", self.log()))
    }

    /// Waits for the log line with the address of the metrics, and returns the address.
    pub(crate) fn metrics(&self) -> String {
        let line = self.wait_for("  metrics      http://");
        let address = line.split("http://").nth(1).unwrap();
        address.split('/').next().unwrap().to_owned()
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends a request, and returns the status and the body as JSON.
    pub(crate) fn http(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let (head, text) = self.raw(method, path, body, "");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(&text);
        (
            status,
            body.unwrap_or_else(|error| panic!("{error}: {head}\n{text}")),
        )
    }

    /// Sends a request with additional header lines, each ended by CRLF. Returns the head and the body as text.
    pub(crate) fn raw(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &str,
    ) -> (String, String) {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\nConnection: close\r\n\
             Content-Type: application/json\r\nMCP-Protocol-Version: 2025-11-25\r\n\
             {headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// Gets a page, and returns its status, content type and body.
    pub(crate) fn page(&self, path: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = &self.address;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let kind = head
            .lines()
            .find_map(|line| line.strip_prefix("content-type: "));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, kind.unwrap_or_default().to_owned(), body.to_owned())
    }

    /// Calls an MCP method, and returns its result. A JSON-RPC error fails the test.
    pub(crate) fn mcp(&self, method: &str, params: &Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, mut answer) = self.http("POST", "/mcp", Some(&message));
        assert_eq!(status, 200, "{answer}");
        answer
            .get_mut("result")
            .map(Value::take)
            .unwrap_or_else(|| panic!("{answer}"))
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.mcp("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Waits until `/readyz` reports that the index is synchronized with the folder.
    pub(crate) fn wait_until_synced(&self) -> Value {
        until(|| {
            let (_, ready) = self.http("GET", "/readyz", None);
            (ready["sync"]["state"] == "done").then_some(ready)
        })
        .unwrap_or_else(|| panic!("the index was never synchronized: {}", self.log()))
    }

    /// Waits until every document has its vectors, so that semantic search finds all of them.
    pub(crate) fn wait_until_embedded(&self) -> Value {
        until(|| {
            let (_, ready) = self.http("GET", "/readyz", None);
            (ready["vectors"]["state"] == "ready").then(|| ready["vectors"].clone())
        })
        .unwrap_or_else(|| panic!("the vectors were never complete: {}", self.log()))
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for the process to end, and returns its exit code.
    #[cfg(unix)]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        until(|| self.child.try_wait().unwrap())
            .expect("the process did not end")
            .code()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls every 20 ms until there is a value. Returns `None` after [`PATIENCE`].
pub(crate) fn until<T>(mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(value) = poll() {
            return Some(value);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// A path as messages display it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
