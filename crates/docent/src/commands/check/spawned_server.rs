//! Child process that serves a folder on a free port, for `docent check` and `docent package`. It is killed on drop.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::cli_error::CliError;
use crate::commands::CommandContext;
use crate::output;

/// Timeouts until the server prints its listen address, and until its index is ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const READY_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum length of a line of server output in bytes.
const MAX_LINE: u64 = 4_096;

/// A running child server and the URL of its MCP endpoint.
pub(in crate::commands) struct SpawnedServer {
    pub url: String,
    child: Child,
}

impl SpawnedServer {
    pub(in crate::commands) fn start(context: &CommandContext) -> Result<Self, CliError> {
        let failed = || CliError::failed("the server of the folder cannot be started");
        let program = std::env::current_exe().map_err(|error| failed().because(error))?;
        let mut child = Command::new(program)
            .arg("serve")
            .arg(&context.folder)
            .args(["--listen", "127.0.0.1:0", "--no-watch"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed().because(error))?;
        let lines = lines(child.stderr.take());
        let mut server = Self {
            url: String::new(),
            child,
        };
        let end = Instant::now() + START_TIMEOUT;
        let mut output_lines = Vec::new();
        while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let Some(address) = line.strip_prefix("listening on ") {
                server.url = format!("{}/mcp", address.trim());
                // Drains the rest of the output, since a full pipe would block the child.
                std::thread::spawn(move || lines.into_iter().for_each(drop));
                server.wait_until_ready(address.trim())?;
                return Ok(server);
            }
            output_lines.push(line);
        }
        Err(failed()
            .because(output_lines.join("; "))
            .hint("try `docent serve` to see why"))
    }

    /// Waits for readiness, because a server without its index would fail rules about search through no fault of its
    /// own. A timeout is only a warning.
    fn wait_until_ready(&mut self, address: &str) -> Result<(), CliError> {
        let end = Instant::now() + READY_TIMEOUT;
        while Instant::now() < end {
            if docent_check::is_up(&format!("{address}/readyz")) {
                return Ok(());
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        output::warn("the index of the folder is not complete", None);
        Ok(())
    }
}

impl Drop for SpawnedServer {
    fn drop(&mut self) {
        // The index is crash-safe, so the process can be killed without a graceful shutdown.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of a pipe, as they come.
fn lines(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(pipe) = pipe {
        std::thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            loop {
                let mut line = Vec::new();
                let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
                if !matches!(read, Ok(length) if length > 0) {
                    return;
                }
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}
