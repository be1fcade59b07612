//! Decompression bomb check: bounds what the packed streams of a PDF file unpack to, before the PDF library
//! unpacks them.
//!
//! Images do not count: they are large, and no parser decodes them.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use memchr::memmem;

use crate::error::IngestError;

/// How far before a stream its dictionary is looked for. Dictionaries of streams have a few hundred bytes. The search
/// goes backwards without parsing the file, so a dictionary that is longer counts as one without filters, and the
/// stream is measured as it is.
const DESCRIPTION_BYTES: usize = 4 * 1024;

/// Worst-case growth charged for run-length encoding, and for LZW the growth in real files.
const MAX_RUN_GROWTH: u64 = 64;
const USUAL_LZW_GROWTH: u64 = 40;

/// The most bytes of a packed stream inside another one.
const MAX_INNER_BYTES: usize = 16 * 1024 * 1024;

/// How many layers of compression in one stream are followed. Programs write one, sometimes two. Every layer can
/// multiply the size by a thousand, so a few more of them would make a bomb out of some bytes that a check of the first
/// layer does not notice.
const MAX_LAYERS: usize = 3;

/// Rejects a file whose streams unpack to more than `limit` bytes altogether.
pub(super) fn check(bytes: &[u8], limit: u64) -> Result<(), IngestError> {
    let mut left = limit;
    let mut at = 0;
    while let Some(found) = memmem::find(bytes.get(at..).unwrap_or_default(), b"stream") {
        let start = at + found;
        at = start + b"stream".len();
        let before = bytes.get(start.saturating_sub(DESCRIPTION_BYTES)..start);
        let before = before.unwrap_or_default();
        if before.ends_with(b"end") || is_picture(before) {
            continue;
        }
        let data = bytes.get(at..).unwrap_or_default();
        let data = data.strip_prefix(b"\r").unwrap_or(data);
        let data = data.strip_prefix(b"\n").unwrap_or(data);
        let used =
            charge_stream(data, before, &mut left).ok_or(IngestError::TooMuchInside { limit })?;
        at += used;
    }
    Ok(())
}

/// Charges what a stream unpacks to against the budget `left`, and returns how many bytes of `data` it
/// takes. `None` when the budget is exceeded.
fn charge_stream(data: &[u8], before: &[u8], left: &mut u64) -> Option<usize> {
    let left_before = *left;
    let used = unpacked(data, left, MAX_LAYERS)?;
    // Two old filters are not unpacked here; charge what they could grow to instead.
    let has = |word: &[u8]| memmem::find(description(before), word).is_some();
    let growth = if has(b"/RunLengthDecode") || has(b"/RL") {
        MAX_RUN_GROWTH
    } else if has(b"/LZW") {
        USUAL_LZW_GROWTH
    } else {
        return Some(used);
    };
    let inner = match left_before - *left {
        0 => memmem::find(data, b"endstream").unwrap_or(data.len()) as u64,
        unpacked => unpacked,
    };
    *left = left.checked_sub(inner.saturating_mul(growth))?;
    Some(used)
}

/// The dictionary of the stream that follows `before`.
fn description(before: &[u8]) -> &[u8] {
    let from = memmem::rfind(before, b" obj").unwrap_or(0);
    before.get(from..).unwrap_or_default()
}

fn is_picture(before: &[u8]) -> bool {
    let has = |word: &[u8]| memmem::find(description(before), word).is_some();
    (has(b"/Subtype /Image") || has(b"/Subtype/Image")) && !has(b"/ObjStm") && !has(b"/XRef")
}

