//! API keys, for clients that can send a header but cannot run an OAuth flow.
//!
//! A key is `docent_<id>_<secret>`. The store keeps only a SHA-256 hash of it together with its grant; the
//! secret has 256 random bits, so that a fast hash is enough. The file is read again when its modification
//! time or size changes, checked at most once a second, so that a removed key stops working within a
//! second.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::caller::{API_KEY_ISSUER, values_of_claim};
use super::{Auth, AuthError, AuthRejection, Caller, is_scope};

/// The prefix of every key. It tells a key from an access token in `Authorization`, so that a key is never sent to an
/// issuer for introspection, and programs that search source code for leaked secrets recognize it.
const PREFIX: &str = "docent_";
/// The length of the id: 4 random bytes in hexadecimal. The store looks keys up by the id and then compares hashes.
/// With the secret as the key of the lookup, its duration could depend on how much of a guessed secret is right.
const ID_CHARS: usize = 8;
/// The length of the secret: 32 random bytes in base64url without padding.
const SECRET_CHARS: usize = 43;
/// The maximum number of keys of one server. Who needs more has users who can sign in.
pub(crate) const MAX_API_KEYS: usize = 1_000;
/// The maximum length of a key's name in characters.
pub(crate) const MAX_NAME_CHARS: usize = 100;
/// The maximum number of claims of one key, and of values of one claim. Claims grant access to documents, so the file
/// is read into memory as a whole and checked at each change; the limits keep that quick.
pub(crate) const MAX_CLAIMS: usize = 100;
/// The shortest time between two checks of the file for changes. It is the longest time for which a removed key still
/// works. Checking at every request would cost each of them a system call.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// True for a credential with the prefix of our API keys, which is therefore not an access token.
pub(super) fn is_key(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// What an API key grants, to whom, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiKeyGrant {
    /// The owner's name: the subject of a caller with this key.
    pub name: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The expiry time in seconds since 1970.
    pub expires: Option<u64>,
    /// Further claims about the owner, such as `groups`.
    pub claims: BTreeMap<String, Vec<String>>,
}

impl ApiKeyGrant {
    /// The values of a claim, exactly as [`Caller::claim`] returns them for a caller with this key.
    #[must_use]
    pub fn claim(&self, name: &str) -> Vec<String> {
        values_of_claim(&self.claim_map(), name)
    }

    /// True when a key with this grant no longer authenticates anybody at `now`, in seconds since 1970.
    #[must_use]
    pub fn has_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn claim_map(&self) -> Map<String, Value> {
        let claims = self.claims.iter();
        claims
            .map(|(name, values)| (name.clone(), Value::from(values.clone())))
            .collect()
    }
}

/// An API key's metadata, for listings. The secret is not part of it and cannot be recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyInfo {
    /// The id by which the key is looked up and removed; the second part of the key itself.
    pub id: String,
    /// The creation time in seconds since 1970.
    pub created: u64,
    /// What the key grants, to whom, and until when.
    pub grant: ApiKeyGrant,
    hash: String,
}

/// The API keys of a server, stored in a file. A clone shares the same state.
///
/// ```rust
/// use docent_mcp::{ApiKeyGrant, ApiKeyStore};
///
/// let dir = tempfile::tempdir()?;
/// let store = ApiKeyStore::open(dir.path().join("keys.json"))?;
/// let grant = ApiKeyGrant {
///     name: "import".to_owned(),
///     scopes: vec!["docs.read".to_owned()],
///     ..ApiKeyGrant::default()
/// };
/// let key = store.add(grant, 1_700_000_000)?;
/// println!("copy the key now: {key}");
/// assert_eq!(store.remove("import")?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ApiKeyStore(Arc<ApiKeyStoreInner>);

#[derive(Debug)]
struct ApiKeyStoreInner {
    path: PathBuf,
    state: Mutex<ApiKeyCache>,
}

#[derive(Debug)]
struct ApiKeyCache {
    keys: BTreeMap<String, ApiKeyInfo>,
    /// The modification time and size of the file at the last read; `None` when there was no file.
    stamp: Option<(SystemTime, u64)>,
    checked_at: Instant,
}

