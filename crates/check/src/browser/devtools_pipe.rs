//! Client of the Chrome DevTools Protocol over `--remote-debugging-pipe`: starts a headless Chromium and exchanges JSON
//! messages that end with a zero byte.
//!
//! A pipe is used and no debugging port, so that no other process on this machine can control the browser.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::BrowserError;
use crate::text::printable;

/// The capacity of the queue of messages, for backpressure on the browser.
const MAX_WAITING: usize = 16;
/// The most events that are buffered while a command waits for its response.
const MAX_KEPT: usize = 2_000;
/// The size limit of one message, in bytes.
const MAX_MESSAGE: u64 = 16 * 1024 * 1024;
/// The timeout of a command; the first one includes the start of the browser.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the browser may take to exit after `Browser.close`, before it is killed.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// The flags that isolate the browser: no network, no background services, a temporary profile.
const FLAGS: [&str; 17] = [
    "--headless=new",
    "--remote-debugging-pipe",
    // No name resolves and the proxy does not exist, so nothing leaves the machine.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
];

/// A running browser. Dropping it kills the browser with its process group and deletes the profile.
pub(super) struct DevtoolsPipe {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Option<Value>>,
    kept: VecDeque<Value>,
    last: u64,
    folder: PathBuf,
}

impl DevtoolsPipe {
    pub(super) fn start(program: &Path) -> Result<Self, BrowserError> {
        let folder = create_profile()?;
        let stderr_log = File::create(folder.join("said.txt")).map_err(BrowserError::Folder);
        let started = stderr_log.and_then(|stderr_log| spawn(program, &folder, stderr_log));
        let mut child = match started {
            Ok(child) => child,
            Err(trouble) => {
                let _ = std::fs::remove_dir_all(&folder);
                return Err(trouble);
            }
        };
        let (sender, messages) = sync_channel(MAX_WAITING);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || read(output, &sender));
        }
        Ok(Self {
            input: child.stdin.take(),
            child,
            messages,
            kept: VecDeque::new(),
            last: 0,
            folder,
        })
    }

    /// Sends a command and waits for its response; events that arrive meanwhile are buffered.
    pub(super) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, BrowserError> {
        let id = self.send(session, method, params)?;
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        loop {
            let message = self.read(deadline)?.ok_or(BrowserError::Silent)?;
            if message.get("id").and_then(Value::as_u64) != Some(id) {
                if self.kept.len() < MAX_KEPT && message.get("method").is_some() {
                    self.kept.push_back(message);
                }
                continue;
            }
            if let Some(error) = message.get("error") {
                return Err(BrowserError::Refused(
                    method.to_owned(),
                    printable(&error.to_string(), 200),
                ));
            }
            return Ok(message.get("result").cloned().unwrap_or_default());
        }
    }

    /// Sends a command without waiting for its response, and returns its id.
    pub(super) fn send(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<u64, BrowserError> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method});
        if let Some(members) = message.as_object_mut() {
            members.insert("params".to_owned(), params);
            members.extend(session.map(|session| ("sessionId".to_owned(), session.into())));
        }
        let input = self.input.as_mut().ok_or(BrowserError::Silent)?;
        let written = write!(input, "{message}\0").and_then(|()| input.flush());
        written.map_err(|_| self.exit_error())?;
        Ok(self.last)
    }

    /// The next event; `None` when none arrives before the deadline. The deadline also ends a stream of events that
    /// never pauses.
    pub(super) fn event(&mut self, deadline: Instant) -> Result<Option<Value>, BrowserError> {
        if Instant::now() >= deadline {
            return Ok(None);
        }
        if let Some(kept) = self.kept.pop_front() {
            return Ok(Some(kept));
        }
        loop {
            match self.read(deadline)? {
                Some(message) if message.get("method").is_none() => {}
                other => return Ok(other),
            }
        }
    }

    /// Discards buffered events, so that those of one widget are not attributed to the next.
    pub(super) fn forget_events(&mut self) {
        self.kept.clear();
    }

    fn read(&self, deadline: Instant) -> Result<Option<Value>, BrowserError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        match self.messages.recv_timeout(left) {
            Ok(Some(message)) => Ok(Some(message)),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Err(self.exit_error()),
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    /// The error for a browser that exited, with the last three lines of its stderr.
    fn exit_error(&self) -> BrowserError {
        let stderr_log = std::fs::read(self.folder.join("said.txt")).unwrap_or_default();
        let stderr_log = String::from_utf8_lossy(&stderr_log);
        let lines: Vec<&str> = stderr_log.lines().filter(|line| !line.is_empty()).collect();
        let tail = lines.iter().rev().take(3).rev().copied();
        BrowserError::Ended(printable(&tail.collect::<Vec<_>>().join(" / "), 400))
    }
}