/// How many bytes of `data` a packed stream takes, or `None` when it unpacks to more than `left`. The
/// result may be a packed stream again, so it recurses for each layer.
fn unpacked(data: &[u8], left: &mut u64, layers: usize) -> Option<usize> {
    if !begins_like_zlib(data) {
        return Some(0);
    }
    let mut decoder = ZlibDecoder::new(data);
    let mut buffer = vec![0; 64 * 1024];
    let mut inner: Option<Vec<u8>> = None;
    // Every PDF reader reads a truncated stream as far as it goes.
    while let Ok(count @ 1..) = decoder.read(&mut buffer) {
        *left = left.checked_sub(count as u64)?;
        let piece = buffer.get(..count).unwrap_or_default();
        let first = inner.is_none() && decoder.total_out() == count as u64;
        if first && layers > 1 && begins_like_zlib(piece) {
            inner = Some(Vec::new());
        }
        if let Some(inner) = &mut inner {
            inner.extend_from_slice(piece);
            if inner.len() > MAX_INNER_BYTES {
                return None;
            }
        }
    }
    if let Some(inner) = inner {
        unpacked(&inner, left, layers - 1)?;
    }
    usize::try_from(decoder.total_in()).ok()
}

fn begins_like_zlib(data: &[u8]) -> bool {
    match data {
        [first, second, ..] => {
            first & 15 == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write as _;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn file(description: &str, packed: &[u8]) -> Vec<u8> {
        let head = format!("1 0 obj <<{description}>> stream\r\n");
        [head.as_bytes(), packed, b"\nendstream endobj"].concat()
    }

    fn check_code(bytes: &[u8], limit: u64) -> Result<(), &'static str> {
        check(bytes, limit).map_err(|reason| reason.code())
    }

    #[test]
    fn streams_end_at_their_bound() {
        let one = file("", &packed(&[b'x'; 1_000]));
        assert_eq!(check_code(&one, 1_000), Ok(()));
        assert_eq!(check_code(&one, 999), Err("too-much-inside"));
        let two = [one.clone(), one].concat();
        assert_eq!(check_code(&two, 2_000), Ok(()));
        assert_eq!(check_code(&two, 1_999), Err("too-much-inside"));
    }

    #[test]
    fn streams_inside_streams_count_too() {
        let nested = file("", &packed(&packed(&[b'x'; 100_000])));
        assert_eq!(check_code(&nested, 10_000), Err("too-much-inside"));
        assert_eq!(check_code(&nested, 200_000), Ok(()));
    }

    #[test]
    fn a_stream_inside_another_ends_at_its_bound() {
        // Looks like a zlib stream by its header but is none.
        let inner = |length: usize| {
            let mut bytes = vec![0xFF; length];
            bytes[..2].copy_from_slice(&[0x78, 0x9C]);
            check_code(&file("", &packed(&bytes)), u64::MAX)
        };
        assert_eq!(inner(MAX_INNER_BYTES), Ok(()));
        assert_eq!(inner(MAX_INNER_BYTES + 1), Err("too-much-inside"));
    }

    #[test]
    fn old_ways_of_packing_are_charged_for_what_they_can_become() {
        let runs = file("/Filter/RunLengthDecode", b"\x81x\x81x");
        assert_eq!(check_code(&runs, 5 * 64), Ok(()));
        assert_eq!(check_code(&runs, 5 * 64 - 1), Err("too-much-inside"));
        let both = file(
            "/Filter[/FlateDecode/RunLengthDecode]",
            &packed(&[0x81; 1_000]),
        );
        assert_eq!(check_code(&both, 1_000 + 64_000), Ok(()));
        assert_eq!(check_code(&both, 1_000 + 63_999), Err("too-much-inside"));
        let lzw = file("/Filter/LZWDecode", b"0123");
        assert_eq!(check_code(&lzw, 5 * 40), Ok(()));
        assert_eq!(check_code(&lzw, 5 * 40 - 1), Err("too-much-inside"));
    }

    #[test]
    fn pictures_do_not_count() {
        let data = packed(&[b'x'; 1_000]);
        assert_eq!(check_code(&file("/Subtype /Image", &data), 10), Ok(()));
        let both = file("/Subtype/Image/Type/ObjStm", &data);
        assert_eq!(check_code(&both, 10), Err("too-much-inside"));
    }

    #[test]
    fn streams_that_are_not_compressed_are_skipped() {
        assert_eq!(check_code(&file("", b"BT (x) Tj ET"), 0), Ok(()));
        assert_eq!(check_code(&file("", &[0x78, 0x9C, 0xFF, 0xFF]), 10), Ok(()));
        assert_eq!(check_code(b"stream", 0), Ok(()));
    }
}
