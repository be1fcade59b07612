//! Resources and resource templates: an address in, text or bytes out.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::completion::Completer;
use crate::error::Failure;
use crate::request_context::Context;

/// What reading a resource gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, as base64.
    Base64(String),
}

type ResourceReader = Arc<
    dyn Fn(TemplateVars, Context) -> BoxFuture<'static, Result<ResourceBody, Failure>>
        + Send
        + Sync,
>;

/// The variables of a template, by name.
pub type TemplateVars = BTreeMap<String, String>;

/// Something a client can read at a fixed address.
#[derive(Clone)]
pub struct Resource {
    pub(crate) uri: String,
    about: ResourceInfo,
    read: ResourceReader,
}

/// Something a client can read at every address of a pattern, such as `docs://page/{id}`.
#[derive(Clone)]
pub struct ResourceTemplate {
    pub(crate) pattern: String,
    about: ResourceInfo,
    read: ResourceReader,
    pub(crate) completers: BTreeMap<String, Completer>,
}

#[derive(Clone)]
struct ResourceInfo {
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: String,
    meta: Map<String, Value>,
}

impl ResourceInfo {
    fn new(name: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            mime_type: mime_type.into(),
            meta: Map::new(),
        }
    }

    fn wire(&self, key: &str, address: &str) -> Value {
        let mut entry = json!({key: address, "name": self.name, "mimeType": self.mime_type});
        if let Some(object) = entry.as_object_mut() {
            let optional = [("title", &self.title), ("description", &self.description)];
            for (key, value) in optional
                .into_iter()
                .filter_map(|(k, v)| v.as_ref().map(|v| (k, v)))
            {
                object.insert(key.to_owned(), json!(value));
            }
            if !self.meta.is_empty() {
                object.insert("_meta".to_owned(), json!(self.meta));
            }
        }
        entry
    }

    /// What was read, with everything the list says about it: hosts look at the one or the other.
    fn contents(&self, uri: &str, body: ResourceBody) -> Value {
        let (key, value) = match body {
            ResourceBody::Text(text) => ("text", text),
            ResourceBody::Base64(blob) => ("blob", blob),
        };
        let mut item = json!({"uri": uri, "mimeType": self.mime_type, key: value});
        if let Some(item) = item.as_object_mut().filter(|_| !self.meta.is_empty()) {
            item.insert("_meta".to_owned(), json!(self.meta));
        }
        json!({"contents": [item]})
    }
}

impl Resource {
    /// A resource whose content never changes.
    #[must_use]
    pub fn fixed(
        uri: impl Into<String>,
        name: impl Into<String>,
        mime_type: impl Into<String>,
        body: ResourceBody,
    ) -> Self {
        Self::new(uri, name, mime_type, move |_| {
            std::future::ready(Ok(body.clone()))
        })
    }

    /// A resource that is made anew for each reader.
    #[must_use]
    pub fn new<F, R>(
        uri: impl Into<String>,
        name: impl Into<String>,
        mime_type: impl Into<String>,
        read: F,
    ) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ResourceBody, Failure>> + Send + 'static,
    {
        Self {
            uri: uri.into(),
            about: ResourceInfo::new(name, mime_type),
            read: Arc::new(move |_, context| read(context).boxed()),
        }
    }

    /// The name shown to people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.about.title = Some(title.into());
        self
    }

    /// What the resource holds.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.about.description = Some(description.into());
        self
    }

    /// A `_meta` member, which stands on the list and on the contents.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.about.meta.insert(key.into(), value.into());
        self
    }

    pub(crate) fn wire(&self) -> Value {
        self.about.wire("uri", &self.uri)
    }

    /// Reads it for whoever asked for `uri`, which may be an address of earlier days.
    pub(crate) async fn read(&self, uri: &str, context: Context) -> Result<Value, Failure> {
        let body = (self.read)(TemplateVars::new(), context).await?;
        Ok(self.about.contents(uri, body))
    }
}

impl ResourceTemplate {
    /// A pattern with `{name}` for one path segment and `{+name}` for any text.
    #[must_use]
    pub fn new<F, R>(
        pattern: impl Into<String>,
        name: impl Into<String>,
        mime_type: impl Into<String>,
        read: F,
    ) -> Self
    where
        F: Fn(TemplateVars, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ResourceBody, Failure>> + Send + 'static,
    {
        Self {
            pattern: pattern.into(),
            about: ResourceInfo::new(name, mime_type),
            read: Arc::new(move |vars, context| read(vars, context).boxed()),
            completers: BTreeMap::new(),
        }
    }

    /// The name shown to people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.about.title = Some(title.into());
        self
    }

    /// What the resources of this pattern hold.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.about.description = Some(description.into());
        self
    }

    /// Suggests values for a variable from what the user has typed so far.
    #[must_use]
    pub fn complete(mut self, variable: &str, completer: Completer) -> Self {
        self.completers.insert(variable.to_owned(), completer);
        self
    }

    pub(crate) fn wire(&self) -> Value {
        self.about.wire("uriTemplate", &self.pattern)
    }

    pub(crate) fn matches(&self, uri: &str) -> Option<TemplateVars> {
        match_pattern(&self.pattern, uri)
    }

    pub(crate) async fn read(
        &self,
        uri: &str,
        vars: TemplateVars,
        context: Context,
    ) -> Result<Value, Failure> {
        let body = (self.read)(vars, context).await?;
        Ok(self.about.contents(uri, body))
    }
}

/// Matches without a regular expression: each variable runs to the next literal, so that the time
/// is linear whatever the address looks like.
pub(crate) fn match_pattern(pattern: &str, uri: &str) -> Option<TemplateVars> {
    let mut vars = TemplateVars::new();
    let (mut pattern, mut rest) = (pattern, uri);
    while let Some((literal, tail)) = pattern.split_once('{') {
        rest = rest.strip_prefix(literal)?;
        let (name, tail) = tail.split_once('}')?;
        let next = tail.split_once('{').map_or(tail, |(literal, _)| literal);
        let end = if next.is_empty() {
            rest.len()
        } else {
            rest.find(next)?
        };
        let (value, after) = rest.split_at_checked(end)?;
        let (name, across) = name
            .strip_prefix('+')
            .map_or((name, false), |name| (name, true));
        if value.is_empty() || (!across && value.contains('/')) {
            return None;
        }
        vars.insert(name.to_owned(), value.to_owned());
        (pattern, rest) = (tail, after);
    }
    (rest == pattern).then_some(vars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_addresses() {
        let rows = [
            ("test://t/{id}/data", "test://t/123/data", Some("id=123")),
            ("test://t/{id}/data", "test://t//data", None),
            ("test://t/{id}/data", "test://t/1/2/data", None),
            ("test://t/{id}/data", "test://t/1/data/more", None),
            ("docs://{+path}", "docs://a/b.md", Some("path=a/b.md")),
            ("x://{a}-{b}", "x://1-2-3", Some("a=1,b=2-3")),
            ("x://fixed", "x://fixed", Some("")),
            ("x://fixed", "x://other", None),
        ];
        for (pattern, uri, expected) in rows {
            let found = match_pattern(pattern, uri).map(|vars| {
                vars.iter()
                    .map(|(k, v)| format!("{k}={v}"))
                    .collect::<Vec<_>>()
                    .join(",")
            });
            assert_eq!(found.as_deref(), expected, "{pattern} {uri}");
        }
    }
}
