//! Wire protocol between parent and child: frames of a tag, a length and a payload, over two pipes.
//!
//! A request is one frame followed by the file in chunks. The response is one frame for each document,
//! skipped item and warning, and one that ends it. The encoding is written by hand because the domain types
//! are not serializable, and because every length that a child sends is checked before it is used.

use std::io::{self, Read, Write};

use docent_search::MAX_DOCUMENT_BYTES;

/// Child to parent: the handshake, with the status of the sandbox layers.
pub(super) const HELLO: u8 = b'H';
/// Parent to child: parse the file that follows.
pub(super) const REQUEST: u8 = b'Q';
/// Child to parent: one parsed document.
pub(super) const DOCUMENT: u8 = b'D';
/// Child to parent: an item that was skipped.
pub(super) const SKIPPED: u8 = b'S';
/// Child to parent: a warning about something that was changed.
pub(super) const WARNING: u8 = b'W';
/// Child to parent: the end of the response.
pub(super) const DONE: u8 = b'.';
/// Child to parent: the whole file failed, for this reason.
pub(super) const FAILED: u8 = b'F';

/// The largest frame: the largest document, with room for its lengths.
pub(super) const MAX_FRAME_BYTES: usize = MAX_DOCUMENT_BYTES + 1024 * 1024;

const HEAD: usize = 5;

/// Builds a frame to be sent.
pub(super) struct FrameWriter(Vec<u8>);

impl FrameWriter {
    pub(super) fn new(tag: u8) -> Self {
        Self(vec![tag, 0, 0, 0, 0])
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn text(self, text: &str) -> Self {
        let mut frame = self.number(text.len() as u64);
        frame.0.extend_from_slice(text.as_bytes());
        frame
    }

    /// Adds a text that may be missing.
    pub(super) fn optional_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    pub(super) fn send(mut self, out: &mut impl Write) -> io::Result<()> {
        let length = self.0.len() - HEAD;
        let fits = u32::try_from(length)
            .ok()
            .filter(|_| length <= MAX_FRAME_BYTES);
        let length = fits.ok_or_else(|| invalid_data("the frame is too long"))?;
        for (slot, byte) in self.0.iter_mut().skip(1).zip(length.to_le_bytes()) {
            *slot = byte;
        }
        out.write_all(&self.0)
    }
}

/// A received frame, decoded field by field.
#[derive(Debug)]
pub(super) struct FrameReader {
    pub(super) tag: u8,
    bytes: Vec<u8>,
    at: usize,
}

impl FrameReader {
    /// Reads a frame. Memory grows with the bytes that arrive, not with the announced length.
    pub(super) fn from(input: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; HEAD];
        input.read_exact(&mut head)?;
        let [tag, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_FRAME_BYTES {
            return Err(invalid_data("the frame is too long"));
        }
        let mut bytes = Vec::new();
        read_exactly(input, length as u64, &mut bytes)?;
        Ok(Self { tag, bytes, at: 0 })
    }

    /// The size of the frame in bytes.
    pub(super) fn len(&self) -> usize {
        HEAD + self.bytes.len()
    }

    pub(super) fn number(&mut self) -> io::Result<u64> {
        let mut number = [0; 8];
        number.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(number))
    }

    pub(super) fn size(&mut self) -> io::Result<usize> {
        usize::try_from(self.number()?).map_err(|_| invalid_data("the number is too large"))
    }

    pub(super) fn text(&mut self) -> io::Result<String> {
        let length = self.size()?;
        let bytes = self.take(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| invalid_data("the text is not UTF-8"))
    }

    pub(super) fn optional_text(&mut self) -> io::Result<Option<String>> {
        match self.number()? {
            0 => Ok(None),
            1 => self.text().map(Some),
            _ => Err(invalid_data("unknown option tag")),
        }
    }

    /// Fails if the frame has bytes left.
    pub(super) fn end(&self) -> io::Result<()> {
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(invalid_data("the frame has trailing bytes"))
        }
    }

    fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest
            .get(..count)
            .ok_or_else(|| invalid_data("the frame ends early"))?;
        self.at += count;
        Ok(taken)
    }
}

