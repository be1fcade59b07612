//! Decompression budget of one archive: the defence against zip bombs.
//!
//! One budget is shared by all levels of nested archives. It counts members and decompressed bytes, so that
//! neither many small files nor one large file gets past it.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use crate::error::IngestError;
use crate::limits::Limits;

/// Decompressed bytes that every archive may use, however small it is. Without this floor the expansion ratio
/// would reject tiny archives of very regular text.
const FREE_BYTES: u64 = 1024 * 1024;

pub(super) fn damaged() -> IngestError {
    IngestError::Damaged {
        what: "the archive is truncated or corrupt".into(),
    }
}

/// The members and bytes that may still be unpacked. The byte counter sits behind an `Rc`, because every
/// [`MeteredReader`] of the archive draws on it while the unpacker itself holds the budget.
pub(super) struct UnpackBudget {
    members: usize,
    max_members: usize,
    bytes: Rc<UnpackedBytes>,
    max_bytes: u64,
}

struct UnpackedBytes {
    left: Cell<u64>,
    is_exceeded: Cell<bool>,
}

impl UnpackBudget {
    pub(super) fn new(limits: &Limits, size: u64) -> Self {
        let max_bytes = size.saturating_mul(limits.max_expansion).max(FREE_BYTES);
        let max_bytes = max_bytes.min(limits.max_unpacked_bytes);
        Self {
            members: 0,
            max_members: limits.max_members,
            bytes: Rc::new(UnpackedBytes {
                left: Cell::new(max_bytes),
                is_exceeded: Cell::new(false),
            }),
            max_bytes,
        }
    }

    /// Counts one more member (file, folder or link) and fails once there are too many.
    pub(super) fn count_member(&mut self) -> Result<(), IngestError> {
        self.members += 1;
        if self.members > self.max_members {
            let limit = self.max_members as u64;
            return Err(IngestError::TooMuchInside { limit });
        }
        Ok(())
    }

    /// Wraps a reader so that the bytes it yields are charged to this budget.
    pub(super) fn metered<R: Read>(&self, inner: R) -> MeteredReader<R> {
        MeteredReader {
            inner,
            bytes: self.bytes.clone(),
        }
    }

    /// Maps an I/O error to its cause. Decompressors report a spent budget, a lack of memory and corrupt data
    /// as the same kind of error, so the budget is asked first.
    pub(super) fn classify_read_error(&self, error: &io::Error) -> IngestError {
        if self.bytes.is_exceeded.get() {
            let limit = self.max_bytes;
            IngestError::TooMuchInside { limit }
        } else if error.kind() == io::ErrorKind::OutOfMemory {
            IngestError::out_of_memory()
        } else {
            damaged()
        }
    }

    /// Whether the budget is spent, so that the rest of the archive must not be read.
    pub(super) fn is_exhausted(&self) -> bool {
        self.bytes.is_exceeded.get() || self.members > self.max_members
    }
}

/// Fails with an error as soon as more bytes arrive than the shared budget has left.
pub(super) struct MeteredReader<R> {
    inner: R,
    bytes: Rc<UnpackedBytes>,
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.left.get();
        // Request one byte beyond the budget: only if it arrives is the limit exceeded and not just reached.
        let wanted = usize::try_from(left.saturating_add(1)).unwrap_or(usize::MAX);
        let wanted = wanted.min(buffer.len());
        let count = self
            .inner
            .read(buffer.get_mut(..wanted).unwrap_or_default())?;
        match left.checked_sub(count as u64) {
            Some(left) => {
                self.bytes.left.set(left);
                Ok(count)
            }
            None => {
                self.bytes.is_exceeded.set(true);
                Err(io::Error::other("decompression limit exceeded"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(max_unpacked_bytes: u64) -> UnpackBudget {
        let limits = Limits {
            max_unpacked_bytes,
            max_members: 2,
            ..Limits::default()
        };
        UnpackBudget::new(&limits, 1_000_000)
    }

    #[test]
    fn bytes_end_at_their_bound_over_all_readers() {
        let budget = budget(10);
        let mut out = Vec::new();
        let mut read = |bytes: &[u8]| budget.metered(bytes).read_to_end(&mut out);
        assert!(read(b"123456").is_ok());
        assert!(read(b"1234").is_ok());
        assert!(!budget.is_exhausted());
        assert!(read(b"").is_ok());
        let over = read(b"1").unwrap_err();
        assert!(budget.is_exhausted());
        assert_eq!(
            budget.classify_read_error(&over),
            IngestError::TooMuchInside { limit: 10 }
        );
    }

    #[test]
    fn members_end_at_their_bound() {
        let mut budget = budget(10);
        assert_eq!(
            (budget.count_member(), budget.count_member()),
            (Ok(()), Ok(()))
        );
        assert!(!budget.is_exhausted());
        assert_eq!(
            budget.count_member(),
            Err(IngestError::TooMuchInside { limit: 2 })
        );
        assert!(budget.is_exhausted());
    }

    #[test]
    fn running_out_of_memory_is_no_corruption() {
        let why = |kind| budget(10).classify_read_error(&io::Error::from(kind));
        assert_eq!(why(io::ErrorKind::InvalidData), damaged());
        assert_eq!(
            why(io::ErrorKind::OutOfMemory),
            IngestError::out_of_memory()
        );
    }

    #[test]
    fn small_archives_may_unpack_to_a_megabyte_and_large_ones_to_a_multiple() {
        let most = |size| UnpackBudget::new(&Limits::default(), size).max_bytes;
        assert_eq!(most(1), FREE_BYTES);
        assert_eq!(most(100_000), 10_000_000);
        assert_eq!(most(u64::MAX), Limits::default().max_unpacked_bytes);
    }
}
