//! Signed URLs of document pages: `?exp=…&sig=…` opens one document to whoever has the link, for some days.
//!
//! A link is signed when a reader of the document receives it in an answer. It expires at midnight, so that a
//! document has one URL a day and browsers can cache the page.

use docent_mcp::LinkKey;
use docent_search::{AllowedReaders, Document};
use url::form_urlencoded;

const DAY: u64 = 86_400;

/// Signs page URLs and verifies their signatures. The clock is a field, so that tests can set the time.
pub(crate) struct LinkSigner {
    key: LinkKey,
    days: u64,
    /// Whether pages open only with a valid link.
    required: bool,
    now: fn() -> u64,
}

impl LinkSigner {
    pub(crate) fn new(key: LinkKey, days: u64, required: bool) -> Self {
        Self {
            key,
            days,
            required,
            now: now_in_seconds,
        }
    }

    /// Whether a page answers "not found" without a valid link.
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// The query string with expiry and signature that opens the page of this document.
    pub(crate) fn signed_query(&self, document: &Document) -> String {
        let expires = ((self.now)() / DAY + self.days + 1) * DAY;
        self.signed(&subject(document), expires)
    }

    /// Verifies the signature in a query string. On success it returns the canonical query string, to be kept in the
    /// page's own links.
    pub(crate) fn verify(&self, document: &Document, query: &str) -> Option<String> {
        let (mut written, mut signature) = (None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match name.as_ref() {
                "exp" => &mut written,
                "sig" => &mut signature,
                _ => continue,
            };
            // A duplicate parameter is refused: a proxy in between may read the other one than we do.
            if place.replace(value).is_some() {
                return None;
            }
        }
        let (written, signature) = written.zip(signature)?;
        let expires = written.parse::<u64>().ok()?;
        if expires.to_string() != written {
            return None;
        }
        let subject = subject(document);
        // The query is signed again instead of echoed, so that nothing else of the URL is reflected in the page.
        self.key
            .verify(&subject, expires, &signature, (self.now)())
            .then(|| self.signed(&subject, expires))
    }

    fn signed(&self, subject: &str, expires: u64) -> String {
        format!("exp={expires}&sig={}", self.key.sign(subject, expires))
    }
}

/// The signed subject: the document id and its readers, so that a change of permissions revokes every link. Neither
/// ids nor principals contain control characters, so the line breaks between them are unambiguous.
fn subject(document: &Document) -> String {
    let mut subject = document.id.as_str().to_owned();
    if let AllowedReaders::Only(readers) = &document.readers {
        subject.push('\n');
        for reader in readers {
            subject.push('\n');
            subject.push_str(reader.as_str());
        }
    }
    subject
}

fn now_in_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use docent_search::{DocId, Principal};

    use super::*;

    fn signer(now: fn() -> u64) -> LinkSigner {
        let dir = tempfile::tempdir().unwrap();
        let key = LinkKey::open(&dir.path().join("key")).unwrap();
        LinkSigner {
            now,
            ..LinkSigner::new(key, 7, true)
        }
    }

    fn document(id: &str, readers: &[&str]) -> Document {
        let named = readers.iter().map(|text| Principal::parse(text).unwrap());
        Document {
            id: DocId::parse(id).unwrap(),
            title: String::new(),
            text: String::new(),
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
            readers: if readers.is_empty() {
                AllowedReaders::Everyone
            } else {
                AllowedReaders::Only(named.collect())
            },
        }
    }

    #[test]
    fn a_link_opens_its_document_for_its_days() {
        let signer = signer(|| 10 * DAY + 5);
        let one = document("a/b.md", &[]);
        let query = signer.signed_query(&one);
        assert!(query.starts_with("exp=1555200&sig="), "{query}");
        assert_eq!(signer.verify(&one, &query), Some(query.clone()));
        let among = format!("x=1&{query}&p=3");
        assert_eq!(signer.verify(&one, &among), Some(query.clone()));
        assert_eq!(signer.verify(&document("a/c.md", &[]), &query), None);
        let longer = query.replace("exp=1555200", "exp=9999999999");
        for bad in [
            "",
            "exp=1555200",
            "sig=x",
            "exp=x&sig=y",
            "exp=1555200&sig=AAAA",
            &longer,
            &format!("{query}&{query}"),
            &format!("{query}&exp=1555200"),
            &format!("exp=9&{query}"),
            &format!("{query}&sig="),
            &query.replace("exp=", "exp=0"),
            &query.replace("exp=", "exp=%2B"),
            &query.replace("exp=", "EXP="),
            &query.replace("sig=", "Sig="),
            &query[..query.len() - 1],
            &format!("{query}A"),
            &format!("{query}%3D"),
            &format!("{query}%20"),
            &query.to_ascii_lowercase(),
        ] {
            assert_eq!(signer.verify(&one, bad), None, "{bad}");
        }
    }

    #[test]
    fn it_ends_when_others_may_read_the_document() {
        let signer = signer(|| 10 * DAY);
        let for_some = document("a", &["group:x", "group:y"]);
        let query = signer.signed_query(&for_some);
        assert!(signer.verify(&for_some, &query).is_some());
        for other in [&[][..], &["group:x"], &["group:x", "group:z"]] {
            assert_eq!(
                signer.verify(&document("a", other), &query),
                None,
                "{other:?}"
            );
        }
    }

    #[test]
    fn it_ends_at_midnight() {
        let mut signer = signer(|| 10 * DAY + 5);
        let document = document("a", &[]);
        let query = signer.signed_query(&document);
        signer.now = || 18 * DAY - 1;
        assert!(signer.verify(&document, &query).is_some());
        signer.now = || 18 * DAY;
        assert_eq!(signer.verify(&document, &query), None);
    }
}
