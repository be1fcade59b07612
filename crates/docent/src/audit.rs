//! Finished calls, reads and visits into lines of a log that shows when somebody changes it: one JSON object a line, each with
//! the hash of the line before.
//!
//! Whoever calls never waits for the disk. Calls go through a queue to one thread that writes; what finds the
//! queue full, or the disk, is counted, and the next line that can be written says how many are missing.

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

/// How many calls may wait to be written. With the bounds below they take twenty megabytes at most.
const QUEUE: usize = 1_024;

/// The most bytes of ids, and of arguments where these are kept, that one line repeats.
const MAX_IDS_BYTES: usize = 16 * 1024;
const MAX_QUERY_BYTES: usize = 4 * 1024;

/// What is kept of calls, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// The file; without one nothing is kept.
    pub file: Option<PathBuf>,
    /// Whether the arguments of calls are kept too.
    pub queries: bool,
    /// From this many bytes on a new file is begun.
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

/// The log of a server.
pub struct AuditLog {
    secret: HmacKey,
    queries: bool,
    notes: SyncSender<AuditMessage>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

enum AuditMessage {
    Call(Map<String, Value>),
    /// Nothing more comes.
    End,
}

impl AuditLog {
    /// Opens the log in a file, or begins it, and says what a crash left torn.
    ///
    /// # Errors
    /// When the file cannot be written or is no log.
    pub fn open(path: &Path, wish: &AuditSettings) -> Result<Self, CliError> {
        let secret = HmacKey::load_or_create(path)?;
        let log = AuditLogWriter::open(path, wish.max_bytes)?;
        let (notes, queue) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = lost.clone();
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write(log, &queue, &counted))
            .map_err(|error| CliError::io("write", path, error))?;
        Ok(Self {
            secret,
            queries: wish.queries,
            notes,
            lost,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Writes what is left and ends.
    pub fn close(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.take() else { return };
        // Waits for a place in the queue: the writer is at work.
        if self.notes.send(AuditMessage::End).is_ok() && writer.join().is_err() {
            tracing::error!("the audit log ended badly");
        }
    }

    /// A call as a line tells it.
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

    /// Tells callers apart without telling who they are.
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
        let note = AuditMessage::Call(self.line(call));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.notes.try_send(note)
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

/// As many ids as have room, and whether there are more.
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

/// Writes what comes until nothing more does.
fn write(mut log: AuditLogWriter, queue: &Receiver<AuditMessage>, lost: &AtomicU64) {
    let mut is_failing = false;
    // What could not be written since the last line that could.
    let mut missing: u64 = 0;
    while let Ok(AuditMessage::Call(call)) = queue.recv() {
        let mut batch = vec![call];
        let mut is_end = false;
        for note in queue.try_iter().take(QUEUE) {
            match note {
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
                    tracing::info!(lost = missing, "the audit log is written again");
                }
                (is_failing, missing) = (false, 0);
            }
            Err(error) => {
                if !is_failing {
                    tracing::error!(%error, "the audit log cannot be written; calls go on, and are counted");
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
