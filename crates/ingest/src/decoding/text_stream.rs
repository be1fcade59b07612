//! Streaming text decoder: turns the bytes of a long text into UTF-8, one window at a time.
//!
//! The result is the same as for a short text that is decoded as a whole. UTF-16 is detected from the first [`HEAD`]
//! bytes. Any other text is read as UTF-8 up to its first invalid byte. If everything before that byte is ASCII, the
//! following [`SAMPLE`] bytes decide between damaged UTF-8 and a legacy encoding. Otherwise it is damaged UTF-8.

use std::io::Read;

use encoding_rs::{CoderResult, Decoder};

use super::{
    guess_legacy_encoding, has_many_controls, is_damaged_utf8, refuse_utf7, utf16_encoding,
    without_nuls,
};
use crate::error::IngestError;

/// The most bytes read at once.
const CHUNK: usize = 64 * 1024;

/// Bytes needed to detect UTF-16; an even number. The zero bytes of ASCII characters show in the first line of nearly
/// any text. The bytes are kept until the encoding is certain, so more of them would delay the first record.
const HEAD: usize = 16 * 1024;

/// Bytes needed to guess a legacy encoding. A stream cannot be read twice, so what the guess is based on has to be held
/// in memory. As for whole texts, a megabyte from the first letter beyond ASCII on is enough.
const SAMPLE: usize = 1024 * 1024;

/// After the first piece, a shorter one is too short to tell binary content from a stray NUL.
const MIN_BINARY_BYTES: usize = 1024;

/// A text decoded piece by piece. `raw` holds bytes that were read but not decoded yet; `has_others` says
/// whether there was a non-ASCII character, and `has_begun` whether any text was decoded.
pub(crate) struct TextStream<'r> {
    from: &'r mut dyn Read,
    raw: Vec<u8>,
    state: TextDecoderState,
    is_json: bool,
    has_others: bool,
    has_begun: bool,
    ended: bool,
}

enum TextDecoderState {
    Start,
    /// Everything so far was valid UTF-8.
    Utf8,
    /// Bytes pass unchanged: lines are checked one by one later, so that a bad line affects only itself.
    Passthrough,
    Lossy,
    Transcoding(Box<Decoder>),
}

impl<'r> TextStream<'r> {
    /// A text in any encoding.
    pub(crate) fn text(from: &'r mut dyn Read) -> Self {
        Self {
            from,
            raw: Vec::new(),
            state: TextDecoderState::Start,
            is_json: false,
            has_others: false,
            has_begun: false,
            ended: false,
        }
    }

    /// JSON must be UTF-8, so invalid bytes pass unchanged. Only UTF-16 is detected and converted.
    pub(crate) fn json(from: &'r mut dyn Read) -> Self {
        Self {
            is_json: true,
            ..Self::text(from)
        }
    }

    /// Appends more of the text in UTF-8. Returns `false` at its end.
    pub(crate) fn fill(&mut self, window: &mut Vec<u8>) -> Result<bool, IngestError> {
        if matches!(self.state, TextDecoderState::Start) {
            self.read(HEAD)?;
            self.begin()?;
        }
        let before = window.len();
        while window.len() == before {
            self.read(CHUNK)?;
            if self.raw.is_empty() {
                self.end(window);
                break;
            }
            self.decode(window)?;
        }
        Ok(window.len() > before)
    }

