//! Live reload of docent.toml: which changed settings apply at once, and which only at the next start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{
    FILE, KEYS, SettingSources, SettingValue, Settings, fields, flatten, permissions, read,
    resolve_text,
};
use crate::cli_error::CliError;

/// Settings, or prefixes of them, that take effect while the server runs: how files become documents, who may read
/// them, and their URLs.
const LIVE: [&str; 5] = ["fields", "permissions", "ingest.", "sqlite.", "documents."];
const URL: &str = "documents.url";

/// Polls a settings file for changes. `started` and `applied` hold its keys at the start of the server and after the
/// last valid reload; `found` is its last content or error, so that each state is reported once.
#[derive(Debug)]
pub struct SettingsReloader {
    folder: PathBuf,
    flags: Vec<(&'static str, SettingValue)>,
    started: BTreeMap<String, String>,
    applied: BTreeMap<String, String>,
    found: Result<Option<String>, String>,
}

/// Result of a reload.
#[derive(Debug)]
pub struct ReloadedSettings {
    /// The new settings, including those that apply only at the next start.
    pub settings: Settings,
    /// Keys of settings that apply now.
    pub live: Vec<String>,
    /// Whether documents may have to be reindexed.
    pub remakes: bool,
    /// Keys of settings that apply at the next start.
    pub waiting: Vec<String>,
}

impl SettingsReloader {
    /// Reads the file of a folder for the first time. `flags` override it, now and after every reload.
    #[must_use]
    pub fn new(folder: &Path, flags: Vec<(&'static str, SettingValue)>) -> Self {
        let found = read(&folder.join(FILE)).map_err(|problem| problem.to_string());
        let text = found.clone().ok().flatten();
        let started = text.and_then(|text| flat_keys(&text)).unwrap_or_default();
        Self {
            folder: folder.to_owned(),
            flags,
            applied: started.clone(),
            started,
            found,
        }
    }

    /// Polls the file. `None` if it has not changed.
    ///
    /// # Errors
    /// If the file is invalid. Each state of the file is reported only once.
    pub fn poll(
        &mut self,
        environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<Option<ReloadedSettings>, CliError> {
        let text = read(&self.folder.join(FILE));
        let found = text.as_ref().map(Clone::clone).map_err(ToString::to_string);
        if found == self.found {
            return Ok(None);
        }
        self.found = found;
        let text = text?;
        let is_set = |key: &str| {
            let flag = self.flags.iter().any(|(name, _)| *name == key);
            let key = KEYS.iter().find(|known| known.name == key);
            let mut variables = environment.iter();
            flag || key.is_some_and(|key| {
                variables.any(|(name, value)| *name == *key.variable() && !value.is_empty())
            })
        };
        let now = text.as_deref().and_then(flat_keys).unwrap_or_default();
        let mut changed = changed_keys(&self.applied, &now);
        changed.retain(|key| !is_set(key));
        let (live, mut waiting): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|key| is_live(key));
        // A key that is back at its value from the start needs no restart.
        waiting.retain(|key| self.started.get(key) != now.get(key));
        let sources = SettingSources {
            folder: Some(&self.folder),
            environment,
            flags: self.flags.clone(),
        };
        let settings = resolve_text(text.as_deref(), sources)?.settings;
        self.applied = now;
        Ok(Some(ReloadedSettings {
            settings,
            remakes: live.iter().any(|key| key != URL),
            live,
            waiting,
        }))
    }
}

fn is_live(key: &str) -> bool {
    LIVE.iter()
        .any(|live| key == *live || (live.ends_with('.') && key.starts_with(live)))
}

/// Keys of a file with their values as text, for comparison; `None` if it is not TOML.
fn flat_keys(text: &str) -> Option<BTreeMap<String, String>> {
    let mut table: toml::Table = text.parse().ok()?;
    let sections = [fields::SECTION, permissions::SECTION];
    let rules = sections.map(|name| table.remove(name).map(|rules| (name.to_owned(), rules)));
    let mut keys = Vec::new();
    flatten("", table, &mut keys);
    keys.extend(rules.into_iter().flatten());
    let keys = keys.into_iter();
    Some(keys.map(|(key, value)| (key, value.to_string())).collect())
}

fn changed_keys(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let mut keys: Vec<_> = one.keys().chain(other.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let differs = |key: &&String| one.get(*key) != other.get(*key);
    keys.into_iter().filter(differs).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct ReloadFixture(tempfile::TempDir, SettingsReloader);

    impl ReloadFixture {
        fn new(toml: &str, flags: Vec<(&'static str, SettingValue)>) -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(FILE), toml).unwrap();
            let reload = SettingsReloader::new(dir.path(), flags);
            Self(dir, reload)
        }

        fn write(&mut self, toml: &str) -> Result<Option<ReloadedSettings>, CliError> {
            std::fs::write(self.0.path().join(FILE), toml).unwrap();
            let set = ("DOCENT_FETCH_MAX_CHARS".into(), "2000".into());
            self.1
                .poll(vec![set, ("DOCENT_SEARCH_RESULTS".into(), "".into())])
        }

        fn check(&mut self, toml: &str, live: &[&str], waiting: &[&str]) {
            let found = self.write(toml).unwrap().unwrap();
            assert_eq!(
                (&found.live[..], &found.waiting[..]),
                (&strings(live)[..], &strings(waiting)[..])
            );
        }
    }

    fn strings(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn changed_settings_are_split_into_live_and_after_a_restart() {
        let mut folder = ReloadFixture::new(
            "title = \"a\"\n",
            vec![("log", SettingValue::Text("warn".into()))],
        );
        assert!(folder.write("title = \"a\"\n").unwrap().is_none());
        folder.check("title = \"a\"\n# A comment changes nothing.\n", &[], &[]);
        folder.check(
            "title = \"b\"\n[fields.a]\nhide = true\n",
            &["fields"],
            &["title"],
        );
        folder.check(
            "title = \"b\"\n[ingest]\nmax_pages = 3\n",
            &["fields", "ingest.max_pages"],
            &[],
        );
        // Flags and variables win; an empty variable does not. The first title counts already.
        let over = "log = \"info\"\n[fetch]\nmax_chars = 3000\n[search]\nresults = 3\n";
        folder.check(
            &format!("title = \"a\"\n{over}"),
            &["ingest.max_pages"],
            &["search.results"],
        );
        std::fs::remove_file(folder.0.path().join(FILE)).unwrap();
        let gone = folder.1.poll(Vec::new()).unwrap().unwrap();
        assert_eq!(gone.waiting, ["title"]);
    }

    #[test]
    fn only_what_makes_documents_makes_them_again() {
        let mut folder = ReloadFixture::new("", Vec::new());
        let url = folder
            .write("[documents]\nurl = \"https://a.example/{id}\"\n")
            .unwrap()
            .unwrap();
        assert!(!url.remakes && url.settings.documents_url.is_some());
        let fields = folder.write("[fields.a]\nhide = true\n").unwrap().unwrap();
        assert!(fields.remakes && fields.settings.fields.len() == 1);
        let rules = folder
            .write("[permissions]\ndefault = \"nobody\"\n")
            .unwrap()
            .unwrap();
        assert_eq!(rules.live, ["fields", "permissions"]);
        assert!(rules.remakes && !rules.settings.permissions.are_open());
    }

    #[test]
    fn a_broken_file_is_told_once_and_changes_nothing() {
        let mut folder = ReloadFixture::new("[fields.a]\nhide = true\n", Vec::new());
        for bad in ["[fields", "[fields.a]\nhid = true\n", "colour = 3\n"] {
            assert!(folder.write(bad).is_err(), "{bad}");
            assert!(folder.write(bad).unwrap().is_none(), "{bad}");
        }
        folder.check("[fields.a]\nhide = true\n", &[], &[]);
    }
}
