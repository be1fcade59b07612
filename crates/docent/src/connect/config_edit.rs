//! Edits the text of an MCP client's configuration file (not of `docent.toml`), in JSON, JSON with comments or TOML.
//! Everything else in the file is preserved: the result is parsed again and compared before it is written.

use serde_json::{Map, Value};

use super::config_location::{ConfigFileFormat, ConfigLocation};
use super::server_entry::{EntryPath, ServerEntry};
use super::{json_file, toml_file};

/// Outcome of an edit, with the new text of the file unless nothing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigEdit {
    None,
    /// The file gets a server entry that it did not have.
    Added(String),
    /// An existing entry of this server is updated.
    Changed(String),
    Removed(String),
}

/// Why an edit was refused and the file is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditRefusal {
    /// The file is malformed. The text completes a sentence that begins with the file's name.
    Unfit(String),
    /// Another server has the same name.
    Taken(String),
}

/// Whether an entry of the same name that belongs to another server may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameConflictPolicy {
    Keep,
    Replace,
}

/// Inserts or updates a server entry. Keys of an existing entry that the user added, such as a timeout, are kept.
pub(crate) fn insert_server(
    text: &str,
    location: &ConfigLocation,
    name: &str,
    entry: &ServerEntry,
    conflicts: NameConflictPolicy,
) -> Result<ConfigEdit, EditRefusal> {
    let (mark, body) = split_bom(text, location.form);
    let before = value(body, location.form)?;
    let existing = before.get(location.section).and_then(|all| all.get(name));
    if let Some(existing) = existing
        .filter(|existing| conflicts == NameConflictPolicy::Keep && !entry.is_same_server(existing))
    {
        return Err(EditRefusal::Taken(describe_server(existing)));
    }
    let merged = existing.map_or_else(|| entry.to_value(), |existing| entry.merged_with(existing));
    if existing == Some(&merged) {
        return Ok(ConfigEdit::None);
    }
    let at = EntryPath {
        section: location.section,
        name,
    };
    let after = match location.form {
        ConfigFileFormat::Toml => toml_file::put(body, at, entry),
        form => json_file::put(body, form, at, entry),
    };
    let after = ensure_trailing_newline(after.map_err(EditRefusal::Unfit)?);
    verify_edit(&before, &after, location, name, Some(&merged))?;
    let after = format!("{mark}{after}");
    Ok(if existing.is_some() {
        ConfigEdit::Changed(after)
    } else {
        ConfigEdit::Added(after)
    })
}

/// Removes a server entry from the text of a file.
pub(crate) fn remove_server(
    text: &str,
    location: &ConfigLocation,
    name: &str,
    entry: &ServerEntry,
    conflicts: NameConflictPolicy,
) -> Result<ConfigEdit, EditRefusal> {
    let (mark, body) = split_bom(text, location.form);
    let before = value(body, location.form)?;
    let Some(existing) = before.get(location.section).and_then(|all| all.get(name)) else {
        return Ok(ConfigEdit::None);
    };
    if conflicts == NameConflictPolicy::Keep && !entry.is_same_server(existing) {
        return Err(EditRefusal::Taken(describe_server(existing)));
    }
    let at = EntryPath {
        section: location.section,
        name,
    };
    let after = match location.form {
        ConfigFileFormat::Toml => toml_file::take(body, at),
        form => json_file::take(body, form, at),
    };
    let after = after.map_err(EditRefusal::Unfit)?;
    verify_edit(&before, &after, location, name, None)?;
    Ok(ConfigEdit::Removed(format!("{mark}{after}")))
}

/// Splits off a byte order mark, which stays in front of the new text. An empty or missing file becomes an empty
/// object.
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

/// Verifies that the edited text parses to the old value plus the wanted entry. This catches files that an edit cannot
/// change safely, such as one with a duplicate key, of which the client reads the other occurrence.
fn verify_edit(
    before: &Value,
    after: &str,
    location: &ConfigLocation,
    name: &str,
    wanted: Option<&Value>,
) -> Result<(), EditRefusal> {
    let mut expected = before.clone();
    if let Some(top) = expected.as_object_mut() {
        let servers = top
            .entry(location.section)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(servers) = servers.as_object_mut() {
            match wanted {
                Some(wanted) => servers.insert(name.to_owned(), wanted.clone()),
                None => servers.shift_remove(name),
            };
        }
    }
    let found = value(after, location.form)?;
    // An implicit TOML table disappears when it is empty, and an empty section means the same as none.
    if found == expected
        || without_empty(&found, location.section) == without_empty(&expected, location.section)
    {
        return Ok(());
    }
    Err(EditRefusal::Unfit(
        "cannot be edited without changing other parts of it".to_owned(),
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

/// Describes another server by its URL or command, for the message about a name conflict.
fn describe_server(existing: &Value) -> String {
    let text = |key: &str| existing.get(key).and_then(Value::as_str);
    let location = text("url")
        .or_else(|| text("httpUrl"))
        .or_else(|| text("command"));
    crate::display_text::shorten(location.unwrap_or("another server"), 120)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn location(form: ConfigFileFormat) -> ConfigLocation {
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
            &location(form),
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
                &location(ConfigFileFormat::Jsonc),
                "docs",
                &stdio(),
                NameConflictPolicy::Keep
            ),
            Ok(ConfigEdit::None)
        );
        let back = remove_server(
            &after,
            &location(ConfigFileFormat::Jsonc),
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
            &location(ConfigFileFormat::Toml),
            "docs",
            &stdio(),
            NameConflictPolicy::Keep,
        )
        .unwrap();
        assert_eq!(text(back), before);
    }

    #[test]
    fn members_that_the_user_added_are_kept() {
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
            &location(ConfigFileFormat::Json),
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
                &location(ConfigFileFormat::Json),
                "docs",
                &stdio(),
                NameConflictPolicy::Keep
            ),
            Err(taken)
        );
        let forced = insert_server(
            before,
            &location(ConfigFileFormat::Json),
            "docs",
            &stdio(),
            NameConflictPolicy::Replace,
        );
        assert!(matches!(forced, Ok(ConfigEdit::Changed(_))), "{forced:?}");
        assert_eq!(
            remove_server(
                "{}",
                &location(ConfigFileFormat::Json),
                "docs",
                &stdio(),
                NameConflictPolicy::Keep
            ),
            Ok(ConfigEdit::None)
        );
    }

    #[test]
    fn malformed_files_are_not_edited() {
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
