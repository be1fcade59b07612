//! `[permissions]` into who may read a document, and a caller into the reader that engines know.
//!
//! A document's own field counts first, then the first folder that covers its file, then the default.
//! Only a field that is not there at all leaves the word to the others: one that is empty, malformed or over a
//! limit lets nobody in.

mod path_glob;

use std::collections::BTreeSet;

use docent_ingest::{IngestError, READER_RULES, ReaderFault};
use docent_mcp::Caller;
use docent_search::{AllowedReaders, DocumentValue, MAX_READERS, Principal, ReaderIdentity};

pub(crate) use self::path_glob::MAX_CHARS as MAX_PATH_CHARS;
pub use self::path_glob::PathGlob;
use crate::settings::shorten;

/// What everybody holds who has signed in.
const SIGNED_IN: &str = "signed-in";

/// The most characters of a value that a warning repeats.
const MAX_SHOWN: usize = 60;

/// Who may read the documents of which no rule speaks, or of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderAudience {
    /// Whoever asks.
    Everyone,
    /// Whoever has signed in.
    SignedIn,
    /// Nobody but the owner.
    Nobody,
}

impl ReaderAudience {
    pub(crate) fn readers(self) -> AllowedReaders {
        match self {
            Self::Everyone => AllowedReaders::Everyone,
            Self::SignedIn => AllowedReaders::Only(principal(SIGNED_IN).into_iter().collect()),
            Self::Nobody => AllowedReaders::Only(BTreeSet::new()),
        }
    }
}

/// A folder, and who may read what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderRule {
    /// Which files it covers.
    pub path: PathGlob,
    /// Who may read them.
    pub readers: AllowedReaders,
}

/// Who may read what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRules {
    /// The field whose values name the readers of its document.
    pub field: Option<String>,
    /// Whether readers see that field too.
    pub show_field: bool,
    /// Folders, of which the first that covers a file counts.
    pub folders: Vec<FolderRule>,
    /// Who may read all other documents.
    pub default: ReaderAudience,
    /// What of a caller's claims counts.
    pub claims: ClaimMapping,
    /// How many issuers there are, as far as the settings tell.
    pub issuers: IssuerCount,
}

/// The names of the claims that say who a caller is, and whose word counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimMapping {
    /// The one with the caller's groups.
    pub groups: String,
    /// The one with the caller's address of mail.
    pub email: String,
    /// The issuers who are believed about both; all of them, unless some are named.
    pub from: Option<BTreeSet<String>>,
}

impl Default for ClaimMapping {
    fn default() -> Self {
        Self {
            groups: "groups".to_owned(),
            email: "email".to_owned(),
            from: None,
        }
    }
}

impl Default for PermissionRules {
    fn default() -> Self {
        Self {
            field: None,
            show_field: false,
            folders: Vec::new(),
            default: ReaderAudience::Everyone,
            claims: ClaimMapping::default(),
            issuers: IssuerCount::One,
        }
    }
}

impl PermissionRules {
    /// Whether they let everyone read everything.
    #[must_use]
    pub fn are_open(&self) -> bool {
        let is_open = |folder: &FolderRule| folder.readers == AllowedReaders::Everyone;
        self.field.is_none()
            && self.default == ReaderAudience::Everyone
            && self.folders.iter().all(is_open)
    }

    /// What is wanted of the documents of a file, as it goes into their hashes; nothing where nothing is.
    pub(crate) fn hash_input(&self, source: &str) -> Option<String> {
        let folder = self.folder(source).map(|folder| &folder.readers);
        let is_default = folder.is_none() && self.default == ReaderAudience::Everyone;
        (self.field.is_some() || !is_default).then(|| {
            let default = folder.is_none().then_some(self.default);
            let rules = format!(
                "{:?} {} {folder:?} {default:?}",
                self.field, self.show_field
            );
            // Older indexes hold documents that are open although they have the field, where it was overlooked;
            // the version makes them be read again.
            let found = self.field.as_ref();
            let found = found.map(|_| format!(" closed {READER_RULES}"));
            format!("{rules}{}", found.unwrap_or_default())
        })
    }

    /// The first folder that covers a file.
    pub(crate) fn folder(&self, source: &str) -> Option<&FolderRule> {
        self.folders
            .iter()
            .find(|folder| folder.path.covers(source))
    }

    /// Who may read what of a file, where no field says otherwise.
    pub(crate) fn readers_of_file(&self, source: &str) -> AllowedReaders {
        let folder = self.folder(source);
        folder.map_or_else(|| self.default.readers(), |folder| folder.readers.clone())
    }

