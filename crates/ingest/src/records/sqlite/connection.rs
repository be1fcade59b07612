//! Opens a SQLite database from bytes in memory, restricted to reading.

use std::io::Read as _;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, Result};

/// Virtual machine steps between two calls of the progress handler. The handler ends queries that take too many steps;
/// a call for every step would slow down all of them, and some thousand steps are over in less than a millisecond.
const PROGRESS_STEPS: u16 = 1_000;

/// Run-time limits for SQLite, far below its defaults and far above real databases.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, 64 * 1024 * 1024),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 1024 * 1024),
    (Limit::SQLITE_LIMIT_COLUMN, 2_000),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 20),
    (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 10),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Opens a database from memory. SQLite interrupts it after this many steps.
pub(super) fn open(bytes: &[u8], steps: u64) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_MEMORY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_in_memory_with_flags(flags)?;
    for (limit, value) in LIMITS {
        connection.set_limit(*limit, *value)?;
    }
    // The schema comes from the file and is untrusted, so it must not call functions with side effects.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false)?;
    let steps_taken = AtomicU64::new(0);
    let handler = move || {
        let stride = u64::from(PROGRESS_STEPS);
        steps_taken.fetch_add(stride, Ordering::Relaxed) + stride > steps
    };
    connection.progress_handler(i32::from(PROGRESS_STEPS), Some(handler))?;
    let (head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES));
    let head = without_wal(head);
    connection.deserialize_read_exact("main", head.as_slice().chain(rest), bytes.len(), true)?;
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;")?;
    Ok(connection)
}

/// Bytes of the database header up to and including the file format versions.
const HEAD_BYTES: usize = 20;

/// The header with WAL mode switched off. The write-ahead log that may hold the newest rows is a separate
/// file, and SQLite does not open a database in WAL mode without it.
fn without_wal(head: &[u8]) -> Vec<u8> {
    const LOGGED: u8 = 2;
    let mut head = head.to_vec();
    for version in head.iter_mut().skip(HEAD_BYTES - 2) {
        if *version == LOGGED {
            *version = 1;
        }
    }
    head
}

/// Installs an authorizer that allows nothing but reads from here on.
pub(super) fn restrict_to_reads(connection: &mut Connection) -> Result<()> {
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name } if is_harmless(function_name) => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }))
}

fn is_harmless(function: &str) -> bool {
    const REFUSED: &[&str] = &[
        "load_extension",
        "fts3_tokenizer",
        "readfile",
        "writefile",
        "edit",
    ];
    !REFUSED
        .iter()
        .any(|name| function.eq_ignore_ascii_case(name))
}
