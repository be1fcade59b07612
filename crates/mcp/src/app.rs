//! The application object: identity, tools, resources, prompts and widgets of an MCP server.
//!
//! [`AppBuilder::build`] validates everything once, so that a mistake which a host would refuse at connection time
//! fails the build instead, with a message that says what to change.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::call_observer::{CallObserver, ObserverPair};
use crate::change_notifier::ChangeNotifier;
use crate::descriptor::ToolDescriptor;
use crate::error::{BuildError, ErrorExplainer};
use crate::icon::Icon;
use crate::locale::AppLocales;
use crate::prompt::Prompt;
use crate::resource::{Resource, ResourceTemplate};
use crate::resource_registry::ResourceRegistry;
use crate::result::{DualFormat, TextForm};
use crate::security::Security;
use crate::tool::{ErasedTool, OutputContract, Tool, ToolAdapter};
use crate::widget::Widget;

/// A validated MCP server that can be served over HTTP, stdio, or both at once.
///
/// Cloning is cheap, and all clones share one state: a change announced through [`App::changes`] reaches the clients
/// of every transport.
///
/// ```rust,no_run
/// use docent_mcp::{App, http};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let app = App::builder("tides", "1.0.0").title("Tides").build()?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8787").await?;
/// http::serve(app, Default::default(), listener, Default::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct App(Arc<AppInner>);

pub(crate) struct AppInner {
    pub(crate) identity: ServerIdentity,
    pub(crate) tools: Vec<RegisteredTool>,
    pub(crate) tool_by_name: HashMap<String, usize>,
    pub(crate) registry: ResourceRegistry,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) dual: DualFormat,
    pub(crate) text: TextForm,
    pub(crate) explain: Option<ErrorExplainer>,
    pub(crate) cache: CacheHints,
    pub(crate) logging: bool,
    pub(crate) locales: AppLocales,
    pub(crate) observer: Option<Arc<dyn CallObserver>>,
    pub(crate) changes: ChangeNotifier,
    pub(crate) closing: CancellationToken,
    /// The cached `tools/list` JSON, keyed by the version of the tools that it was rendered from.
    pub(crate) tool_list: RwLock<Option<(u64, Arc<str>)>>,
}

/// A tool with what every call needs of its descriptor, computed once at build time.
///
/// `security` lists the sign-in methods of the descriptor, and `None` leaves them to the server. `headers` pairs each
/// input property with the `Mcp-Param-*` header in which clients must repeat it.
pub(crate) struct RegisteredTool {
    pub(crate) tool: Box<dyn ErasedTool>,
    pub(crate) streams: bool,
    pub(crate) output: OutputContract,
    pub(crate) security: Option<Vec<Security>>,
    pub(crate) headers: Vec<(String, String)>,
}

impl RegisteredTool {
    fn new(
        tool: Box<dyn ErasedTool>,
        registry: &ResourceRegistry,
    ) -> Result<(String, Self), BuildError> {
        let wire = tool.wire(registry)?;
        let ToolDescriptor {
            name,
            streams,
            dual,
            security,
            ..
        } = tool.descriptor();
        let output = OutputContract {
            dual,
            has_output_schema: wire.get("outputSchema").is_some(),
        };
        Ok((
            name,
            Self {
                tool,
                streams,
                output,
                security,
                headers: parameter_headers(&wire),
            },
        ))
    }
}

impl RegisteredTool {
    /// Whether every call of the tool needs a signed-in caller: it declares sign-in methods, and anonymous is not
    /// among them.
    pub(crate) fn requires_sign_in(&self) -> bool {
        let methods = self.security.as_deref();
        methods.is_some_and(|methods| !methods.contains(&Security::NoAuth))
    }
}

fn parameter_headers(wire: &Value) -> Vec<(String, String)> {
    let properties = wire
        .pointer("/inputSchema/properties")
        .and_then(Value::as_object);
    let named = properties
        .into_iter()
        .flatten()
        .filter_map(|(property, schema)| {
            Some((
                property.clone(),
                schema.get("x-mcp-header")?.as_str()?.to_owned(),
            ))
        });
    named.collect()
}

