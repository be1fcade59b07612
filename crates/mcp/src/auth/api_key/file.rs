//! The API key file: versioned JSON with hashes, readable by its owner alone, and replaced atomically.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::SystemTime;

use docent_atomic_file::FileAccess;
use serde::{Deserialize, Serialize};

use super::{ApiKeyGrant, ApiKeyInfo, MAX_API_KEYS, make_folder};
use crate::auth::AuthError;

/// The maximum size of the file. A thousand keys with a few claims need less.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiKeyFile {
    version: u32,
    keys: Vec<ApiKeyRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiKeyRecord {
    id: String,
    name: String,
    hash: String,
    created: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    claims: BTreeMap<String, Vec<String>>,
}

type ApiKeyMap = BTreeMap<String, ApiKeyInfo>;
type KeyFileStamp = Option<(SystemTime, u64)>;

fn failed(path: &Path) -> impl Fn(io::Error) -> AuthError {
    let path = path.display().to_string();
    move |error| AuthError::KeyFile(path.clone(), error.to_string())
}

/// The modification time and size of the file, by which changes are detected; `None` when it does not
/// exist.
pub(super) fn stamp(path: &Path) -> KeyFileStamp {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Reads the file and returns its keys together with the stamp from before the read, so that a change in
/// between is detected later.
pub(super) fn read(path: &Path) -> Result<(ApiKeyMap, KeyFileStamp), AuthError> {
    let failed = failed(path);
    let stamped = stamp(path);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((ApiKeyMap::new(), None));
        }
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(&failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(failed(io::Error::other("it is too long")));
    }
    let contents: ApiKeyFile = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    if contents.version != 1 {
        return Err(failed(io::Error::other(
            "it was written by a later version",
        )));
    }
    if contents.keys.len() > MAX_API_KEYS {
        return Err(AuthError::TooMany("API keys"));
    }
    let keys = contents.keys.into_iter().map(|entry| {
        let key = ApiKeyInfo {
            id: entry.id.clone(),
            created: entry.created,
            hash: entry.hash,
            grant: ApiKeyGrant {
                name: entry.name,
                scopes: entry.scopes,
                expires: entry.expires,
                claims: entry.claims,
            },
        };
        (entry.id, key)
    });
    Ok((keys.collect(), stamped))
}

/// Replaces the file of keys atomically, readable by its owner alone.
pub(super) fn write(path: &Path, keys: &ApiKeyMap) -> Result<(), AuthError> {
    let failed = failed(path);
    let entries = keys.values().map(|key| ApiKeyRecord {
        id: key.id.clone(),
        name: key.grant.name.clone(),
        hash: key.hash.clone(),
        created: key.created,
        expires: key.grant.expires,
        scopes: key.grant.scopes.clone(),
        claims: key.grant.claims.clone(),
    });
    let contents = ApiKeyFile {
        version: 1,
        keys: entries.collect(),
    };
    let text = serde_json::to_string_pretty(&contents).map_err(|error| failed(error.into()))?;
    make_folder(path).map_err(&failed)?;
    docent_atomic_file::replace(path, text.as_bytes(), FileAccess::Private).map_err(&failed)
}
