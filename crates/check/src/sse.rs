//! Parser for server-sent events. It reads one event at a time, so that the response can be taken from a stream that
//! the server keeps open.
//!
//! Only `data` matters here; comments, ids and event names are skipped. It is lenient where real servers are sloppy:
//! the last event counts even without the empty line after it.

use std::io::{self, BufRead};

/// Reads the `data` of the next event that has any, and skips the others; `None` at the end of the stream.
///
/// The caller must limit the reader, since a line may be as long as the reader allows.
pub(crate) fn next_data(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut data: Option<String> = None;
    loop {
        let mut line = Vec::new();
        let end = reader.read_until(b'\n', &mut line)? == 0;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\n', '\r']);
        if end || line.is_empty() {
            // Some servers end the stream without the empty line after the last event.
            if end || data.is_some() {
                return Ok(data);
            }
            continue;
        }
        if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_one_by_one() {
        let stream = ": hello\n\nevent: message\r\nid: 1\r\ndata: {\"a\":\r\ndata:1}\r\n\r\nretry: 5\n\ndata\n\ndata: last";
        let mut reader = stream.as_bytes();
        assert_eq!(
            next_data(&mut reader).unwrap().as_deref(),
            Some("{\"a\":\n1}")
        );
        assert_eq!(next_data(&mut reader).unwrap().as_deref(), Some("last"));
        assert_eq!(next_data(&mut reader).unwrap(), None);
    }
}