    /// Who may read a document whose field has this value, and what the owner should know about it.
    ///
    /// # Errors
    /// Why the value names nobody. A part of it that cannot be understood spoils all of it: whom the author
    /// meant to let in is then not known.
    pub(crate) fn readers_of_value(
        &self,
        value: &DocumentValue,
    ) -> Result<(AllowedReaders, Vec<IngestError>), ReaderFault> {
        let texts: Vec<&str> = match value {
            DocumentValue::List(items) => items.iter().map(|text| text.trim()).collect(),
            DocumentValue::Text(text) => {
                let texts = text.split([',', ';']).map(str::trim);
                texts.filter(|text| !text.is_empty()).collect()
            }
            DocumentValue::Date(text) => vec![text],
            DocumentValue::Number(_) | DocumentValue::Bool(_) => return Err(ReaderFault::NotText),
        };
        if texts.is_empty() {
            return Err(ReaderFault::Empty);
        }
        let (mut named, mut warnings) = (BTreeSet::new(), Vec::new());
        let mut is_open = false;
        for text in texts {
            match text {
                "" => return Err(ReaderFault::Empty),
                "nobody" => {}
                "everyone" => is_open = true,
                text => {
                    let one = parse_principal(text).ok_or(ReaderFault::NoName)?;
                    // Nobody holds it: it may be the name of one at each issuer.
                    if self.issuers == IssuerCount::Several && lacks_issuer(&one) {
                        warnings.push(IngestError::WrongType {
                            name: self.field.clone().unwrap_or_default(),
                            kind: "subject with the address of its issuer before it".to_owned(),
                            value: shorten(text, MAX_SHOWN),
                        });
                    }
                    named.insert(one);
                }
            }
        }
        if named.len() > MAX_READERS {
            return Err(ReaderFault::TooMany);
        }
        if is_open {
            return Ok((AllowedReaders::Everyone, Vec::new()));
        }
        Ok((AllowedReaders::Only(named), warnings))
    }
}

/// Who is named by a text in a field: a principal with its kind, an address of mail, or else a group.
pub(crate) fn parse_principal(text: &str) -> Option<Principal> {
    match text.split_once(':') {
        Some(("group", name)) => group(name),
        Some(("email", name)) => email(name),
        Some(("sub", name)) => subject(name),
        Some(("key", name)) => key(name),
        _ if text == SIGNED_IN => principal(text),
        _ if text.contains('@') => email(text),
        _ => group(text),
    }
}

fn principal(text: &str) -> Option<Principal> {
    Principal::parse(text).ok()
}

/// Somebody as a caller presents them: to the letter.
fn exact_principal(kind: &str, name: &str) -> Option<Principal> {
    (!name.is_empty()).then(|| principal(&format!("{kind}:{name}")))?
}

/// Somebody as a person writes them down, who may leave spaces around.
fn trimmed_principal(kind: &str, name: &str) -> Option<Principal> {
    exact_principal(kind, name.trim())
}

/// The group of this name, to the letter.
pub(crate) fn group(name: &str) -> Option<Principal> {
    trimmed_principal("group", name)
}

/// The address of mail; the case of its letters does not tell two of them apart. Only plain letters have one
/// here: some others become plain ones in lower case, and another's address with them.
pub(crate) fn email(name: &str) -> Option<Principal> {
    trimmed_principal("email", &name.to_ascii_lowercase())
}

/// The API key of this name.
pub(crate) fn key(name: &str) -> Option<Principal> {
    trimmed_principal("key", name)
}

/// Somebody by their name at their issuer, to the letter. Where several issuers vouch for callers, the issuer
/// stands before it: `https://login.example.org 7a1c`.
pub(crate) fn subject(text: &str) -> Option<Principal> {
    match split_issuer(text.trim()) {
        Some((issuer, name)) => subject_of(issuer, name.trim()),
        None => trimmed_principal("sub", text),
    }
}

fn subject_of(issuer: &str, name: &str) -> Option<Principal> {
    (!name.is_empty()).then(|| exact_principal("sub", &format!("{issuer} {name}")))?
}

/// The issuer and the name, where a text has both. The address of an issuer holds no space.
pub(crate) fn split_issuer(text: &str) -> Option<(&str, &str)> {
    let (issuer, name) = text.split_once(' ')?;
    let is_address = issuer.starts_with("https://") || issuer.starts_with("http://");
    is_address.then_some((issuer, name))
}

