//! The text of a configuration file into the text it becomes, whatever its form. Everything else in it stays:
//! the result is read again and compared before anybody writes it.

use serde_json::{Map, Value};

use super::config_location::{ConfigFileFormat, ConfigLocation};
use super::server_entry::{EntryPath, ServerEntry};
use super::{json_file, toml_file};

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigEdit {
    /// It says so already.
    None,
    /// It gets a server that it did not have.
    Added(String),
    /// It had the server in another way.
    Changed(String),
    /// It loses the server.
    Removed(String),
}

/// Why a file stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditRefusal {
    /// It cannot be read; the end of a sentence that begins with its name.
    Unfit(String),
    /// Another server has that name.
    Taken(String),
}

/// Whether somebody else's server of the same name may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameConflictPolicy {
    Keep,
    Replace,
}

/// Puts an entry into the text of a file.
pub(crate) fn insert_server(
    text: &str,
    place: &ConfigLocation,
    name: &str,
    entry: &ServerEntry,
    others: NameConflictPolicy,
) -> Result<ConfigEdit, EditRefusal> {
    let (mark, body) = split_bom(text, place.form);
    let before = value(body, place.form)?;
    let there = before.get(place.section).and_then(|all| all.get(name));
    if let Some(there) =
        there.filter(|there| others == NameConflictPolicy::Keep && !entry.is_same_server(there))
    {
        return Err(EditRefusal::Taken(describe_server(there)));
    }
    let merged = there.map_or_else(|| entry.to_value(), |there| entry.merged_with(there));
    if there == Some(&merged) {
        return Ok(ConfigEdit::None);
    }
    let at = EntryPath {
        section: place.section,
        name,
    };
    let after = match place.form {
        ConfigFileFormat::Toml => toml_file::put(body, at, entry),
        form => json_file::put(body, form, at, entry),
    };
    let after = ensure_trailing_newline(after.map_err(EditRefusal::Unfit)?);
    verify_edit(&before, &after, place, name, Some(&merged))?;
    let after = format!("{mark}{after}");
    Ok(if there.is_some() {
        ConfigEdit::Changed(after)
    } else {
        ConfigEdit::Added(after)
    })
}

/// Takes an entry out of the text of a file.
pub(crate) fn remove_server(
    text: &str,
    place: &ConfigLocation,
    name: &str,
    entry: &ServerEntry,
    others: NameConflictPolicy,
) -> Result<ConfigEdit, EditRefusal> {
    let (mark, body) = split_bom(text, place.form);
    let before = value(body, place.form)?;
    let Some(there) = before.get(place.section).and_then(|all| all.get(name)) else {
        return Ok(ConfigEdit::None);
    };
    if others == NameConflictPolicy::Keep && !entry.is_same_server(there) {
        return Err(EditRefusal::Taken(describe_server(there)));
    }
    let at = EntryPath {
        section: place.section,
        name,
    };
    let after = match place.form {
        ConfigFileFormat::Toml => toml_file::take(body, at),
        form => json_file::take(body, form, at),
    };
    let after = after.map_err(EditRefusal::Unfit)?;
    verify_edit(&before, &after, place, name, None)?;
    Ok(ConfigEdit::Removed(format!("{mark}{after}")))
}

/// A file that was empty or not there begins as an empty object; a mark of its encoding stays in front.
fn split_bom(text: &str, form: ConfigFileFormat) -> (&str, &str) {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = text.get(..text.len() - body.len()).unwrap_or_default();
    match form {
        ConfigFileFormat::Toml => (mark, body),
        _ if body.trim().is_empty() => (mark, "{}\n"),
        _ => (mark, body),
    }
}

fn value(text: &str, form: ConfigFileFormat) -> Result<Value, EditRefusal> {
    let value = match form {
        ConfigFileFormat::Toml => toml_file::value(text),
        form => json_file::value(text, form),
    };
    let value = value.map_err(EditRefusal::Unfit)?;
    if value.is_object() {
        return Ok(value);
    }
    Err(EditRefusal::Unfit("does not hold a JSON object".to_owned()))
}

/// Whether the new text says what the old one said, and of this server what was wanted. A file that names a
/// key twice, for example, is read by its client in a way that an edit would not change.
fn verify_edit(
    before: &Value,
    after: &str,
    place: &ConfigLocation,
    name: &str,
    wanted: Option<&Value>,
) -> Result<(), EditRefusal> {
    let mut expected = before.clone();
    if let Some(top) = expected.as_object_mut() {
        let servers = top
            .entry(place.section)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(servers) = servers.as_object_mut() {
            match wanted {
                Some(wanted) => servers.insert(name.to_owned(), wanted.clone()),
                None => servers.shift_remove(name),
            };
        }
    }
    let found = value(after, place.form)?;
    // TOML drops a table with nothing in it, and an empty section says as much as none.
    if found == expected
        || without_empty(&found, place.section) == without_empty(&expected, place.section)
    {
        return Ok(());
    }
    Err(EditRefusal::Unfit(
        "cannot be edited without changing something else in it".to_owned(),
    ))
}

