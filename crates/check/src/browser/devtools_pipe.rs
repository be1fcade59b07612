//! A Chromium of our own, started and spoken to over its pipes: JSON messages with a zero byte between them.
//!
//! Pipes rather than a port, so that nobody else on this machine can talk to the browser.

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

/// Messages that wait to be read; a browser that says more waits.
const MAX_WAITING: usize = 16;
/// Events that are kept while the answer to a command is waited for.
const MAX_KEPT: usize = 2_000;
/// The longest message in bytes.
const MAX_MESSAGE: u64 = 16 * 1024 * 1024;
/// How long a command may take to be answered; the first one has to wait until the browser is up.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the browser may take to end when it is asked to.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// What keeps the browser to itself: no network, no services of its own, a profile that is thrown away.
const FLAGS: [&str; 17] = [
    "--headless=new",
    "--remote-debugging-pipe",
    // Every name and every number leads nowhere, whatever a widget finds to connect to.
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

/// A running browser. It ends with this value, and so does its profile.
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
        let said = File::create(folder.join("said.txt")).map_err(BrowserError::Folder);
        let started = said.and_then(|said| spawn(program, &folder, said));
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

    /// Sends a command and waits for its answer; events meanwhile are kept.
    pub(super) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, BrowserError> {
        let id = self.send(session, method, params)?;
        let end = Instant::now() + COMMAND_TIMEOUT;
        loop {
            let message = self.read(end)?.ok_or(BrowserError::Silent)?;
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

    /// Sends a command whose answer nobody waits for.
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

    /// The next event; `None` when there is none until then. A browser that never stops talking has none after the
    /// end either.
    pub(super) fn event(&mut self, end: Instant) -> Result<Option<Value>, BrowserError> {
        if Instant::now() >= end {
            return Ok(None);
        }
        if let Some(kept) = self.kept.pop_front() {
            return Ok(Some(kept));
        }
        loop {
            match self.read(end)? {
                Some(message) if message.get("method").is_none() => {}
                other => return Ok(other),
            }
        }
    }

    /// Forgets events that nobody asked for, so that what one widget did is not taken for the doing of the next.
    pub(super) fn forget_events(&mut self) {
        self.kept.clear();
    }

    fn read(&self, end: Instant) -> Result<Option<Value>, BrowserError> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        match self.messages.recv_timeout(left) {
            Ok(Some(message)) => Ok(Some(message)),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Err(self.exit_error()),
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    /// The browser ended: with what it last said.
    fn exit_error(&self) -> BrowserError {
        let said = std::fs::read(self.folder.join("said.txt")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
        let tail = lines.iter().rev().take(3).rev().copied();
        BrowserError::Ended(printable(&tail.collect::<Vec<_>>().join(" / "), 400))
    }
}

impl Drop for DevtoolsPipe {
    fn drop(&mut self) {
        let _ = self.send(None, "Browser.close", json!({}));
        drop(self.input.take());
        let end = Instant::now() + EXIT_GRACE_PERIOD;
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Whatever is left of it and of its own children goes with its group.
        end_group(&self.child);
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A folder for the profile that only this user can read.
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
fn spawn(program: &Path, folder: &Path, said: File) -> Result<Child, BrowserError> {
    use std::os::unix::process::CommandExt as _;
    // The browser reads commands from its file 3 and answers on its file 4, which only a shell can arrange.
    const ARRANGED: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", ARRANGED]).arg(program).args(FLAGS);
    // Chromium refuses to run with its own sandbox as the superuser, as in most containers.
    if rustix::process::geteuid().is_root() {
        command.arg("--no-sandbox");
    }
    let profile = format!("--user-data-dir={}", folder.display());
    command.args([profile.as_str(), "about:blank"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(said).process_group(0);
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

/// Reads messages until the pipe ends; `None` says that one was too long or no JSON.
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

    fn heard(bytes: &[u8]) -> Vec<Option<Value>> {
        let (sender, messages) = sync_channel(8);
        read(bytes, &sender);
        drop(sender);
        messages.iter().collect()
    }

    #[test]
    fn messages_end_at_a_zero_byte() {
        let told = heard(b"{\"a\":1}\0{\"b\":2}\0");
        assert_eq!(told, [Some(json!({"a": 1})), Some(json!({"b": 2}))]);
        assert_eq!(heard(b""), []);
        assert_eq!(heard(b"nonsense\0{}\0"), [None]);
    }

    #[test]
    fn a_message_has_a_bound() {
        let longest = |more: usize| {
            let fill = " ".repeat(MAX_MESSAGE as usize - 2 + more);
            heard(format!("{{}}{fill}\0").as_bytes())
        };
        assert_eq!(longest(0), [Some(json!({}))]);
        assert_eq!(longest(1), [None]);
    }
}