impl ApiKeyStore {
    /// Opens the key store in a file; a file that does not exist is an empty store.
    ///
    /// # Errors
    /// When the file cannot be read, or does not hold API keys.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, AuthError> {
        let path = path.into();
        let (keys, stamp) = file::read(&path)?;
        Ok(Self(Arc::new(ApiKeyStoreInner {
            path,
            state: Mutex::new(ApiKeyCache {
                keys,
                stamp,
                checked_at: Instant::now(),
            }),
        })))
    }

    /// Creates a key, stores its hash in the file, and returns the key itself. It cannot be shown again.
    ///
    /// # Errors
    /// When the grant is invalid, the store is full, or the file cannot be written.
    pub fn add(&self, grant: ApiKeyGrant, now: u64) -> Result<String, AuthError> {
        check(&grant)?;
        let (id, secret) = (
            hex(&random::<4>()?),
            URL_SAFE_NO_PAD.encode(random::<32>()?),
        );
        let key = format!("{PREFIX}{id}_{secret}");
        let entry = ApiKeyInfo {
            id: id.clone(),
            created: now,
            grant,
            hash: hash(&key),
        };
        self.change(|keys| {
            if keys.len() >= MAX_API_KEYS {
                return Err(AuthError::TooMany("API keys"));
            }
            keys.insert(id, entry);
            Ok(())
        })?;
        Ok(key)
    }

    /// Lists the metadata of all keys, without the secrets.
    #[must_use]
    pub fn list(&self) -> Vec<ApiKeyInfo> {
        self.refreshed_cache(Duration::ZERO)
            .keys
            .values()
            .cloned()
            .collect()
    }

    /// Removes the keys with this id or name and returns their number.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remove(&self, id_or_name: &str) -> Result<usize, AuthError> {
        self.change(|keys| {
            let before = keys.len();
            keys.retain(|id, key| id != id_or_name && key.grant.name != id_or_name);
            Ok(before - keys.len())
        })
    }

    fn change<T>(
        &self,
        work: impl FnOnce(&mut BTreeMap<String, ApiKeyInfo>) -> Result<T, AuthError>,
    ) -> Result<T, AuthError> {
        // Read the file again, because another process may have added a key since.
        let (mut keys, _) = file::read(&self.0.path)?;
        let done = work(&mut keys)?;
        file::write(&self.0.path, &keys)?;
        let mut state = self.state();
        state.stamp = file::stamp(&self.0.path);
        state.keys = keys;
        Ok(done)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ApiKeyCache> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached keys, checked against the file when the last check is older than `every`. The cache fails
    /// closed: a file that can no longer be read authenticates nobody.
    fn refreshed_cache(&self, every: Duration) -> std::sync::MutexGuard<'_, ApiKeyCache> {
        let mut state = self.state();
        if state.checked_at.elapsed() < every {
            return state;
        }
        state.checked_at = Instant::now();
        if file::stamp(&self.0.path) != state.stamp {
            let read = file::read(&self.0.path);
            let (keys, stamp) = read.unwrap_or_else(|error| {
                tracing::error!(%error, "cannot read the API keys, refusing all of them");
                Default::default()
            });
            state.keys = keys;
            state.stamp = stamp;
        }
        state
    }

    /// Authenticates a caller by an API key.
    fn verify(&self, key: &str, now: u64) -> Result<Caller, AuthRejection> {
        const UNKNOWN: AuthRejection = AuthRejection::Bad("the API key is not known");
        let id = id_of(key).ok_or(UNKNOWN)?;
        let state = self.refreshed_cache(RELOAD_INTERVAL);
        let entry = state.keys.get(id).ok_or(UNKNOWN)?;
        // Comparing hashes keeps the comparison's time independent of the secret.
        if entry.hash != hash(key) {
            return Err(UNKNOWN);
        }
        if entry.grant.has_expired(now) {
            return Err(AuthRejection::Bad("the API key has expired"));
        }
        let claims = entry.grant.claim_map();
        let scopes = entry.grant.scopes.iter().cloned().collect();
        let client = Some(entry.id.clone());
        let name = &entry.grant.name;
        Ok(Caller::verified(
            API_KEY_ISSUER,
            name,
            client,
            scopes,
            claims,
        ))
    }
}

impl Auth {
    pub(super) fn authenticate_key(&self, key: &str, now: u64) -> Result<Caller, AuthRejection> {
        match &self.0.keys {
            Some(keys) => keys.verify(key, now),
            None => Err(AuthRejection::Bad("the API key is not known")),
        }
    }
}

/// The id inside a key, if the key has the right form.
fn id_of(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_at_checked(ID_CHARS)?;
    (secret.len() == SECRET_CHARS + 1 && secret.starts_with('_')).then_some(id)
}

fn check(grant: &ApiKeyGrant) -> Result<(), AuthError> {
    let name = &grant.name;
    let chars = name.chars().count();
    if !(1..=MAX_NAME_CHARS).contains(&chars) || name.chars().any(char::is_control) {
        let start = docent_unicode::truncate_chars(name, MAX_NAME_CHARS);
        return Err(AuthError::KeyName(start.to_owned()));
    }
    if grant.scopes.len() > super::MAX_SCOPES {
        return Err(AuthError::TooMany("scopes"));
    }
    if let Some(bad) = grant.scopes.iter().find(|scope| !is_scope(scope)) {
        return Err(AuthError::Scope(bad.clone()));
    }
    let many = |values: &Vec<String>| values.len() > MAX_CLAIMS;
    if grant.claims.len() > MAX_CLAIMS || grant.claims.values().any(many) {
        return Err(AuthError::TooMany("claims"));
    }
    Ok(())
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut bytes = [0; N];
    let made = SystemRandom::new().fill(&mut bytes);
    made.map_err(|_| AuthError::Random)?;
    Ok(bytes)
}

fn hash(key: &str) -> String {
    hex(&Sha256::digest(key))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Creates the parent folder of a file with mode 0700.
pub(super) fn make_folder(path: &Path) -> std::io::Result<&Path> {
    let folder = folder(path);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    Ok(folder)
}

/// The parent folder of a file; the current folder for a bare file name.
fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
