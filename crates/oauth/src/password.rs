//! Password hashing with Argon2id, with a limit on concurrent hashes.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The minimum length of a password in characters. The rate limit makes guessing at the server hopeless long before
/// that; the length protects the hashes if somebody copies the file of accounts.
pub const MIN_CHARS: usize = 10;
/// The maximum length of a password in bytes; hashing more would only cost time.
pub const MAX_BYTES: usize = 512;

/// Memory in KiB, iterations and parallelism: the first recommendation of OWASP for Argon2id. The memory is what makes
/// guessing on graphics cards expensive. It is also what a login costs us, hence the limit on concurrent hashes.
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// The number of passwords that are hashed at once; each takes the memory above and one core. More would let a flood of
/// logins take the processor from searches, and a person who logs in does not notice some tenths of a second.
const CONCURRENCY: usize = 2;
/// One additional slot for browsers with a device cookie, so that a flood of logins cannot starve them.
const RESERVED_SLOTS: usize = 1;
/// How long a login waits for a slot. Hosts allow minutes for a login, proxies about half of one. So the wait ends
/// before a proxy cuts the connection, with a page that says to try again rather than with an error of the proxy.
const SLOT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a password cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// The password has fewer than [`MIN_CHARS`] characters.
    #[error("the password has fewer than {MIN_CHARS} characters")]
    Short,
    /// The password has more than [`MAX_BYTES`] bytes.
    #[error("the password has more than {MAX_BYTES} bytes")]
    Long,
    /// No random bytes for the salt, or the hash function failed.
    #[error("the password cannot be hashed")]
    Failed,
}

/// Hashes a new password with a random salt, in the PHC string format.
///
/// # Errors
/// When the password is too short or too long, or hashing fails.
pub fn hash(password: &str) -> Result<String, PasswordError> {
    if password.chars().count() < MIN_CHARS {
        return Err(PasswordError::Short);
    }
    if password.len() > MAX_BYTES {
        return Err(PasswordError::Long);
    }
    let hashed = argon2().and_then(|argon2| argon2.hash_password(password.as_bytes()).ok());
    hashed
        .map(|hash| hash.to_string())
        .ok_or(PasswordError::Failed)
}

/// Letters and digits that cannot be mistaken for each other.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Generates a random password: four groups of five letters and digits, 100 random bits.
///
/// # Errors
/// When the operating system gives no random bytes.
pub fn new_password() -> Result<String, PasswordError> {
    let random = super::crypto::random::<20>().map_err(|_| PasswordError::Failed)?;
    let mut password = String::new();
    for (at, byte) in random.iter().enumerate() {
        if at > 0 && at % 5 == 0 {
            password.push('-');
        }
        let letter = LETTERS.get(usize::from(byte % 32)).copied();
        password.push(char::from(letter.unwrap_or(b'a')));
    }
    Ok(password)
}

fn argon2() -> Option<Argon2<'static>> {
    let (memory, rounds, lanes) = COST;
    let params = Params::new(memory, rounds, lanes, None).ok()?;
    Some(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn verify(password: &str, hash: &str) -> bool {
    let Ok(parsed) = PasswordHash::new(hash) else {
        return false;
    };
    argon2().is_some_and(|argon2| argon2.verify_password(password.as_bytes(), &parsed).is_ok())
}

/// No slot became free before the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PasswordCheckBusy;

/// The queue in which a login waits for a hashing slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HashingQueue {
    Anybody,
    /// The queue of browsers with a valid device cookie, which has the reserved slot too.
    KnownBrowser,
}

/// Verifies passwords, a bounded number at a time.
pub(crate) struct PasswordChecker {
    slots: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    /// The hash of a random password. Unknown user names are checked against it, so that the response time
    /// does not reveal which names exist.
    dummy_hash: String,
}

impl PasswordChecker {
    pub(crate) fn new() -> Result<Self, PasswordError> {
        let unknown = super::crypto::secret().map_err(|_| PasswordError::Failed)?;
        Ok(Self {
            slots: Arc::new(Semaphore::new(CONCURRENCY)),
            reserved: Arc::new(Semaphore::new(RESERVED_SLOTS)),
            dummy_hash: hash(&unknown)?,
        })
    }

