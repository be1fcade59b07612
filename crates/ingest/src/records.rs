//! Record formats: every row, line or object of a file becomes a document of its own.

pub(crate) mod column_types;
pub(crate) mod csv;
mod epoch_unit;
pub(crate) mod json;
pub(crate) mod jsonl;
mod line_counter;
pub(crate) mod notion_table;
mod number_format;
pub(crate) mod parquet;
pub(crate) mod reader_column;
pub(crate) mod record_collector;
pub(crate) mod record_ids;
pub(crate) mod sheet;
pub(crate) mod sqlite;

pub(crate) use record_collector::{KEYS, RecordCollector, RecordLocation};
