//! Tamper-evident audit log of tool calls, resource reads and page views: JSON Lines in which each line holds the
//! SHA-256 of the line before, a hash chain.
//!
//! Callers never wait for the disk. Calls go through a bounded queue to a writer thread. If the queue or the disk is
//! full, entries are dropped and counted, and the next line that can be written is a `gap` with their number.

pub(crate) mod hash_chain;
mod hmac;
pub(crate) mod log_writer;
pub(crate) mod verify;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use docent_mcp::{CallKind, CallObserver, CallRecord, CallStatus, Caller};
use serde_json::{Map, Value, json};

use self::hmac::HmacKey;
use self::log_writer::AuditLogWriter;
use crate::cli_error::CliError;

/// Capacity of the queue, in calls. With the limits below, a full queue takes twenty megabytes at most.
const QUEUE: usize = 1_024;

/// Maximum number of bytes of ids, and of logged arguments, in one line.
const MAX_IDS_BYTES: usize = 16 * 1024;
const MAX_QUERY_BYTES: usize = 4 * 1024;

/// Settings of the audit log: where it is, what it contains and when it is rotated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// Path of the log; without one there is no audit log.
    pub file: Option<PathBuf>,
    /// Whether to log the arguments of calls, and not only their HMAC.
    pub queries: bool,
    /// Size in bytes at which the log is rotated.
    pub max_bytes: u64,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            file: None,
            queries: false,
            max_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Audit log of a server: the front end that records calls and hands them to the writer thread.
pub struct AuditLog {
    secret: HmacKey,
    queries: bool,
    sender: SyncSender<AuditMessage>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

enum AuditMessage {
    Call(Map<String, Value>),
    /// Sent once on close. The writer finishes the batch and ends, though senders still exist.
    End,
}

impl AuditLog {
    /// Opens or creates a log and starts its writer thread. A torn last line, left by a crash, is truncated and
    /// recorded.
    ///
    /// # Errors
    /// If the file cannot be written or is not an audit log.
    pub fn open(path: &Path, settings: &AuditSettings) -> Result<Self, CliError> {
        let secret = HmacKey::load_or_create(path)?;
        let log = AuditLogWriter::open(path, settings.max_bytes)?;
        let (sender, queue) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = lost.clone();
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write(log, &queue, &counted))
            .map_err(|error| CliError::io("write", path, error))?;
        Ok(Self {
            secret,
            queries: settings.queries,
            sender,
            lost,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Flushes the queue and joins the writer thread.
    pub fn close(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.take() else { return };
        // Blocks until the queue has room, which it gets because the writer drains it.
        if self.sender.send(AuditMessage::End).is_ok() && writer.join().is_err() {
            tracing::error!("the audit log writer panicked");
        }
    }

    /// Builds the log entry of a call. Ids are listed up to a limit; arguments appear as an HMAC unless they are
    /// logged.
    fn line(&self, call: &CallRecord<'_>) -> Map<String, Value> {
        let (ids, has_more) = truncate_ids(call.touched);
        let mut line = Map::new();
        let mut add = |name: &str, value: Value| line.insert(name.to_owned(), value);
        add("event", json!(event(call.what)));
        add("caller", json!(self.caller(call.caller)));
        if let Some(client) = call.client {
            add("client", json!(client));
        }
        if call.what == CallKind::Tool {
            add("tool", json!(call.tool));
        }
        add("arguments", json!(self.secret.hash(call.arguments)));
        if self.queries {
            add("sent", json!(truncate_arguments(call.arguments)));
        }
        add("results", json!(ids));
        if has_more {
            add("more", json!(true));
        }
        add("status", json!(status(call.outcome)));
        let ms = call.took.as_micros() as f64 / 1_000.0;
        add("ms", json!(ms));
        if let Some(trace) = call.trace {
            add("trace", json!(trace.to_string()));
        }
        line
    }

    /// Pseudonym of the caller: an HMAC of issuer and subject, which tells callers apart without naming them. The
    /// length of the issuer comes first, so that no two pairs concatenate to the same text.
    fn caller(&self, caller: &Caller) -> String {
        match (caller.issuer(), caller.subject()) {
            (Some(issuer), Some(subject)) => self
                .secret
                .hash(&format!("{} {issuer} {subject}", issuer.len())),
            _ if caller.is_owner() => "owner".to_owned(),
            _ => "anonymous".to_owned(),
        }
    }
}

impl CallObserver for AuditLog {
    fn on_call(&self, call: &CallRecord<'_>) {
        let message = AuditMessage::Call(self.line(call));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.sender.try_send(message)
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.close();
    }
}

fn event(what: CallKind) -> &'static str {
    match what {
        CallKind::Tool => "call",
        CallKind::Resource => "read",
        CallKind::Page => "page",
    }
}

fn status(outcome: CallStatus) -> &'static str {
    match outcome {
        CallStatus::Done => "done",
        CallStatus::Mistaken => "mistaken",
        CallStatus::Failed => "failed",
        CallStatus::Forbidden => "forbidden",
        CallStatus::TooSoon => "too-soon",
        CallStatus::Abandoned => "abandoned",
    }
}

/// The longest prefix of the ids that fits the limit, and whether some were left out.
fn truncate_ids(ids: &[String]) -> (&[String], bool) {
    let mut room = MAX_IDS_BYTES;
    let fits = |id: &&String| {
        let rest = room.checked_sub(id.len());
        room = rest.unwrap_or(0);
        rest.is_some()
    };
    let count = ids.iter().take_while(fits).count();
    (ids.get(..count).unwrap_or_default(), count < ids.len())
}

fn truncate_arguments(text: &str) -> &str {
    docent_unicode::truncate_bytes(text, MAX_QUERY_BYTES)
}

/// Loop of the writer thread: takes all queued calls as one batch, so that a burst costs one `fsync`.
fn write(mut log: AuditLogWriter, queue: &Receiver<AuditMessage>, lost: &AtomicU64) {
    let mut is_failing = false;
    // Number of entries lost since the last successful write.
    let mut missing: u64 = 0;
    while let Ok(AuditMessage::Call(call)) = queue.recv() {
        let mut batch = vec![call];
        let mut is_end = false;
        for message in queue.try_iter().take(QUEUE) {
            match message {
                AuditMessage::Call(call) => batch.push(call),
                AuditMessage::End => {
                    is_end = true;
                    break;
                }
            }
        }
        missing += lost.swap(0, Ordering::Relaxed);
        let count = batch.len() as u64;
        let gap = (missing > 0).then(|| {
            let gap = json!({"event": "gap", "lost": missing});
            gap.as_object().cloned().unwrap_or_default()
        });
        match log.write(gap.into_iter().chain(batch), SystemTime::now()) {
            Ok(()) => {
                if is_failing {
                    tracing::info!(lost = missing, "audit log writes succeed again");
                }
                (is_failing, missing) = (false, 0);
            }
            Err(error) => {
                if !is_failing {
                    tracing::error!(%error, "cannot write the audit log; calls continue, lost entries are counted");
                }
                is_failing = true;
                missing += count;
            }
        }
        if is_end {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
