//! Document-level access control: evaluates the `[permissions]` rules to the allowed readers of a document, and maps
//! the claims of a caller to a reader identity.
//!
//! A document's own field takes precedence, then the first folder rule that covers its file, then the default. The
//! field fails closed: only an absent field falls through to the folder rules. A field that is empty, malformed or over
//! a limit lets nobody read the document.

mod path_glob;

use std::collections::BTreeSet;

use docent_ingest::{IngestError, READER_RULES, ReaderFault};
use docent_mcp::Caller;
use docent_search::{AllowedReaders, DocumentValue, MAX_READERS, Principal, ReaderIdentity};

use crate::display_text::shorten;

pub(crate) use self::path_glob::MAX_CHARS as MAX_PATH_CHARS;
pub use self::path_glob::PathGlob;

/// The principal that everybody holds who is authenticated.
const SIGNED_IN: &str = "signed-in";

/// The length limit of a value in a warning, in characters.
const MAX_SHOWN: usize = 60;

/// The audience of a folder, or of the documents that no rule covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderAudience {
    /// Every caller, authenticated or not.
    Everyone,
    /// Every caller who is authenticated, by a token or an API key.
    SignedIn,
    /// Only the owner, who uses the command line.
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

/// A folder rule: the readers of all files that a glob covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderRule {
    /// The files that the rule covers.
    pub path: PathGlob,
    /// The principals who may read those files.
    pub readers: AllowedReaders,
}

/// The parsed `[permissions]` section: the access rules of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRules {
    /// The document field that names the readers of its document, if one is configured.
    pub field: Option<String>,
    /// Whether the field is also shown to readers and searchable.
    pub show_field: bool,
    /// The folder rules; the first that covers a file applies.
    pub folders: Vec<FolderRule>,
    /// The audience of documents that neither the field nor a folder rule covers.
    pub default: ReaderAudience,
    /// The mapping from token claims to principals.
    pub claims: ClaimMapping,
    /// Whether the settings name one issuer or several, which decides whether a bare subject is unambiguous.
    pub issuers: IssuerCount,
}

