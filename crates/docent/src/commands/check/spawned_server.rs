//! A folder into the address of its own server, started for the check and ended with it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::cli_error::CliError;
use crate::commands::CommandContext;
use crate::output;

/// How long the server may take to say where it listens, and the index to be ready.
const START: Duration = Duration::from_secs(60);
const READY: Duration = Duration::from_secs(600);
/// The longest line of the server that is read.
const MAX_LINE: u64 = 4_096;

/// A running server of the folder.
pub(in crate::commands) struct SpawnedServer {
    pub url: String,
    child: Child,
}

impl SpawnedServer {
    pub(in crate::commands) fn start(desk: &CommandContext) -> Result<Self, CliError> {
        let failed = || CliError::failed("the server of the folder cannot be started");
        let program = std::env::current_exe().map_err(|error| failed().because(error))?;
        let mut child = Command::new(program)
            .arg("serve")
            .arg(&desk.folder)
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
        let end = Instant::now() + START;
        let mut said = Vec::new();
        while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let Some(address) = line.strip_prefix("listening on ") {
                server.url = format!("{}/mcp", address.trim());
                // What it says from here on is not read, and must not fill the pipe.
                std::thread::spawn(move || lines.into_iter().for_each(drop));
                server.wait_until_ready(address.trim())?;
                return Ok(server);
            }
            said.push(line);
        }
        Err(failed()
            .because(said.join("; "))
            .hint("try `docent serve` to see why"))
    }

    /// A server without its index finds nothing, which is no fault of its settings.
    fn wait_until_ready(&mut self, address: &str) -> Result<(), CliError> {
        let end = Instant::now() + READY;
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
        // Its index is safe against being ended at any moment, so nothing is waited for.
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
