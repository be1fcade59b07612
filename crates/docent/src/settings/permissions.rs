//! Parser for `[permissions]` of `docent.toml`: rules about who may read which documents. It fails closed: absent,
//! empty and malformed are different, and only a rule that is absent means "no rule".

use std::collections::BTreeSet;

use docent_search::{AllowedReaders, MAX_READERS, Principal};

use super::setting_value::{InvalidSetting, SettingValue};
use super::{Settings, SignInMethod};
use crate::permissions::{
    self, FolderRule, IssuerCount, PathGlob, PermissionRules, ReaderAudience, email, group,
    key as api_key, subject,
};

/// Name of the section in the file.
pub(super) const SECTION: &str = "permissions";

const MAX_FOLDERS: usize = 256;

/// Maximum length of the name of a field, a claim or a group.
const MAX_NAME_CHARS: usize = 128;

/// Known keys of the section, and of a folder rule.
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

/// An invalid value, with the key under which it is in the file.
type PermissionSettingError = (String, InvalidSetting);

/// Parses all rules of the section. `default` is mandatory, so that enabling permissions is always an explicit decision
/// about documents that no rule matches.
pub(super) fn read(section: toml::Value) -> Result<PermissionRules, PermissionSettingError> {
    let table = table(SECTION, section, "write `[permissions]` above its settings")?;
    let mut permissions = PermissionRules::default();
    let mut has_default = false;
    for (name, value) in table {
        let key = format!("{SECTION}.{name}");
        let given = SettingValue::Toml(value);
        let set = match name.as_str() {
            "default" => {
                has_default = true;
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
    if !has_default {
        let shown = SettingValue::Text("nothing".to_owned());
        let hint = "set who may read documents that no rule matches: `default = \"everyone\"`, \
                    `\"signed-in\"` or `\"nobody\"`";
        return Err((
            format!("{SECTION}.default"),
            shown.invalid("is not set", hint),
        ));
    }
    Ok(permissions)
}

fn line(given: &SettingValue) -> Result<String, InvalidSetting> {
    given.line(MAX_NAME_CHARS)
}

/// Parses the name of the reader field, without invisible characters. An empty name is an error: no document would have
/// such a field, and the rule would silently do nothing.
fn field(given: &SettingValue) -> Result<String, InvalidSetting> {
    let name = docent_ingest::clean_line(&line(given)?);
    let is_name = |part: &str| !part.trim().is_empty();
    if name.split('.').all(is_name) {
        return Ok(name);
    }
    Err(given.invalid("is not a field name", "example: `allowed`"))
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
    PathGlob::parse(&text).map_err(|hint| given.invalid("is not a path inside the folder", hint))
}

fn principals(
    given: &SettingValue,
    make: fn(&str) -> Option<Principal>,
) -> Result<Vec<Principal>, InvalidSetting> {
    let is_blank = |item: &toml::Value| item.as_str().is_some_and(|name| name.trim().is_empty());
    // Other lists ignore empty texts; here one may be a name that somebody forgot to fill in, so it is an error.
    if matches!(given, SettingValue::Toml(toml::Value::Array(items)) if items.iter().any(is_blank))
    {
        return Err(given.invalid("has an empty name", "remove the empty name, or fill it in"));
    }
    let names = given.list()?;
    let made: Option<Vec<_>> = names.iter().map(|name| make(name)).collect();
    made.ok_or_else(|| given.invalid("has an invalid name", "write shorter names"))
}

/// Validates the rules against the authentication settings: every subject must be able to match a caller, and every
/// issuer must be trusted.
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
                let what = "names an issuer that is not trusted here";
                return wrong(subject, what, known_issuers_hint(settings));
            }
            None if issuers == IssuerCount::Several => {
                let what = "needs an issuer, because several are trusted";
                let hint = "write the issuer before the subject: `https://login.example.org 7a1c`";
                return wrong(subject, what, hint.to_owned());
            }
            None if settings.auth.api_keys && !signs_in(settings) => {
                let hint = "only API keys can sign in here: list their names under `keys`";
                return wrong(subject, "cannot match a caller", hint.to_owned());
            }
            _ => {}
        }
    }
    let mut from = rules.claims.from.iter().flatten();
    if let Some(unknown_issuer) = from.find(|issuer| is_unknown_issuer(settings, issuer)) {
        let given = SettingValue::Text(unknown_issuer.clone());
        let what = "names an issuer that is not trusted here";
        let key = format!("{SECTION}.claims_from");
        return Err((key, given.invalid(what, known_issuers_hint(settings))));
    }
    Ok(())
}

