//! User accounts with passwords, in one JSON file that only the owner can read.
//!
//! A plain file instead of the database, because commands change it while a server runs, and a person can
//! read it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use docent_atomic_file::FileAccess;
use docent_mcp::oauth::values_of_claim;
use serde::{Deserialize, Serialize};

use super::authorize_endpoint::identity_of;

/// The maximum number of accounts.
pub const MAX_USERS: usize = 10_000;
/// The maximum number of groups of one user.
pub const MAX_GROUPS: usize = 100;
/// The maximum length in characters of a name, an e-mail address or a group.
pub const MAX_CHARS: usize = 200;
/// The maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// The name of the account file.
const NAME: &str = "users.json";

/// A user account for logins with a password.
///
/// ```rust
/// use docent_oauth::{UserAccount, hash_password};
///
/// let anna = UserAccount {
///     name: "anna".to_owned(),
///     email: Some("anna@example.org".to_owned()),
///     groups: vec!["crew".to_owned()],
///     password: hash_password("a long passphrase")?,
/// };
/// assert_eq!(anna.claim("https://docs.example.org", "groups"), ["crew"]);
/// # Ok::<(), docent_oauth::PasswordError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserAccount {
    /// The login name, which is also the subject (`sub`) of the user's tokens.
    pub name: String,
    /// The e-mail address, if it is known. It counts as verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The user's groups, for the claim `groups`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The password's hash in the PHC string format.
    pub password: String,
}

impl UserAccount {
    /// The values of a claim, exactly as [`Caller::claim`](docent_mcp::Caller::claim) returns them for a caller with an
    /// access token that `issuer` gave to this user. Claims about the token itself, such as `exp`, are left out.
    #[must_use]
    pub fn claim(&self, issuer: &str, name: &str) -> Vec<String> {
        values_of_claim(&identity_of(self).claims(issuer), name)
    }
}

/// Why the accounts cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The file or its folder cannot be read or written.
    #[error("cannot use `{}`", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// The file is longer than its limit or not the expected JSON.
    #[error("`{}` is damaged", .0.display())]
    Damaged(PathBuf, #[source] Option<serde_json::Error>),
    /// Another account has this name already.
    #[error("there is a user `{0}` already")]
    Exists(String),
    /// No account has this name.
    #[error("there is no user `{0}`")]
    Unknown(String),
    /// An invalid name, e-mail address or group; the text says which.
    #[error("{0}")]
    Bad(String),
}

#[derive(Default, Serialize, Deserialize)]
struct UserFile {
    users: Vec<UserAccount>,
}

/// The accounts in a folder. There is no cache: every access reads the file.
///
/// ```rust
/// use docent_oauth::{UserAccount, UserStore, hash_password};
///
/// let dir = tempfile::tempdir()?;
/// let users = UserStore::in_dir(dir.path());
/// users.add(UserAccount {
///     name: "ada".to_owned(),
///     email: None,
///     groups: vec!["staff".to_owned()],
///     password: hash_password("correct horse battery staple")?,
/// })?;
/// assert!(users.find("ada")?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct UserStore {
    dir: PathBuf,
}

impl UserStore {
    /// The account store in `dir`, which need not exist yet.
    #[must_use]
    pub fn in_dir(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    /// Lists all accounts, sorted by name.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self) -> Result<Vec<UserAccount>, UserError> {
        let path = self.dir.join(NAME);
        let failed = |error| UserError::Io(path.clone(), error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(UserError::Damaged(path, None));
        }
        let content: UserFile = serde_json::from_slice(&bytes)
            .map_err(|error| UserError::Damaged(path.clone(), Some(error)))?;
        Ok(content.users)
    }

