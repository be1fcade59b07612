//! Lines of a text counted whatever ends them: LF, CR LF as one, or CR alone as old Macs and some
//! exports write it.

/// The number of the line that comes next, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineCounter {
    line: u64,
    /// Whether the text so far ends in a CR, to which an LF would belong.
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

    /// Counts the line ends of the next piece of the text.
    pub(crate) fn advance(&mut self, piece: &[u8]) {
        let mut before = self.after_cr.then_some(0);
        for at in memchr::memchr2_iter(b'\r', b'\n', piece) {
            let is_cr = piece.get(at) == Some(&b'\r');
            if is_cr || before != Some(at) {
                self.line += 1;
            }
            before = is_cr.then_some(at + 1);
        }
        if let Some(last) = piece.last() {
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