    /// True if the password matches `hash`. Without a hash the work is done all the same, and the result is
    /// false.
    pub(crate) async fn check(
        &self,
        password: &str,
        hash: Option<&str>,
        queue: HashingQueue,
    ) -> Result<bool, PasswordCheckBusy> {
        if password.len() > MAX_BYTES {
            return Ok(false);
        }
        let known = hash.is_some();
        let hash = hash.unwrap_or(&self.dummy_hash).to_owned();
        let password = password.to_owned();
        let slot = self.hashing_slot(queue).await?;
        let checked = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            verify(&password, &hash)
        });
        Ok(checked.await.map_err(|_| PasswordCheckBusy)? && known)
    }

    async fn hashing_slot(
        &self,
        queue: HashingQueue,
    ) -> Result<OwnedSemaphorePermit, PasswordCheckBusy> {
        let anybodys = self.slots.clone().acquire_owned();
        let slot = async {
            match queue {
                HashingQueue::Anybody => anybodys.await,
                HashingQueue::KnownBrowser => tokio::select! {
                    slot = anybodys => slot,
                    slot = self.reserved.clone().acquire_owned() => slot,
                },
            }
        };
        let slot = tokio::time::timeout(SLOT_TIMEOUT, slot).await;
        slot.map_err(|_| PasswordCheckBusy)?
            .map_err(|_| PasswordCheckBusy)
    }

    /// Takes every slot of the common queue until the result is dropped.
    #[cfg(test)]
    pub(crate) async fn take_all_slots(&self) -> OwnedSemaphorePermit {
        let all = u32::try_from(CONCURRENCY).unwrap();
        self.slots.clone().acquire_many_owned(all).await.unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_bounds_and_salt() {
        assert_eq!(hash("ninechars"), Err(PasswordError::Short));
        assert!(hash(&"ä".repeat(MIN_CHARS)).is_ok());
        assert_eq!(hash(&"ä".repeat(MIN_CHARS - 1)), Err(PasswordError::Short));
        assert_eq!(hash(&"a".repeat(MAX_BYTES + 1)), Err(PasswordError::Long));
        let longest = "a".repeat(MAX_BYTES);
        let (one, two) = (hash(&longest).unwrap(), hash(&longest).unwrap());
        assert_ne!(one, two);
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert!(verify(&longest, &one) && verify(&longest, &two));
    }

    #[test]
    fn new_passwords_are_long_and_never_the_same() {
        let (one, two) = (new_password().unwrap(), new_password().unwrap());
        assert_eq!(one.len(), 23);
        assert_ne!(one, two);
        assert!(one.split('-').all(|group| group.len() == 5), "{one}");
    }

    #[test]
    fn new_passwords_use_every_letter() {
        let all: String = (0..50).map(|_| new_password().unwrap()).collect();
        let used: std::collections::BTreeSet<u8> = all.bytes().filter(|b| *b != b'-').collect();
        assert_eq!(used, LETTERS.iter().copied().collect());
    }

    #[tokio::test]
    async fn the_longest_password_counts_and_a_longer_one_is_not_even_hashed() {
        let verifier = PasswordChecker::new().unwrap();
        let longest = "a".repeat(MAX_BYTES);
        let kept = hash(&longest).unwrap();
        let check = async |password: &str| {
            let hash = Some(kept.as_str());
            verifier.check(password, hash, HashingQueue::Anybody).await
        };
        assert_eq!(check(&longest).await, Ok(true));
        verifier.slots.close();
        let over = "a".repeat(MAX_BYTES + 1);
        assert_eq!(check(&over).await, Ok(false));
        assert_eq!(check(&longest).await, Err(PasswordCheckBusy));
    }

    #[tokio::test]
    async fn only_the_right_password_of_somebody_is_right() {
        let verifier = PasswordChecker::new().unwrap();
        let kept = hash("harbour lights").unwrap();
        for (password, hash, expected) in [
            ("harbour lights", Some(kept.as_str()), true),
            ("harbour light", Some(kept.as_str()), false),
            ("", Some(kept.as_str()), false),
            ("harbour lights", Some("not a hash"), false),
            ("harbour lights", None, false),
        ] {
            for queue in [HashingQueue::Anybody, HashingQueue::KnownBrowser] {
                let checked = verifier.check(password, hash, queue).await;
                assert_eq!(checked, Ok(expected), "{password} {hash:?} {queue:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_password_check_that_waits_too_long_is_rejected_as_busy() {
        let verifier = PasswordChecker::new().unwrap();
        let _all = verifier.take_all_slots().await;
        let checked = verifier.check("harbour lights", None, HashingQueue::Anybody);
        assert_eq!(checked.await, Err(PasswordCheckBusy));
    }

    #[tokio::test]
    async fn a_known_browser_has_its_turn_while_all_others_are_taken() {
        let verifier = PasswordChecker::new().unwrap();
        let kept = hash("harbour lights").unwrap();
        let check = || verifier.check("harbour lights", Some(&kept), HashingQueue::KnownBrowser);
        let all = verifier.take_all_slots().await;
        assert_eq!(check().await, Ok(true));
        // A known browser may use the common slots too.
        let reserved = verifier.reserved.clone().acquire_owned().await.unwrap();
        drop(all);
        assert_eq!(check().await, Ok(true));
        let _all = verifier.take_all_slots().await;
        tokio::time::pause();
        assert_eq!(check().await, Err(PasswordCheckBusy));
        drop(reserved);
    }
}
