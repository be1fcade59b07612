//! Reads the widgets of a server: each `ui://` template that a tool names or `resources/list` contains.
//!
//! Metadata is looked up as hosts do it: in the item that was read and, only where that has none, in the list. The
//! tools that name a template are kept with it, since a widget is tested with their results. The number of widgets is
//! bounded.

use std::sync::Arc;

use serde_json::{Value, json};

use super::SurveySession;
use crate::exchange::RecordedExchange;

/// The most widgets that one check reads.
const MAX_WIDGETS: usize = 10;

/// One widget template: the tools that name it, and the exchange that read it.
pub(crate) struct SurveyedWidget {
    pub uri: String,
    /// The entry in `resources/list`, where there is one.
    pub entry: Option<Value>,
    pub tools: Vec<String>,
    pub read: Arc<RecordedExchange>,
}

impl SurveyedWidget {
    /// The first item of `contents` in the response.
    pub(crate) fn contents(&self) -> Option<&Value> {
        self.read.result()?.get("contents")?.get(0)
    }

    /// The HTML of the template, from `text` or from the base64 of `blob`.
    pub(crate) fn html(&self) -> Option<String> {
        use base64::Engine as _;
        let contents = self.contents()?;
        if let Some(text) = contents.get("text").and_then(Value::as_str) {
            return Some(text.to_owned());
        }
        let blob = contents.get("blob")?.as_str()?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(blob)
            .ok()?;
        String::from_utf8(bytes).ok()
    }

    /// A member of `_meta`, from the item that was read or else from the list, as hosts look it up.
    pub(crate) fn meta(&self, path: &[&str]) -> Option<&Value> {
        let of = |item: Option<&Value>| -> bool {
            item.and_then(|item| item.get("_meta"))
                .is_some_and(|meta| self::find(meta, path).is_some())
        };
        let item = if of(self.contents()) {
            self.contents()
        } else {
            self.entry.as_ref()
        };
        self::find(item?.get("_meta")?, path)
    }
}

fn find<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The templates that a tool names, under the key of the MCP Apps specification and under those of ChatGPT.
pub(crate) fn templates(tool: &Value) -> Vec<(&'static str, String)> {
    let meta = tool.get("_meta").unwrap_or(&Value::Null);
    let keys: [(&'static str, &[&str]); 3] = [
        ("ui.resourceUri", &["ui", "resourceUri"]),
        ("openai/outputTemplate", &["openai/outputTemplate"]),
        ("ui/resourceUri", &["ui/resourceUri"]),
    ];
    let named = keys.into_iter().filter_map(|(key, path)| {
        let uri = find(meta, path)?.as_str()?;
        Some((key, uri.to_owned()))
    });
    named.collect()
}

pub(super) fn read(ctx: &mut SurveySession) {
    let listed = ctx
        .survey
        .probe("resources")
        .and_then(RecordedExchange::result);
    let listed = listed
        .and_then(|result| result.get("resources"))
        .and_then(Value::as_array);
    let entries: Vec<Value> = listed
        .map(|all| all.iter().take(1_000).cloned().collect())
        .unwrap_or_default();
    let uri_of = |entry: &Value| entry.get("uri").and_then(Value::as_str).map(str::to_owned);
    let mut wanted: Vec<(String, Vec<String>)> = Vec::new();
    for tool in ctx.survey.tools.iter() {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        for (_, uri) in templates(tool) {
            match wanted.iter_mut().find(|(known, _)| *known == uri) {
                Some((_, tools)) if !tools.iter().any(|known| known == name) => {
                    tools.push(name.to_owned());
                }
                Some(_) => {}
                None => wanted.push((uri, vec![name.to_owned()])),
            }
        }
    }
    for uri in entries
        .iter()
        .filter_map(uri_of)
        .filter(|uri| uri.starts_with("ui://"))
    {
        if !wanted.iter().any(|(known, _)| *known == uri) {
            wanted.push((uri, Vec::new()));
        }
    }
    let Some(main) = ctx.main.take() else {
        return;
    };
    for (uri, tools) in wanted.into_iter().take(MAX_WIDGETS) {
        let read = ctx
            .wire
            .send(main.request("resources/read", json!({"uri": uri})));
        let entry = entries
            .iter()
            .find(|entry| uri_of(entry).as_ref() == Some(&uri))
            .cloned();
        ctx.survey.widgets.push(SurveyedWidget {
            uri,
            entry,
            tools,
            read,
        });
    }
    ctx.main = Some(main);
}
