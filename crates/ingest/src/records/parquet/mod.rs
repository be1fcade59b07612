//! Parquet parser: one document per row. Nested columns become nested values and so dotted field names,
//! timestamps a day and a time of day, and decimals numbers.

mod thrift;
mod validation;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use serde_json::{Map, Value as Raw};

use crate::dates::{self, DateAndTime, date_from_epoch_days, from_epoch_millis};
use crate::error::IngestError;
use crate::formats::file_format::FileFormat;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{self, ReaderKeys};
use crate::records::column_types::put_date_and_time;
use crate::records::record_ids::two_pass;
use crate::records::sheet::as_number;
use crate::records::{RecordCollector, RecordLocation};

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "parquet",
    kind: "parquet",
    extensions: &[],
    has_signature: |head| head.starts_with(b"PAR1") || head.starts_with(b"PARE"),
    parse,
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    if input.bytes.starts_with(b"PARE") {
        return Err(IngestError::Encrypted);
    }
    validation::check_schema(input.bytes, input.limits)?;
    two_pass(input, parse_rows)
}

fn parse_rows(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    let mut records = RecordCollector::new(input);
    // The parquet crate trusts the claims in page headers and may panic on false ones. Catch the panic and
    // keep the rows read before it, which are complete.
    let read = catch_unwind(AssertUnwindSafe(|| read(input, &mut records)));
    let outcome = read.unwrap_or_else(|_| Err(damaged("column")));
    match outcome {
        Ok(()) => records.finish(),
        Err(reason) => {
            if records.document_count() == 0 {
                return Err(reason);
            }
            records.skip_part("rows", reason);
            records.finish()
        }
    }
}

fn damaged(what: &str) -> IngestError {
    IngestError::Damaged {
        what: format!("the {what} cannot be read").into(),
    }
}

fn read(input: &ParserInput<'_>, records: &mut RecordCollector<'_>) -> Result<(), IngestError> {
    let bytes = Bytes::copy_from_slice(input.bytes);
    let reader = SerializedFileReader::new(bytes).map_err(|_| damaged("footer"))?;
    validation::check_pages(input.bytes, reader.metadata(), input.limits)?;
    let nanos = nanosecond_columns(reader.metadata().file_metadata().schema());
    let rows = RowIter::from_file(None, &reader).map_err(|_| damaged("schema"))?;
    for (number, row) in (1..).zip(rows) {
        let location = RecordLocation::Row(number);
        if !records.begin(location) {
            break;
        }
        // The row iterator advances all columns in step, so after one bad value no later row can be
        // assembled.
        let row = row.map_err(|_| damaged("column"))?;
        match keys(row, &nanos, input, records.reader_keys()) {
            Ok(keys) => records.add(location, keys, None),
            Err(reason) => records.skip(location, reason),
        }
    }
    Ok(())
}

/// Names of the top-level nanosecond timestamp columns, which the row API delivers as bare integers.
fn nanosecond_columns(schema: &Type) -> Vec<String> {
    let is_nanos = |column: &&parquet::schema::types::TypePtr| {
        let kind = column.get_basic_info().logical_type_ref();
        matches!(kind, Some(LogicalType::Timestamp(stamp)) if stamp.unit == TimeUnit::NANOS)
    };
    let columns = schema.get_fields().iter().filter(is_nanos);
    columns.map(|column| column.name().to_owned()).collect()
}

fn keys(
    row: Row,
    nanos: &[String],
    input: &ParserInput<'_>,
    readers: &ReaderKeys,
) -> Result<Map<String, Raw>, IngestError> {
    let mut keys = Map::new();
    let mut left = RowByteBudget {
        bytes: input.limits.max_line_bytes,
    };
    let too_long = || IngestError::LineTooLong {
        limit: input.limits.max_line_bytes,
    };
    for (name, field) in row.into_columns() {
        if readers.covers_key(&name) {
            let value = value(field, &mut left).ok_or_else(too_long)?;
            reader_field::insert_keeping_duplicates(&mut keys, &name, value);
            continue;
        }
        let moment = match &field {
            Field::Long(value) if nanos.contains(&name) => {
                from_epoch_millis(value.div_euclid(1_000_000))
            }
            other => moment(other),
        };
        match moment {
            Some(moment) => put_date_and_time(&mut keys, &name, moment),
            None => {
                let value = value(field, &mut left).ok_or_else(too_long)?;
                if value != Raw::Null {
                    keys.insert(name, value);
                }
            }
        }
    }
    Ok(keys)
}

