//! A document into the address at which a person can open it: its own, one made by the
//! template, or none.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// Where a template puts the id.
const PLACE: &str = "{id}";

/// The same, with the slashes of the id kept.
const PLACE_WITH_SLASHES: &str = "{+id}";

/// Everything but the characters that mean nothing in an address.
const STRANGE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same without the slash.
const STRANGE_BUT_SLASHES: &AsciiSet = &STRANGE.remove(b'/');

/// An address with a place for the id, such as `https://docs.example.org/read/{id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    before: String,
    after: String,
    slashes: bool,
}

impl UrlTemplate {
    /// Reads a template, if `text` is an absolute http or https address with one `{id}` or
    /// `{+id}` behind its host.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let slashes = text.contains(PLACE_WITH_SLASHES);
        let place = if slashes { PLACE_WITH_SLASHES } else { PLACE };
        let (before, after) = text.split_once(place)?;
        let template = Self {
            before: before.to_owned(),
            after: after.to_owned(),
            slashes,
        };
        if before.contains(['{', '}']) || after.contains(['{', '}']) {
            return None;
        }
        // Were the place part of the host, two ids would give two hosts.
        let host = |id: &str| Some(Url::parse(&template.fill(id)?).ok()?.origin());
        let (one, two) = (host("a")?, host("b")?);
        (one == two && is_web_url(&template.fill("a")?)).then_some(template)
    }

    /// The scheme, host and port of its addresses.
    #[must_use]
    pub fn origin(&self) -> Option<String> {
        let url = Url::parse(&self.fill("a")?).ok()?;
        Some(url.origin().ascii_serialization())
    }

    /// The address for an id; none when the id would walk out of the template's path.
    fn fill(&self, id: &str) -> Option<String> {
        // Hardly an id has a part that begins with a dot, and only such a one is looked at.
        let may_walk = id.starts_with('.') || id.contains("/.");
        let is_step = |part| part == "." || part == "..";
        if may_walk && id.split('/').any(is_step) {
            return None;
        }
        let strange = if self.slashes {
            STRANGE_BUT_SLASHES
        } else {
            STRANGE
        };
        // With room for a slash or two.
        let room = self.before.len() + id.len() + self.after.len() + 8;
        let mut url = String::with_capacity(room);
        url.push_str(&self.before);
        if is_plain(id, self.slashes) {
            url.push_str(id);
        } else {
            url.extend(utf8_percent_encode(id, strange));
        }
        url.push_str(&self.after);
        Some(url)
    }
}

/// Whether encoding would change nothing. Most ids are so, and all of one are looked at without a branch.
fn is_plain(id: &str, slashes: bool) -> bool {
    id.bytes().fold(true, |is_plain, byte| {
        let is_mark = matches!(byte, b'-' | b'.' | b'_' | b'~');
        is_plain & (byte.is_ascii_alphanumeric() | is_mark | (slashes & (byte == b'/')))
    })
}

/// The absolute http or https address of a document, or an empty text: hosts make a citation of
/// every text that is not empty, so nothing else may stand here.
#[must_use]
pub fn address(own: Option<&str>, id: &str, template: Option<&UrlTemplate>) -> String {
    let own = own
        .map(str::trim)
        .filter(|url| is_web_url(url))
        .map(str::to_owned);
    // A template was found good when it was read, and an encoded id cannot spoil it.
    let made = || template.and_then(|template| template.fill(id));
    own.or_else(made).unwrap_or_default()
}

/// True for an absolute http or https address that every program reads alike.
pub(crate) fn is_web_url(text: &str) -> bool {
    let strange = |c: char| c.is_whitespace() || c.is_control() || "\"<>\\^`{|}".contains(c);
    let schemed = ["http://", "https://"].iter().any(|scheme| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    schemed && !text.contains(strange) && Url::parse(text).is_ok_and(|url| url.has_host())
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
    fn what_is_not_encoded_would_not_change() {
        for byte in 0..=0x7f_u8 {
            let id = format!("a{}b", char::from(byte));
            for (slashes, strange) in [(true, STRANGE_BUT_SLASHES), (false, STRANGE)] {
                let same = utf8_percent_encode(&id, strange).to_string() == id;
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