/// The claims from which a caller's principals are taken, and the issuers that are trusted for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimMapping {
    /// The name of the claim with the caller's groups.
    pub groups: String,
    /// The name of the claim with the caller's e-mail address.
    pub email: String,
    /// The issuers that are trusted for both claims; `None` trusts all configured issuers.
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
    /// Whether everyone may read everything, so that no access check is necessary.
    #[must_use]
    pub fn are_open(&self) -> bool {
        let is_open = |folder: &FolderRule| folder.readers == AllowedReaders::Everyone;
        self.field.is_none()
            && self.default == ReaderAudience::Everyone
            && self.folders.iter().all(is_open)
    }

    /// The rules for a file as text that goes into the hashes of its documents, so that changed rules reindex them.
    /// `None` if no rule applies. The text must stay the same byte for byte, or every index is rebuilt.
    pub(crate) fn hash_input(&self, source: &str) -> Option<String> {
        let folder = self.folder(source).map(|folder| &folder.readers);
        let is_default = folder.is_none() && self.default == ReaderAudience::Everyone;
        (self.field.is_some() || !is_default).then(|| {
            let default = folder.is_none().then_some(self.default);
            let rules = format!(
                "{:?} {} {folder:?} {default:?}",
                self.field, self.show_field
            );
            // In older indexes, some documents are open because their field was overlooked. The version of the rules
            // changes the hash, so that those documents are indexed again.
            let field = self.field.as_ref();
            let version = field.map(|_| format!(" closed {READER_RULES}"));
            format!("{rules}{}", version.unwrap_or_default())
        })
    }

    /// The folder rule that applies to a file: the first that covers it.
    pub(crate) fn folder(&self, source: &str) -> Option<&FolderRule> {
        self.folders
            .iter()
            .find(|folder| folder.path.covers(source))
    }

    /// The readers of a file's documents, unless a document's own field decides.
    pub(crate) fn readers_of_file(&self, source: &str) -> AllowedReaders {
        let folder = self.folder(source);
        folder.map_or_else(|| self.default.readers(), |folder| folder.readers.clone())
    }

    /// Parses the reader field of a document into its allowed readers, with warnings for the owner.
    ///
    /// # Errors Why the value names no readers. One invalid entry invalidates the whole value, because it is then
    /// unknown whom the author meant to admit.
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
        let (mut is_open, mut is_closed) = (false, false);
        for text in texts {
            match text {
                "" => return Err(ReaderFault::Empty),
                "nobody" => is_closed = true,
                "everyone" => is_open = true,
                text => {
                    let one = parse_principal(text).ok_or(ReaderFault::NoName)?;
                    // With several issuers, a bare subject is ambiguous, and no caller holds it.
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
        if is_closed && (is_open || !named.is_empty()) {
            return Err(ReaderFault::Contradictory);
        }
        if is_open {
            return Ok((AllowedReaders::Everyone, Vec::new()));
        }
        Ok((AllowedReaders::Only(named), warnings))
    }
}

/// Parses an entry of a reader field: a principal with its kind (`group:`, `email:`, `sub:`, `key:`), an e-mail
/// address, or otherwise a group name.
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

/// A principal from a token. The name is matched exactly: whitespace and case are significant, because another user of
/// the issuer may have a name that differs only there.
fn exact_principal(kind: &str, name: &str) -> Option<Principal> {
    (!name.is_empty()).then(|| principal(&format!("{kind}:{name}")))?
}

/// A principal from settings or a document, where whitespace around the name is insignificant.
fn trimmed_principal(kind: &str, name: &str) -> Option<Principal> {
    exact_principal(kind, name.trim())
}

/// A group principal; the name is case-sensitive.
pub(crate) fn group(name: &str) -> Option<Principal> {
    trimmed_principal("group", name)
}

/// An e-mail principal; addresses are case-insensitive. Only ASCII letters are folded: the Unicode lower case of some
/// other characters is an ASCII letter (the Kelvin sign becomes `k`), which would match somebody else's address.
pub(crate) fn email(name: &str) -> Option<Principal> {
    trimmed_principal("email", &name.to_ascii_lowercase())
}

/// The principal of the API key with this name.
pub(crate) fn key(name: &str) -> Option<Principal> {
    trimmed_principal("key", name)
}

/// A subject principal (`sub` claim), case-sensitive. With several trusted issuers, the issuer comes before the
/// subject: `https://login.example.org 7a1c`.
pub(crate) fn subject(text: &str) -> Option<Principal> {
    match split_issuer(text.trim()) {
        Some((issuer, name)) => subject_of(issuer, name.trim()),
        None => trimmed_principal("sub", text),
    }
}

fn subject_of(issuer: &str, name: &str) -> Option<Principal> {
    (!name.is_empty()).then(|| exact_principal("sub", &format!("{issuer} {name}")))?
}

/// Splits a subject into issuer and name, if it is qualified. An issuer URL contains no space.
pub(crate) fn split_issuer(text: &str) -> Option<(&str, &str)> {
    let (issuer, name) = text.split_once(' ')?;
    let is_address = issuer.starts_with("https://") || issuer.starts_with("http://");
    is_address.then_some((issuer, name))
}

/// Whether this is a bare subject, which does not name its issuer.
fn lacks_issuer(one: &Principal) -> bool {
    let subject = one.as_str().strip_prefix("sub:");
    subject.is_some_and(|subject| split_issuer(subject).is_none())
}

/// The subjects among the allowed readers, as they were written, for warnings about bare ones.
pub(crate) fn subjects(readers: &AllowedReaders) -> impl Iterator<Item = &str> {
    let named = match readers {
        AllowedReaders::Everyone => None,
        AllowedReaders::Only(named) => Some(named),
    };
    let named = named.into_iter().flatten();
    named.filter_map(|one| one.as_str().strip_prefix("sub:"))
}

/// Whether a server trusts one token issuer or several. With several, a bare subject is ambiguous: each issuer may have
/// given it to another person. And an e-mail address counts only if its issuer marks it as verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerCount {
    /// At most one issuer, so that a bare subject is unambiguous.
    One,
    /// Two or more issuers, each with a namespace of its own.
    Several,
}

impl ClaimMapping {
    /// Maps an authenticated caller to a reader identity. This is the only place where a caller becomes a reader.
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

    /// The identity of an authenticated caller with these claims; without an issuer, `name` is that of an API key.
    fn signed_in_reader(
        &self,
        issuer: Option<(&str, IssuerCount)>,
        name: &str,
        claim: impl Fn(&str) -> Vec<String>,
    ) -> ReaderIdentity {
        ReaderIdentity::holder(self.principals(issuer, name, claim))
    }

