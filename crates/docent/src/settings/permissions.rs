//! `[permissions]` of `docent.toml` into rules about who may read what, each checked.

use std::collections::BTreeSet;

use docent_search::{AllowedReaders, MAX_READERS, Principal};

use super::setting_value::{InvalidSetting, SettingValue};
use super::{Settings, SignInMethod};
use crate::permissions::{
    self, FolderRule, IssuerCount, PathGlob, PermissionRules, ReaderAudience, email, group,
    key as api_key, subject,
};

/// The section of the file.
pub(super) const SECTION: &str = "permissions";

/// The most folders.
const MAX_FOLDERS: usize = 256;

/// The most characters of a name: of a field, a claim, a group.
const MAX_NAME_CHARS: usize = 128;

/// What the section may say, and what one of its folders may.
const KEYS: [&str; 7] = [
    "default",
    "field",
    "show_field",
    "groups_claim",
    "email_claim",
    "claims_from",
    "folder",
];
const FOLDER_KEYS: [&str; 6] = ["path", "groups", "emails", "subjects", "keys", "readers"];

const AUDIENCES: [(&str, ReaderAudience); 3] = [
    ("everyone", ReaderAudience::Everyone),
    ("signed-in", ReaderAudience::SignedIn),
    ("nobody", ReaderAudience::Nobody),
];

/// A key of the file with what is wrong about its value.
type PermissionSettingError = (String, InvalidSetting);

/// All rules of the section.
pub(super) fn read(section: toml::Value) -> Result<PermissionRules, PermissionSettingError> {
    let table = table(SECTION, section, "write `[permissions]` above its settings")?;
    let mut permissions = PermissionRules::default();
    let mut is_said = false;
    for (name, value) in table {
        let key = format!("{SECTION}.{name}");
        let given = SettingValue::Toml(value);
        let set = match name.as_str() {
            "default" => {
                is_said = true;
                given
                    .choice(&AUDIENCES)
                    .map(|one| permissions.default = one)
            }
            "field" => field(&given).map(|name| permissions.field = Some(name)),
            "show_field" => given.boolean().map(|on| permissions.show_field = on),
            "groups_claim" => line(&given).map(|name| permissions.claims.groups = name),
            "email_claim" => line(&given).map(|name| permissions.claims.email = name),
            "claims_from" => given.list().map(|issuers| {
                permissions.claims.from = Some(issuers.into_iter().collect());
            }),
            "folder" => {
                permissions.folders = folders(&key, given)?;
                Ok(())
            }
            _ => return Err(unknown(SECTION, &name, &KEYS)),
        };
        set.map_err(|wrong| (key, wrong))?;
    }
    if !is_said {
        let shown = SettingValue::Text("nothing".to_owned());
        let hint = "say who may read documents of which no rule speaks: `default = \"everyone\"`, \
                    `\"signed-in\"` or `\"nobody\"`";
        return Err((
            format!("{SECTION}.default"),
            shown.invalid("is not said", hint),
        ));
    }
    Ok(permissions)
}

fn line(given: &SettingValue) -> Result<String, InvalidSetting> {
    given.line(MAX_NAME_CHARS)
}

/// The name of a field, without anything that nobody sees: under a name that is nothing no document has a field.
fn field(given: &SettingValue) -> Result<String, InvalidSetting> {
    let name = docent_ingest::clean_line(&line(given)?);
    let is_name = |part: &str| !part.trim().is_empty();
    if name.split('.').all(is_name) {
        return Ok(name);
    }
    Err(given.invalid("is no name of a field", "example: `allowed`"))
}

fn table(key: &str, value: toml::Value, hint: &str) -> Result<toml::Table, PermissionSettingError> {
    match value {
        toml::Value::Table(table) => Ok(table),
        other => Err((
            key.to_owned(),
            SettingValue::Toml(other).invalid("is not a table", hint),
        )),
    }
}

fn unknown(key: &str, name: &str, known: &[&str]) -> PermissionSettingError {
    let hint = format!("known are `{}`", known.join("`, `"));
    let given = SettingValue::Text(name.to_owned());
    (key.to_owned(), given.invalid("has no setting", hint))
}