    /// Reads until `most` bytes are waiting, or to the end.
    fn read(&mut self, most: usize) -> Result<(), IngestError> {
        while self.raw.len() < most && !self.ended {
            let left = (most - self.raw.len()) as u64;
            let mut from = (&mut *self.from).take(left);
            let count = from
                .read_to_end(&mut self.raw)
                .map_err(|error| IngestError::from_io(&error))?;
            self.ended = count == 0;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), IngestError> {
        if let Some(encoding) = utf16_encoding(&self.raw) {
            self.state =
                TextDecoderState::Transcoding(Box::new(encoding.new_decoder_with_bom_removal()));
            return Ok(());
        }
        if !self.is_json {
            refuse_utf7(&self.raw)?;
        }
        if self.raw.starts_with(b"\xEF\xBB\xBF") {
            self.raw.drain(..3);
        }
        self.state = if self.is_json {
            TextDecoderState::Passthrough
        } else {
            TextDecoderState::Utf8
        };
        Ok(())
    }

    fn decode(&mut self, window: &mut Vec<u8>) -> Result<(), IngestError> {
        if !self.is_json
            && !matches!(self.state, TextDecoderState::Transcoding(_))
            && self.raw.contains(&0)
        {
            self.check_controls(&self.raw)?;
            self.raw.retain(|byte| *byte != 0);
        }
        match &mut self.state {
            TextDecoderState::Start => {}
            TextDecoderState::Passthrough => window.append(&mut self.raw),
            TextDecoderState::Utf8 => self.utf8(window)?,
            TextDecoderState::Lossy => self.lossy(window),
            TextDecoderState::Transcoding(decoder) => {
                let text = decoded(decoder, &self.raw, false);
                self.raw.clear();
                if self.is_json || !text.contains('\0') {
                    window.extend_from_slice(text.as_bytes());
                } else {
                    self.check_controls(text.as_bytes())?;
                    window.extend_from_slice(without_nuls(text).as_bytes());
                }
            }
        }
        self.has_begun |= !window.is_empty();
        Ok(())
    }

    /// Tells a text with stray NULs from binary content. Where text came before it, that content is damage and loses the
    /// rest of the file.
    fn check_controls(&self, piece: &[u8]) -> Result<(), IngestError> {
        let is_short = self.has_begun && piece.len() < MIN_BINARY_BYTES;
        if is_short || !has_many_controls(piece) {
            Ok(())
        } else if self.has_begun {
            Err(IngestError::Damaged {
                what: "binary data follows the text".into(),
            })
        } else {
            Err(IngestError::Binary)
        }
    }

    fn utf8(&mut self, window: &mut Vec<u8>) -> Result<(), IngestError> {
        let Err(error) = std::str::from_utf8(&self.raw) else {
            self.has_others |= !self.raw.is_ascii();
            window.append(&mut self.raw);
            return Ok(());
        };
        let good = error.valid_up_to();
        self.has_others |= !self.raw.iter().take(good).all(u8::is_ascii);
        // An incomplete character at the end of the buffer is no error.
        if error.error_len().is_some() || self.ended {
            self.read(SAMPLE)?;
            self.check_controls(&self.raw)?;
            self.state = if self.has_others || is_damaged_utf8(&self.raw) {
                TextDecoderState::Lossy
            } else {
                let encoding = guess_legacy_encoding(&self.raw);
                TextDecoderState::Transcoding(Box::new(encoding.new_decoder_without_bom_handling()))
            };
        }
        window.extend(self.raw.drain(..good));
        Ok(())
    }

    /// Decodes damaged UTF-8, replacing only the invalid bytes.
    fn lossy(&mut self, window: &mut Vec<u8>) {
        let mut kept = 0;
        let mut chunks = self.raw.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            window.extend_from_slice(chunk.valid().as_bytes());
            if chunks.peek().is_none() && !self.ended {
                // This may be the start of a character that continues in the next piece.
                kept = chunk.invalid().len();
            } else if !chunk.invalid().is_empty() {
                window.extend_from_slice("\u{FFFD}".as_bytes());
            }
        }
        self.raw.drain(..self.raw.len() - kept);
    }

    fn end(&mut self, window: &mut Vec<u8>) {
        if let TextDecoderState::Transcoding(decoder) = &mut self.state {
            window.extend_from_slice(decoded(decoder, &[], true).as_bytes());
        }
        self.state = TextDecoderState::Passthrough;
    }
}