/// Whether callers can sign in with anything but API keys.
fn signs_in(settings: &Settings) -> bool {
    settings.sign_in.method != SignInMethod::Disabled || !settings.external_issuers().is_empty()
}

/// Whether an issuer is certainly not trusted. With the built-in sign-in this is unknown, because its issuer name is
/// the server's URL, which may be known only once it listens. `docent index` may run without any issuer configured.
fn is_unknown_issuer(settings: &Settings, issuer: &str) -> bool {
    let named = settings.external_issuers();
    settings.sign_in.method == SignInMethod::Disabled
        && !named.is_empty()
        && !named.contains(&issuer)
}

fn known_issuers_hint(settings: &Settings) -> String {
    let named = settings.external_issuers();
    format!(
        "write one of `{}`, exactly as configured",
        named.join("`, `")
    )
}

impl Settings {
    /// Whether one or several issuers are trusted. With several, a subject is unique only together with its issuer.
    pub(crate) fn issuers(&self) -> IssuerCount {
        let own = usize::from(self.sign_in.method != SignInMethod::Disabled);
        if own + self.external_issuers().len() > 1 {
            IssuerCount::Several
        } else {
            IssuerCount::One
        }
    }

    /// Trusted external issuers, including the one behind token introspection.
    pub(crate) fn external_issuers(&self) -> Vec<&str> {
        let introspected = self.auth.introspection.issuer.as_ref();
        let introspected = introspected.filter(|_| self.auth.introspection.url.is_some());
        let all = self.auth.issuers.iter().chain(introspected);
        all.map(String::as_str).collect()
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
    fn errors_name_the_setting() {
        let rest = "[permissions]\ndefault = \"nobody\"\n";
        for (toml, expect) in [
            ("permissions = 3", "`permissions` is not a table: `3`"),
            (
                "[permissions]\nfield = \"a\"",
                "`permissions.default` is not set: `nothing`",
            ),
            (
                "[permissions]\ndefault = \"all\"",
                "`permissions.default` is not one of `everyone`, `signed-in`, `nobody`: `all`",
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
                "`permissions.folder.path` is not a path inside the folder: `../a`",
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
            let message = of(&toml).unwrap_err();
            assert_eq!(message.replace('\n', ""), expect, "{toml}");
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
        let introspected =
            format!("{one}\nintrospection.url = \"{b}\"\nintrospection.issuer = \"{b}\"");
        let own = format!("{one}\nmode = \"password\"");
        for (auth, subject) in [
            ("", "7"),
            ("", "https://c.example 7"),
            (one.as_str(), "7"),
            (one.as_str(), "https://a.example 7"),
            (two.as_str(), "https://a.example 7"),
            (two.as_str(), "https://b.example/t/ 7"),
            (introspected.as_str(), "https://b.example/t/ 7"),
            ("mode = \"password\"", "7"),
            (own.as_str(), "https://docs.example.org 7"),
        ] {
            assert!(rules(auth, subject).is_ok(), "{auth} {subject}");
        }
        let several = "needs an issuer, because several are trusted";
        let unknown_issuer = "names an issuer that is not trusted here";
        for (auth, subject, words) in [
            (two.as_str(), "7", several),
            (introspected.as_str(), "7", several),
            (own.as_str(), "7", several),
            (two.as_str(), "https://a.example/ 7", unknown_issuer),
            (one.as_str(), "https://b.example/t/ 7", unknown_issuer),
            ("api_keys = true", "7", "cannot match a caller"),
        ] {
            let message = rules(auth, subject).unwrap_err();
            let expected = format!("`permissions.folder.subjects` {words}: `{subject}`");
            assert!(message.contains(&expected), "{message}");
        }
        assert_eq!(
            rules(&one, "7").unwrap().permissions.issuers,
            IssuerCount::One
        );
        let several = rules(&two, "https://a.example 7").unwrap();
        assert_eq!(several.permissions.issuers, IssuerCount::Several);
    }

    #[test]
    fn claims_are_only_accepted_from_trusted_issuers() {
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
        let message = rules("\"https://a.example/\"").unwrap_err();
        let expected = "`permissions.claims_from` names an issuer that is not trusted here: \
                        `https://a.example/`";
        assert!(message.contains(expected), "{message}");
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