fn folders(key: &str, given: SettingValue) -> Result<Vec<FolderRule>, PermissionSettingError> {
    const HINT: &str = "write `[[permissions.folder]]` above each";
    let SettingValue::Toml(toml::Value::Array(all)) = given else {
        return Err((
            key.to_owned(),
            given.invalid("is not a list of tables", HINT),
        ));
    };
    if all.len() > MAX_FOLDERS {
        let shown = SettingValue::Text(all.len().to_string());
        let what = format!("has more than {MAX_FOLDERS} tables");
        let wrong = shown.invalid(what, "cover several folders with one pattern");
        return Err((key.to_owned(), wrong));
    }
    let one = |value| folder(key, table(key, value, HINT)?);
    all.into_iter().map(one).collect()
}

fn folder(key: &str, table: toml::Table) -> Result<FolderRule, PermissionSettingError> {
    let (mut path, mut audience) = (None, None);
    let (mut named, mut is_named) = (BTreeSet::new(), false);
    for (name, value) in table {
        let given = SettingValue::Toml(value);
        let set = match name.as_str() {
            "path" => glob(&given).map(|glob| path = Some(glob)),
            "readers" => given.choice(&AUDIENCES).map(|one| audience = Some(one)),
            "groups" | "emails" | "subjects" | "keys" => {
                is_named = true;
                let make = match name.as_str() {
                    "groups" => group,
                    "emails" => email,
                    "keys" => api_key,
                    _ => subject,
                };
                principals(&given, make).map(|some| named.extend(some))
            }
            _ => return Err(unknown(key, &name, &FOLDER_KEYS)),
        };
        set.map_err(|wrong| (format!("{key}.{name}"), wrong))?;
    }
    let shown = path.as_ref().map_or("no path", |_| "a folder");
    let wrong = |what: &str, hint: &str| {
        let given = SettingValue::Text(shown.to_owned());
        (key.to_owned(), given.invalid(what, hint))
    };
    let readers = match (audience, is_named) {
        (Some(audience), false) => audience.readers(),
        (None, true) => AllowedReaders::Only(named),
        _ => {
            let hint = "write `groups`, `emails`, `subjects` or `keys`, or else `readers = \"everyone\"`, \
                        `\"signed-in\"` or `\"nobody\"`";
            return Err(wrong("does not say who may read", hint));
        }
    };
    if matches!(&readers, AllowedReaders::Only(named) if named.len() > MAX_READERS) {
        return Err(wrong("names more than 256 readers", "name a group"));
    }
    let path = path.ok_or_else(|| wrong("does not say which files", "write `path = \"hr/**\"`"))?;
    Ok(FolderRule { path, readers })
}

fn glob(given: &SettingValue) -> Result<PathGlob, InvalidSetting> {
    let text = given.line(crate::permissions::MAX_PATH_CHARS)?;
    PathGlob::parse(&text).map_err(|hint| given.invalid("is not a place among the documents", hint))
}

fn principals(
    given: &SettingValue,
    make: fn(&str) -> Option<Principal>,
) -> Result<Vec<Principal>, InvalidSetting> {
    let is_blank = |item: &toml::Value| item.as_str().is_some_and(|name| name.trim().is_empty());
    // Lists pass over empty texts elsewhere; here one may stand for a name that somebody forgot to fill in.
    if matches!(given, SettingValue::Toml(toml::Value::Array(items)) if items.iter().any(is_blank))
    {
        return Err(given.invalid(
            "has an empty name",
            "leave the name out, or write who it is",
        ));
    }
    let names = given.list()?;
    let made: Option<Vec<_>> = names.iter().map(|name| make(name)).collect();
    made.ok_or_else(|| given.invalid("names somebody who cannot be", "write shorter names"))
}

