//! Turns the raw bytes of an HTTP/1 connection into what hyper does not tell about a request.
//!
//! hyper accepts a head that gives both `Content-Length` and `Transfer-Encoding`, and lines that
//! end in a bare line feed, and hides both from handlers. A proxy in front may read such a message
//! differently from us, which is how requests are smuggled, so they have to be refused. This
//! follows the framing alone; hyper still parses everything and refuses what is malformed.

/// What was found in the heads of one connection, by the number of the request, from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FramingFindings {
    /// The first request that two readers could understand differently.
    pub(super) ambiguous: Option<u32>,
    /// The first request after which the connection has to close, because we do not follow
    /// chunks and so cannot see where the next head begins.
    pub(super) last: Option<u32>,
}

/// Follows one connection from its first byte.
#[derive(Debug, Default)]
pub(super) struct FramingScanner {
    at: FramingState,
    head: RequestHeadScan,
    heads: u32,
    findings: FramingFindings,
    /// The beginning of a line that came in pieces.
    line: Vec<u8>,
    /// Whether the last piece ended in a carriage return.
    after_return: bool,
    /// Bytes of the head that is still coming.
    partial: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum FramingState {
    /// Between two messages.
    #[default]
    Between,
    Head,
    /// In a body with this many bytes to come.
    Body(u64),
    /// In a body whose end we cannot see.
    Lost,
    /// In HTTP/2, which has no such ambiguity.
    Foreign,
}

#[derive(Debug, Default)]
struct RequestHeadScan {
    begun: bool,
    bare: bool,
    chunked: bool,
    length: Option<u64>,
    unreadable: bool,
}

/// Enough of a line for the longest name we look for and the longest length that fits in 64 bits.
const KEEP: usize = 64;

impl FramingScanner {
    /// What was found so far.
    pub(super) fn findings(&self) -> FramingFindings {
        self.findings
    }

    /// How many bytes of a head came that has not ended yet.
    pub(super) fn partial_head(&self) -> usize {
        self.partial
    }

    /// Takes the bytes that just came in. Says whether any of them may belong to a head.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> bool {
        let mut in_head = false;
        while !bytes.is_empty() {
            match self.at {
                FramingState::Foreign => return true,
                FramingState::Lost => return in_head,
                FramingState::Body(left) => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let left = left - taken as u64;
                    self.at = if left == 0 {
                        FramingState::Between
                    } else {
                        FramingState::Body(left)
                    };
                    bytes = bytes.get(taken..).unwrap_or_default();
                }
                FramingState::Between | FramingState::Head => {
                    in_head = true;
                    self.at = FramingState::Head;
                    let rest = self.read_line(bytes);
                    if self.at == FramingState::Head {
                        self.partial = self.partial.saturating_add(bytes.len() - rest.len());
                    } else {
                        self.partial = 0;
                    }
                    bytes = rest;
                }
            }
        }
        in_head
    }

    fn read_line<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.keep(bytes);
            return &[];
        };
        let (piece, rest) = bytes.split_at(end);
        if self.line.is_empty() {
            self.scan_line(piece, piece.last() == Some(&b'\r'));
        } else {
            self.keep(piece);
            let line = std::mem::take(&mut self.line);
            self.scan_line(&line, self.after_return);
            self.line = line;
            self.line.clear();
            self.after_return = false;
        }
        rest.get(1..).unwrap_or_default()
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = KEEP.saturating_sub(self.line.len()).min(piece.len());
        self.line
            .extend_from_slice(piece.get(..room).unwrap_or_default());
        if let Some(last) = piece.last() {
            self.after_return = *last == b'\r';
        }
    }

    /// Judges one line without its line feed.
    fn scan_line(&mut self, line: &[u8], is_proper: bool) {
        self.head.bare |= !is_proper;
        let is_empty = matches!(line, [] | b"\r");
        if !self.head.begun {
            // Empty lines before a request are allowed and skipped.
            self.head.begun = !is_empty;
            if self.heads == 0 && line.starts_with(b"PRI * HTTP/2.0") {
                self.at = FramingState::Foreign;
            }
        } else if is_empty {
            self.end_head();
        } else if let Some(value) = after_name(line, b"content-length:") {
            // A line that long may have been cut, so its number is not to be trusted.
            self.head.length = parse(value).filter(|_| line.len() < KEEP);
            self.head.unreadable |= self.head.length.is_none();
        } else if after_name(line, b"transfer-encoding:").is_some() {
            self.head.chunked = true;
        }
    }

    fn end_head(&mut self) {
        let head = std::mem::take(&mut self.head);
        let has_length = head.length.is_some() || head.unreadable;
        if head.bare || (head.chunked && has_length) {
            self.findings.ambiguous.get_or_insert(self.heads);
        }
        if head.chunked || head.unreadable {
            self.findings.last.get_or_insert(self.heads);
            self.at = FramingState::Lost;
        } else {
            self.at = head
                .length
                .filter(|length| *length > 0)
                .map_or(FramingState::Between, FramingState::Body);
        }
        self.heads = self.heads.saturating_add(1);
    }
}