/// Appends exactly `count` bytes, or fails.
pub(super) fn read_exactly(
    input: &mut impl Read,
    count: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let got = input.take(count).read_to_end(bytes)?;
    if got as u64 == count {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

pub(super) fn invalid_data(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The most bytes that one chunk of a file has.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// Sent in place of a chunk's length when the rest of the file will not follow.
const ABORT_MARK: u32 = u32::MAX;

/// Sends a chunk of a file; an empty one marks the end.
pub(super) fn write_chunk(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| invalid_data("the chunk is too long"))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(bytes)
}

/// Tells the child that the rest of the file will not follow.
pub(super) fn write_abort(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&ABORT_MARK.to_le_bytes())
}

/// Reads the file that follows a request, reassembled from its chunks.
pub(super) struct ChunkReader<'r, R> {
    from: &'r mut R,
    left: usize,
    ended: bool,
    aborted: bool,
}

impl<'r, R: Read> ChunkReader<'r, R> {
    pub(super) fn new(from: &'r mut R) -> Self {
        Self {
            from,
            left: 0,
            ended: false,
            aborted: false,
        }
    }

    /// Skips to the end of the file, so that the next request can be read.
    pub(super) fn drain(mut self) -> io::Result<()> {
        match io::copy(&mut self, &mut io::sink()) {
            Err(error) if !self.aborted => Err(error),
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for ChunkReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut length = [0; 4];
            self.from.read_exact(&mut length)?;
            match u32::from_le_bytes(length) {
                ABORT_MARK => (self.ended, self.aborted) = (true, true),
                0 => self.ended = true,
                length => self.left = length as usize,
            }
        }
        if self.aborted {
            return Err(io::Error::other("the rest of the file was aborted"));
        }
        let most = self.left.min(buffer.len());
        let count = match buffer.get_mut(..most) {
            Some(some) if !self.ended => self.from.read(some)?,
            _ => 0,
        };
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back_out_of_their_chunks() {
        let mut bytes = Vec::new();
        for chunk in ["some ", "of it", ""] {
            write_chunk(chunk.as_bytes(), &mut bytes).unwrap();
        }
        write_chunk(b"lost", &mut bytes).unwrap();
        write_abort(&mut bytes).unwrap();
        let mut from = bytes.as_slice();
        let mut text = String::new();
        ChunkReader::new(&mut from)
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "some of it");
        let mut cut = ChunkReader::new(&mut from);
        assert!(cut.read_to_string(&mut text).is_err());
        cut.drain().unwrap();
        assert!(from.is_empty());
        let half = [9, 0, 0, 0, 1];
        let read = ChunkReader::new(&mut half.as_slice()).read_to_end(&mut Vec::new());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    fn sent(frame: FrameWriter) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.send(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let bytes = sent(
            FrameWriter::new(DONE)
                .number(7)
                .text("ü")
                .optional_text(None)
                .optional_text(Some("")),
        );
        let mut frame = FrameReader::from(&mut bytes.as_slice()).unwrap();
        assert_eq!((frame.tag, frame.len()), (DONE, bytes.len()));
        assert_eq!(frame.number().unwrap(), 7);
        assert_eq!(frame.text().unwrap(), "ü");
        assert!(frame.end().is_err());
        assert_eq!(frame.optional_text().unwrap(), None);
        assert_eq!(frame.optional_text().unwrap().as_deref(), Some(""));
        assert!(frame.end().is_ok());
        assert!(frame.number().is_err());
    }

    #[test]
    fn lengths_are_not_believed() {
        let check = |bytes: &[u8], kind: io::ErrorKind| {
            let found = FrameReader::from(&mut &*bytes).and_then(|mut frame| frame.text());
            assert_eq!(found.unwrap_err().kind(), kind, "{bytes:?}");
        };
        let over = u32::try_from(MAX_FRAME_BYTES + 1).unwrap().to_le_bytes();
        check(
            &[&[DONE], over.as_slice()].concat(),
            io::ErrorKind::InvalidData,
        );
        check(&[DONE, 9, 0, 0, 0, 1], io::ErrorKind::UnexpectedEof);
        check(&[DONE], io::ErrorKind::UnexpectedEof);
        check(
            &sent(FrameWriter::new(DONE).number(u64::MAX)),
            io::ErrorKind::InvalidData,
        );
        check(
            &sent(FrameWriter::new(DONE).number(9).number(0)),
            io::ErrorKind::InvalidData,
        );
        let mut text = sent(FrameWriter::new(DONE).text("ab"));
        *text.last_mut().unwrap() = 0xFF;
        check(&text, io::ErrorKind::InvalidData);
    }
}
