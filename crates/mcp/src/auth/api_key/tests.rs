//! Tests of API keys: which keys authenticate, which do not, and what the file contains.

use std::fs;

use super::*;

const NOW: u64 = 1_800_000_000;

fn grant(name: &str) -> ApiKeyGrant {
    ApiKeyGrant {
        name: name.to_owned(),
        scopes: vec!["docs.read".to_owned()],
        expires: None,
        claims: [("groups".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into(),
    }
}

fn keys() -> (tempfile::TempDir, ApiKeyStore) {
    let dir = tempfile::tempdir().unwrap();
    let keys = ApiKeyStore::open(dir.path().join("in/api-keys.json")).unwrap();
    (dir, keys)
}

const UNKNOWN: AuthRejection = AuthRejection::Bad("the API key is not known");

#[test]
fn a_key_opens_what_was_granted() {
    let (_dir, keys) = keys();
    let key = keys.add(grant("ci"), NOW).unwrap();
    assert!(is_key(&key) && key.len() == 59, "{key}");
    let caller = keys.verify(&key, NOW).unwrap();
    assert_eq!(caller.issuer(), Some("key"));
    assert_eq!(caller.subject(), Some("ci"));
    assert_eq!(caller.client(), Some(&key[7..15]));
    assert!(caller.has_scope("docs.read") && !caller.has_scope("docs.write"));
    assert_eq!(caller.claim("groups"), ["a", "b"]);
    let other = keys.add(grant("ci"), NOW).unwrap();
    assert_ne!(key, other);
    assert_eq!(keys.verify(&other, NOW).unwrap().key(), caller.key());
}

#[test]
fn nothing_else_does() {
    let (_dir, keys) = keys();
    let key = keys.add(grant("ci"), NOW).unwrap();
    let last = if key.ends_with('A') { "B" } else { "A" };
    for bad in [
        String::new(),
        "docent_".to_owned(),
        key[..58].to_owned(),
        format!("{key}A"),
        format!("{}{last}", &key[..58]),
        key.replacen("docent_", "docentx", 1),
        format!("docent_00000000{}", &key[15..]),
        format!("{}-{}", &key[..15], &key[16..]),
        "docent_ä".repeat(9),
    ] {
        assert_eq!(keys.verify(&bad, NOW), Err(UNKNOWN), "{bad}");
    }
    assert!(!is_key("eyJ") && !is_key("docent-x"));
}

#[test]
fn a_key_ends() {
    let (_dir, keys) = keys();
    let key = keys
        .add(
            ApiKeyGrant {
                expires: Some(NOW + 1),
                ..grant("ci")
            },
            NOW,
        )
        .unwrap();
    assert!(keys.verify(&key, NOW).is_ok());
    let ended = Err(AuthRejection::Bad("the API key has expired"));
    assert_eq!(keys.verify(&key, NOW + 1), ended);
}

#[test]
fn the_key_file_contains_only_hashes_and_is_private() {
    let (dir, keys) = keys();
    let key = keys.add(grant("ci"), NOW).unwrap();
    let path = dir.path().join("in/api-keys.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&key) && !text.contains(&key[16..]), "{text}");
    assert!(text.contains(&hash(&key)));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no draft is left");
    let again = ApiKeyStore::open(&path).unwrap();
    assert!(again.verify(&key, NOW).is_ok(), "it lasts");
    assert_eq!(again.list(), keys.list());
    assert_eq!(again.list()[0].grant, grant("ci"));
    assert_eq!(again.list()[0].created, NOW);
}

#[test]
fn keys_are_removed_by_id_or_name() {
    let (_dir, keys) = keys();
    let (a, b) = (
        keys.add(grant("a"), NOW).unwrap(),
        keys.add(grant("b"), NOW).unwrap(),
    );
    let again = keys.add(grant("b"), NOW).unwrap();
    assert_eq!(keys.remove("nothing"), Ok(0));
    assert_eq!(keys.remove(&a[7..15]), Ok(1));
    assert_eq!(keys.verify(&a, NOW), Err(UNKNOWN));
    assert!(keys.verify(&b, NOW).is_ok());
    assert_eq!(keys.remove("b"), Ok(2));
    assert_eq!(keys.verify(&again, NOW), Err(UNKNOWN));
    assert!(keys.list().is_empty());
}

#[test]
fn another_process_is_seen() {
    let (dir, keys) = keys();
    let path = dir.path().join("in/api-keys.json");
    let other = ApiKeyStore::open(&path).unwrap();
    let key = other.add(grant("a"), NOW).unwrap();
    assert_eq!(keys.list().len(), 1);
    assert!(keys.verify(&key, NOW).is_ok());
    let second = keys.add(grant("b"), NOW).unwrap();
    assert_eq!(other.list().len(), 2, "neither loses the other's");
    assert!(other.verify(&second, NOW).is_ok());
    fs::write(&path, "junk").unwrap();
    assert!(keys.list().is_empty(), "what cannot be read opens nothing");
    assert_eq!(keys.verify(&key, NOW), Err(UNKNOWN));
    assert!(matches!(
        keys.add(grant("c"), NOW),
        Err(AuthError::KeyFile(..))
    ));
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "junk",
        "and is not written over"
    );
}

/// Within a second the file is not checked again, so that a flood of made-up keys causes no disk access.
#[test]
fn the_file_is_looked_at_once_a_second() {
    let (dir, keys) = keys();
    let key = keys.add(grant("a"), NOW).unwrap();
    keys.state().checked_at = Instant::now();
    fs::remove_file(dir.path().join("in/api-keys.json")).unwrap();
    assert!(keys.verify(&key, NOW).is_ok());
    keys.state().checked_at = Instant::now().checked_sub(RELOAD_INTERVAL).unwrap();
    assert_eq!(keys.verify(&key, NOW), Err(UNKNOWN));
}

#[test]
fn grants_have_bounds() {
    let (_dir, keys) = keys();
    let add = |grant: ApiKeyGrant| keys.add(grant, NOW);
    let named = |name: String| grant(&name);
    assert!(add(named("ä".repeat(MAX_NAME_CHARS))).is_ok());
    for bad in [
        String::new(),
        "ä".repeat(MAX_NAME_CHARS + 1),
        "a\n".to_owned(),
    ] {
        assert!(matches!(add(named(bad)), Err(AuthError::KeyName(_))));
    }
    let scopes = |count: usize| ApiKeyGrant {
        scopes: vec!["s".to_owned(); count],
        ..grant("a")
    };
    assert!(add(scopes(crate::auth::MAX_SCOPES)).is_ok());
    let over = add(scopes(crate::auth::MAX_SCOPES + 1));
    assert_eq!(over, Err(AuthError::TooMany("scopes")));
    let bad = ApiKeyGrant {
        scopes: vec!["a b".to_owned()],
        ..grant("a")
    };
    assert_eq!(add(bad), Err(AuthError::Scope("a b".to_owned())));
    let claims = |names: usize, values: usize| ApiKeyGrant {
        claims: (0..names)
            .map(|n| (n.to_string(), vec!["x".to_owned(); values]))
            .collect(),
        ..grant("a")
    };
    assert!(add(claims(MAX_CLAIMS, 1)).is_ok());
    assert!(add(claims(1, MAX_CLAIMS)).is_ok());
    assert_eq!(
        add(claims(MAX_CLAIMS + 1, 1)),
        Err(AuthError::TooMany("claims"))
    );
    assert_eq!(
        add(claims(1, MAX_CLAIMS + 1)),
        Err(AuthError::TooMany("claims"))
    );
}

#[test]
fn there_is_a_most_of_keys() {
    let (dir, keys) = keys();
    let key = keys.add(grant("a"), NOW).unwrap();
    let path = dir.path().join("in/api-keys.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut wire: Value = serde_json::from_str(&text).unwrap();
    let entry = wire["keys"][0].clone();
    let fill = |wire: &mut Value, count: usize| {
        let all = (0..count).map(|n| {
            let mut entry = entry.clone();
            entry["id"] = format!("{n:08x}").into();
            entry
        });
        wire["keys"] = all.collect();
        fs::write(&path, wire.to_string()).unwrap();
    };
    fill(&mut wire, MAX_API_KEYS);
    let keys = ApiKeyStore::open(&path).unwrap();
    assert_eq!(
        keys.add(grant("b"), NOW),
        Err(AuthError::TooMany("API keys"))
    );
    assert_eq!(keys.verify(&key, NOW), Err(UNKNOWN));
    fill(&mut wire, MAX_API_KEYS + 1);
    assert!(ApiKeyStore::open(&path).is_err());
    fill(&mut wire, 1);
    wire["version"] = 2.into();
    fs::write(&path, wire.to_string()).unwrap();
    assert!(matches!(
        ApiKeyStore::open(&path),
        Err(AuthError::KeyFile(..))
    ));
    fs::write(&path, " ".repeat(4 * 1024 * 1024 + 1)).unwrap();
    let Err(AuthError::KeyFile(_, why)) = ApiKeyStore::open(&path) else {
        panic!("it is too long")
    };
    assert_eq!(why, "it is too long");
}

#[test]
fn a_look_lasts_for_a_second() {
    let (dir, keys) = keys();
    let path = dir.path().join("in/api-keys.json");
    let key = keys.add(grant("a"), NOW).unwrap();
    keys.state().checked_at = Instant::now().checked_sub(RELOAD_INTERVAL).unwrap();
    assert!(keys.verify(&key, NOW).is_ok());
    fs::remove_file(&path).unwrap();
    assert!(keys.verify(&key, NOW).is_ok(), "it was just looked at");
}

#[test]
fn a_file_that_comes_back_is_seen() {
    let (dir, keys) = keys();
    let path = dir.path().join("in/api-keys.json");
    let moved = dir.path().join("moved");
    keys.add(grant("a"), NOW).unwrap();
    fs::rename(&path, &moved).unwrap();
    assert!(keys.list().is_empty());
    // The replacement has the same modification time and size as before.
    fs::rename(&moved, &path).unwrap();
    assert_eq!(keys.list().len(), 1);
}

#[test]
fn a_file_ends_at_its_bound() {
    let (dir, keys) = keys();
    keys.add(grant("a"), NOW).unwrap();
    let path = dir.path().join("in/api-keys.json");
    let text = fs::read_to_string(&path).unwrap();
    // The last byte completes the JSON, so that a shorter read fails.
    let fill = |size: usize| {
        let head = text.trim_end().trim_end_matches('}');
        let room = " ".repeat(size - head.len() - 1);
        fs::write(&path, format!("{head}{room}}}")).unwrap();
    };
    fill(4 * 1024 * 1024);
    assert_eq!(ApiKeyStore::open(&path).unwrap().list().len(), 1);
    fill(4 * 1024 * 1024 + 1);
    assert!(ApiKeyStore::open(&path).is_err());
}

#[test]
fn a_failed_write_leaves_no_temporary_file() {
    let dir = tempfile::tempdir().unwrap();
    let taken = dir.path().join("taken");
    fs::create_dir(&taken).unwrap();
    let written = file::write(&taken, &BTreeMap::new());
    assert!(matches!(written, Err(AuthError::KeyFile(..))));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let opened = ApiKeyStore::open(&taken);
    assert!(matches!(opened, Err(AuthError::KeyFile(..))));
}

#[test]
fn a_file_needs_no_folder_in_its_name() {
    assert_eq!(folder(Path::new("keys.json")), Path::new("."));
    assert_eq!(folder(Path::new("a/keys.json")), Path::new("a"));
    assert_eq!(folder(Path::new("/")), Path::new("."));
}

#[cfg(unix)]
#[test]
fn the_folder_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (dir, keys) = keys();
    keys.add(grant("a"), NOW).unwrap();
    let folder = fs::metadata(dir.path().join("in")).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    let deep = dir.path().join("a/b/c");
    make_folder(&deep).unwrap();
    assert!(deep.parent().unwrap().is_dir());
}

#[test]
fn a_file_that_cannot_be_opened_is_not_one_that_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let opened = ApiKeyStore::open(file.join("keys.json"));
    assert!(matches!(opened, Err(AuthError::KeyFile(..))));
}