/// Whether it is a subject of which nothing says at which issuer.
fn lacks_issuer(one: &Principal) -> bool {
    let subject = one.as_str().strip_prefix("sub:");
    subject.is_some_and(|subject| split_issuer(subject).is_none())
}

/// The subjects that rules name, each as it was written.
pub(crate) fn subjects(readers: &AllowedReaders) -> impl Iterator<Item = &str> {
    let named = match readers {
        AllowedReaders::Everyone => None,
        AllowedReaders::Only(named) => Some(named),
    };
    let named = named.into_iter().flatten();
    named.filter_map(|one| one.as_str().strip_prefix("sub:"))
}

/// How many issuers vouch for callers of a server. With several, a bare name could be that of another
/// issuer's somebody, and an address one that nobody looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerCount {
    /// One, or none at all.
    One,
    /// Each with names of its own.
    Several,
}

impl ClaimMapping {
    /// The reader that a caller is. Nothing else makes one of a caller.
    #[must_use]
    pub fn reader(&self, caller: &Caller, issuers: IssuerCount) -> ReaderIdentity {
        if caller.is_owner() {
            return ReaderIdentity::owner();
        }
        let claim = |name: &str| caller.claim(name);
        match (caller.issuer(), caller.subject()) {
            (Some(_), Some(name)) if caller.is_api_key() => {
                self.signed_in_reader(None, name, claim)
            }
            (Some(issuer), Some(name)) => {
                self.signed_in_reader(Some((issuer, issuers)), name, claim)
            }
            _ => ReaderIdentity::everyone(),
        }
    }