impl Drop for DevtoolsPipe {
    fn drop(&mut self) {
        let _ = self.send(None, "Browser.close", json!({}));
        drop(self.input.take());
        let deadline = Instant::now() + EXIT_GRACE_PERIOD;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // The process group takes the remaining child processes along.
        end_group(&self.child);
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Creates a temporary profile directory that only this user can read.
fn create_profile() -> Result<PathBuf, BrowserError> {
    let name = format!("docent-check-{}", uuid::Uuid::new_v4());
    let folder = std::env::temp_dir().join(name);
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(BrowserError::Folder)?;
    Ok(folder)
}

#[cfg(unix)]
fn spawn(program: &Path, folder: &Path, stderr_log: File) -> Result<Child, BrowserError> {
    use std::os::unix::process::CommandExt as _;
    // The browser reads commands from descriptor 3 and responds on descriptor 4; a shell redirects them.
    const REDIRECTION: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", REDIRECTION]).arg(program).args(FLAGS);
    // Chromium does not run with its sandbox as root, which is the user in most containers.
    if rustix::process::geteuid().is_root() {
        command.arg("--no-sandbox");
    }
    let profile = format!("--user-data-dir={}", folder.display());
    command.args([profile.as_str(), "about:blank"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(stderr_log).process_group(0);
    command
        .spawn()
        .map_err(|error| BrowserError::Start(program.to_owned(), error))
}

#[cfg(not(unix))]
fn spawn(_: &Path, _: &Path, _: File) -> Result<Child, BrowserError> {
    Err(BrowserError::System)
}

#[cfg(unix)]
fn end_group(child: &Child) {
    let group = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end_group(_: &Child) {}

/// Reads messages until the pipe closes; `None` means that one was too long or not JSON.
fn read(output: impl Read, sender: &SyncSender<Option<Value>>) {
    let mut reader = BufReader::new(output);
    loop {
        let mut bytes = Vec::new();
        let read = reader
            .by_ref()
            .take(MAX_MESSAGE + 1)
            .read_until(0, &mut bytes);
        if !matches!(read, Ok(length) if length > 0) {
            return;
        }
        bytes.pop_if(|last| *last == 0);
        let message = if bytes.len() as u64 > MAX_MESSAGE {
            None
        } else {
            serde_json::from_slice(&bytes).ok()
        };
        let is_end = message.is_none();
        if sender.send(message).is_err() || is_end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages_in(bytes: &[u8]) -> Vec<Option<Value>> {
        let (sender, messages) = sync_channel(8);
        read(bytes, &sender);
        drop(sender);
        messages.iter().collect()
    }

    #[test]
    fn messages_end_at_a_zero_byte() {
        let received = messages_in(b"{\"a\":1}\0{\"b\":2}\0");
        assert_eq!(received, [Some(json!({"a": 1})), Some(json!({"b": 2}))]);
        assert_eq!(messages_in(b""), []);
        assert_eq!(messages_in(b"nonsense\0{}\0"), [None]);
    }

    #[test]
    fn a_message_has_a_bound() {
        let longest = |more: usize| {
            let fill = " ".repeat(MAX_MESSAGE as usize - 2 + more);
            messages_in(format!("{{}}{fill}\0").as_bytes())
        };
        assert_eq!(longest(0), [Some(json!({}))]);
        assert_eq!(longest(1), [None]);
    }
}