/// The rules against those who sign callers in, which are settings of their own: each subject has to be
/// somebody's, and each issuer one of ours.
pub(super) fn check(settings: &mut Settings) -> Result<(), PermissionSettingError> {
    let issuers = settings.issuers();
    settings.permissions.issuers = issuers;
    let rules = &settings.permissions;
    let key = format!("{SECTION}.folder.subjects");
    let wrong = |name: &str, what: &str, hint: String| {
        let given = SettingValue::Text(name.to_owned());
        Err((key.clone(), given.invalid(what, hint)))
    };
    let folders = rules.folders.iter();
    for subject in folders.flat_map(|folder| permissions::subjects(&folder.readers)) {
        match permissions::split_issuer(subject) {
            Some((issuer, _)) if is_unknown_issuer(settings, issuer) => {
                let what = "names an issuer whose tokens do not count here";
                return wrong(subject, what, known_issuers_hint(settings));
            }
            None if issuers == IssuerCount::Several => {
                let what = "does not say at which issuer, and there are several";
                let hint = "write the issuer before the name: `https://login.example.org 7a1c`";
                return wrong(subject, what, hint.to_owned());
            }
            None if settings.auth.api_keys && !signs_in(settings) => {
                let hint = "only API keys sign in here: write their names as `keys`";
                return wrong(subject, "is nobody", hint.to_owned());
            }
            _ => {}
        }
    }
    let mut from = rules.claims.from.iter().flatten();
    if let Some(stranger) = from.find(|issuer| is_unknown_issuer(settings, issuer)) {
        let given = SettingValue::Text(stranger.clone());
        let what = "names an issuer whose tokens do not count here";
        let key = format!("{SECTION}.claims_from");
        return Err((key, given.invalid(what, known_issuers_hint(settings))));
    }
    Ok(())
}

/// Whether anybody but the holders of API keys can sign in.
fn signs_in(settings: &Settings) -> bool {
    settings.sign_in.by != SignInMethod::Disabled || !external_issuers(settings).is_empty()
}

/// The issuers elsewhere.
fn external_issuers(settings: &Settings) -> Vec<&str> {
    let auth = &settings.auth;
    let asked = auth.introspection.issuer.as_ref();
    let asked = asked.filter(|_| auth.introspection.url.is_some());
    let all = auth.issuers.iter().chain(asked);
    all.map(String::as_str).collect()
}

/// Whether an issuer is certainly none of ours. The name of our own is the address of the server, which is
/// not always known before it listens; and who only indexes may know of no issuer at all.
fn is_unknown_issuer(settings: &Settings, issuer: &str) -> bool {
    let named = external_issuers(settings);
    settings.sign_in.by == SignInMethod::Disabled && !named.is_empty() && !named.contains(&issuer)
}

fn known_issuers_hint(settings: &Settings) -> String {
    let named = external_issuers(settings);
    format!("to the letter it is one of `{}`", named.join("`, `"))
}

