//! URLs of documents: the document's own, one from the URL template, or none.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// Placeholder that is replaced with the percent-encoded id.
const PLACEHOLDER: &str = "{id}";

/// Placeholder that keeps the slashes of the id, as reserved expansion does in RFC 6570.
const PLACEHOLDER_WITH_SLASHES: &str = "{+id}";

/// Characters to percent-encode: all but the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// As [`ENCODED`], but keeps slashes, for `{+id}`.
const ENCODED_BUT_SLASHES: &AsciiSet = &ENCODED.remove(b'/');

/// URL template with a placeholder for the document id, such as `https://docs.example.org/read/{id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    before: String,
    after: String,
    slashes: bool,
}

impl UrlTemplate {
    /// Parses a template. `text` must be an absolute http or https URL with exactly one `{id}` or `{+id}` after its
    /// host.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let slashes = text.contains(PLACEHOLDER_WITH_SLASHES);
        let placeholder = if slashes {
            PLACEHOLDER_WITH_SLASHES
        } else {
            PLACEHOLDER
        };
        let (before, after) = text.split_once(placeholder)?;
        let template = Self {
            before: before.to_owned(),
            after: after.to_owned(),
            slashes,
        };
        if before.contains(['{', '}']) || after.contains(['{', '}']) {
            return None;
        }
        // If the placeholder were part of the origin, two ids would give two origins, and an id could choose the host.
        let host = |id: &str| Some(Url::parse(&template.fill(id)?).ok()?.origin());
        let (one, two) = (host("a")?, host("b")?);
        (one == two && is_web_url(&template.fill("a")?)).then_some(template)
    }

    /// Origin (scheme, host and port) of all URLs of this template.
    #[must_use]
    pub fn origin(&self) -> Option<String> {
        let url = Url::parse(&self.fill("a")?).ok()?;
        Some(url.origin().ascii_serialization())
    }

    /// Expands the template for an id. `None` if the id contains a `.` or `..` segment, which would escape the
    /// template's path once a client normalizes the URL.
    fn fill(&self, id: &str) -> Option<String> {
        // Fast path: few ids have a segment that starts with a dot, and only those need the split.
        let may_walk = id.starts_with('.') || id.contains("/.");
        let is_step = |part| part == "." || part == "..";
        if may_walk && id.split('/').any(is_step) {
            return None;
        }
        let encoded = if self.slashes {
            ENCODED_BUT_SLASHES
        } else {
            ENCODED
        };
        // Reserves room for a few escapes.
        let capacity = self.before.len() + id.len() + self.after.len() + 8;
        let mut url = String::with_capacity(capacity);
        url.push_str(&self.before);
        if is_plain(id, self.slashes) {
            url.push_str(id);
        } else {
            url.extend(utf8_percent_encode(id, encoded));
        }
        url.push_str(&self.after);
        Some(url)
    }
}

/// Whether percent-encoding would change nothing, which holds for most ids. Branch-free over the bytes, since this runs
/// for every search result.
fn is_plain(id: &str, slashes: bool) -> bool {
    id.bytes().fold(true, |is_plain, byte| {
        let is_mark = matches!(byte, b'-' | b'.' | b'_' | b'~');
        is_plain & (byte.is_ascii_alphanumeric() | is_mark | (slashes & (byte == b'/')))
    })
}

/// The absolute http or https URL of a document, or an empty text. Hosts turn every non-empty text into a citation
/// link, so nothing else may be returned.
#[must_use]
pub fn address(own: Option<&str>, id: &str, template: Option<&UrlTemplate>) -> String {
    let own = own
        .map(str::trim)
        .filter(|url| is_web_url(url))
        .map(str::to_owned);
    // The template was validated when it was parsed, and a percent-encoded id keeps it valid.
    let made = || template.and_then(|template| template.fill(id));
    own.or_else(made).unwrap_or_default()
}

/// Whether a text is an absolute http or https URL without characters that clients parse differently.
pub(crate) fn is_web_url(text: &str) -> bool {
    let is_unsafe = |c: char| c.is_whitespace() || c.is_control() || "\"<>\\^`{|}".contains(c);
    let schemed = ["http://", "https://"].iter().any(|scheme| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    schemed && !text.contains(is_unsafe) && Url::parse(text).is_ok_and(|url| url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_have_one_place_behind_the_host() {
        for good in [
            "https://docs.example.org/read/{id}",
            "http://localhost:8080/?doc={id}",
            "https://docs.example.org/{+id}.html",
            "https://docs.example.org/#{id}",
        ] {
            assert!(UrlTemplate::parse(good).is_some(), "{good}");
        }
        for bad in [
            "https://docs.example.org/read",
            "https://{id}.example.org/",
            "https://example.org:{id}/",
            "{id}",
            "/read/{id}",
            "ftp://docs.example.org/{id}",
            "https://docs.example.org/{id}/{id}",
            "https://docs.example.org/{id}/{+id}",
            "https://docs.example.org/{name}/{id}",
        ] {
            assert!(UrlTemplate::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_documents_own_address_comes_first_and_only_the_web_counts() {
        let template = UrlTemplate::parse("https://t.example/{id}");
        let rows = [
            (
                Some("https://a.example/x?y#z"),
                "i",
                "https://a.example/x?y#z",
            ),
            (Some("HTTP://a.example"), "i", "HTTP://a.example"),
            (
                Some("ftp://a.example"),
                "a b/c",
                "https://t.example/a%20b%2Fc",
            ),
            (Some("https://"), "ü", "https://t.example/%C3%BC"),
            (Some("x-coredata://1"), "i", "https://t.example/i"),
            (Some("https://a.example/ b"), "i", "https://t.example/i"),
            (Some("/relative"), "i", "https://t.example/i"),
            (None, "..", ""),
            (None, "a/../b", ""),
        ];
        for (own, id, expected) in rows {
            assert_eq!(
                address(own, id, template.as_ref()),
                expected,
                "{own:?} {id}"
            );
        }
        assert_eq!(address(None, "i", None), "");
    }

    #[test]
    fn a_plain_id_is_one_that_percent_encoding_does_not_change() {
        for byte in 0..=0x7f_u8 {
            let id = format!("a{}b", char::from(byte));
            for (slashes, encoded) in [(true, ENCODED_BUT_SLASHES), (false, ENCODED)] {
                let same = utf8_percent_encode(&id, encoded).to_string() == id;
                assert_eq!(is_plain(&id, slashes), same, "{id:?}");
            }
        }
        assert!(!is_plain("ü", true) && is_plain("", false));
    }

    #[test]
    fn slashes_stay_where_the_template_keeps_them() {
        let template = UrlTemplate::parse("https://t.example/{+id}").unwrap();
        let filled = template.fill("speeches/a b#c.md");
        assert_eq!(
            filled.as_deref(),
            Some("https://t.example/speeches/a%20b%23c.md")
        );
    }
}
