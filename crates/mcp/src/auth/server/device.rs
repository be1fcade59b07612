//! Device cookies: a browser in which somebody has signed in before is known again, for that name alone.
//!
//! Guesses are counted by name, so whoever guesses keeps the owner of the name waiting. A browser with a device cookie
//! has a counter of its own, which nobody without the cookie can use up (OWASP, "Slow Down Online Guessing Attacks
//! with Device Cookies"). The cookie opens nothing: the password is asked for all the same. Nothing is kept here; what
//! the cookie says holds by our seal over it, and whatever else it may be is as if there were none.

use super::crypto::{self, HmacSigner, RandomnessError};

/// How long a browser is known, in seconds: a year. A grant lasts half of one, so the next sign-in comes within it.
pub(crate) const KNOWN_FOR: u64 = 365 * 86_400;
/// Names that one browser is known for. A cookie has few bytes, and few people share a browser.
const MAX_NAMES: usize = 4;
const ID_BYTES: usize = 16;
const SEAL_BYTES: usize = 32;
/// What the seal is for.
const PURPOSE: &str = "device";

/// A browser in which somebody signed in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DeviceId(String);

/// One name's part of the cookie. It does not hold the name: only who says the name again can use it.
#[derive(Clone, Copy)]
struct DeviceEntry<'a> {
    text: &'a str,
    until: &'a str,
    id: &'a str,
    seal: &'a str,
}

impl<'a> DeviceEntry<'a> {
    /// An entry of the right form whose time is not over.
    fn parse(text: &'a str, now: u64) -> Option<Self> {
        let mut parts = text.split('.');
        let entry = Self {
            text,
            until: parts.next()?,
            id: parts.next()?,
            seal: parts.next()?,
        };
        let long =
            |text: &str, bytes: usize| crypto::decode(text).is_some_and(|b| b.len() == bytes);
        let digits = entry.until.bytes().all(|byte| byte.is_ascii_digit());
        let until = entry.until.parse::<u64>().ok().filter(|_| digits)?;
        let whole = parts.next().is_none()
            && long(entry.id, ID_BYTES)
            && long(entry.seal, SEAL_BYTES)
            && now < until;
        whole.then_some(entry)
    }

    fn is_for(&self, seal: &HmacSigner, name: &str) -> bool {
        seal.verify(PURPOSE, &[name, self.id, self.until], self.seal)
    }
}

fn entries(cookie: Option<&str>, now: u64) -> impl Iterator<Item = DeviceEntry<'_>> {
    let texts = cookie.unwrap_or_default().split('~').take(MAX_NAMES);
    texts.filter_map(move |text| DeviceEntry::parse(text, now))
}

/// The browser that sent this cookie, if `name` signed in there.
pub(crate) fn known(
    seal: &HmacSigner,
    cookie: Option<&str>,
    name: &str,
    now: u64,
) -> Option<DeviceId> {
    let mut all = entries(cookie, now);
    let entry = all.find(|entry| entry.is_for(seal, name))?;
    Some(DeviceId(entry.id.to_owned()))
}

