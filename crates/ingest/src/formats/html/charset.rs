//! Character encoding detection for web pages: byte order mark, declared encoding, valid UTF-8, and finally
//! statistical detection.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

use crate::decoding::{decode_text, is_binary, is_utf16, without_nuls};
use crate::error::IngestError;

/// How many bytes of a page are searched for its declared encoding. Browsers stop at 1,024; longer comments
/// and scripts before the declaration are common.
const SCAN_BYTES: usize = 16 * 1024;

/// How many bytes the statistical detector reads. It looks at every byte above ASCII, of which a page in an old
/// encoding has thousands in its first paragraphs; reading all of a large page would not change the guess.
const GUESS_BYTES: usize = 256 * 1024;

pub(crate) fn decode(bytes: &[u8]) -> Result<String, IngestError> {
    if is_binary(bytes) {
        return Err(IngestError::Binary);
    }
    if is_utf16(bytes) || bytes.starts_with(b"\xEF\xBB\xBF") {
        return decode_text(bytes);
    }
    let declared = declared_encoding(bytes);
    // Text with non-ASCII letters is never valid UTF-8 by chance, whereas pages often declare the wrong
    // encoding. Only ISO-2022-JP looks like ASCII.
    if declared != Some(ISO_2022_JP)
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Ok(without_nuls(text.to_owned()));
    }
    let text = match declared.filter(|encoding| *encoding != UTF_8) {
        Some(encoding) => encoding.decode_without_bom_handling(bytes).0,
        None if is_nearly_utf8(bytes) => String::from_utf8_lossy(bytes),
        None => guess_encoding(bytes).decode_without_bom_handling(bytes).0,
    };
    Ok(without_nuls(text.into_owned()))
}

/// Whether the bytes have more valid than invalid sequences beyond ASCII.
fn is_nearly_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > invalid
}

fn guess_encoding(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes.get(..GUESS_BYTES).unwrap_or(bytes), true);
    detector.guess(None, Utf8Detection::Deny)
}

/// The encoding declared by a `meta` element or an XML declaration.
fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..SCAN_BYTES).unwrap_or(bytes);
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let declaration = || {
        start
            .strip_prefix("<?xml")?
            .split_once("?>")
            .map(|(inside, _)| inside)
    };
    let xml = || label(declaration()?.split_once("encoding")?.1);
    let metas = || {
        let mut metas = start.split("<meta").skip(1);
        metas.find_map(|after| {
            let tag = after.split('>').next()?;
            label(tag.split_once("charset")?.1)
        })
    };
    let encoding = Encoding::for_label_no_replacement(metas().or_else(xml)?.as_bytes())?;
    // The declaration was readable as ASCII, so the page is not UTF-16, whatever it declares.
    let is_utf16_label = encoding == UTF_16LE || encoding == UTF_16BE;
    Some(if is_utf16_label { UTF_8 } else { encoding })
}

/// The value after `=`, without quotes.
fn label(text: &str) -> Option<&str> {
    let word = text.trim_start().strip_prefix('=')?.trim_start();
    let word = word.trim_start_matches(['"', '\'']);
    let end = word.find(|c: char| c.is_whitespace() || "\"';/?".contains(c));
    Some(word.get(..end.unwrap_or(word.len())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expect: &str) {
        let found = decode(bytes).unwrap();
        assert!(found.ends_with(expect), "{found}");
    }

    #[test]
    fn the_declared_encoding_is_used() {
        check(b"<meta charset=windows-1251>\xCF\xEE\xF0\xF2", "Порт");
        check(
            b"<META HTTP-EQUIV=content-type content='text/html; charset=koi8-r'>\xD0\xCF\xD2\xD4",
            "порт",
        );
        check(
            b"<?xml version='1.0' encoding='iso-8859-1'?>caf\xE9",
            "café",
        );
        check(b"<meta charset=\"iso-2022-jp\">\x1B$B9A\x1B(B", "港");
    }

    #[test]
    fn an_impossible_declared_encoding_is_ignored() {
        check("<meta charset=windows-1252>Örr".as_bytes(), "Örr");
        check(b"<meta charset=utf-16>plain", "plain");
        check(
            b"<meta charset=utf-8>caf\xE9 cr\xE8me et th\xE9",
            "café crème et thé",
        );
        check(b"<meta charset=hz-gb-2312>plain", "plain");
        let mut cut = "übermäßig schön".as_bytes().to_vec();
        cut.push(0xC3);
        check(&cut, "übermäßig schön\u{FFFD}");
    }

    #[test]
    fn silence_is_guessed_at() {
        check(b"\xEF\xBB\xBFp\xC3\xB6rt", "pört");
        check(b"\xFF\xFEp\0\xF6\0", "pö");
        let text = "Паром отходит из порта в шесть часов утра каждый день";
        let (bytes, ..) = encoding_rs::WINDOWS_1251.encode(text);
        check(&bytes, text);
        let text = "フェリーは毎朝六時に港を出ます。切符は船の中で買えます。";
        let (bytes, ..) = encoding_rs::SHIFT_JIS.encode(text);
        check(&bytes, text);
    }

    #[test]
    fn nul_bytes_are_no_page() {
        assert_eq!(decode(b"<html>\0"), Err(IngestError::Binary));
    }
}
