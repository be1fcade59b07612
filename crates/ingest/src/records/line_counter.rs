//! Line counter for any line ending: LF, CR LF as one, or CR alone, as some old programs write it.

/// The number of the next line, counted from 1. A CR LF may be split between two chunks, so a trailing CR is
/// remembered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineCounter {
    line: u64,
    after_cr: bool,
}

impl Default for LineCounter {
    fn default() -> Self {
        Self {
            line: 1,
            after_cr: false,
        }
    }
}

impl LineCounter {
    pub(crate) fn line(self) -> u64 {
        self.line
    }

    /// Counts the line endings in the next chunk of the text.
    pub(crate) fn advance(&mut self, chunk: &[u8]) {
        let mut before = self.after_cr.then_some(0);
        for at in memchr::memchr2_iter(b'\r', b'\n', chunk) {
            let is_cr = chunk.get(at) == Some(&b'\r');
            if is_cr || before != Some(at) {
                self.line += 1;
            }
            before = is_cr.then_some(at + 1);
        }
        if let Some(last) = chunk.last() {
            self.after_cr = *last == b'\r';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_end_counts_once_however_the_text_is_cut() {
        for (text, lines) in [
            ("", 1),
            ("a", 1),
            ("a\n", 2),
            ("a\r", 2),
            ("a\r\n", 2),
            ("\r\r\n\n", 4),
            ("a\rb\nc\r\nd", 4),
            ("\n\r", 3),
        ] {
            for cut in 0..=text.len() {
                let (head, tail) = text.as_bytes().split_at(cut);
                let mut counter = LineCounter::default();
                counter.advance(head);
                counter.advance(&[]);
                counter.advance(tail);
                assert_eq!(counter.line(), lines, "{text:?} cut at {cut}");
            }
        }
    }
}
