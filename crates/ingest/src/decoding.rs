//! Character decoding of text files: UTF-8, UTF-16 and legacy encodings, and what tells text from binary content.

pub(crate) mod text_stream;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::clean::clean;
use crate::error::IngestError;

/// Decodes the bytes of a text file in any encoding and cleans the characters.
pub(crate) fn decode_clean(bytes: &[u8], max_chars: usize) -> Result<String, IngestError> {
    let text = decode_text(bytes)?;
    // Cleaning never makes a text longer, so counting first bounds its work too.
    if text.chars().nth(max_chars).is_some() {
        return Err(IngestError::TextTooLong { limit: max_chars });
    }
    Ok(clean(&text))
}

/// Decodes text: UTF-8, UTF-16 with or without a byte order mark, or else the legacy encoding that fits
/// best. UTF-7 is rejected, because it hides arbitrary characters in harmless ones.
pub(crate) fn decode_text(bytes: &[u8]) -> Result<String, IngestError> {
    if let Some(utf16) = utf16_encoding(bytes) {
        let (text, _) = utf16.decode_with_bom_removal(bytes);
        return if has_many_controls(text.as_bytes()) {
            Err(IngestError::Binary)
        } else {
            Ok(without_nuls(text.into_owned()))
        };
    }
    if is_binary(bytes) {
        return Err(IngestError::Binary);
    }
    refuse_utf7(bytes)?;
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(without_nuls(text.to_owned()));
    }
    if has_many_controls(bytes) {
        return Err(IngestError::Binary);
    }
    if is_damaged_utf8(bytes) {
        return Ok(without_nuls(String::from_utf8_lossy(bytes).into_owned()));
    }
    let (text, _) = guess_legacy_encoding(bytes).decode_without_bom_handling(bytes);
    Ok(without_nuls(text.into_owned()))
}

pub(crate) fn refuse_utf7(bytes: &[u8]) -> Result<(), IngestError> {
    if UTF7_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        return Err(IngestError::Unsupported {
            kind: "utf-7".to_owned(),
        });
    }
    Ok(())
}

/// The byte order mark in UTF-7, with each of the characters that may end it.
const UTF7_MARKS: &[&[u8]] = &[b"+/v8", b"+/v9", b"+/v+", b"+/v/"];

/// Guesses the legacy encoding. ISO-2022-JP is never guessed: its escape sequences make ASCII mean other
/// characters, which hides text from every filter before this one.
pub(crate) fn guess_legacy_encoding(bytes: &[u8]) -> &'static Encoding {
    /// Enough to decide; the detector examines every byte at some tens of megabytes per second.
    const SAMPLE: usize = 1024 * 1024;
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let sample = bytes.get(first.saturating_sub(1024)..).unwrap_or_default();
    let sample = sample.get(..SAMPLE).unwrap_or(sample);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, true);
    let found = detector.guess(None, Utf8Detection::Deny);
    let (_, bad) = found.decode_without_bom_handling(bytes);
    // Windows-1252 decodes every byte.
    if bad { WINDOWS_1252 } else { found }
}

/// Whether the content is not text: it has NULs, is not UTF-16, and has many other control characters too. A stray NUL
/// in a text is damage, which costs that character and not the file.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0) && has_many_controls(bytes) && !is_utf16(bytes)
}

/// Removes stray NULs. This happens before anything is parsed, so that they cannot hide the name of a reader field.
pub(crate) fn without_nuls(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "")
    } else {
        text
    }
}

pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    utf16_encoding(bytes).is_some()
}

pub(crate) fn utf16_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    // A little-endian mark followed by two NULs is UTF-32.
    if bytes.starts_with(b"\xFF\xFE") && !bytes.starts_with(b"\xFF\xFE\0\0") {
        return Some(UTF_16LE);
    }
    if bytes.starts_with(b"\xFE\xFF") {
        return Some(UTF_16BE);
    }
    unmarked_utf16(bytes)
}

/// Detects UTF-16 without a byte order mark: the zero bytes of ASCII characters, at least of blanks, are
/// all on the same side, and the decoded characters are ones that texts contain.
///
/// A front matter fence in single bytes rules UTF-16 out. Otherwise a few NULs behind the fence would turn
/// the whole file, with its reader field, into Chinese characters and so lose the permission. In UTF-16
/// these bytes would be a rare Georgian letter (U+2D2D) or an arrow (U+2B2B), which no text repeats.
fn unmarked_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    /// Enough to decide; it must be even.
    const SAMPLE: usize = 16 * 1024;
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let sample = bytes.get(..SAMPLE).unwrap_or(bytes);
    if sample
        .windows(3)
        .any(|three| three == b"---" || three == b"+++")
    {
        return None;
    }
    let (mut first, mut second) = (0_usize, 0_usize);
    for (at, _) in sample.iter().enumerate().filter(|(_, byte)| **byte == 0) {
        if at.is_multiple_of(2) {
            first += 1;
        } else {
            second += 1;
        }
    }
    let encoding = match (first, second) {
        (0, 1..) => UTF_16LE,
        (1.., 0) => UTF_16BE,
        _ => return None,
    };
    let enough = (first + second) * 40 >= sample.len();
    let in_text = |c: char| {
        let private = matches!(c, '\u{E000}'..='\u{F8FF}' | '\u{FFF0}'..='\u{FFFF}');
        "\t\n\r".contains(c) || !(c.is_control() || private)
    };
    // A sample may end inside a surrogate pair, whose half decodes to U+FFFD.
    let (text, _) = encoding.decode_without_bom_handling(sample);
    let text = text.strip_suffix('\u{FFFD}').unwrap_or(&text);
    (enough && text.chars().all(in_text)).then_some(encoding)
}

