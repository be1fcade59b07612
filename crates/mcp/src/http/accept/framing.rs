//! The framing scanner: finds ambiguous HTTP/1 framing in the raw bytes of a connection, against request smuggling.
//!
//! hyper accepts a head with both `Content-Length` and `Transfer-Encoding`, and lines that end in a bare line feed,
//! and hides both from handlers. A proxy in front may parse such a message differently, which is how requests are
//! smuggled, so they have to be refused. The scanner follows the framing only; hyper still parses everything and
//! refuses what is malformed.

/// Findings in the request heads of one connection, by request number from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FramingFindings {
    /// The first request that two parsers could read differently.
    pub(super) ambiguous: Option<u32>,
    /// The first request after which the connection has to close: the scanner does not follow chunked bodies, so it
    /// cannot see where the next head begins.
    pub(super) last: Option<u32>,
}

/// The scanner of one connection, from its first byte.
///
/// `line` buffers the start of a line that arrived in pieces, `after_return` whether the last piece ended in a
/// carriage return, and `partial` counts the bytes of the incomplete head.
#[derive(Debug, Default)]
pub(super) struct FramingScanner {
    at: FramingState,
    head: RequestHeadScan,
    heads: u32,
    findings: FramingFindings,
    line: Vec<u8>,
    after_return: bool,
    partial: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum FramingState {
    /// Between two messages, before the next request line.
    #[default]
    Between,
    Head,
    /// In a body with this many bytes left.
    Body(u64),
    /// In a body whose end the scanner cannot see.
    Lost,
    /// In HTTP/2, whose binary framing has no such ambiguity.
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

/// Bytes of a line to buffer: enough for the longest header name and the longest 64-bit length.
const KEEP: usize = 64;

impl FramingScanner {
    /// Returns the findings so far.
    pub(super) fn findings(&self) -> FramingFindings {
        self.findings
    }

    /// Returns the number of bytes received of a head that is still incomplete.
    pub(super) fn partial_head(&self) -> usize {
        self.partial
    }

    /// Scans newly received bytes. Returns whether any of them may belong to a request head.
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

    /// Scans one line without its line feed.
    fn scan_line(&mut self, line: &[u8], is_proper: bool) {
        self.head.bare |= !is_proper;
        let is_empty = matches!(line, [] | b"\r");
        if !self.head.begun {
            // Empty lines before a request are allowed, and skipped.
            self.head.begun = !is_empty;
            if self.heads == 0 && line.starts_with(b"PRI * HTTP/2.0") {
                self.at = FramingState::Foreign;
            }
        } else if is_empty {
            self.end_head();
        } else if let Some(value) = after_name(line, b"content-length:") {
            // A line of this length may be truncated, so its number cannot be trusted.
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
        // The result must not depend on where the network splits the bytes.
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
        // This is the HTTP/2 preface only at the start of a connection.
        let later = format!("{GET}PRI * HTTP/2.0\r\n\n");
        check(&later, Some(1), None, FramingState::Between);
    }
}