fn decoded(decoder: &mut Decoder, bytes: &[u8], last: bool) -> String {
    let most = decoder.max_utf8_buffer_length(bytes.len());
    let mut text = String::with_capacity(most.unwrap_or(bytes.len()));
    let (mut result, mut read, _) = decoder.decode_to_string(bytes, &mut text, last);
    while result == CoderResult::OutputFull {
        text.reserve(CHUNK);
        let rest = bytes.get(read..).unwrap_or_default();
        let more = decoder.decode_to_string(rest, &mut text, last);
        result = more.0;
        read += more.1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields one byte at a time, so that every multi-byte character is split.
    struct OneByteReader<'a>(&'a [u8]);

    impl Read for OneByteReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = buffer.len().min(1);
            (&mut self.0).take(most as u64).read(buffer)
        }
    }

    fn all(mut stream: TextStream<'_>) -> Result<String, IngestError> {
        let mut window = Vec::new();
        while stream.fill(&mut window)? {}
        Ok(String::from_utf8(window).unwrap())
    }

    #[test]
    fn long_texts_are_decoded_like_short_ones() {
        let far = "x".repeat(HEAD + CHUNK - 1);
        for head in ["", far.as_str()] {
            for text in ["plain", "Tarn Örr 渡", "caf\u{e9} and more of it"] {
                let text = format!("{head}{text}");
                assert_eq!(
                    all(TextStream::text(&mut text.as_bytes())).as_ref(),
                    Ok(&text)
                );
                assert_eq!(
                    all(TextStream::text(&mut OneByteReader(text.as_bytes()))),
                    Ok(text)
                );
            }
            for encoding in [encoding_rs::WINDOWS_1252, encoding_rs::WINDOWS_1251] {
                let words = if encoding == encoding_rs::WINDOWS_1252 {
                    "Die Fähre fährt täglich vom Leuchtturm."
                } else {
                    "Паром идёт от пристани до маяка каждый день."
                };
                let text = format!("{head}{words}");
                let bytes = encoding.encode(&text).0.into_owned();
                assert_eq!(all(TextStream::text(&mut bytes.as_slice())), Ok(text));
            }
            let mut damaged = format!("{head}übermäßig").into_bytes();
            damaged.extend_from_slice(b"\xC3 sch\xC3");
            let expect = format!("{head}übermäßig\u{FFFD} sch\u{FFFD}");
            assert_eq!(all(TextStream::text(&mut damaged.as_slice())), Ok(expect));
        }
    }

    #[test]
    fn a_stray_nul_costs_itself_and_binary_content_the_rest() {
        let text = "Tarn and Orr, twice a day. ".repeat(5_000);
        let all_of = |bytes: &[u8]| all(TextStream::text(&mut &*bytes));
        // Not at the beginning, where two NULs after the mark of UTF-16 make it one of UTF-32.
        for nul_at in [1, 20_000, text.len()] {
            let mut bytes = text.clone().into_bytes();
            bytes.insert(nul_at, 0);
            assert!(all_of(&bytes).as_ref() == Ok(&text), "{nul_at}");
            let mut wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            wide.splice(2 * nul_at..2 * nul_at, [0, 0]);
            let marked = [&[0xFF, 0xFE][..], &wide].concat();
            assert!(all_of(&marked).as_ref() == Ok(&text), "{nul_at} of UTF-16");
        }
        assert_eq!(all_of(b"a\0b"), Err(IngestError::Binary));
        for byte in [0, 0xFF] {
            let binary = [1, byte].repeat(MIN_BINARY_BYTES * 100);
            let found = all_of(&[text.as_bytes(), &binary].concat()).unwrap_err();
            assert!(matches!(found, IngestError::Damaged { .. }), "{found:?}");
            assert_eq!(found.lost_items(), 1);
        }
    }

    #[test]
    fn utf16_is_read_with_and_without_its_mark() {
        let text = format!("{}Örr", "Tarn ".repeat(20_000));
        for mark in ["", "\u{FEFF}"] {
            let marked = format!("{mark}{text}");
            let bytes: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(
                all(TextStream::text(&mut bytes.as_slice())).as_ref(),
                Ok(&text)
            );
            assert_eq!(
                all(TextStream::json(&mut OneByteReader(&bytes))).as_ref(),
                Ok(&text)
            );
        }
        assert_eq!(all(TextStream::text(&mut [].as_slice())), Ok(String::new()));
    }

    #[test]
    fn json_keeps_bytes_that_are_no_text() {
        let mut window = Vec::new();
        let bytes = b"\xEF\xBB\xBF{\xFF\0}";
        let mut slice = bytes.as_slice();
        let mut stream = TextStream::json(&mut slice);
        while stream.fill(&mut window).unwrap() {}
        assert_eq!(window, b"{\xFF\0}");
    }
}
