//! Decodes character codes of fonts without a `ToUnicode` table. Fonts for Chinese, Japanese and Korean
//! name the legacy encoding of their codes instead, and bitmap fonts from TeX follow known tables.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS, UTF_16BE};
use hayro_interpret::hayro_syntax::object::{Dict, Name};
use hayro_interpret::hayro_syntax::page::Resources;

/// The most fonts of a page that are examined.
const MAX_FONTS: usize = 256;

/// The encoding named by the first font on this page that has no `ToUnicode` table. Two such fonts with
/// different encodings on one page are not told apart.
pub(super) fn encoding(resources: &Resources<'_>) -> Option<&'static Encoding> {
    let mut names = resources.fonts.keys().take(MAX_FONTS);
    names.find_map(|name| {
        let font = resources.fonts.get::<Dict<'_>>(&*name)?;
        if font.contains_key(b"ToUnicode") {
            return None;
        }
        by_name(font.get::<Name<'_>>(b"Encoding")?.as_str())
    })
}

fn by_name(name: &str) -> Option<&'static Encoding> {
    let has = |part: &str| name.contains(part);
    if has("UCS2") || has("UTF16") {
        Some(UTF_16BE)
    } else if has("RKSJ") {
        Some(SHIFT_JIS)
    } else if has("B5") {
        Some(BIG5)
    } else if has("KSC") {
        Some(EUC_KR)
    } else if has("GB") {
        Some(GBK)
    } else if name.starts_with("EUC-") {
        Some(EUC_JP)
    } else {
        None
    }
}

/// The first character of what the code decodes to.
pub(super) fn decode_char_code(code: u32, encoding: &'static Encoding) -> Option<char> {
    let bytes = code.to_be_bytes();
    let least = if encoding == UTF_16BE { 2 } else { 1 };
    let zeros = (code.leading_zeros() / 8) as usize;
    let bytes = bytes.get(zeros.min(bytes.len() - least)..)?;
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
    text.chars().next()
}

/// The letters of a code in a Type 3 font, whose glyphs are drawings without names. Such fonts come from
/// TeX, whose two encodings differ from ASCII and Latin-1 mainly in their ligatures.
pub(super) fn tex_letters(code: u32) -> Option<String> {
    let letters = match code {
        0x0B | 0x1B => "ff",
        0x0C | 0x1C => "fi",
        0x0D | 0x1D => "fl",
        0x0E | 0x1E => "ffi",
        0x0F | 0x1F => "ffl",
        0x15 => "–",
        0x16 => "—",
        0x20..=0x7E | 0xC0..=0xFF => return char::from_u32(code).map(String::from),
        _ => return None,
    };
    Some(letters.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fonts_of_tex_have_ligatures() {
        let found: Option<String> = [0x6F, 0x1E, 0x63, 0x65]
            .into_iter()
            .map(tex_letters)
            .collect();
        assert_eq!(found.as_deref(), Some("office"));
        assert_eq!(tex_letters(0x80), None);
        assert_eq!(tex_letters(0x100), None);
    }

    #[test]
    fn codes_become_letters() {
        for (name, code, expect) in [
            ("UniJIS-UCS2-H", 0x65E5, Some('日')),
            ("UniGB-UTF16-V", 0x0041, Some('A')),
            ("90ms-RKSJ-H", 0x93FA, Some('日')),
            ("90ms-RKSJ-H", 0x41, Some('A')),
            ("ETen-B5-H", 0xA4E9, Some('日')),
            ("KSCms-UHC-H", 0xC0CF, Some('일')),
            ("GBK-EUC-H", 0xC8D5, Some('日')),
            ("EUC-H", 0xC6FC, Some('日')),
            ("UniJIS-UTF16-H", 0xD840_DC0B, Some('𠀋')),
            ("UniJIS-UCS2-H", 0xD840, None),
        ] {
            assert_eq!(
                decode_char_code(code, by_name(name).unwrap()),
                expect,
                "{name}"
            );
        }
        assert!(by_name("Identity-H").is_none());
    }
}