/// Cache lifetimes in milliseconds that modern results announce (`ttlMs`).
///
/// `discover_ms` is for `server/discover`, which changes only with a new version of the server. `list_ms` is for
/// lists and resources, which change with the data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheHints {
    pub(crate) discover_ms: u64,
    pub(crate) list_ms: u64,
}

/// The identity that the server announces in `initialize`, `server/discover` and every modern result.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerIdentity {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    pub(crate) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) website_url: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) icons: Vec<Icon>,
    #[serde(skip)]
    pub(crate) instructions: Option<String>,
    /// The serialized identity, cached because every modern result contains it.
    #[serde(skip)]
    pub(crate) wire: Value,
}

impl App {
    /// Starts an [`AppBuilder`]. The `name` identifies the server to programs, such as `acme-docs`; people see the
    /// [title](AppBuilder::title).
    #[must_use]
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> AppBuilder {
        AppBuilder {
            identity: ServerIdentity {
                name: name.into(),
                title: None,
                version: version.into(),
                website_url: None,
                icons: Vec::new(),
                instructions: None,
                wire: Value::Null,
            },
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            widgets: Vec::new(),
            prompts: Vec::new(),
            dual: DualFormat::default(),
            text: TextForm::default(),
            explain: None,
            logging: false,
            locales: Vec::new(),
            observer: None,
        }
    }

    /// Returns the handle that notifies subscribed clients of changed tools, prompts and resources.
    #[must_use]
    pub fn changes(&self) -> ChangeNotifier {
        self.0.changes.clone()
    }

    pub(crate) fn inner(&self) -> &AppInner {
        &self.0
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&RegisteredTool> {
        self.0
            .tool_by_name
            .get(name)
            .and_then(|&index| self.0.tools.get(index))
    }

    /// Returns the name of a tool that requires sign-in, if there is one. A server without authentication refuses to
    /// start with it.
    pub(crate) fn tool_requiring_sign_in(&self) -> Option<&str> {
        let mut tools = self.0.tool_by_name.iter();
        let requires_sign_in = |index: &usize| {
            let tool = self.0.tools.get(*index);
            tool.is_some_and(RegisteredTool::requires_sign_in)
        };
        tools.find_map(|(name, index)| requires_sign_in(index).then_some(name.as_str()))
    }

    /// Returns the tools as a JSON array. The list is rendered once per change and served from the cache in between.
    pub(crate) fn tool_list(&self) -> Result<Arc<str>, BuildError> {
        let version = self.0.changes.tools_version();
        if let Ok(cached) = self.0.tool_list.read()
            && let Some((cached_version, list)) = cached.as_ref()
            && *cached_version == version
        {
            return Ok(list.clone());
        }
        let tools: Vec<Value> = self
            .0
            .tools
            .iter()
            .map(|entry| entry.tool.wire(&self.0.registry))
            .collect::<Result<_, _>>()?;
        let list: Arc<str> = Value::Array(tools).to_string().into();
        if let Ok(mut cached) = self.0.tool_list.write() {
            *cached = Some((version, list.clone()));
        }
        Ok(list)
    }
}

/// Builder of an [`App`]; start it with [`App::builder`].
///
/// ```rust
/// use docent_mcp::{App, Resource, ResourceBody};
///
/// let about = ResourceBody::Text("Tides of Port Ellin, computed daily.".to_owned());
/// let app = App::builder("tides", "1.0.0")
///     .title("Tides")
///     .instructions("Look up the tides of a harbour with `tides`.")
///     .website("https://tides.example")
///     .locales(["en", "de"])
///     .resource(Resource::fixed("docs://about", "about", "text/plain", about))
///     .build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
pub struct AppBuilder {
    identity: ServerIdentity,
    tools: Vec<Box<dyn ErasedTool>>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    widgets: Vec<Widget>,
    prompts: Vec<Prompt>,
    dual: DualFormat,
    text: TextForm,
    explain: Option<ErrorExplainer>,
    logging: bool,
    locales: Vec<String>,
    observer: Option<Arc<dyn CallObserver>>,
}

impl AppBuilder {
    /// Sets the display name, which hosts show to people instead of the machine-readable name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.identity.title = Some(title.into());
        self
    }