    /// The principals of an authenticated caller with these claims, for the server and for `docent permissions explain`.
    pub(crate) fn principals(
        &self,
        issuer: Option<(&str, IssuerCount)>,
        name: &str,
        claim: impl Fn(&str) -> Vec<String>,
    ) -> BTreeSet<Principal> {
        let mut all = vec![principal(SIGNED_IN)];
        match issuer {
            None => all.push(exact_principal("key", name)),
            Some((issuer, issuers)) => {
                all.push(subject_of(issuer, name));
                // A subject that looks qualified must not impersonate a user of another issuer.
                if issuers == IssuerCount::One && split_issuer(name).is_none() {
                    all.push(exact_principal("sub", name));
                }
            }
        }
        // The owner wrote the claims of an API key, so they need no trusted issuer.
        let is_trusted = |issuer: &str| match &self.from {
            Some(some) => some.contains(issuer),
            None => true,
        };
        if issuer.is_none_or(|(issuer, _)| is_trusted(issuer)) {
            let groups = claim(&self.groups);
            all.extend(groups.iter().map(|name| exact_principal("group", name)));
            let verified = claim("email_verified");
            let is_marked = |word: &str| verified.iter().any(|one| one == word);
            // An address with `email_verified: false` never counts. One of several issuers has to state `true`: a
            // careless one could otherwise grant its users the addresses of others.
            let is_verified = match issuer {
                Some((_, IssuerCount::Several)) => is_marked("true") && !is_marked("false"),
                _ => !is_marked("false"),
            };
            let emails = claim(&self.email);
            let emails = emails.iter().filter(|_| is_verified);
            all.extend(emails.map(|name| exact_principal("email", &name.to_ascii_lowercase())));
        }
        all.into_iter().flatten().collect()
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
            (list(&["nobody", "nobody"]), only(&[])),
            (list(&["Nobody", "a"]), only(&["group:Nobody", "group:a"])),
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
            (list(&["nobody", "everyone"]), ReaderFault::Contradictory),
            (
                list(&["everyone", "hr", " nobody "]),
                ReaderFault::Contradictory,
            ),
            (list(&["nobody", "hr"]), ReaderFault::Contradictory),
            (list(&["nobody", "signed-in"]), ReaderFault::Contradictory),
            (
                DocumentValue::Text("everyone; nobody".to_owned()),
                ReaderFault::Contradictory,
            ),
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
    fn a_bare_subject_among_several_issuers_gets_a_warning() {
        let several = PermissionRules {
            issuers: IssuerCount::Several,
            ..rules()
        };
        let value = DocumentValue::Text("sub:7, sub:https://a.example 7, key:7, hr".to_owned());
        let (expected, warnings) = rules().readers_of_value(&value).unwrap();
        assert_eq!(warnings, []);
        let (readers, warnings) = several.readers_of_value(&value).unwrap();
        assert_eq!(readers, expected);
        let [IngestError::WrongType { value, .. }] = warnings.as_slice() else {
            panic!("{warnings:?}")
        };
        assert_eq!(value, "sub:7");
    }

    #[test]
    fn only_files_that_rules_cover_have_a_hash_input() {
        assert_eq!(PermissionRules::default().hash_input("a.md"), None);
        let folders = PermissionRules {
            field: None,
            default: ReaderAudience::Everyone,
            ..rules()
        };
        assert_eq!(folders.hash_input("a.md"), None);
        let own = folders.hash_input("hr/a.md").unwrap();
        let other = PermissionRules {
            folders: vec![FolderRule {
                path: PathGlob::parse("hr").unwrap(),
                readers: only(&["group:other"]),
            }],
            ..folders.clone()
        };
        assert_ne!(other.hash_input("hr/a.md").unwrap(), own);
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
    fn a_bare_subject_is_a_principal_only_with_a_single_issuer() {
        let held = |issuers, name: &str| {
            ClaimMapping::default().signed_in_reader(Some((ISSUER, issuers)), name, |_| Vec::new())
        };
        let whole = "sub:https://login.example.org u1";
        assert_eq!(
            held(IssuerCount::One, "u1"),
            of(&["signed-in", "sub:u1", whole])
        );
        assert_eq!(held(IssuerCount::Several, "u1"), of(&["signed-in", whole]));
        // A subject that spells another issuer and its user does not become that user.
        let impostor = "https://other.example u1";
        let own = format!("sub:{ISSUER} {impostor}");
        for issuers in [IssuerCount::One, IssuerCount::Several] {
            assert_eq!(held(issuers, impostor), of(&["signed-in", &own]));
        }
        // Nor does a subject that differs only in whitespace or case.
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
    fn groups_and_addresses_count_from_trusted_issuers_only() {
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
    fn an_address_counts_as_its_issuer_verified_it() {
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
        // The Kelvin sign, whose Unicode lower case is an ASCII `k`.
        assert_ne!(email("\u{212a}im@isle.example"), email("kim@isle.example"));
    }
}
