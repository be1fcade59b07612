//! `[permissions]` into who may read a document, and a caller into the reader that engines know.
//!
//! A document's own field counts first, then the first folder that covers its file, then the default.
//! Whatever cannot be understood lets in fewer, never more.

mod path;

use std::collections::BTreeSet;

use docent_ingest::Reason;
use docent_mcp::Caller;
use docent_search::{MAX_READERS, Principal, Reader, Readers, Value};

pub use self::path::Glob;
pub(crate) use self::path::MAX_CHARS as MAX_PATH_CHARS;
use crate::settings::shorten;

/// What everybody holds who has signed in.
const SIGNED_IN: &str = "signed-in";

/// The most characters of a value that a warning repeats.
const MAX_SHOWN: usize = 60;

/// Who may read the documents of which no rule speaks, or of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever asks.
    Everyone,
    /// Whoever has signed in.
    SignedIn,
    /// Nobody but the owner.
    Nobody,
}

impl Audience {
    pub(crate) fn readers(self) -> Readers {
        match self {
            Self::Everyone => Readers::Everyone,
            Self::SignedIn => Readers::Only(principal(SIGNED_IN).into_iter().collect()),
            Self::Nobody => Readers::Only(BTreeSet::new()),
        }
    }
}

/// A folder, and who may read what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Which files it covers.
    pub path: Glob,
    /// Who may read them.
    pub readers: Readers,
}

/// Who may read what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// The field whose values name the readers of its document.
    pub field: Option<String>,
    /// Whether readers see that field too.
    pub show_field: bool,
    /// Folders, of which the first that covers a file counts.
    pub folders: Vec<Folder>,
    /// Who may read all other documents.
    pub default: Audience,
    /// What of a caller's claims counts.
    pub claims: Claims,
}

/// The names of the claims that say who a caller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The one with the caller's groups.
    pub groups: String,
    /// The one with the caller's address of mail.
    pub email: String,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            groups: "groups".to_owned(),
            email: "email".to_owned(),
        }
    }
}

impl Default for Permissions {
    fn default() -> Self {
        Self {
            field: None,
            show_field: false,
            folders: Vec::new(),
            default: Audience::Everyone,
            claims: Claims::default(),
        }
    }
}

impl Permissions {
    /// Whether they let everyone read everything.
    #[must_use]
    pub fn are_open(&self) -> bool {
        let is_open = |folder: &Folder| folder.readers == Readers::Everyone;
        self.field.is_none()
            && self.default == Audience::Everyone
            && self.folders.iter().all(is_open)
    }

    /// What is wanted of the documents of a file, as it goes into their hashes; nothing where nothing is.
    pub(crate) fn told(&self, source: &str) -> Option<String> {
        let folder = self.folder(source).map(|folder| &folder.readers);
        let is_default = folder.is_none() && self.default == Audience::Everyone;
        (self.field.is_some() || !is_default).then(|| {
            let default = folder.is_none().then_some(self.default);
            format!(
                "{:?} {} {folder:?} {default:?}",
                self.field, self.show_field
            )
        })
    }

    fn folder(&self, source: &str) -> Option<&Folder> {
        self.folders
            .iter()
            .find(|folder| folder.path.covers(source))
    }

    /// Who may read what of a file, where no field says otherwise.
    pub(crate) fn of_file(&self, source: &str) -> Readers {
        let folder = self.folder(source);
        folder.map_or_else(|| self.default.readers(), |folder| folder.readers.clone())
    }