/// How many bytes the current row may still take, against rows that expand without bound.
struct RowByteBudget {
    bytes: usize,
}

impl RowByteBudget {
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }
}

fn moment(field: &Field) -> Option<DateAndTime> {
    match field {
        Field::Date(days) => {
            date_from_epoch_days(i64::from(*days)).map(|day| DateAndTime { day, time: None })
        }
        Field::TimestampMillis(millis) => from_epoch_millis(*millis),
        Field::TimestampMicros(micros) => from_epoch_millis(micros.div_euclid(1_000)),
        _ => None,
    }
}

/// Converts a value to JSON; `None` when the row exceeds its byte budget. It recurses once per schema
/// level, and `check_schema` has bounded those.
fn value(field: Field, left: &mut RowByteBudget) -> Option<Raw> {
    left.take(size_of::<u64>())?;
    if let Some(moment) = moment(&field) {
        let parts = [Some(moment.day), moment.time];
        return Some(
            parts
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ")
                .into(),
        );
    }
    Some(match field {
        Field::Bool(flag) => Raw::Bool(flag),
        Field::Byte(number) => number.into(),
        Field::Short(number) => number.into(),
        Field::Int(number) => number.into(),
        Field::Long(number) => number.into(),
        Field::UByte(number) => number.into(),
        Field::UShort(number) => number.into(),
        Field::UInt(number) => number.into(),
        Field::ULong(number) => number.into(),
        Field::Float16(number) => as_number(f64::from(number.to_f32())),
        // Go through the shortest decimal text, so that 0.1 does not become 0.10000000149.
        Field::Float(number) => number.to_string().parse().map_or(Raw::Null, as_number),
        Field::Double(number) => as_number(number),
        Field::Decimal(decimal) => {
            let sound = decimal.scale() >= 0 && decimal.precision() >= decimal.scale();
            if sound && decimal.data().len() <= 32 {
                decimal_value(&Field::Decimal(decimal).to_string())
            } else {
                Raw::Null
            }
        }
        Field::Str(text) => {
            left.take(text.len())?;
            text.into()
        }
        // Old writers do not annotate byte columns as UTF-8, so try it.
        Field::Bytes(bytes) => match std::str::from_utf8(bytes.data()) {
            Ok(text) if !text.contains('\0') => {
                left.take(text.len())?;
                text.into()
            }
            _ => Raw::Null,
        },
        Field::TimeMillis(millis) => time_of_day(i64::from(millis)),
        Field::TimeMicros(micros) => time_of_day(micros.div_euclid(1_000)),
        Field::Group(row) => {
            let mut map = Map::new();
            for (name, field) in row.into_columns() {
                map.insert(name, value(field, left)?);
            }
            Raw::Object(map)
        }
        Field::ListInternal(list) => {
            let values = list.elements().iter();
            values
                .map(|field| value(field.clone(), left))
                .collect::<Option<Vec<_>>>()?
                .into()
        }
        Field::MapInternal(entries) => {
            let mut map = Map::new();
            for (key, field) in entries.entries() {
                let key = match value(key.clone(), left)? {
                    Raw::String(text) => text,
                    other => other.to_string(),
                };
                map.insert(key, value(field.clone(), left)?);
            }
            Raw::Object(map)
        }
        Field::Null | Field::Date(_) | Field::TimestampMillis(_) | Field::TimestampMicros(_) => {
            Raw::Null
        }
    })
}

/// A decimal as a number where an `f64` holds all its digits, and as text otherwise.
fn decimal_value(text: &str) -> Raw {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match text.parse() {
        Ok(number) if digits <= 15 => as_number(number),
        _ => text.into(),
    }
}

fn time_of_day(millis: i64) -> Raw {
    let moment = dates::from_epoch_millis(millis);
    let time = moment.and_then(|moment| moment.time);
    time.map_or(Raw::Null, Raw::String)
}

#[cfg(test)]
mod tests;
