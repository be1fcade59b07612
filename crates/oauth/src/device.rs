//! Device cookies: they recognise a browser in which a given user has logged in before.
//!
//! Wrong passwords are rate limited by user name, so an attacker who guesses would lock out the name's
//! owner. A browser with a device cookie has a bucket of its own, which nobody without the cookie can use
//! up (OWASP, "Slow Down Online Guessing Attacks with Device Cookies"). The cookie authorizes nothing: the
//! password is still required. The server stores nothing; the cookie's content is authenticated by a MAC,
//! and any invalid cookie counts as absent.

use super::crypto::{self, HmacSigner, RandomnessError};

/// The lifetime of a device cookie in seconds: a year. A grant lasts half of one, so the next login comes
/// within it.
pub(crate) const DEVICE_COOKIE_LIFETIME: u64 = 365 * 86_400;
/// The maximum number of users in one cookie. A cookie has few bytes, and few people share a browser.
const MAX_NAMES: usize = 4;
const ID_BYTES: usize = 16;
const MAC_BYTES: usize = 32;
/// The purpose of the MAC, for domain separation.
const PURPOSE: &str = "device";

/// The random id of a browser for one user name; the key of its rate limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DeviceId(String);

/// The cookie's entry for one user. It does not contain the name; the MAC covers it, so that only a login
/// attempt with the same name can use the entry.
#[derive(Clone, Copy)]
struct DeviceEntry<'a> {
    text: &'a str,
    expires: &'a str,
    id: &'a str,
    mac: &'a str,
}

impl<'a> DeviceEntry<'a> {
    /// Parses an entry that is well-formed and has not expired.
    fn parse(text: &'a str, now: u64) -> Option<Self> {
        let mut parts = text.split('.');
        let entry = Self {
            text,
            expires: parts.next()?,
            id: parts.next()?,
            mac: parts.next()?,
        };
        let long =
            |text: &str, bytes: usize| crypto::decode(text).is_some_and(|b| b.len() == bytes);
        let digits = entry.expires.bytes().all(|byte| byte.is_ascii_digit());
        let expires = entry.expires.parse::<u64>().ok().filter(|_| digits)?;
        let whole = parts.next().is_none()
            && long(entry.id, ID_BYTES)
            && long(entry.mac, MAC_BYTES)
            && now < expires;
        whole.then_some(entry)
    }

    fn is_for(&self, signer: &HmacSigner, name: &str) -> bool {
        signer.verify(PURPOSE, &[name, self.id, self.expires], self.mac)
    }
}

fn entries(cookie: Option<&str>, now: u64) -> impl Iterator<Item = DeviceEntry<'_>> {
    let texts = cookie.unwrap_or_default().split('~').take(MAX_NAMES);
    texts.filter_map(move |text| DeviceEntry::parse(text, now))
}

/// The id of the browser that sent this cookie, if `name` has logged in there.
pub(crate) fn known(
    signer: &HmacSigner,
    cookie: Option<&str>,
    name: &str,
    now: u64,
) -> Option<DeviceId> {
    let mut all = entries(cookie, now);
    let entry = all.find(|entry| entry.is_for(signer, name))?;
    Some(DeviceId(entry.id.to_owned()))
}

/// The new cookie value after `name` has logged in: that user's entry first, then the other valid entries.
pub(crate) fn remembered(
    signer: &HmacSigner,
    cookie: Option<&str>,
    name: &str,
    now: u64,
) -> Result<String, RandomnessError> {
    // The same browser keeps its id, and with it its bucket.
    let id = match known(signer, cookie, name, now) {
        Some(DeviceId(id)) => id,
        None => crypto::encode(&crypto::random::<ID_BYTES>()?),
    };
    let until = now.saturating_add(DEVICE_COOKIE_LIFETIME).to_string();
    let mac = signer.sign(PURPOSE, &[name, &id, &until]);
    let mut texts = vec![format!("{until}.{id}.{mac}")];
    let others = entries(cookie, now).filter(|entry| !entry.is_for(signer, name));
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

    fn signer() -> HmacSigner {
        HmacSigner::new(b"one")
    }

    fn cookie(name: &str, before: Option<&str>) -> String {
        remembered(&signer(), before, name, NOW).unwrap()
    }

    fn is_known(cookie: &str, name: &str) -> bool {
        known(&signer(), Some(cookie), name, NOW).is_some()
    }

    #[test]
    fn a_cookie_counts_for_its_name_on_its_server_for_a_year() {
        let anna = cookie("anna", None);
        assert!(is_known(&anna, "anna"));
        for other in ["nils", "Anna", "", "anna "] {
            assert!(!is_known(&anna, other), "{other}");
        }
        assert!(known(&HmacSigner::new(b"two"), Some(&anna), "anna", NOW).is_none());
        let at = |now: u64| known(&signer(), Some(&anna), "anna", now).is_some();
        assert!(
            at(NOW + DEVICE_COOKIE_LIFETIME - 1)
                && !at(NOW + DEVICE_COOKIE_LIFETIME)
                && !at(u64::MAX)
        );
    }

    #[test]
    fn absent_empty_malformed_or_changed_is_as_if_there_were_none() {
        assert!(known(&signer(), None, "anna", NOW).is_none());
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
            // A valid MAC of this server with the same shape, but for another purpose.
            format!(
                "{until}.{id}.{}",
                signer().sign("form", &["anna", id, until])
            ),
        ] {
            assert!(!is_known(&bad, "anna"), "{bad}");
            // The next login gets a new entry, as from a new browser.
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
        let id = |cookie: &str| known(&signer(), Some(cookie), "anna", NOW).unwrap();
        let later = remembered(&signer(), Some(&first), "anna", NOW + 1_000).unwrap();
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
        // A user who logs in again takes no other user's entry.
        all = cookie("anna", Some(&all));
        assert!(names.iter().all(|name| is_known(&all, name)));
        all = cookie("tove", Some(&all));
        assert!(is_known(&all, "tove") && is_known(&all, "anna"));
        assert!(!is_known(&all, "nils"), "who was longest not here");
        assert_eq!(all.split('~').count(), MAX_NAMES);
        assert!(all.len() < 400, "{}", all.len());
        // Malformed entries are not sent back, and expired ones are dropped.
        let strange = format!("a;b~\r\nx~1.2.3~{}", cookie("nils", None));
        let kept = cookie("anna", Some(&strange));
        assert!(is_known(&kept, "nils") && kept.split('~').count() == 2);
        let late = remembered(&signer(), Some(&all), "anna", NOW + DEVICE_COOKIE_LIFETIME).unwrap();
        assert_eq!(late.split('~').count(), 1);
    }
}
