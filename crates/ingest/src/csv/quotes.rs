//! What the quotes of a row of several lines say about it.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteEnd {
    /// Every quote that was opened is closed, and a delimiter or the end of the row follows it.
    Sound,
    /// The last one is never closed.
    Open,
    /// A quoted cell goes over several lines and has more text behind its closing quote. Two stray quotes in
    /// different rows look like this, and would make one row of all that is between them.
    Torn,
}

enum State {
    CellStart,
    Bare,
    Quoted,
    /// Behind a quote that closes the cell, unless another follows.
    Closed,
}

/// Follows the quotes of one row as the parser does.
pub(super) fn quote_end(row: &[u8], delimiter: u8) -> QuoteEnd {
    let mut state = State::CellStart;
    let mut has_lines = false;
    for &byte in row {
        let is_line_end = matches!(byte, b'\r' | b'\n');
        state = match state {
            State::CellStart if byte == b'"' => {
                has_lines = false;
                State::Quoted
            }
            State::Quoted if byte == b'"' => State::Closed,
            State::Closed if byte == b'"' => State::Quoted,
            State::Quoted => {
                has_lines |= is_line_end;
                State::Quoted
            }
            _ if is_line_end => break,
            _ if byte == delimiter => State::CellStart,
            State::Closed if has_lines => return QuoteEnd::Torn,
            _ => State::Bare,
        };
    }
    match state {
        State::Quoted => QuoteEnd::Open,
        State::CellStart | State::Bare | State::Closed => QuoteEnd::Sound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_followed_to_their_end() {
        let check = |row: &str, expect: QuoteEnd| {
            assert_eq!(quote_end(row.as_bytes(), b','), expect, "{row:?}");
        };
        for row in [
            "a,b\n",
            "\"a\nb\",c\r\n",
            "a,\"b \"\"c\"\"\nd\"\n",
            "\"a\nb\"",
            "a \"b\nc\" d",
            "5\" pipe,\"a\nb\"\n",
            "\"a\" b,c\n",
            "\"\"\"a\"\"\n\",b",
        ] {
            check(row, QuoteEnd::Sound);
        }
        check("a,\"b\nc,d\n", QuoteEnd::Open);
        check("\"a\"\"\n", QuoteEnd::Open);
        check("1,\"a,b\n2,\"x,c\n", QuoteEnd::Torn);
        check("1,\"a\nb\" ,c\n", QuoteEnd::Torn);
    }
}