    /// Somebody who signed in, by their name at an issuer or that of their API key, with these claims.
    fn signed_in_reader(
        &self,
        issuer: Option<(&str, IssuerCount)>,
        name: &str,
        claim: impl Fn(&str) -> Vec<String>,
    ) -> ReaderIdentity {
        let mut all = vec![principal(SIGNED_IN)];
        match issuer {
            None => all.push(exact_principal("key", name)),
            Some((issuer, issuers)) => {
                all.push(subject_of(issuer, name));
                // Nobody gets another issuer's name by being called like it.
                if issuers == IssuerCount::One && split_issuer(name).is_none() {
                    all.push(exact_principal("sub", name));
                }
            }
        }
        // What an API key says was written by the owner.
        let is_believed = |issuer: &str| match &self.from {
            Some(some) => some.contains(issuer),
            None => true,
        };
        if issuer.is_none_or(|(issuer, _)| is_believed(issuer)) {
            let groups = claim(&self.groups);
            all.extend(groups.iter().map(|name| exact_principal("group", name)));
            let verified = claim("email_verified");
            let says = |word: &str| verified.iter().any(|one| one == word);
            // An issuer that says so of an address has not seen that it is theirs; one among several has to
            // say that it has.
            let counts = match issuer {
                Some((_, IssuerCount::Several)) => says("true") && !says("false"),
                _ => !says("false"),
            };
            let emails = claim(&self.email);
            let emails = emails.iter().filter(|_| counts);
            all.extend(emails.map(|name| exact_principal("email", &name.to_ascii_lowercase())));
        }
        ReaderIdentity::holder(all.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> PermissionRules {
        PermissionRules {
            field: Some("allowed".to_owned()),
            default: ReaderAudience::SignedIn,
            folders: vec![
                FolderRule {
                    path: PathGlob::parse("hr/open/**").unwrap(),
                    readers: AllowedReaders::Everyone,
                },
                FolderRule {
                    path: PathGlob::parse("hr").unwrap(),
                    readers: AllowedReaders::Only(group("hr").into_iter().collect()),
                },
            ],
            ..PermissionRules::default()
        }
    }

    fn only(names: &[&str]) -> AllowedReaders {
        let named = names.iter().map(|name| Principal::parse(name).unwrap());
        AllowedReaders::Only(named.collect())
    }

    #[test]
    fn the_first_folder_counts_and_then_the_default() {
        for (source, expected) in [
            ("hr/open/menu.md", AllowedReaders::Everyone),
            ("hr/pay.csv", only(&["group:hr"])),
            ("HR/Pay.zip#inner/a.md", only(&["group:hr"])),
            ("hrx/a.md", only(&["signed-in"])),
            ("a.md", only(&["signed-in"])),
        ] {
            assert_eq!(rules().readers_of_file(source), expected, "{source}");
        }
        let nobody = PermissionRules {
            default: ReaderAudience::Nobody,
            ..PermissionRules::default()
        };
        assert_eq!(nobody.readers_of_file("a.md"), only(&[]));
    }

    #[test]
    fn a_field_names_readers_in_several_ways() {
        let list = |items: &[&str]| {
            DocumentValue::List(items.iter().map(|one| (*one).to_owned()).collect())
        };
        let issued = ["sub:https://a.example  7 ", "key:nightly", "sub: 8"];
        let of_issued = ["sub:https://a.example 7", "key:nightly", "sub:8"];
        for (value, expected) in [
            (
                list(&["finance", "group:a b"]),
                only(&["group:finance", "group:a b"]),
            ),
            (
                list(&["Ada@Isle.example"]),
                only(&["email:ada@isle.example"]),
            ),
            (list(&["sub:7", "email:B@c"]), only(&["sub:7", "email:b@c"])),
            (list(&issued), only(&of_issued)),
            (list(&["a", "everyone"]), AllowedReaders::Everyone),
            (list(&["signed-in"]), only(&["signed-in"])),
            (list(&["nobody"]), only(&[])),
            (list(&["nobody", "a"]), only(&["group:a"])),
            (list(&["Everyone"]), only(&["group:Everyone"])),
            (
                DocumentValue::Text("a, b;c".to_owned()),
                only(&["group:a", "group:b", "group:c"]),
            ),
        ] {
            let found = rules().readers_of_value(&value);
            assert_eq!(found, Ok((expected, Vec::new())), "{value:?}");
        }
    }

    #[test]
    fn a_field_that_is_not_well_formed_names_nobody() {
        let list = |items: &[&str]| {
            DocumentValue::List(items.iter().map(|one| (*one).to_owned()).collect())
        };
        let long = "x".repeat(600);
        for (value, fault) in [
            (list(&[]), ReaderFault::Empty),
            (list(&["", "hr"]), ReaderFault::Empty),
            (list(&[" "]), ReaderFault::Empty),
            (DocumentValue::Text(" , ;".to_owned()), ReaderFault::Empty),
            (DocumentValue::Number(7.0), ReaderFault::NotText),
            (DocumentValue::Bool(true), ReaderFault::NotText),
            (list(&["hr", "group:"]), ReaderFault::NoName),
            (list(&["everyone", "key:"]), ReaderFault::NoName),
            (list(&["hr", &long]), ReaderFault::NoName),
        ] {
            assert_eq!(rules().readers_of_value(&value), Err(fault), "{value:?}");
        }
        let many = |count: usize| {
            let items = (0..count).map(|n| format!("g{n}"));
            let found = rules().readers_of_value(&DocumentValue::List(items.collect()));
            found.map(|(readers, _)| match readers {
                AllowedReaders::Everyone => 0,
                AllowedReaders::Only(named) => named.len(),
            })
        };
        assert_eq!(many(MAX_READERS), Ok(MAX_READERS));
        assert_eq!(many(MAX_READERS + 1), Err(ReaderFault::TooMany));
    }

    #[test]
    fn a_field_is_told_that_a_bare_name_is_nobodys() {
        let several = PermissionRules {
            issuers: IssuerCount::Several,
            ..rules()
        };
        let value = DocumentValue::Text("sub:7, sub:https://a.example 7, key:7, hr".to_owned());
        let (expected, told) = rules().readers_of_value(&value).unwrap();
        assert_eq!(told, []);
        let (readers, told) = several.readers_of_value(&value).unwrap();
        assert_eq!(readers, expected);
        let [IngestError::WrongType { value, .. }] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!(value, "sub:7");
    }

    #[test]
    fn what_is_wanted_is_told_only_of_files_that_it_is_wanted_of() {
        assert_eq!(PermissionRules::default().hash_input("a.md"), None);
        let folders = PermissionRules {
            field: None,
            default: ReaderAudience::Everyone,
            ..rules()
        };
        assert_eq!(folders.hash_input("a.md"), None);
        let told = folders.hash_input("hr/a.md").unwrap();
        let other = PermissionRules {
            folders: vec![FolderRule {
                path: PathGlob::parse("hr").unwrap(),
                readers: only(&["group:other"]),
            }],
            ..folders.clone()
        };
        assert_ne!(other.hash_input("hr/a.md").unwrap(), told);
        assert!(!folders.are_open() && PermissionRules::default().are_open());
    }

    const ISSUER: &str = "https://login.example.org";

    fn of(names: &[&str]) -> ReaderIdentity {
        ReaderIdentity::holder(names.iter().map(|name| Principal::parse(name).unwrap()))
    }

    #[test]
    fn claims_make_a_reader() {
        let claims = ClaimMapping {
            groups: "roles".to_owned(),
            ..ClaimMapping::default()
        };
        let holder = |verified: &str| {
            claims.signed_in_reader(Some((ISSUER, IssuerCount::One)), "u1", |name| match name {
                "roles" => vec!["hr".to_owned(), String::new(), "a b".to_owned()],
                "email" => vec!["Ada@Isle.example".to_owned()],
                "email_verified" => vec![verified.to_owned()],
                "groups" => vec!["never".to_owned()],
                _ => Vec::new(),
            })
        };
        let without = [
            "signed-in",
            "sub:u1",
            "sub:https://login.example.org u1",
            "group:hr",
            "group:a b",
        ];
        let with: Vec<_> = without
            .into_iter()
            .chain(["email:ada@isle.example"])
            .collect();
        assert_eq!(holder("true"), of(&with));
        assert_eq!(holder("false"), of(&without));
    }

    #[test]
    fn a_bare_name_counts_where_one_issuer_has_names() {
        let held = |issuers, name: &str| {
            ClaimMapping::default().signed_in_reader(Some((ISSUER, issuers)), name, |_| Vec::new())
        };
        let whole = "sub:https://login.example.org u1";
        assert_eq!(
            held(IssuerCount::One, "u1"),
            of(&["signed-in", "sub:u1", whole])
        );
        assert_eq!(held(IssuerCount::Several, "u1"), of(&["signed-in", whole]));
        // Who is called like somebody at another issuer is not taken for them.
        let posing = "https://other.example u1";
        let own = format!("sub:{ISSUER} {posing}");
        for issuers in [IssuerCount::One, IssuerCount::Several] {
            assert_eq!(held(issuers, posing), of(&["signed-in", &own]));
        }
        // Nor who has spaces around the name of another, or differs in case.
        for other in [" u1", "u1 ", "U1"] {
            let own = format!("sub:{ISSUER} {other}");
            let bare = format!("sub:{other}");
            assert_eq!(
                held(IssuerCount::One, other),
                of(&["signed-in", &own, &bare])
            );
        }
    }

    #[test]
    fn an_api_key_is_nobodys_subject() {
        let held = ClaimMapping::default().signed_in_reader(None, "u1", |_| Vec::new());
        assert_eq!(held, of(&["signed-in", "key:u1"]));
    }

    #[test]
    fn only_some_issuers_are_believed_about_groups_and_addresses() {
        let claims = ClaimMapping {
            from: Some([ISSUER.to_owned()].into()),
            ..ClaimMapping::default()
        };
        let held = |issuer| {
            claims.signed_in_reader(issuer, "u1", |name| match name {
                "groups" => vec!["hr".to_owned()],
                "email" => vec!["ada@isle.example".to_owned()],
                "email_verified" => vec!["true".to_owned()],
                _ => Vec::new(),
            })
        };
        let several = |issuer| held(Some((issuer, IssuerCount::Several)));
        let all = ["signed-in", "group:hr", "email:ada@isle.example"];
        let with = |name| of(&[&all[..], &[name]].concat());
        assert_eq!(several(ISSUER), with("sub:https://login.example.org u1"));
        assert_eq!(held(None), with("key:u1"));
        let other = "https://other.example";
        assert_eq!(
            several(other),
            of(&["signed-in", "sub:https://other.example u1"])
        );
        let slash = "https://login.example.org/";
        assert_eq!(
            several(slash),
            of(&["signed-in", "sub:https://login.example.org/ u1"])
        );
    }

    #[test]
    fn an_address_counts_as_its_issuer_looked_at_it() {
        let counts = |issuer, verified: &[&str]| {
            let held = ClaimMapping::default().signed_in_reader(issuer, "u1", |name| match name {
                "email" => vec!["ada@isle.example".to_owned()],
                "email_verified" => verified.iter().map(|one| (*one).to_owned()).collect(),
                _ => Vec::new(),
            });
            format!("{held:?}").contains("email:ada@isle.example")
        };
        for (verified, one, several) in [
            (&["true"][..], true, true),
            (&[], true, false),
            (&["false"], false, false),
            (&["yes"], true, false),
            (&["true", "false"], false, false),
        ] {
            assert_eq!(
                counts(Some((ISSUER, IssuerCount::One)), verified),
                one,
                "{verified:?}"
            );
            assert_eq!(
                counts(Some((ISSUER, IssuerCount::Several)), verified),
                several,
                "{verified:?}"
            );
            assert_eq!(counts(None, verified), one, "{verified:?}");
        }
        // A letter that is another's in lower case.
        assert_ne!(email("\u{212a}im@isle.example"), email("kim@isle.example"));
    }
}
