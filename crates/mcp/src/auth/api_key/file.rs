//! The file of API keys: JSON that holds hashes, readable by its owner alone, replaced as a whole.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{ApiKeyGrant, ApiKeyInfo, MAX_API_KEYS, make_folder};
use crate::auth::AuthError;

/// The most bytes of the file; a thousand keys with some claims have less.
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

/// How the file looks from outside; nothing when it is not there.
pub(super) fn stamp(path: &Path) -> KeyFileStamp {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// What is in the file, and how it looked before it was read.
pub(super) fn read(path: &Path) -> Result<(ApiKeyMap, KeyFileStamp), AuthError> {
    let failed = failed(path);
    let looks = stamp(path);
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
    let wire: ApiKeyFile = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    if wire.version != 1 {
        return Err(failed(io::Error::other("it is of a later version")));
    }
    if wire.keys.len() > MAX_API_KEYS {
        return Err(AuthError::TooMany("API keys"));
    }
    let keys = wire.keys.into_iter().map(|entry| {
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
    Ok((keys.collect(), looks))
}

/// Writes the whole file beside the old one and then puts it in its place.
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
    let wire = ApiKeyFile {
        version: 1,
        keys: entries.collect(),
    };
    let text = serde_json::to_string_pretty(&wire).map_err(|error| failed(error.into()))?;
    let folder = make_folder(path).map_err(&failed)?;
    let draft = folder.join(format!(".keys-{}", uuid::Uuid::new_v4().simple()));
    let written = write_new(&draft, text.as_bytes()).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // Nothing is lost if this fails too: it is a file nobody reads.
        let _ = fs::remove_file(&draft);
    }
    written.map_err(&failed)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