impl Settings {
    /// How many issuers vouch for callers.
    pub(crate) fn issuers(&self) -> IssuerCount {
        let own = usize::from(self.sign_in.by != SignInMethod::Disabled);
        if own + external_issuers(self).len() > 1 {
            IssuerCount::Several
        } else {
            IssuerCount::One
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(toml: &str) -> Result<PermissionRules, String> {
        let table: toml::Table = toml.parse().unwrap();
        let section = table.get(SECTION).unwrap().clone();
        read(section).map_err(|(key, wrong)| format!("`{key}` {}: `{}`", wrong.what, wrong.shown))
    }

    #[test]
    fn rules_are_read() {
        let rules = of("[permissions]\ndefault = \"signed-in\"\nfield = \"allowed\"\n\
             groups_claim = \"realm_access.roles\"\n\
             [[permissions.folder]]\npath = \"hr/**\"\ngroups = [\"hr\"]\nemails = [\"A@b.example\"]\nkeys = [\"nightly\"]\n\
             [[permissions.folder]]\npath = \"press\"\nreaders = \"everyone\"\n")
        .unwrap();
        assert_eq!(rules.default, ReaderAudience::SignedIn);
        assert_eq!(rules.field.as_deref(), Some("allowed"));
        assert_eq!(rules.claims.groups, "realm_access.roles");
        let named = rules.readers_of_file("hr/a.md");
        let expected = [group("hr"), email("a@b.example"), api_key("nightly")];
        assert_eq!(
            named,
            AllowedReaders::Only(expected.into_iter().flatten().collect())
        );
        assert_eq!(
            rules.readers_of_file("press/a.md"),
            AllowedReaders::Everyone
        );
    }

    #[test]
    fn what_is_wrong_is_told_by_its_name() {
        let rest = "[permissions]\ndefault = \"nobody\"\n";
        for (toml, expect) in [
            ("permissions = 3", "`permissions` is not a table: `3`"),
            (
                "[permissions]\nfield = \"a\"",
                "`permissions.default` is not said: `nothing`",
            ),
            (
                "[permissions]\ndefault = \"all\"",
                "`permissions.default` is none of `everyone`, `signed-in`, `nobody`: `all`",
            ),
            (
                "[permissions]\ngroup = 1",
                "`permissions` has no setting: `group`",
            ),
            (
                "[[permissions.folder]]\npath = \"a\"\ngroup = [\"x\"]",
                "`permissions.folder` has no setting: `group`",
            ),
            (
                "[[permissions.folder]]\npath = \"a\"",
                "`permissions.folder` does not say who may read: `a folder`",
            ),
            (
                "[[permissions.folder]]\npath = \"a\"\nreaders = \"nobody\"\ngroups = [\"x\"]",
                "`permissions.folder` does not say who may read: `a folder`",
            ),
            (
                "[[permissions.folder]]\ngroups = [\"x\"]",
                "`permissions.folder` does not say which files: `no path`",
            ),
            (
                "[[permissions.folder]]\npath = \"../a\"\ngroups = [\"x\"]",
                "`permissions.folder.path` is not a place among the documents: `../a`",
            ),
            (
                "[[permissions.folder]]\npath = \"a\"\ngroups = 3",
                "`permissions.folder.groups` is not a list of texts: `3`",
            ),
            (
                "[permissions.folder]\npath = \"a\"",
                "`permissions.folder` is not a list of tables: `{ path = \"a\" }`",
            ),
        ] {
            let toml = if toml.contains("folder") {
                format!("{rest}{toml}")
            } else {
                toml.to_owned()
            };
            let told = of(&toml).unwrap_err();
            assert_eq!(told.replace('\n', ""), expect, "{toml}");
        }
    }

    fn resolved(toml: &str) -> Result<Settings, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(super::super::FILE), toml).unwrap();
        let sources = super::super::SettingSources {
            folder: Some(dir.path()),
            ..Default::default()
        };
        let resolved = super::super::resolve(sources);
        resolved
            .map(|resolved| resolved.settings)
            .map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_subject_is_that_of_one_issuer() {
        let (a, b) = ("https://a.example", "https://b.example/t/");
        let rules = |auth: &str, subject: &str| {
            resolved(&format!(
                "[auth]\n{auth}\n[permissions]\ndefault = \"nobody\"\n[[permissions.folder]]\n\
                 path = \"a\"\nsubjects = [\"{subject}\"]"
            ))
        };
        let one = format!("issuers = [\"{a}\"]");
        let two = format!("issuers = [\"{a}\", \"{b}\"]");
        let asked = format!("{one}\nintrospection.url = \"{b}\"\nintrospection.issuer = \"{b}\"");
        let own = format!("{one}\nmode = \"password\"");
        for (auth, subject) in [
            ("", "7"),
            ("", "https://c.example 7"),
            (one.as_str(), "7"),
            (one.as_str(), "https://a.example 7"),
            (two.as_str(), "https://a.example 7"),
            (two.as_str(), "https://b.example/t/ 7"),
            (asked.as_str(), "https://b.example/t/ 7"),
            ("mode = \"password\"", "7"),
            (own.as_str(), "https://docs.example.org 7"),
        ] {
            assert!(rules(auth, subject).is_ok(), "{auth} {subject}");
        }
        let several = "does not say at which issuer, and there are several";
        let stranger = "names an issuer whose tokens do not count here";
        for (auth, subject, words) in [
            (two.as_str(), "7", several),
            (asked.as_str(), "7", several),
            (own.as_str(), "7", several),
            (two.as_str(), "https://a.example/ 7", stranger),
            (one.as_str(), "https://b.example/t/ 7", stranger),
            ("api_keys = true", "7", "is nobody"),
        ] {
            let told = rules(auth, subject).unwrap_err();
            let expected = format!("`permissions.folder.subjects` {words}: `{subject}`");
            assert!(told.contains(&expected), "{told}");
        }
        assert_eq!(
            rules(&one, "7").unwrap().permissions.issuers,
            IssuerCount::One
        );
        let several = rules(&two, "https://a.example 7").unwrap();
        assert_eq!(several.permissions.issuers, IssuerCount::Several);
    }

    #[test]
    fn who_is_believed_is_one_of_those_whose_tokens_count() {
        let rules = |from: &str| {
            resolved(&format!(
                "[auth]\nissuers = [\"https://a.example\", \"https://b.example\"]\n[permissions]\n\
                 default = \"nobody\"\nclaims_from = [{from}]"
            ))
        };
        let some = rules("\"https://a.example\"")
            .unwrap()
            .permissions
            .claims
            .from;
        assert_eq!(some, Some(["https://a.example".to_owned()].into()));
        assert_eq!(
            rules("").unwrap().permissions.claims.from,
            Some(BTreeSet::new())
        );
        let told = rules("\"https://a.example/\"").unwrap_err();
        let expected = "`permissions.claims_from` names an issuer whose tokens do not count here: \
                        `https://a.example/`";
        assert!(told.contains(expected), "{told}");
    }

    #[test]
    fn a_rule_that_names_nobody_lets_nobody_in_or_is_refused() {
        let folder = |more: &str| {
            let rest =
                "[permissions]\ndefault = \"everyone\"\n[[permissions.folder]]\npath = \"a\"\n";
            of(&format!("{rest}{more}")).map(|rules| rules.readers_of_file("a/b.md"))
        };
        let nobody = AllowedReaders::Only(BTreeSet::new());
        assert_eq!(folder("groups = []"), Ok(nobody.clone()));
        assert_eq!(folder("groups = []\nemails = []"), Ok(nobody));
        let long = "x".repeat(600);
        let many: Vec<_> = (0..=MAX_READERS).map(|n| format!("\"g{n}\"")).collect();
        for refused in [
            "",
            "groups = \"\"",
            "groups = [\"\"]",
            "groups = [\"hr\", \" \"]",
            "groups = [7]",
            "groups = { a = 1 }",
            "readers = \"\"",
            "readers = []",
            &format!("groups = [\"{long}\"]"),
            &format!("groups = [{}]", many.join(",")),
        ] {
            assert!(folder(refused).is_err(), "{refused}");
        }
        let field = |value: &str| {
            of(&format!(
                "[permissions]\ndefault = \"everyone\"\nfield = {value}"
            ))
        };
        assert_eq!(
            field("\"allowed\"").unwrap().field.as_deref(),
            Some("allowed")
        );
        let over = format!("\"{}\"", "x".repeat(MAX_NAME_CHARS + 1));
        for refused in [
            "\"\"",
            "\"  \"",
            "\"\u{200B}\"",
            "\".\"",
            "7",
            "[\"allowed\"]",
            "true",
            &over,
        ] {
            assert!(field(refused).is_err(), "{refused}");
        }
        for refused in ["\"\"", "7", "[]"] {
            assert!(
                of(&format!("[permissions]\ndefault = {refused}")).is_err(),
                "{refused}"
            );
        }
    }

    #[test]
    fn folders_end_at_their_bound() {
        let folders = |count: usize| {
            let tables = (0..count).map(|n| {
                format!("[[permissions.folder]]\npath = \"f{n}\"\nreaders = \"nobody\"\n")
            });
            of(&format!(
                "[permissions]\ndefault = \"nobody\"\n{}",
                tables.collect::<String>()
            ))
        };
        assert_eq!(folders(MAX_FOLDERS).unwrap().folders.len(), MAX_FOLDERS);
        assert!(folders(MAX_FOLDERS + 1).is_err());
    }
}
