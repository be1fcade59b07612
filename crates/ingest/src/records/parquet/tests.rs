//! Tests of the Parquet parser on files written here with the same library.

use std::sync::Arc;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;
use crate::limits::Limits;
use crate::parser::tests::{shown, with_input};

/// A file of three rows with a column of every type.
fn berths(codec: Compression) -> Vec<u8> {
    let schema = "message berths {
        REQUIRED BYTE_ARRAY id (UTF8);
        OPTIONAL BYTE_ARRAY name (UTF8);
        REQUIRED INT32 opened (DATE);
        REQUIRED INT64 seen (TIMESTAMP(MILLIS,true));
        REQUIRED INT64 measured (TIMESTAMP(NANOS,true));
        REQUIRED INT32 fee (DECIMAL(9,2));
        REQUIRED DOUBLE depth;
        REQUIRED BOOLEAN lit;
        REQUIRED group place { REQUIRED BYTE_ARRAY state (UTF8); REQUIRED FLOAT lat; }
        REQUIRED group tags (LIST) { REPEATED group list { REQUIRED BYTE_ARRAY element (UTF8); } }
        REQUIRED BYTE_ARRAY raw;
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_created_by("a test".to_owned())
        .build();
    let mut out = Vec::new();
    let mut file = SerializedFileWriter::new(&mut out, schema, Arc::new(properties)).unwrap();
    let mut group = file.next_row_group().unwrap();
    let texts = |values: &[&str]| {
        values
            .iter()
            .map(|v| ByteArray::from(*v))
            .collect::<Vec<_>>()
    };
    let mut at = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        match (at, column.untyped()) {
            (0, ColumnWriter::ByteArrayColumnWriter(w)) => {
                w.write_batch(&texts(&["b-1", "b-2", "b-3"]), None, None)
            }
            (1, ColumnWriter::ByteArrayColumnWriter(w)) => {
                w.write_batch(&texts(&["Ellin", "Tarn"]), Some(&[1, 0, 1]), None)
            }
            (2, ColumnWriter::Int32ColumnWriter(w)) => w.write_batch(&[19_794, 0, -1], None, None),
            (3, ColumnWriter::Int64ColumnWriter(w)) => {
                w.write_batch(&[1_710_239_405_000, 0, 86_400_000], None, None)
            }
            (4, ColumnWriter::Int64ColumnWriter(w)) => {
                w.write_batch(&[1_710_239_405_000_000_000, 0, 1], None, None)
            }
            (5, ColumnWriter::Int32ColumnWriter(w)) => w.write_batch(&[1_250, -5, 0], None, None),
            (6, ColumnWriter::DoubleColumnWriter(w)) => {
                w.write_batch(&[4.25, 3.0, f64::NAN], None, None)
            }
            (7, ColumnWriter::BoolColumnWriter(w)) => {
                w.write_batch(&[true, false, true], None, None)
            }
            (8, ColumnWriter::ByteArrayColumnWriter(w)) => {
                w.write_batch(&texts(&["Lowmere"; 3]), None, None)
            }
            (9, ColumnWriter::FloatColumnWriter(w)) => w.write_batch(&[0.1, 55.5, 1.0], None, None),
            (10, ColumnWriter::ByteArrayColumnWriter(w)) => w.write_batch(
                &texts(&["deep", "quay", "slip"]),
                Some(&[1, 1, 1, 0]),
                Some(&[0, 1, 0, 0]),
            ),
            (11, ColumnWriter::ByteArrayColumnWriter(w)) => {
                let raw = [b"text".to_vec(), vec![0xFF, 0xD8], vec![0]].map(ByteArray::from);
                w.write_batch(&raw, None, None)
            }
            _ => panic!("column {at}"),
        }
        .unwrap();
        column.close().unwrap();
        at += 1;
    }
    group.close().unwrap();
    file.close().unwrap();
    out
}

/// Formats results as `id|title|text` for a document and `path:code` for a skipped item.
fn show(bytes: &[u8], limits: &Limits) -> Vec<String> {
    let parsed = match with_input("b.parquet", bytes, limits, parse) {
        Ok(parsed) => parsed,
        Err(reason) => return vec![reason.code().to_owned()],
    };
    shown(&parsed)
}

/// Writes the golden file if it is missing; see the README next to it.
#[test]
fn the_golden_file_is_there() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/parquet");
    let path = format!("{folder}/berths.parquet");
    if std::env::var_os("DOCENT_WRITE_GOLDEN").is_some() && std::fs::metadata(&path).is_err() {
        std::fs::write(&path, berths(Compression::SNAPPY)).unwrap();
    }
    assert_eq!(
        show(&std::fs::read(&path).unwrap(), &Limits::default()).len(),
        3
    );
}

fn codecs() -> [Compression; 5] {
    [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ]
}

#[test]
fn rows_are_records_in_every_compression() {
    for codec in codecs() {
        assert_eq!(
            show(&berths(codec), &Limits::default()),
            [
                "b-1|Ellin|opened: 2024-03-12/seen: 2024-03-12/seen.time: 10:30:05/measured: 2024-03-12/measured.time: 10:30:05/fee: 12.5/depth: 4.25/lit: true/place.state: Lowmere/place.lat: 0.1/tags: deep, quay/raw: text/",
                "b-2|B b-2|opened: 1970-01-01/seen: 1970-01-01/measured: 1970-01-01/fee: -0.05/depth: 3/lit: false/place.state: Lowmere/place.lat: 55.5/tags: slip/",
                "b-3|Tarn|opened: 1969-12-31/seen: 1970-01-02/measured: 1970-01-01/fee: 0/lit: true/place.state: Lowmere/place.lat: 1/",
            ],
            "{codec:?}"
        );
    }
}

