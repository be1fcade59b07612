//! API keys, for clients that can send a header but cannot sign in.
//!
//! A key is `docent_<id>_<secret>`. Only a hash of it is kept, with what it opens; the secret has 256
//! random bits, so that a fast hash is enough. The file is looked at again when it changes, so that a key
//! that was removed opens nothing a second later.

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

use super::{Auth, AuthError, AuthRejection, Caller, is_scope};

/// What every key begins with.
const PREFIX: &str = "docent_";
/// Characters of the part by which a key is found.
const ID_CHARS: usize = 8;
/// Characters of 32 random bytes.
const SECRET_CHARS: usize = 43;
/// The most keys of one server. Whoever needs more has people who can sign in.
pub(crate) const MAX_API_KEYS: usize = 1_000;
/// The most characters of a key's name.
pub(crate) const MAX_NAME_CHARS: usize = 100;
/// The most claims of one key, and the most values of one claim.
pub(crate) const MAX_CLAIMS: usize = 100;
/// How often the file is looked at, at most.
const LOOK: Duration = Duration::from_secs(1);
/// Who vouches for whoever has a key.
pub(crate) const ISSUER: &str = "key";

/// True for what can only be one of our keys.
pub(super) fn is_key(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// What a key opens, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiKeyGrant {
    /// Whose it is: the subject of whoever calls with it.
    pub name: String,
    /// What was granted.
    pub scopes: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub expires: Option<u64>,
    /// More about its owner, such as `groups`.
    pub claims: BTreeMap<String, Vec<String>>,
}

/// A key as a list shows it: everything but the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyInfo {
    /// By what it is found and removed; the second part of the key itself.
    pub id: String,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// What it opens.
    pub grant: ApiKeyGrant,
    hash: String,
}

/// The keys of a server, in a file. Clones are one.
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
    /// What the file looked like when it was read.
    seen: Option<(SystemTime, u64)>,
    looked: Instant,
}

impl ApiKeyStore {
    /// The keys in a file; none when it is not there.
    ///
    /// # Errors
    /// When the file cannot be read, or is not one of keys.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, AuthError> {
        let path = path.into();
        let (keys, seen) = file::read(&path)?;
        Ok(Self(Arc::new(ApiKeyStoreInner {
            path,
            state: Mutex::new(ApiKeyCache {
                keys,
                seen,
                looked: Instant::now(),
            }),
        })))
    }

    /// Makes a key and writes its hash to the file. The answer is the key: nobody can read it again.
    ///
    /// # Errors
    /// When the grant makes no sense, there are too many keys, or the file cannot be written.
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

    /// The keys, without what they are.
    #[must_use]
    pub fn list(&self) -> Vec<ApiKeyInfo> {
        self.refreshed_cache(Duration::ZERO)
            .keys
            .values()
            .cloned()
            .collect()
    }

    /// Removes the keys of this id or name, and says how many those were.
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
        // Read anew, because another process may have added one.
        let (mut keys, _) = file::read(&self.0.path)?;
        let done = work(&mut keys)?;
        file::write(&self.0.path, &keys)?;
        let mut state = self.state();
        state.seen = file::stamp(&self.0.path);
        state.keys = keys;
        Ok(done)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ApiKeyCache> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the file holds, as of at most `every` ago. A file that cannot be read any more opens nothing.
    fn refreshed_cache(&self, every: Duration) -> std::sync::MutexGuard<'_, ApiKeyCache> {
        let mut state = self.state();
        if state.looked.elapsed() < every {
            return state;
        }
        state.looked = Instant::now();
        if file::stamp(&self.0.path) != state.seen {
            let read = file::read(&self.0.path);
            let (keys, seen) = read.unwrap_or_else(|error| {
                tracing::error!(%error, "the API keys cannot be read, so none counts");
                Default::default()
            });
            state.keys = keys;
            state.seen = seen;
        }
        state
    }

    /// Who has this key.
    fn identify(&self, key: &str, now: u64) -> Result<Caller, AuthRejection> {
        const UNKNOWN: AuthRejection = AuthRejection::Bad("the API key is not known");
        let id = id_of(key).ok_or(UNKNOWN)?;
        let state = self.refreshed_cache(LOOK);
        let entry = state.keys.get(id).ok_or(UNKNOWN)?;
        // Hashes, so that how long this takes says nothing about the key.
        if entry.hash != hash(key) {
            return Err(UNKNOWN);
        }
        if entry.grant.expires.is_some_and(|expires| expires <= now) {
            return Err(AuthRejection::Bad("the API key has expired"));
        }
        let claims = entry.grant.claims.iter();
        let claims: Map<String, Value> = claims
            .map(|(name, values)| (name.clone(), Value::from(values.clone())))
            .collect();
        let scopes = entry.grant.scopes.iter().cloned().collect();
        let client = Some(entry.id.clone());
        let name = &entry.grant.name;
        Ok(Caller::verified(ISSUER, name, client, scopes, claims))
    }
}

impl Auth {
    pub(super) fn authenticate_key(&self, key: &str, now: u64) -> Result<Caller, AuthRejection> {
        match &self.0.keys {
            Some(keys) => keys.identify(key, now),
            None => Err(AuthRejection::Bad("the API key is not known")),
        }
    }
}

/// The part of a key by which it is found, if it has the form of one.
fn id_of(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_at_checked(ID_CHARS)?;
    (secret.len() == SECRET_CHARS + 1 && secret.starts_with('_')).then_some(id)
}

fn check(grant: &ApiKeyGrant) -> Result<(), AuthError> {
    let name = &grant.name;
    let chars = name.chars().count();
    if !(1..=MAX_NAME_CHARS).contains(&chars) || name.chars().any(char::is_control) {
        return Err(AuthError::KeyName(
            name.chars().take(MAX_NAME_CHARS).collect(),
        ));
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

/// Makes the folder of a file, for its owner alone.
pub(super) fn make_folder(path: &Path) -> std::io::Result<&Path> {
    let folder = folder(path);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    Ok(folder)
}

/// The folder of a file, as far as it has to be there.
fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
