//! The app: its name, tools, resources and prompts, checked once when it is built.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::call_observer::{CallObserver, ObserverPair};
use crate::change_notifier::ChangeNotifier;
use crate::descriptor::{Security, ToolDescriptor};
use crate::error::{BuildError, ErrorExplainer};
use crate::locale::AppLocales;
use crate::prompt::Prompt;
use crate::resource::{Resource, ResourceTemplate};
use crate::resource_registry::ResourceRegistry;
use crate::result::{DualFormat, TextForm};
use crate::tool::{ErasedTool, OutputContract, Tool, ToolAdapter};
use crate::widget::Widget;

/// A picture for an app or a tool.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// An https address or a `data:` uri.
    pub src: String,
    /// Such as `image/png`.
    pub mime_type: String,
    /// Such as `48x48`.
    pub sizes: Vec<String>,
}

impl Icon {
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let fits = ["https://", "data:image/"]
            .iter()
            .any(|start| self.src.starts_with(start));
        if fits {
            Ok(())
        } else {
            Err(BuildError::Icon(self.src.clone()))
        }
    }
}

/// An MCP server that is ready to be served over HTTP, stdio, or both. Clones are one app.
#[derive(Clone)]
pub struct App(Arc<AppInner>);

pub(crate) struct AppInner {
    pub(crate) identity: ServerIdentity,
    pub(crate) tools: Vec<RegisteredTool>,
    pub(crate) tool_by_name: HashMap<String, usize>,
    pub(crate) shelf: ResourceRegistry,
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
    /// The rendered tools with the version of the tools they show.
    pub(crate) tool_list: RwLock<Option<(u64, Arc<str>)>>,
}

/// A tool with the facts about it that every call needs.
pub(crate) struct RegisteredTool {
    pub(crate) tool: Box<dyn ErasedTool>,
    pub(crate) streams: bool,
    pub(crate) output: OutputContract,
    /// How callers may sign in, if the tool says so.
    pub(crate) security: Option<Vec<Security>>,
    /// Properties that clients repeat in an `Mcp-Param-*` header, with the header's name.
    pub(crate) headers: Vec<(String, String)>,
}

impl RegisteredTool {
    fn new(
        tool: Box<dyn ErasedTool>,
        shelf: &ResourceRegistry,
    ) -> Result<(String, Self), BuildError> {
        let wire = tool.wire(shelf)?;
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
    /// True when nobody may call the tool without signing in.
    pub(crate) fn requires_sign_in(&self) -> bool {
        let ways = self.security.as_deref();
        ways.is_some_and(|ways| !ways.contains(&Security::NoAuth))
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

/// How long clients may keep what does not depend on who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheHints {
    /// For `server/discover`, which changes only with a new version.
    pub(crate) discover_ms: u64,
    /// For lists and resources, which change with the data.
    pub(crate) list_ms: u64,
}

/// Who the server says it is.
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
    /// The same as JSON, made once because every modern result carries it.
    #[serde(skip)]
    pub(crate) wire: Value,
}

impl App {
    /// Starts building an app; `name` is for machines, such as `acme-docs`.
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

    /// The handle with which to tell listening clients that something changed.
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

    /// A tool that nobody may call without signing in.
    pub(crate) fn tool_requiring_sign_in(&self) -> Option<&str> {
        let mut tools = self.0.tool_by_name.iter();
        let demanding = |index: &usize| {
            let tool = self.0.tools.get(*index);
            tool.is_some_and(RegisteredTool::requires_sign_in)
        };
        tools.find_map(|(name, index)| demanding(index).then_some(name.as_str()))
    }

    /// The tools as a JSON array, rendered once for each change of them.
    pub(crate) fn tool_list(&self) -> Result<Arc<str>, BuildError> {
        let version = self.0.changes.tools_version();
        if let Ok(cached) = self.0.tool_list.read()
            && let Some((made_for, list)) = cached.as_ref()
            && *made_for == version
        {
            return Ok(list.clone());
        }
        let tools: Vec<Value> = self
            .0
            .tools
            .iter()
            .map(|entry| entry.tool.wire(&self.0.shelf))
            .collect::<Result<_, _>>()?;
        let list: Arc<str> = Value::Array(tools).to_string().into();
        if let Ok(mut cached) = self.0.tool_list.write() {
            *cached = Some((version, list.clone()));
        }
        Ok(list)
    }
}

/// Collects the parts of an [`App`].
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
    /// The name shown to people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.identity.title = Some(title.into());
        self
    }

    /// What the model should know about the server as a whole. The first 512 characters must
    /// stand alone: ChatGPT may read no further.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.identity.instructions = Some(text.into());
        self
    }

    /// A page about the app.
    #[must_use]
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.identity.website_url = Some(url.into());
        self
    }

    /// A picture for the app.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.identity.icons.push(icon);
        self
    }

    /// Adds a tool. Hosts see the tools in the order they were added.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Box::new(ToolAdapter::new(tool)));
        self
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Adds a pattern of resources.
    #[must_use]
    pub fn resource_template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Adds a widget, which tools render by its name.
    #[must_use]
    pub fn widget(mut self, widget: Widget) -> Self {
        self.widgets.push(widget);
        self
    }

    /// Adds a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// When results repeat themselves beside `content`.
    #[must_use]
    pub const fn dual_format(mut self, dual: DualFormat) -> Self {
        self.dual = dual;
        self
    }

    /// What the text item of a result holds.
    #[must_use]
    pub const fn text_form(mut self, text: TextForm) -> Self {
        self.text = text;
        self
    }

    /// Explains failures of tools that are nobody's mistake, such as a service that is away for a while: the
    /// caller reads what this says in place of a reference to the log.
    #[must_use]
    pub const fn explain(mut self, explain: ErrorExplainer) -> Self {
        self.explain = Some(explain);
        self
    }

    /// Declares that tools send log messages (see [`Context::log`](crate::Context::log)).
    #[must_use]
    pub const fn logging(mut self) -> Self {
        self.logging = true;
        self
    }

    /// The languages the app speaks, as tags such as `en` or `pt-BR`; the first is for everyone
    /// whose language is not among them. Clients that name theirs hear which they get.
    #[must_use]
    pub fn locales<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.locales = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Has somebody hear of every call to a tool, beside those who do already.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(match self.observer.take() {
            Some(before) => Arc::new(ObserverPair(before, observer)),
            None => observer,
        });
        self
    }

    /// The names of the tools so far, in their order.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        let names = self.tools.iter().map(|tool| tool.descriptor().name);
        names.collect()
    }

    /// Checks everything that hosts would refuse later.
    ///
    /// # Errors
    /// The first part that hosts would refuse, with what to change.
    pub fn build(mut self) -> Result<App, BuildError> {
        self.identity.wire = json!(self.identity);
        for icon in &self.identity.icons {
            icon.check()?;
        }
        let shelf = ResourceRegistry::new(
            self.resources,
            self.templates,
            &self.widgets,
            &self.identity.name,
        )?;
        let mut tools = Vec::with_capacity(self.tools.len());
        let mut tool_by_name = HashMap::new();
        for tool in self.tools {
            let (name, tool) = RegisteredTool::new(tool, &shelf)?;
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
            shelf,
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
