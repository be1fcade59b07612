//! Writes Parquet files of one row.

use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A file of one row with a text and another value; `None` writes a null.
pub(super) fn parquet_row(column: &str, value: Option<&str>) -> Vec<u8> {
    let level = i16::from(value.is_some());
    let texts = value.map(ByteArray::from).into_iter().collect();
    parquet_file(column, texts, &[level], &[0])
}

/// A file of one row with a list of texts, null values among them; `None` writes a null for the list.
pub(super) fn parquet_list(value: Option<&[Option<String>]>) -> Vec<u8> {
    let items = value.unwrap_or_default();
    let texts = items.iter().flatten().map(|text| text.as_str().into());
    let mut levels: Vec<_> = items
        .iter()
        .map(|text| 2 + i16::from(text.is_some()))
        .collect();
    if items.is_empty() {
        levels.push(i16::from(value.is_some()));
    }
    // Every value but the first continues the list.
    let repeated: Vec<_> = (0..levels.len()).map(|at| i16::from(at > 0)).collect();
    let column = "OPTIONAL group allowed (LIST) { REPEATED group list { OPTIONAL BYTE_ARRAY element (UTF8); } }";
    parquet_file(column, texts.collect(), &levels, &repeated)
}

/// A file of one row with a text and, if there is such a column, values with their definition and
/// repetition levels.
pub(super) fn parquet_file(
    column: &str,
    values: Vec<ByteArray>,
    levels: &[i16],
    repeated: &[i16],
) -> Vec<u8> {
    let schema = format!("message t {{ REQUIRED BYTE_ARRAY text (UTF8); {column} }}");
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let mut out = Vec::new();
    let mut file = SerializedFileWriter::new(&mut out, schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let words = vec![ByteArray::from("words")];
    let columns: [(Vec<ByteArray>, &[i16], &[i16]); 2] =
        [(words, &[0], &[0]), (values, levels, repeated)];
    let mut columns = columns.into_iter();
    while let Some(mut column) = group.next_column().unwrap() {
        let (texts, levels, repeated) = columns.next().unwrap();
        let ColumnWriter::ByteArrayColumnWriter(writer) = column.untyped() else {
            panic!("no bytes")
        };
        writer
            .write_batch(&texts, Some(levels), Some(repeated))
            .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
    out
}
