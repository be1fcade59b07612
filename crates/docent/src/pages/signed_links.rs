//! Addresses of pages that open to whoever was given them, for some days: `?exp=…&sig=…`.
//!
//! A link is signed when somebody who may read the document is shown it, and opens that one document. It
//! ends at midnight, so that one document has one address a day and browsers can keep the page.

use docent_mcp::LinkKey;
use docent_search::{AllowedReaders, Document};
use url::form_urlencoded;

const DAY: u64 = 86_400;

/// Signs and checks.
pub(crate) struct LinkSigner {
    key: LinkKey,
    days: u64,
    /// Whether there is nothing to see without a good link.
    needed: bool,
    now: fn() -> u64,
}

impl LinkSigner {
    pub(crate) fn new(key: LinkKey, days: u64, needed: bool) -> Self {
        Self {
            key,
            days,
            needed,
            now: now_in_seconds,
        }
    }

    /// Whether a page without a good link is as if it were not there.
    pub(crate) fn is_required(&self) -> bool {
        self.needed
    }

    /// What opens the page of this document, as part of its address.
    pub(crate) fn signed_query(&self, document: &Document) -> String {
        let expires = ((self.now)() / DAY + self.days + 1) * DAY;
        self.signed(&subject(document), expires)
    }

    /// What of this address opens the page of this document, if anything does.
    pub(crate) fn verify(&self, document: &Document, query: &str) -> Option<String> {
        let (mut written, mut signature) = (None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match name.as_ref() {
                "exp" => &mut written,
                "sig" => &mut signature,
                _ => continue,
            };
            // An address that says something twice may mean one thing to us and another to what stands in between.
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
        // Made anew rather than repeated, so that nothing else of the address comes back in the page.
        self.key
            .verify(&subject, expires, &signature, (self.now)())
            .then(|| self.signed(&subject, expires))
    }

    fn signed(&self, subject: &str, expires: u64) -> String {
        format!("exp={expires}&sig={}", self.key.sign(subject, expires))
    }
}

/// What is signed: the document and who may read it, so that no link outlives a change of that. Neither an id
/// nor a principal holds a control character.
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

    fn seal(now: fn() -> u64) -> LinkSigner {
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
        let seal = seal(|| 10 * DAY + 5);
        let one = document("a/b.md", &[]);
        let query = seal.signed_query(&one);
        assert!(query.starts_with("exp=1555200&sig="), "{query}");
        assert_eq!(seal.verify(&one, &query), Some(query.clone()));
        let among = format!("x=1&{query}&p=3");
        assert_eq!(seal.verify(&one, &among), Some(query.clone()));
        assert_eq!(seal.verify(&document("a/c.md", &[]), &query), None);
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
            assert_eq!(seal.verify(&one, bad), None, "{bad}");
        }
    }

    #[test]
    fn it_ends_when_others_may_read_the_document() {
        let seal = seal(|| 10 * DAY);
        let for_some = document("a", &["group:x", "group:y"]);
        let query = seal.signed_query(&for_some);
        assert!(seal.verify(&for_some, &query).is_some());
        for other in [&[][..], &["group:x"], &["group:x", "group:z"]] {
            assert_eq!(
                seal.verify(&document("a", other), &query),
                None,
                "{other:?}"
            );
        }
    }

    #[test]
    fn it_ends_at_midnight() {
        let mut seal = seal(|| 10 * DAY + 5);
        let document = document("a", &[]);
        let query = seal.signed_query(&document);
        seal.now = || 18 * DAY - 1;
        assert!(seal.verify(&document, &query).is_some());
        seal.now = || 18 * DAY;
        assert_eq!(seal.verify(&document, &query), None);
    }
}
