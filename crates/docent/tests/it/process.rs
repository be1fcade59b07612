//! The real program as a child process, with a folder of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take before a test gives up; never how long it should take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that goes away with the test.
pub(crate) struct Dir(tempfile::TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with three documents.
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

    /// The program with these arguments, in this folder, with an environment of its own.
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

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.docent(args).output().unwrap())
    }

    /// `docent serve` on a free port.
    pub(crate) fn serve(&self, args: &[&str]) -> Command {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(args);
        self.docent(&all)
    }

    /// Runs `docent serve --stdio` on these lines until it ends.
    pub(crate) fn stdio(&self, args: &[&str], lines: impl Iterator<Item = String>) -> Ran {
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
        Ran::of(child.wait_with_output().unwrap())
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
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

/// A server that ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    said: Arc<Mutex<String>>,
}

impl Server {
    /// `docent serve` on a free port, once it listens.
    pub(crate) fn start(dir: &Dir, args: &[&str]) -> Self {
        Self::of(dir.serve(args))
    }

    /// A command that becomes `docent serve`, once it listens.
    pub(crate) fn of(command: Command) -> Self {
        Self::run(command, "listening on http")
    }

    /// `docent preview` on a free port, once it listens.
    pub(crate) fn preview(dir: &Dir, args: &[&str]) -> Self {
        let mut all = vec!["preview", "--no-open", "--listen", "127.0.0.1:0"];
        all.extend(args);
        let mut server = Self::run(dir.docent(&all), "preview at http://");
        server.address = server.address.trim_end_matches("/preview").to_owned();
        server
    }

    /// A command, once it has said where it is after these words.
    fn run(mut command: Command, words: &str) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let heard = said.clone();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                heard.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let mut server = Self {
            child,
            address: String::new(),
            said,
        };
        let line = server.wait_for(words);
        // After the scheme, which says whether it speaks TLS.
        let address = line.split_once("://").map(|(_, address)| address);
        server.address = address.unwrap_or_default().to_owned();
        server
    }

    /// Waits until a line with these words has been said.
    pub(crate) fn wait_for(&self, words: &str) -> String {
        until(|| {
            let said = self.said.lock().unwrap();
            said.lines()
                .find(|line| line.contains(words))
                .map(str::to_owned)
        })
        .unwrap_or_else(|| panic!("`{words}` was never said: {}", self.said()))
    }

    /// Where it shows its numbers, once it does.
    pub(crate) fn metrics(&self) -> String {
        let line = self.wait_for("  metrics      http://");
        let address = line.split("http://").nth(1).unwrap();
        address.split('/').next().unwrap().to_owned()
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Sends a request and gives the status and the body as JSON.
    pub(crate) fn http(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let (head, text) = self.raw(method, path, body, "");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(&text);
        (
            status,
            body.unwrap_or_else(|error| panic!("{error}: {head}\n{text}")),
        )
    }

    /// The same with more headers, each with the end of its line; gives the head and the body.
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

    /// Gets a page: its status, its type and its body.
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

    /// Calls a method of MCP and gives its result.
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

    /// Waits until `/readyz` says that the folder and the index are in step.
    pub(crate) fn wait_until_synced(&self) -> Value {
        until(|| {
            let (_, ready) = self.http("GET", "/readyz", None);
            (ready["sync"]["state"] == "done").then_some(ready)
        })
        .unwrap_or_else(|| panic!("never in step: {}", self.said()))
    }

    /// Waits until every document can be found by its meaning.
    pub(crate) fn wait_until_settled(&self) -> Value {
        until(|| {
            let (_, ready) = self.http("GET", "/readyz", None);
            (ready["vectors"]["state"] == "ready").then(|| ready["vectors"].clone())
        })
        .unwrap_or_else(|| panic!("never settled: {}", self.said()))
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

    /// Waits for the end of the process and gives its exit status.
    #[cfg(unix)]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        until(|| self.child.try_wait().unwrap())
            .expect("the process never ended")
            .code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again and again until there is an answer.
pub(crate) fn until<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// A path in a message.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