#[test]
fn records_and_rows_are_bounded() {
    let bytes = berths(Compression::SNAPPY);
    let records = Limits {
        max_records: 2,
        ..Limits::default()
    };
    assert_eq!(show(&bytes, &records)[2], "b.parquet:3:too-many-records");
    let line = Limits {
        max_line_bytes: 90,
        ..Limits::default()
    };
    assert!(
        show(&bytes, &line)
            .iter()
            .all(|line| line.ends_with("line-too-long"))
    );
    let columns = |max_columns| Limits {
        max_columns,
        ..Limits::default()
    };
    // Sixteen schema elements, the root and the groups included.
    assert_eq!(show(&bytes, &columns(4)).len(), 3);
    assert_eq!(show(&bytes, &columns(3)), ["too-many-columns"]);
}

#[test]
fn the_unpacked_size_of_pages_is_limited() {
    for codec in codecs() {
        let bytes = berths(codec);
        let fits = |max_unpacked_bytes| {
            let limits = Limits {
                max_unpacked_bytes,
                ..Limits::default()
            };
            let reader = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
            validation::check_pages(&bytes, reader.metadata(), &limits)
        };
        let least = (0..1 << 20).find(|limit| fits(*limit).is_ok()).unwrap();
        assert!(least > 500, "{codec:?}");
        assert_eq!(
            fits(least - 1),
            Err(IngestError::TooMuchInside { limit: least - 1 }),
            "{codec:?}"
        );
    }
}

#[test]
fn a_page_that_lies_about_its_size_is_counted() {
    let zeros = vec![0; 1_000_000];
    let mut gzip = Vec::new();
    std::io::copy(
        &mut flate2::read::GzEncoder::new(zeros.as_slice(), flate2::Compression::fast()),
        &mut gzip,
    )
    .unwrap();
    // Fields 1 to 3 of a page header, for a data page that claims to unpack to one byte.
    let size = gzip.len() as u64;
    let mut chunk = vec![0x15, 0, 0x15, 2, 0x15];
    let mut left = size << 1;
    while left > 0x7F {
        chunk.push((left & 0x7F) as u8 | 0x80);
        left >>= 7;
    }
    chunk.extend([left as u8, 0]);
    chunk.extend(gzip);
    let codec = Compression::GZIP(GzipLevel::default());
    let chunk = validation::ParquetColumnChunk {
        pages: &chunk,
        codec,
        repeats: false,
    };
    assert_eq!(chunk.unpacked(1_000_064), Some(Some(0)));
    assert_eq!(chunk.unpacked(1_000_063), Some(None));
}

#[test]
fn values_that_a_page_claims_are_counted_where_rows_hold_many() {
    // An empty data page whose own header claims a thousand values, and then a dictionary page that does
    // the same.
    let pages = [0x15, 0, 0x15, 0, 0x15, 0, 0x2C, 0x15, 0xD0, 0x0F, 0, 0];
    let chunk = |repeats| validation::ParquetColumnChunk {
        pages: &pages,
        codec: Compression::UNCOMPRESSED,
        repeats,
    };
    assert_eq!(chunk(false).unpacked(64), Some(Some(0)));
    assert_eq!(chunk(true).unpacked(64 + 32_000), Some(Some(0)));
    assert_eq!(chunk(true).unpacked(64 + 31_999), Some(None));
    let dictionary = [0x15, 4, 0x15, 0, 0x15, 0, 0x4C, 0x15, 0xD0, 0x0F, 0, 0];
    let chunk = validation::ParquetColumnChunk {
        pages: &dictionary,
        ..chunk(false)
    };
    assert_eq!(chunk.unpacked(1 << 20), None);
}

/// A footer whose schema nests this many groups.
fn nested(levels: usize) -> Vec<u8> {
    let mut footer = vec![0x15, 2, 0x19, 0xFC];
    let mut count = levels + 1;
    while count > 0x7F {
        footer.push((count & 0x7F) as u8 | 0x80);
        count >>= 7;
    }
    footer.push(count as u8);
    for _ in 0..levels {
        // A group: its name and one child.
        footer.extend([0x48, 1, b'g', 0x15, 2, 0]);
    }
    // A leaf: its type and its name.
    footer.extend([0x15, 2, 0x38, 1, b'x', 0]);
    footer.push(0);
    let mut bytes = b"PAR1".to_vec();
    bytes.extend(&footer);
    bytes.extend((footer.len() as u32).to_le_bytes());
    bytes.extend(b"PAR1");
    bytes
}

#[test]
fn deep_schemas_are_refused_before_they_are_followed() {
    let check = |levels: usize| validation::check_schema(&nested(levels), &Limits::default());
    assert_eq!(check(32), Ok(()));
    assert_eq!(check(33), Err(IngestError::TooNested { limit: 32 }));
    assert_eq!(show(&nested(1_000_000), &Limits::default()), ["too-nested"]);
}

#[test]
fn damage_is_a_reason() {
    for bytes in [
        &b"PAR1"[..],
        b"PAR1PAR1",
        b"PAR1\xFF\xFF\xFF\x7FPAR1",
        b"PAR1abcdPAR1",
    ] {
        assert_eq!(show(bytes, &Limits::default()), ["damaged"], "{bytes:?}");
    }
    assert_eq!(show(b"PARE", &Limits::default()), ["encrypted"]);
}