    /// Who may read a document whose field has this value, and what of the value names nobody.
    pub(crate) fn of_value(&self, value: &Value) -> (Readers, Vec<Reason>) {
        let name = self.field.clone().unwrap_or_default();
        let texts: Vec<String> = match value {
            Value::List(items) => items.clone(),
            Value::Text(text) => text.split([',', ';']).map(str::to_owned).collect(),
            other => vec![other.to_string()],
        };
        let (mut named, mut warnings) = (BTreeSet::new(), Vec::new());
        let mut warn = |kind: &str, value: &str| {
            warnings.push(Reason::WrongType {
                name: name.clone(),
                kind: kind.to_owned(),
                value: shorten(value, MAX_SHOWN),
            });
        };
        for text in texts.iter().map(|text| text.trim()) {
            match text {
                "" | "nobody" => {}
                "everyone" => return (Readers::Everyone, Vec::new()),
                _ if named.len() >= MAX_READERS => {
                    warn("one of the first 256 readers", text);
                    break;
                }
                text => match named_by(text) {
                    Some(one) => {
                        named.insert(one);
                    }
                    None => warn("group, address of mail or subject", text),
                },
            }
        }
        (Readers::Only(named), warnings)
    }
}

/// Who is named by a text in a field: a principal with its kind, an address of mail, or else a group.
fn named_by(text: &str) -> Option<Principal> {
    match text.split_once(':') {
        Some(("group", name)) => group(name),
        Some(("email", name)) => email(name),
        Some(("sub", name)) => subject(name),
        _ if text == SIGNED_IN => principal(text),
        _ if text.contains('@') => email(text),
        _ => group(text),
    }
}

fn principal(text: &str) -> Option<Principal> {
    Principal::parse(text).ok()
}

fn kept(kind: &str, name: &str) -> Option<Principal> {
    let name = name.trim();
    (!name.is_empty()).then(|| principal(&format!("{kind}:{name}")))?
}

/// The group of this name, to the letter.
pub(crate) fn group(name: &str) -> Option<Principal> {
    kept("group", name)
}

/// The address of mail; case does not tell two of them apart.
pub(crate) fn email(name: &str) -> Option<Principal> {
    kept("email", &name.to_lowercase())
}

/// The caller of this name at their issuer, to the letter.
pub(crate) fn subject(name: &str) -> Option<Principal> {
    kept("sub", name)
}

impl Claims {
    /// The reader that a caller is. Nothing else makes one of a caller.
    #[must_use]
    pub fn reader(&self, caller: &Caller) -> Reader {
        if caller.is_owner() {
            return Reader::owner();
        }
        match caller.subject() {
            Some(subject) => self.holder(subject, |name| caller.claim(name)),
            None => Reader::everyone(),
        }
    }