    /// Looks an account up by its name.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<UserAccount>, UserError> {
        Ok(self.list()?.into_iter().find(|user| user.name == name))
    }

    /// Adds an account.
    ///
    /// # Errors
    /// When the name is taken, the account is invalid, or the file cannot be written.
    pub fn add(&self, user: UserAccount) -> Result<(), UserError> {
        check(&user)?;
        self.change(|users| {
            if users.iter().any(|known| known.name == user.name) {
                return Err(UserError::Exists(user.name));
            }
            if users.len() >= MAX_USERS {
                let text = format!("there are {MAX_USERS} users, which is the most there can be");
                return Err(UserError::Bad(text));
            }
            users.push(user);
            users.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(())
        })
    }

    /// Removes an account, which ends its grants at their next refresh.
    ///
    /// # Errors
    /// When there is no such account, or the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), UserError> {
        self.change(|users| {
            let before = users.len();
            users.retain(|user| user.name != name);
            if users.len() == before {
                return Err(UserError::Unknown(name.to_owned()));
            }
            Ok(())
        })
    }

    /// Changes an account. The name cannot be changed.
    ///
    /// # Errors
    /// When there is no such account, the result is invalid, or the file cannot be written.
    pub fn update(
        &self,
        name: &str,
        change: impl FnOnce(&mut UserAccount),
    ) -> Result<(), UserError> {
        self.change(|users| {
            let found = users.iter_mut().find(|user| user.name == name);
            let user = found.ok_or_else(|| UserError::Unknown(name.to_owned()))?;
            change(user);
            name.clone_into(&mut user.name);
            check(user)
        })
    }

    /// Runs one change at a time, also across processes (file lock): read, change, replace.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<UserAccount>) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        let failed = |error| UserError::Io(self.dir.clone(), error);
        make_private(&self.dir).map_err(failed)?;
        let lock = open_private(&self.dir.join("users.lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut users = self.list()?;
        change(&mut users)?;
        self.replace(&UserFile { users }).map_err(failed)
    }

    fn replace(&self, content: &UserFile) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(content)?;
        text.push(b'\n');
        docent_atomic_file::replace(&self.dir.join(NAME), &text, FileAccess::Private)
    }
}