/// Whether more than one byte in a hundred is a control character. Text has almost none; compressed data
/// about ten.
pub(crate) fn has_many_controls(bytes: &[u8]) -> bool {
    let is_control = |byte: &&u8| byte.is_ascii_control() && !b"\t\n\r\x0B\x0C\x1B".contains(byte);
    bytes.iter().filter(is_control).count() * 100 > bytes.len()
}

/// Whether more non-ASCII characters are valid UTF-8 than not, as in a truncated or patched file. In
/// Windows-1252 text nearly every non-ASCII byte is invalid UTF-8.
pub(crate) fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > invalid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expect: Result<&str, &str>) {
        let found = decode_clean(bytes, 1_000);
        assert_eq!(
            found.as_deref().map_err(IngestError::code),
            expect,
            "{bytes:?}"
        );
    }

    #[test]
    fn every_encoding_is_read() {
        check("Tarn Örr".as_bytes(), Ok("Tarn Örr"));
        check(b"\xEF\xBB\xBFTarn\r\nOrr", Ok("Tarn\nOrr"));
        check(b"\xFF\xFET\0\xD6\0", Ok("TÖ"));
        check(b"\xFE\xFF\0T\0\xD6", Ok("TÖ"));
        check(b"\xFF\xFE\x00\xD8T\0", Ok("\u{FFFD}T"));
        check(b"caf\xE9 \x93quoted\x94 \x80 5", Ok("café “quoted” € 5"));
        check(b"", Ok(""));
    }

    #[test]
    fn utf16_is_known_without_its_mark() {
        check(b"T\0\xD6\0", Ok("TÖ"));
        check(b"\0T\0\xD6", Ok("TÖ"));
        let cyrillic = "Пристань у маяка открыта с мая";
        let little: Vec<_> = cyrillic.encode_utf16().flat_map(u16::to_le_bytes).collect();
        check(&little, Ok(cyrillic));
        let big: Vec<_> = cyrillic.encode_utf16().flat_map(u16::to_be_bytes).collect();
        check(&big, Ok(cyrillic));
        // Zero bytes on one side do not make UTF-16 of single-byte front matter.
        let fenced = b"---\nallowed: \"oQp\x9B\xFC\xA6\xDD\x90\xFD\0\t\0pt\n---\nbody\n";
        check(fenced, Err("binary"));
        check(b"+++\nkeys\0 = \"a\0\"\n+++\nbody", Err("binary"));
    }

    #[test]
    fn old_encodings_are_guessed() {
        for (encoding, text) in [
            (
                encoding_rs::WINDOWS_1251,
                "Паром идёт от пристани до маяка каждый день.",
            ),
            (
                encoding_rs::SHIFT_JIS,
                "渡し船は毎日、灯台の桟橋から出ます。",
            ),
            (encoding_rs::GBK, "渡轮每天从灯塔码头出发。"),
            (
                encoding_rs::WINDOWS_1253,
                "Το πλοίο φεύγει κάθε μέρα από την προβλήτα.",
            ),
            (encoding_rs::EUC_KR, "배는 매일 등대 부두에서 떠납니다."),
            (
                encoding_rs::WINDOWS_1252,
                "Die Fähre fährt täglich vom Leuchtturm.",
            ),
        ] {
            check(&encoding.encode(text).0, Ok(text));
        }
    }

    #[test]
    fn utf7_is_refused_and_never_guessed() {
        check(b"+/v8-Hi", Err("unsupported"));
        check(b"+ADw-script+AD4-", Ok("+ADw-script+AD4-"));
    }

    #[test]
    fn damaged_utf8_loses_only_the_damage() {
        let mut bytes = "übermäßig schön".as_bytes().to_vec();
        bytes.extend_from_slice(b"\xC3");
        check(&bytes, Ok("übermäßig schön\u{FFFD}"));
    }

    #[test]
    fn binary_content_is_not_text() {
        check(b"a\0b", Err("binary"));
        check(b"\xFF\xFE\0\0a\0\0\0", Err("binary"));
        check(b"\xFF\xFEa\0\0\0", Err("binary"));
        check(b"T\0e\0x\0t\0\0T", Err("binary"));
        check(b"T\0e\0x\0t", Err("binary"));
        check(b"\x01\0\x02\0", Err("binary"));
        check(&[0x01, 0x02, 0xFF, 0xFE, 0x80, 0x05], Err("binary"));
    }

    #[test]
    fn text_ends_at_its_bound() {
        check("ü".repeat(1_000).as_bytes(), Ok(&"ü".repeat(1_000)));
        check("ü".repeat(1_001).as_bytes(), Err("text-too-long"));
    }
}
