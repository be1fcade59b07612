//! Bounded file reader that computes the SHA-256 checksum of the content while a parser consumes it.

use std::io::{self, Read, Seek as _, SeekFrom};

use cap_std::fs::File;
use sha2::{Digest as _, Sha256};

use crate::digest::hex;
use crate::error::IngestError;

/// The content of an opened file, read from its current position to its end. The first failure is kept, because parsers replace the error
/// of a reader by one of their own.
pub(crate) struct HashingReader<'f> {
    file: &'f File,
    hash: Sha256,
    bytes: u64,
    limit: u64,
    failed: Option<IngestError>,
}

impl<'f> HashingReader<'f> {
    /// Creates a reader that fails once the file has more than `limit` bytes.
    pub(crate) fn new(file: &'f File, limit: u64) -> Self {
        Self {
            file,
            hash: Sha256::new(),
            bytes: 0,
            limit,
            failed: None,
        }
    }

    /// Seeks to the first byte and restarts count and checksum.
    pub(crate) fn rewind(&mut self) -> Result<(), IngestError> {
        let sought = self.file.seek(SeekFrom::Start(0));
        sought.map_err(|error| IngestError::from_io(&error))?;
        self.hash = Sha256::new();
        self.bytes = 0;
        Ok(())
    }

    /// The first error of the reader, if there was one.
    pub(crate) fn failure(&self) -> Option<&IngestError> {
        self.failed.as_ref()
    }

    /// Consumes the unread rest, so that size and checksum are those of the whole file.
    pub(crate) fn finish(mut self) -> Result<(u64, String), IngestError> {
        let read = io::copy(&mut self, &mut io::sink());
        match (self.failed, read) {
            (Some(reason), _) => Err(reason),
            (None, Err(error)) => Err(IngestError::from_io(&error)),
            (None, Ok(_)) => Ok((self.bytes, hex(&self.hash.finalize()))),
        }
    }

    fn fail(&mut self, reason: IngestError) -> io::Error {
        let error = io::Error::other(reason.to_string());
        self.failed.get_or_insert(reason);
        error
    }
}

impl Read for HashingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Request one byte beyond the limit: only if it arrives is the limit exceeded and not just reached.
        let wanted = (self.limit - self.bytes.min(self.limit)).saturating_add(1);
        let wanted =
            usize::try_from(wanted).map_or(buffer.len(), |wanted| wanted.min(buffer.len()));
        let buffer = buffer.get_mut(..wanted).unwrap_or_default();
        let count = match self.file.read(buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => return Err(self.fail(IngestError::from_io(&error))),
        };
        self.bytes += count as u64;
        if self.bytes > self.limit {
            let (bytes, limit) = (self.bytes, self.limit);
            return Err(self.fail(IngestError::TooLarge { bytes, limit }));
        }
        self.hash.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    fn content(bytes: &[u8]) -> File {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), bytes).unwrap();
        let file = std::fs::File::open(dir.path().join("a")).unwrap();
        File::from_std(file)
    }

    #[test]
    fn the_sum_is_that_of_all_bytes_however_few_were_read() {
        let content = content(b"0123456789");
        let mut file = HashingReader::new(&content, 10);
        file.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(file.finish(), Ok((10, sha256(b"0123456789"))));
        let mut again = HashingReader::new(&content, 10);
        again.rewind().unwrap();
        again.read_exact(&mut [0; 3]).unwrap();
        again.rewind().unwrap();
        assert_eq!(again.finish(), Ok((10, sha256(b"0123456789"))));
    }

    #[test]
    fn a_file_ends_at_its_bound() {
        let content = content(b"0123456789");
        let mut file = HashingReader::new(&content, 9);
        assert!(file.read_to_end(&mut Vec::new()).is_err());
        assert_eq!(file.failure().map(IngestError::code), Some("too-large"));
        assert_eq!(file.finish().unwrap_err().code(), "too-large");
    }
}