fn after_name<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(value)
}

fn parse(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value)
        .ok()?
        .trim_matches([' ', '\t', '\r'])
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(pieces: &[&[u8]]) -> (FramingFindings, FramingState, u32) {
        let mut wire = FramingScanner::default();
        for piece in pieces {
            wire.read(piece);
        }
        (wire.findings(), wire.at, wire.heads)
    }

    fn check(raw: &str, ambiguous: Option<u32>, last: Option<u32>, at: FramingState) {
        let whole = follow(&[raw.as_bytes()]);
        assert_eq!(
            (whole.0, whole.1),
            (FramingFindings { ambiguous, last }, at),
            "{raw:?}"
        );
        // Where the network cuts the bytes must not matter.
        for cut in 0..=raw.len() {
            let (left, right) = raw.as_bytes().split_at(cut);
            assert_eq!(follow(&[left, right]), whole, "{raw:?} cut at {cut}");
        }
        let bytes: Vec<&[u8]> = raw.as_bytes().chunks(1).collect();
        assert_eq!(follow(&bytes), whole, "{raw:?} byte by byte");
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    #[test]
    fn plain_requests_pass() {
        check(GET, None, None, FramingState::Between);
        check(
            &format!("\r\n{GET}{GET}"),
            None,
            None,
            FramingState::Between,
        );
        let post = "POST / HTTP/1.1\r\nHost: a\r\ncontent-LENGTH:  5 \r\n\r\n";
        check(post, None, None, FramingState::Body(5));
        check(
            &format!("{post}a\nb\n\n{GET}"),
            None,
            None,
            FramingState::Between,
        );
        check(
            "GET / HTTP/1.1\r\nX-Content-Length: 9\r\n\r\n",
            None,
            None,
            FramingState::Between,
        );
    }

    #[test]
    fn both_lengths_are_ambiguous_in_either_order() {
        let te = "Transfer-Encoding: chunked\r\n";
        let cl = "Content-Length: 5\r\n";
        for (first, second) in [(te, cl), (cl, te)] {
            let raw = format!("{GET}POST / HTTP/1.1\r\nHost: a\r\n{first}{second}\r\n0\r\n\r\n");
            check(&raw, Some(1), Some(1), FramingState::Lost);
        }
    }

    #[test]
    fn bare_line_feeds_are_ambiguous() {
        check(
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            Some(0),
            None,
            FramingState::Between,
        );
        check(
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            Some(0),
            None,
            FramingState::Between,
        );
        check(
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            Some(0),
            None,
            FramingState::Between,
        );
        check(
            "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            Some(0),
            None,
            FramingState::Between,
        );
    }

    #[test]
    fn after_chunks_or_an_unreadable_length_the_connection_ends() {
        let chunked = "POST / HTTP/1.1\r\nTRANSFER-ENCODING: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
        check(chunked, None, Some(0), FramingState::Lost);
        let huge = "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n";
        check(huge, None, Some(0), FramingState::Lost);
        let padded = format!(
            "POST / HTTP/1.1\r\nContent-Length:{}5\r\n\r\n",
            " ".repeat(KEEP)
        );
        let (findings, at, _) = follow(&[&padded.as_bytes()[..40], &padded.as_bytes()[40..]]);
        assert_eq!(
            (findings.last, at),
            (Some(0), FramingState::Lost),
            "cut lines are not guessed at"
        );
    }

    #[test]
    fn a_head_is_measured_until_it_ends() {
        let mut wire = FramingScanner::default();
        let (begun, rest) = GET.as_bytes().split_at(20);
        wire.read(begun);
        assert_eq!(wire.partial_head(), 20);
        wire.read(rest);
        assert_eq!(wire.partial_head(), 0);
        wire.read(format!("{GET}{GET}POST").as_bytes());
        assert_eq!(wire.partial_head(), 4);
        let mut wire = FramingScanner::default();
        wire.read(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
        assert_eq!(wire.partial_head(), 0, "a body is no head");
    }

    #[test]
    fn http2_is_left_alone() {
        check(
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n\n\n",
            None,
            None,
            FramingState::Foreign,
        );
        // Only at the beginning of a connection does it mean that.
        let later = format!("{GET}PRI * HTTP/2.0\r\n\n");
        check(&later, Some(1), None, FramingState::Between);
    }
}