/// The cookie after `name` signed in: theirs first, then what it said about others.
pub(crate) fn remembered(
    seal: &HmacSigner,
    cookie: Option<&str>,
    name: &str,
    now: u64,
) -> Result<String, RandomnessError> {
    // The same browser keeps its counter.
    let id = match known(seal, cookie, name, now) {
        Some(DeviceId(id)) => id,
        None => crypto::encode(&crypto::random::<ID_BYTES>()?),
    };
    let until = now.saturating_add(KNOWN_FOR).to_string();
    let sealed = seal.sign(PURPOSE, &[name, &id, &until]);
    let mut texts = vec![format!("{until}.{id}.{sealed}")];
    let others = entries(cookie, now).filter(|entry| !entry.is_for(seal, name));
    texts.extend(
        others
            .map(|entry| entry.text.to_owned())
            .take(MAX_NAMES - 1),
    );
    Ok(texts.join("~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn seal() -> HmacSigner {
        HmacSigner::new(b"one")
    }

    fn cookie(name: &str, before: Option<&str>) -> String {
        remembered(&seal(), before, name, NOW).unwrap()
    }

    fn is_known(cookie: &str, name: &str) -> bool {
        known(&seal(), Some(cookie), name, NOW).is_some()
    }

    #[test]
    fn a_cookie_counts_for_its_name_on_its_server_for_a_year() {
        let anna = cookie("anna", None);
        assert!(is_known(&anna, "anna"));
        for other in ["nils", "Anna", "", "anna "] {
            assert!(!is_known(&anna, other), "{other}");
        }
        assert!(known(&HmacSigner::new(b"two"), Some(&anna), "anna", NOW).is_none());
        let at = |now: u64| known(&seal(), Some(&anna), "anna", now).is_some();
        assert!(at(NOW + KNOWN_FOR - 1) && !at(NOW + KNOWN_FOR) && !at(u64::MAX));
    }

    #[test]
    fn absent_empty_malformed_or_changed_is_as_if_there_were_none() {
        assert!(known(&seal(), None, "anna", NOW).is_none());
        let anna = cookie("anna", None);
        let (until, rest) = anna.split_once('.').unwrap();
        let (id, mac) = rest.split_once('.').unwrap();
        let later = until.parse::<u64>().unwrap() + 1;
        for bad in [
            String::new(),
            "~".to_owned(),
            "..".to_owned(),
            "x".repeat(5_000),
            format!("{until}.{id}"),
            format!("{until}.{id}."),
            format!("{until}..{mac}"),
            format!(".{id}.{mac}"),
            format!("+{until}.{id}.{mac}"),
            format!("0{until}.{id}.{mac}"),
            format!("{later}.{id}.{mac}"),
            format!("{anna}.x"),
            format!("{anna} "),
            format!("x{anna}"),
            anna.replace('.', "~"),
            // One of ours for another purpose, of the same shape.
            format!("{until}.{id}.{}", seal().sign("form", &["anna", id, until])),
        ] {
            assert!(!is_known(&bad, "anna"), "{bad}");
            // And what follows counts as from a new browser.
            assert!(is_known(&cookie("anna", Some(&bad)), "anna"), "{bad}");
        }
        for at in 0..anna.len() {
            let mut bytes = anna.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(!is_known(&changed, "anna"), "{at}: {changed}");
        }
    }

    #[test]
    fn a_browser_keeps_its_counter_and_another_has_another() {
        let first = cookie("anna", None);
        let id = |cookie: &str| known(&seal(), Some(cookie), "anna", NOW).unwrap();
        let later = remembered(&seal(), Some(&first), "anna", NOW + 1_000).unwrap();
        assert_eq!(id(&later), id(&first));
        assert_ne!(later, first, "its time begins anew");
        assert_ne!(id(&cookie("anna", None)), id(&first));
    }

    #[test]
    fn people_who_share_a_browser_are_all_known_up_to_a_bound() {
        let mut all = cookie("anna", None);
        let names = ["nils", "olga", "per"];
        for name in names {
            all = cookie(name, Some(&all));
        }
        assert!(
            names
                .iter()
                .chain(&["anna"])
                .all(|name| is_known(&all, name))
        );
        // Whoever comes again takes no place of another.
        all = cookie("anna", Some(&all));
        assert!(names.iter().all(|name| is_known(&all, name)));
        all = cookie("tove", Some(&all));
        assert!(is_known(&all, "tove") && is_known(&all, "anna"));
        assert!(!is_known(&all, "nils"), "who was longest not here");
        assert_eq!(all.split('~').count(), MAX_NAMES);
        assert!(all.len() < 400, "{}", all.len());
        // What is not of the form is not sent back, and what is over is dropped.
        let strange = format!("a;b~\r\nx~1.2.3~{}", cookie("nils", None));
        let kept = cookie("anna", Some(&strange));
        assert!(is_known(&kept, "nils") && kept.split('~').count() == 2);
        let late = remembered(&seal(), Some(&all), "anna", NOW + KNOWN_FOR).unwrap();
        assert_eq!(late.split('~').count(), 1);
    }
}
