//! Resources and resource templates: text or bytes that clients read by URI.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::completion::Completer;
use crate::error::Failure;
use crate::request_context::Context;
use crate::uri_template::{TemplateVars, match_pattern};

/// The content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// A text, sent as it is.
    Text(String),
    /// Bytes, which the caller has encoded as base64.
    Base64(String),
}

type ResourceReader = Arc<
    dyn Fn(TemplateVars, Context) -> BoxFuture<'static, Result<ResourceBody, Failure>>
        + Send
        + Sync,
>;

/// A resource, which clients read at a fixed URI.
///
/// ```rust
/// use docent_mcp::{App, Context, Resource, ResourceBody};
///
/// let about = ResourceBody::Text("Tides of Port Ellin.".to_owned());
/// let uptime = Resource::new("docs://uptime", "uptime", "text/plain", |_: Context| async {
///     Ok(ResourceBody::Text(std::fs::read_to_string("/proc/uptime")?))
/// });
/// let app = App::builder("tides", "1.0.0")
///     .resource(Resource::fixed("docs://about", "about", "text/plain", about))
///     .resource(uptime.title("Uptime"))
///     .build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Resource {
    pub(crate) uri: String,
    about: ResourceInfo,
    read: ResourceReader,
}

/// A resource template, which serves every URI that matches a pattern such as `docs://page/{id}`.
///
/// ```rust
/// use docent_mcp::{App, Context, Failure, ResourceBody, ResourceTemplate, TemplateVars};
///
/// let tides = |vars: TemplateVars, _: Context| async move {
///     match vars.get("harbour").map(String::as_str) {
///         Some("ellin") => Ok(ResourceBody::Text("04:12, 16:40".to_owned())),
///         other => Err(Failure::not_found(other.unwrap_or_default())),
///     }
/// };
/// let template = ResourceTemplate::new("docs://tides/{harbour}", "tides", "text/plain", tides);
/// let app = App::builder("tides", "1.0.0").resource_template(template).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
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

    /// Builds the result of `resources/read`. It repeats the `_meta` of the list, because some hosts read one and
    /// some the other.
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
    /// Creates a resource with fixed content.
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

    /// Creates a resource whose content is produced for each request.
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

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.about.title = Some(title.into());
        self
    }

    /// Sets the description, by which hosts and models choose what to read.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.about.description = Some(description.into());
        self
    }

    /// Adds a `_meta` member, which appears on the list and on the contents.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.about.meta.insert(key.into(), value.into());
        self
    }

    pub(crate) fn wire(&self) -> Value {
        self.about.wire("uri", &self.uri)
    }

    /// Reads the resource. The result repeats the requested `uri`, which may be a former address.
    pub(crate) async fn read(&self, uri: &str, context: Context) -> Result<Value, Failure> {
        let body = (self.read)(TemplateVars::new(), context).await?;
        Ok(self.about.contents(uri, body))
    }
}

impl ResourceTemplate {
    /// Creates a template. In its pattern `{name}` matches one path segment, and `{+name}` any text.
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

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.about.title = Some(title.into());
        self
    }

    /// Sets the description of the resources that match the pattern.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.about.description = Some(description.into());
        self
    }

    /// Adds completion for a variable of the pattern.
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