    /// Somebody who signed in, with these claims.
    fn holder(&self, name: &str, claim: impl Fn(&str) -> Vec<String>) -> Reader {
        // An issuer that says so of an address has not seen that it is theirs.
        let is_doubted = claim("email_verified").iter().any(|one| one == "false");
        let emails = claim(&self.email).into_iter().filter(|_| !is_doubted);
        let held = [principal(SIGNED_IN), subject(name)].into_iter();
        let held = held.chain(claim(&self.groups).into_iter().map(|name| group(&name)));
        let held: Vec<_> = held
            .chain(emails.map(|name| email(&name)))
            .flatten()
            .collect();
        Reader::holder(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Permissions {
        Permissions {
            field: Some("allowed".to_owned()),
            default: Audience::SignedIn,
            folders: vec![
                Folder {
                    path: Glob::parse("hr/open/**").unwrap(),
                    readers: Readers::Everyone,
                },
                Folder {
                    path: Glob::parse("hr").unwrap(),
                    readers: Readers::Only(group("hr").into_iter().collect()),
                },
            ],
            ..Permissions::default()
        }
    }

    fn only(names: &[&str]) -> Readers {
        let named = names.iter().map(|name| Principal::parse(name).unwrap());
        Readers::Only(named.collect())
    }

    #[test]
    fn the_first_folder_counts_and_then_the_default() {
        for (source, expected) in [
            ("hr/open/menu.md", Readers::Everyone),
            ("hr/pay.csv", only(&["group:hr"])),
            ("HR/Pay.zip#inner/a.md", only(&["group:hr"])),
            ("hrx/a.md", only(&["signed-in"])),
            ("a.md", only(&["signed-in"])),
        ] {
            assert_eq!(rules().of_file(source), expected, "{source}");
        }
        let nobody = Permissions {
            default: Audience::Nobody,
            ..Permissions::default()
        };
        assert_eq!(nobody.of_file("a.md"), only(&[]));
    }

    #[test]
    fn a_field_names_readers_in_several_ways() {
        let list =
            |items: &[&str]| Value::List(items.iter().map(|one| (*one).to_owned()).collect());
        for (value, expected, warnings) in [
            (
                list(&["finance", "group:a b"]),
                only(&["group:finance", "group:a b"]),
                0,
            ),
            (
                list(&["Ada@Isle.example"]),
                only(&["email:ada@isle.example"]),
                0,
            ),
            (
                list(&["sub:7", "email:B@c"]),
                only(&["sub:7", "email:b@c"]),
                0,
            ),
            (list(&["a", "everyone"]), Readers::Everyone, 0),
            (list(&["signed-in"]), only(&["signed-in"]), 0),
            (list(&[]), only(&[]), 0),
            (list(&["", "nobody"]), only(&[]), 0),
            (list(&["Everyone"]), only(&["group:Everyone"]), 0),
            (
                Value::Text("a, b;c".to_owned()),
                only(&["group:a", "group:b", "group:c"]),
                0,
            ),
            (Value::Number(7.0), only(&["group:7"]), 0),
            (Value::Bool(true), only(&["group:true"]), 0),
            (list(&["group:", &"x".repeat(600)]), only(&[]), 2),
        ] {
            let (readers, told) = rules().of_value(&value);
            assert_eq!((readers, told.len()), (expected, warnings), "{value:?}");
        }
        let many = |count: usize| {
            let items = (0..count).map(|n| format!("g{n}"));
            let (readers, told) = rules().of_value(&Value::List(items.collect()));
            let Readers::Only(named) = readers else {
                panic!("named")
            };
            (named.len(), told.len())
        };
        assert_eq!(many(MAX_READERS), (MAX_READERS, 0));
        assert_eq!(many(MAX_READERS + 1), (MAX_READERS, 1));
    }

    #[test]
    fn what_is_wanted_is_told_only_of_files_that_it_is_wanted_of() {
        assert_eq!(Permissions::default().told("a.md"), None);
        let folders = Permissions {
            field: None,
            default: Audience::Everyone,
            ..rules()
        };
        assert_eq!(folders.told("a.md"), None);
        let told = folders.told("hr/a.md").unwrap();
        let other = Permissions {
            folders: vec![Folder {
                path: Glob::parse("hr").unwrap(),
                readers: only(&["group:other"]),
            }],
            ..folders.clone()
        };
        assert_ne!(other.told("hr/a.md").unwrap(), told);
        assert!(!folders.are_open() && Permissions::default().are_open());
    }

    #[test]
    fn claims_make_a_reader() {
        let claims = Claims {
            groups: "roles".to_owned(),
            ..Claims::default()
        };
        let holder = |verified: &str| {
            claims.holder("u1", |name| match name {
                "roles" => vec!["hr".to_owned(), String::new(), "a b".to_owned()],
                "email" => vec!["Ada@Isle.example".to_owned()],
                "email_verified" => vec![verified.to_owned()],
                "groups" => vec!["never".to_owned()],
                _ => Vec::new(),
            })
        };
        let held = ["signed-in", "sub:u1", "group:hr", "group:a b"].map(principal);
        let mail = email("ada@isle.example");
        let without = held.clone().into_iter().flatten();
        let with = held.into_iter().chain([mail]).flatten();
        assert_eq!(holder("true"), Reader::holder(with));
        assert_eq!(holder("false"), Reader::holder(without));
    }
}