/// Creates a folder with mode 0700, with its parents.
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn check(user: &UserAccount) -> Result<(), UserError> {
    let bad = |what: &str, text: &str| {
        let shown: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
        Err(UserError::Bad(format!("`{shown}` is not {what}")))
    };
    let plain = |text: &str| {
        !text.is_empty()
            && text.chars().count() <= MAX_CHARS
            && text.trim() == text
            && !text.chars().any(char::is_control)
    };
    if !plain(&user.name) {
        return bad("a name", &user.name);
    }
    if let Some(email) = &user.email
        && !(plain(email)
            && email
                .split_once('@')
                .is_some_and(|(a, b)| !a.is_empty() && !b.is_empty()))
    {
        return bad("an e-mail address", email);
    }
    if let Some(group) = user.groups.iter().find(|group| !plain(group)) {
        return bad("a group", group);
    }
    if user.groups.len() > MAX_GROUPS {
        return Err(UserError::Bad(format!(
            "a user has at most {MAX_GROUPS} groups"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserAccount {
        UserAccount {
            name: name.to_owned(),
            email: None,
            groups: vec!["crew".to_owned()],
            password: "$argon2id$".to_owned(),
        }
    }

    #[test]
    fn people_come_change_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let users = UserStore::in_dir(&dir.path().join("made"));
        assert_eq!(users.list().unwrap(), []);
        users.add(user("nils")).unwrap();
        users.add(user("anna")).unwrap();
        assert!(matches!(users.add(user("anna")), Err(UserError::Exists(_))));
        let names: Vec<_> = users.list().unwrap().into_iter().map(|u| u.name).collect();
        assert_eq!(names, ["anna", "nils"]);
        users
            .update("anna", |user| {
                user.email = Some("anna@port.example".to_owned());
            })
            .unwrap();
        assert_eq!(
            users.find("anna").unwrap().unwrap().email.as_deref(),
            Some("anna@port.example")
        );
        users.remove("anna").unwrap();
        assert!(matches!(users.remove("anna"), Err(UserError::Unknown(_))));
        assert!(users.find("anna").unwrap().is_none());
    }

    #[test]
    fn invalid_users_are_rejected_and_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let users = UserStore::in_dir(dir.path());
        for bad in ["", " anna", "an\nna", &"a".repeat(MAX_CHARS + 1)] {
            assert!(
                matches!(users.add(user(bad)), Err(UserError::Bad(_))),
                "{bad}"
            );
        }
        let mut many = user("anna");
        many.groups = vec!["g".to_owned(); MAX_GROUPS + 1];
        assert!(users.add(many.clone()).is_err());
        many.groups.pop();
        users.add(many).unwrap();
        for bad in ["port.example", "@", "a@", "a b@c\u{7}"] {
            let changed = users.update("anna", |user| user.email = Some(bad.to_owned()));
            assert!(changed.is_err(), "{bad}");
        }
        assert_eq!(users.find("anna").unwrap().unwrap().email, None);
    }

    #[test]
    fn the_longest_list_is_read_and_one_more_refused() {
        let dir = tempfile::tempdir().unwrap();
        let users = UserStore::in_dir(dir.path());
        let all = (0..MAX_USERS).map(|n| user(&format!("u{n}"))).collect();
        users.replace(&UserFile { users: all }).unwrap();
        assert!(users.add(user("one more")).is_err());
        users.remove("u0").unwrap();
        users.add(user("one more")).unwrap();
    }

    #[test]
    fn the_file_is_lines_that_a_person_can_read_and_has_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let users = UserStore::in_dir(dir.path());
        users.add(user("anna")).unwrap();
        let path = dir.path().join(NAME);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() > 5 && text.ends_with("}\n"), "{text}");
        // The last byte completes the JSON, so that a shorter read fails.
        let fill = |size: u64| {
            let room = usize::try_from(size).unwrap() - text.trim_end().len();
            let head = text.trim_end().trim_end_matches('}');
            std::fs::write(&path, format!("{head}{}}}", " ".repeat(room))).unwrap();
        };
        fill(MAX_FILE_BYTES);
        assert_eq!(users.list().unwrap().len(), 1);
        fill(MAX_FILE_BYTES + 1);
        assert!(matches!(users.list(), Err(UserError::Damaged(_, None))));
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_not_an_empty_list() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(
            UserStore::in_dir(&file).list(),
            Err(UserError::Io(..))
        ));
        assert!(matches!(
            UserStore::in_dir(&file).add(user("anna")),
            Err(UserError::Io(..))
        ));
    }

    #[test]
    fn names_addresses_and_groups_have_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let users = UserStore::in_dir(dir.path());
        let (most, over) = ("ä".repeat(MAX_CHARS), "ä".repeat(MAX_CHARS + 1));
        users.add(user(&most)).unwrap();
        for (group, taken) in [(&most, true), (&over, false), (&String::new(), false)] {
            let done = users.update(&most, |user| user.groups = vec![group.clone()]);
            assert_eq!(done.is_ok(), taken, "{group}");
        }
        for (email, taken) in [("a@b", true), ("@b", false), ("a@", false), (" a@b", false)] {
            let done = users.update(&most, |user| user.email = Some(email.to_owned()));
            assert_eq!(done.is_ok(), taken, "{email}");
        }
        let kept = users.find(&most).unwrap().unwrap();
        assert_eq!(
            (kept.email.as_deref(), &kept.groups[..]),
            (Some("a@b"), &[most.clone()][..])
        );
        // A change of an account cannot rename it.
        users
            .update(&most, |user| user.name = "nils".to_owned())
            .unwrap();
        assert!(users.find("nils").unwrap().is_none());
        assert!(matches!(
            users.update("nils", |_| ()),
            Err(UserError::Unknown(_))
        ));
        let told = users.add(user("\u{7}a\n")).unwrap_err().to_string();
        assert_eq!(told, "`a` is not a name");
    }

    #[test]
    fn damage_is_told_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let users = UserStore::in_dir(dir.path());
        let path = dir.path().join(NAME);
        std::fs::write(&path, "{").unwrap();
        assert!(matches!(users.list(), Err(UserError::Damaged(..))));
        assert!(users.add(user("anna")).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_the_list() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("state");
        let users = UserStore::in_dir(&made);
        make_private(&made).unwrap();
        let folder = std::fs::metadata(&made).unwrap().permissions().mode();
        assert_eq!(folder & 0o777, 0o700);
        std::fs::write(made.join("users.json.new"), "left by somebody").unwrap();
        users.add(user("anna")).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&made.join(NAME)), 0o600);
    }

    #[test]
    fn two_at_once_lose_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let users = UserStore::in_dir(dir.path());
        std::thread::scope(|scope| {
            for n in 0..16 {
                let users = &users;
                scope.spawn(move || users.add(user(&format!("u{n:02}"))).unwrap());
            }
        });
        assert_eq!(users.list().unwrap().len(), 16);
    }
}