    /// Sets the instructions: what the model should know about the server as a whole. The first 512 characters must
    /// make sense on their own, because ChatGPT may read no further.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.identity.instructions = Some(text.into());
        self
    }

    /// Sets the address of a web page about the app.
    #[must_use]
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.identity.website_url = Some(url.into());
        self
    }

    /// Adds an icon. Several icons are variants of one image, in different sizes or formats.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.identity.icons.push(icon);
        self
    }

    /// Adds a [`Tool`]. Hosts list the tools in the order in which they were added.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Box::new(ToolAdapter::new(tool)));
        self
    }

    /// Adds a [`Resource`], which clients read at a fixed URI.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Adds a [`ResourceTemplate`], which serves every URI that matches a pattern.
    #[must_use]
    pub fn resource_template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Adds a [`Widget`]. A tool renders it by name, with [`ToolDescriptor::widget`].
    #[must_use]
    pub fn widget(mut self, widget: Widget) -> Self {
        self.widgets.push(widget);
        self
    }

    /// Adds a [`Prompt`], which hosts offer to their users.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// Sets for which clients a result repeats its `results` beside `content`.
    #[must_use]
    pub const fn dual_format(mut self, dual: DualFormat) -> Self {
        self.dual = dual;
        self
    }

    /// Sets whether the text of a result is the JSON of its data or prose.
    #[must_use]
    pub const fn text_form(mut self, text: TextForm) -> Self {
        self.text = text;
        self
    }

    /// Sets the [`ErrorExplainer`], which turns transient errors, such as an unavailable backend, into a message and
    /// a hint for the caller. Errors that it does not explain stay internal errors with a reference to the log.
    #[must_use]
    pub const fn explain(mut self, explain: ErrorExplainer) -> Self {
        self.explain = Some(explain);
        self
    }

    /// Declares the `logging` capability, for tools that send log messages to the client (see
    /// [`Context::log`](crate::Context::log)).
    #[must_use]
    pub const fn logging(mut self) -> Self {
        self.logging = true;
        self
    }

    /// Sets the languages of the app as tags such as `en` or `pt-BR`. The first is the fallback for users whose
    /// language is not listed. A client that names its language is told which one it gets.
    #[must_use]
    pub fn locales<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.locales = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a [`CallObserver`]. Observers added before keep receiving calls too.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(match self.observer.take() {
            Some(before) => Arc::new(ObserverPair(before, observer)),
            None => observer,
        });
        self
    }

    /// Returns the names of the tools added so far, in their order.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        let names = self.tools.iter().map(|tool| tool.descriptor().name);
        names.collect()
    }

    /// Validates the app and builds it.
    ///
    /// # Errors
    /// Returns the first part that a host would refuse, and says what to change.
    pub fn build(mut self) -> Result<App, BuildError> {
        self.identity.wire = json!(self.identity);
        for icon in &self.identity.icons {
            icon.check()?;
        }
        let registry = ResourceRegistry::new(
            self.resources,
            self.templates,
            &self.widgets,
            &self.identity.name,
        )?;
        let mut tools = Vec::with_capacity(self.tools.len());
        let mut tool_by_name = HashMap::new();
        for tool in self.tools {
            let (name, tool) = RegisteredTool::new(tool, &registry)?;
            if tool_by_name.insert(name.clone(), tools.len()).is_some() {
                return Err(BuildError::Duplicate(name));
            }
            tools.push(tool);
        }
        unique(self.prompts.iter().map(|prompt| &prompt.name))?;
        Ok(App(Arc::new(AppInner {
            identity: self.identity,
            tools,
            tool_by_name,
            registry,
            prompts: self.prompts,
            dual: self.dual,
            text: self.text,
            explain: self.explain,
            cache: CacheHints {
                discover_ms: 3_600_000,
                list_ms: 300_000,
            },
            logging: self.logging,
            locales: AppLocales::new(self.locales)?,
            observer: self.observer,
            changes: ChangeNotifier::new(),
            closing: CancellationToken::new(),
            tool_list: RwLock::new(None),
        })))
    }
}

fn unique<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), BuildError> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(BuildError::Duplicate(name.clone()));
        }
    }
    Ok(())
}