fn without_empty(value: &Value, section: &str) -> Value {
    let mut value = value.clone();
    let empty = value
        .get(section)
        .and_then(Value::as_object)
        .is_some_and(Map::is_empty);
    if let Some(top) = value.as_object_mut().filter(|_| empty) {
        top.shift_remove(section);
    }
    value
}

fn ensure_trailing_newline(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Where another server leads, in a few words.
fn describe_server(there: &Value) -> String {
    let text = |key: &str| there.get(key).and_then(Value::as_str);
    let place = text("url")
        .or_else(|| text("httpUrl"))
        .or_else(|| text("command"));
    crate::settings::shorten(place.unwrap_or("another server"), 120)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(form: ConfigFileFormat) -> ConfigLocation {
        let section = if form == ConfigFileFormat::Toml {
            "mcp_servers"
        } else {
            "mcpServers"
        };
        ConfigLocation {
            file: "x".into(),
            form,
            section,
        }
    }

    fn entry(value: Value) -> ServerEntry {
        let Value::Object(set) = value else { panic!() };
        ServerEntry {
            set,
            drop: &["type", "url", "headers", "command", "args"],
        }
    }

    fn stdio() -> ServerEntry {
        entry(json!({"command": "/usr/bin/docent", "args": ["serve", "/d", "--stdio"]}))
    }

    fn text(change: ConfigEdit) -> String {
        match change {
            ConfigEdit::Added(text) | ConfigEdit::Changed(text) | ConfigEdit::Removed(text) => text,
            ConfigEdit::None => panic!("nothing changed"),
        }
    }

    fn put_in(form: ConfigFileFormat, before: &str) -> Result<ConfigEdit, EditRefusal> {
        insert_server(
            before,
            &place(form),
            "docs",
            &stdio(),
            NameConflictPolicy::Keep,
        )
    }

    #[test]
    fn an_empty_file_begins_with_the_server() {
        for before in ["", " \n", "{}", "\u{feff}{}"] {
            let after = text(put_in(ConfigFileFormat::Json, before).unwrap());
            assert_eq!(
                after.starts_with('\u{feff}'),
                before.starts_with('\u{feff}')
            );
            let after = after.trim_start_matches('\u{feff}');
            let value: Value = serde_json::from_str(after).unwrap();
            assert_eq!(value["mcpServers"]["docs"]["args"][0], "serve", "{after}");
            assert!(after.ends_with("}\n"), "{after}");
        }
        assert_eq!(
            text(put_in(ConfigFileFormat::Toml, "").unwrap()),
            "[mcp_servers.docs]\ncommand = \"/usr/bin/docent\"\nargs = [\"serve\", \"/d\", \"--stdio\"]\n"
        );
    }

    #[test]
    fn comments_order_and_spaces_stay() {
        let before = "// mine\r\n{\r\n    \"z\": 1.50, // last\r\n    \"mcpServers\": {\r\n        /* a */ \"other\": { \"url\": \"https://a.example\" },\r\n    },\r\n    \"a\": [1,2 , 3],\r\n}\r\n";
        let after = text(put_in(ConfigFileFormat::Jsonc, before).unwrap());
        for kept in [
            "// mine\r\n",
            "\"z\": 1.50, // last\r\n",
            "/* a */ \"other\": { \"url\": \"https://a.example\" },",
            "\"a\": [1,2 , 3],\r\n}\r\n",
        ] {
            assert!(after.contains(kept), "{kept:?} is gone: {after}");
        }
        assert_eq!(
            insert_server(
                &after,
                &place(ConfigFileFormat::Jsonc),
                "docs",
                &stdio(),
                NameConflictPolicy::Keep
            ),
            Ok(ConfigEdit::None)
        );
        let back = remove_server(
            &after,
            &place(ConfigFileFormat::Jsonc),
            "docs",
            &stdio(),
            NameConflictPolicy::Keep,
        )
        .unwrap();
        assert_eq!(text(back), before);
    }

    #[test]
    fn toml_keeps_its_comments_and_comes_back_as_it_was() {
        let before = "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\nurl = \"https://a.example\"\n\n[profiles.y]\nmodel = \"z\"\n";
        let after = text(put_in(ConfigFileFormat::Toml, before).unwrap());
        assert!(after.contains("# mine\nmodel = \"x\" # why\n"), "{after}");
        assert_eq!(put_in(ConfigFileFormat::Toml, &after), Ok(ConfigEdit::None));
        let back = remove_server(
            &after,
            &place(ConfigFileFormat::Toml),
            "docs",
            &stdio(),
            NameConflictPolicy::Keep,
        )
        .unwrap();
        assert_eq!(text(back), before);
    }

    #[test]
    fn what_the_user_added_to_the_server_stays() {
        let before = r#"{"mcpServers":{"docs":{"command":"/old/docent","args":["serve","/x"],"timeout":5,"env":{"A":"b"}}}}"#;
        let after = text(put_in(ConfigFileFormat::Json, before).unwrap());
        let value: Value = serde_json::from_str(&after).unwrap();
        let expected = json!({"command": "/usr/bin/docent", "args": ["serve", "/d", "--stdio"], "timeout": 5, "env": {"A": "b"}});
        assert_eq!(value["mcpServers"]["docs"], expected);
        let toml = "[mcp_servers.docs]\ncommand = \"/old/docent\" # here\nargs = [\"serve\"]\nstartup_timeout_sec = 9\n";
        let after = text(put_in(ConfigFileFormat::Toml, toml).unwrap());
        assert!(
            after.contains("command = \"/usr/bin/docent\" # here\n"),
            "{after}"
        );
        assert!(after.contains("startup_timeout_sec = 9\n"), "{after}");
    }

    #[test]
    fn another_way_drops_what_contradicts_it() {
        let before = r#"{"mcpServers":{"docs":{"type":"stdio","command":"docent","args":["serve"],"note":1}}}"#;
        let address = entry(json!({"url": "https://a.example/mcp"}));
        let change = insert_server(
            before,
            &place(ConfigFileFormat::Json),
            "docs",
            &address,
            NameConflictPolicy::Keep,
        )
        .unwrap();
        let value: Value = serde_json::from_str(&text(change)).unwrap();
        assert_eq!(
            value["mcpServers"]["docs"],
            json!({"note": 1, "url": "https://a.example/mcp"})
        );
    }

    #[test]
    fn somebody_elses_server_stays() {
        let before = r#"{"mcpServers":{"docs":{"url":"https://other.example/mcp"}}}"#;
        let taken = EditRefusal::Taken("https://other.example/mcp".to_owned());
        assert_eq!(put_in(ConfigFileFormat::Json, before), Err(taken.clone()));
        assert_eq!(
            remove_server(
                before,
                &place(ConfigFileFormat::Json),
                "docs",
                &stdio(),
                NameConflictPolicy::Keep
            ),
            Err(taken)
        );
        let forced = insert_server(
            before,
            &place(ConfigFileFormat::Json),
            "docs",
            &stdio(),
            NameConflictPolicy::Replace,
        );
        assert!(matches!(forced, Ok(ConfigEdit::Changed(_))), "{forced:?}");
        assert_eq!(
            remove_server(
                "{}",
                &place(ConfigFileFormat::Json),
                "docs",
                &stdio(),
                NameConflictPolicy::Keep
            ),
            Ok(ConfigEdit::None)
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let json = [
            "{",
            "[]",
            "7",
            "{\"a\":1,}",
            "// x\n{}",
            "{\"mcpServers\":[]}",
            "{\"mcpServers\":{},\"mcpServers\":{\"b\":{}}}",
        ];
        for before in json {
            let refused = put_in(ConfigFileFormat::Json, before);
            assert!(
                matches!(refused, Err(EditRefusal::Unfit(_))),
                "{before}: {refused:?}"
            );
        }
        for before in ["{", "{\"a\":1,}", "{'a':1}", "{\"a\" 1}", "{\"a\":0x1}"] {
            let refused = put_in(ConfigFileFormat::JsonWithComments, before);
            assert!(
                matches!(refused, Err(EditRefusal::Unfit(_))),
                "{before}: {refused:?}"
            );
        }
        for before in ["a", "[a", "a=1\na=2", "mcp_servers = 3"] {
            let refused = put_in(ConfigFileFormat::Toml, before);
            assert!(
                matches!(refused, Err(EditRefusal::Unfit(_))),
                "{before}: {refused:?}"
            );
        }
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        let deep = format!("{{\"a\":{deep}}}");
        for form in [ConfigFileFormat::Json, ConfigFileFormat::JsonWithComments] {
            assert!(matches!(put_in(form, &deep), Err(EditRefusal::Unfit(_))));
        }
    }
}
