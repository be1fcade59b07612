//! Quote diagnosis for multi-line CSV rows: detects unclosed and stray quotes.

/// How the quotes of one row end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteEnd {
    /// All quotes are balanced, and a delimiter or the end of the row follows each closing one.
    Sound,
    /// The last quote of the row is unclosed.
    Open,
    /// A quoted cell spans several lines and more text follows its closing quote. Two stray quotes in
    /// different rows look like this, and would merge all rows between them into one.
    Torn,
}

enum State {
    CellStart,
    Bare,
    Quoted,
    /// After a quote that closes the cell, unless another quote follows and makes it an escaped one.
    Closed,
}

/// Runs the quote state machine of the CSV parser over one row. Its transitions must match those of
/// `csv_core`.
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
