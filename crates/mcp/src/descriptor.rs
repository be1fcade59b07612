//! Tool descriptors: a tool as `tools/list` shows it, with the metadata that each host reads.

use serde_json::{Map, Value, json};

use crate::error::BuildError;
use crate::file;
use crate::icon::Icon;
use crate::resource_registry::ResourceRegistry;
use crate::schema::{self, OutputForm, OutputSchema};
use crate::security::Security;

/// Maximum length of a status text in characters, as ChatGPT accepts it.
const MAX_STATUS_CHARS: usize = 64;

/// The behavior hints of a tool (MCP `annotations`), without defaults. The review of ChatGPT's directory requires
/// `readOnlyHint`, `destructiveHint` and `openWorldHint`; that of Claude's requires `readOnlyHint` to be true or
/// `destructiveHint` to be set. Nobody requires `idempotentHint`.
///
/// ```rust
/// use docent_mcp::ToolAnnotations;
///
/// // A tool that publishes: it changes what others see, and it can be undone.
/// let publish = ToolAnnotations {
///     open_world: true,
///     ..ToolAnnotations::WRITES
/// };
/// assert!(!publish.read_only && !publish.destructive);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// The tool creates, changes, sends and queues nothing (`readOnlyHint`).
    pub read_only: bool,
    /// Some use of the tool cannot be undone (`destructiveHint`).
    pub destructive: bool,
    /// Repeating a call has no further effect (`idempotentHint`).
    pub idempotent: bool,
    /// The tool can change what is publicly visible outside (`openWorldHint`).
    pub open_world: bool,
}

impl ToolAnnotations {
    /// A read-only tool. Hosts call it without asking the user.
    pub const READ_ONLY: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };
    /// A tool that changes the user's own data in a way that can be undone.
    pub const WRITES: Self = Self {
        read_only: false,
        destructive: false,
        idempotent: false,
        open_world: false,
    };
    /// A tool that deletes or overwrites data. Hosts ask the user first.
    pub const DESTRUCTIVE: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };
}

/// The audience of a tool: the model, the app's widgets, or both. It is a hint for hosts, not access control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolAudience {
    /// Only the model may call the tool.
    Model,
    /// Only the app's widgets may call the tool: hosts hide it from the model.
    Widgets,
    /// The model and the widgets may call the tool.
    Everyone,
}

/// A tool as `tools/list` shows it.
///
/// ```rust
/// use docent_mcp::{Security, ToolAnnotations, ToolDescriptor};
///
/// let text = "Use this when the user asks for the tides of a harbour.";
/// let tool = ToolDescriptor::new("tides", "Tides", text, ToolAnnotations::READ_ONLY)
///     .status("Looking up tides…", "Tides ready")
///     .security([Security::NoAuth, Security::oauth2(["tides.read"])]);
/// # let _ = tool;
/// ```
#[derive(Debug, Clone)]
pub struct ToolDescriptor {
    pub(crate) name: String,
    title: String,
    description: String,
    hints: ToolAnnotations,
    icons: Vec<Icon>,
    meta: Map<String, Value>,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    widget: Option<String>,
    audience: Option<ToolAudience>,
    pub(crate) security: Option<Vec<Security>>,
    pub(crate) streams: bool,
    pub(crate) dual: bool,
}

/// The schemas generated from a tool's input and output types.
#[derive(Clone, Copy)]
pub(crate) struct ToolSchemas<'a> {
    pub(crate) input: &'a Value,
    pub(crate) output: &'a OutputSchema,
}

impl ToolDescriptor {
    /// Creates a descriptor from the four parts that hosts require.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        description: impl Into<String>,
        hints: ToolAnnotations,
    ) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            description: description.into(),
            hints,
            icons: Vec::new(),
            meta: Map::new(),
            input_schema: None,
            output_schema: None,
            widget: None,
            audience: None,
            security: None,
            streams: false,
            dual: false,
        }
    }

    /// Adds an icon to the tool.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// Adds a `_meta` member to the descriptor.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Renders the result in the widget of this name. Give it to a tool that shows something, not to one that fetches
    /// data: a host mounts the widget again at every call.
    #[must_use]
    pub fn widget(mut self, name: impl Into<String>) -> Self {
        self.widget = Some(name.into());
        self
    }

    /// Sets the audience. The default for a tool with a widget is [`ToolAudience::Everyone`]. For any other tool it is
    /// the model, and on hosts that follow the MCP Apps standard also the widgets.
    #[must_use]
    pub const fn audience(mut self, audience: ToolAudience) -> Self {
        self.audience = Some(audience);
        self
    }

    /// Sets the status texts that ChatGPT shows during and after a call, each of 1 to 64 characters.
    #[must_use]
    pub fn status(self, working: impl Into<String>, done: impl Into<String>) -> Self {
        self.meta(INVOKING, working.into())
            .meta(INVOKED, done.into())
    }

    /// Sets the security schemes, any one of which is sufficient. Without [`Security::NoAuth`] among them the tool
    /// cannot be called anonymously, and [`http::serve`](crate::http::serve) refuses to start unless its options have
    /// `auth`. Over stdio the caller is the owner of the process, who may call everything.
    ///
    /// The schemes are written to the top level of the descriptor, where ChatGPT reads them, and again to `_meta`,
    /// because SDKs drop members that they do not know.
    #[must_use]
    pub fn security(mut self, schemes: impl IntoIterator<Item = Security>) -> Self {
        self.security = Some(schemes.into_iter().collect());
        self
    }

    /// Replaces the generated input schema, for contracts that fix every byte.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Replaces the generated output schema, for contracts that fix every byte. It describes the data as clients get
    /// it, which is an object.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Declares that the tool sends log messages, so its response is always a stream. Progress needs no declaration:
    /// a client that wants it asks for it.
    #[must_use]
    pub const fn streams(mut self) -> Self {
        self.streams = true;
        self
    }

    /// Opts in to the dual format: the `results` of the data are repeated beside `content` (see
    /// [`DualFormat`](crate::DualFormat)).
    #[must_use]
    pub const fn dual(mut self) -> Self {
        self.dual = true;
        self
    }

    /// Returns the descriptor as JSON, or the first thing in it that hosts would refuse.
    pub(crate) fn wire(
        mut self,
        schemas: ToolSchemas<'_>,
        registry: &ResourceRegistry,
    ) -> Result<Value, BuildError> {
        self.check()?;
        let mut input = self.input(schemas.input)?;
        let output = self.output(schemas.output)?;
        self.add_file_params(&mut input)?;
        self.add_widget_meta(registry)?;
        self.check_meta(&input, registry)?;
        let mut tool = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": input,
        });
        let mut set = |key: &str, value: Value| {
            tool.as_object_mut()
                .map(|tool| tool.insert(key.into(), value))
        };
        if let Some(output) = output {
            set("outputSchema", output);
        }
        set(
            "annotations",
            json!({
                "title": self.title,
                "readOnlyHint": self.hints.read_only,
                "destructiveHint": self.hints.destructive,
                "idempotentHint": self.hints.idempotent,
                "openWorldHint": self.hints.open_world,
            }),
        );
        if !self.icons.is_empty() {
            set("icons", json!(self.icons));
        }
        if let Some(schemes) = self.security {
            let schemes: Vec<Value> = schemes.iter().map(Security::wire).collect();
            set("securitySchemes", json!(schemes));
            self.meta
                .insert("securitySchemes".to_owned(), json!(schemes));
        }
        if !self.meta.is_empty() {
            set("_meta", Value::Object(self.meta));
        }
        Ok(tool)
    }

    /// Returns the input schema: the hand-written one, or else the generated one.
    fn input(&mut self, generated: &Value) -> Result<Value, BuildError> {
        let by_hand = self.input_schema.take();
        // A hand-written choice is intended; a generated one comes as a surprise.
        if by_hand.is_none() && schema::is_choice(generated) {
            return Err(self.tool_error(
                "takes one of several shapes, which hosts refuse in an input: use one struct with optional fields",
            ));
        }
        let input = by_hand.unwrap_or_else(|| generated.clone());
        if input.get("type") != Some(&json!("object")) {
            return Err(BuildError::Input(self.name.clone()));
        }
        match schema::schema_root_error(&input) {
            Some(flaw) => Err(self.tool_error(format!("has an input schema {flaw}"))),
            None => Ok(input),
        }
    }

    /// Returns the output schema: the hand-written one, or else the generated one.
    fn output(&mut self, generated: &OutputSchema) -> Result<Option<Value>, BuildError> {
        let Some(by_hand) = self.output_schema.take() else {
            return Ok(generated.schema.clone());
        };
        if matches!(generated.form, OutputForm::Empty | OutputForm::Text) {
            return Err(self.tool_error(
                "has an output schema but gives no data: leave out the schema, or make the output a struct",
            ));
        }
        match schema::schema_root_error(&by_hand) {
            Some(flaw) => Err(self.tool_error(format!(
                "has an output schema {flaw}, so that clients refuse the list"
            ))),
            None => Ok(Some(by_hand)),
        }
    }

    fn tool_error(&self, what: impl Into<String>) -> BuildError {
        BuildError::Tool {
            tool: self.name.clone(),
            what: what.into(),
        }
    }

    fn check(&self) -> Result<(), BuildError> {
        let name = &self.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        // The protocol allows 128 characters, but the app stores of both hosts refuse more than 64.
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(BuildError::Name(name.clone()));
        }
        for (what, text) in [("title", &self.title), ("description", &self.description)] {
            if text.trim().is_empty() {
                return Err(BuildError::Missing {
                    tool: name.clone(),
                    what,
                });
            }
        }
        if self.hints.read_only && self.hints.destructive {
            return Err(
                self.tool_error("cannot be read-only and destructive at once: decide on one hint")
            );
        }
        if self.security.as_ref().is_some_and(Vec::is_empty) {
            return Err(self.tool_error(
                "has an empty list of security schemes: add `Security::NoAuth` or `Security::oauth2`",
            ));
        }
        self.icons.iter().try_for_each(Icon::check)
    }

    /// Moves file parameters from the schema, where their type marked them, to `openai/fileParams`.
    fn add_file_params(&mut self, input: &mut Value) -> Result<(), BuildError> {
        let mut names = Vec::new();
        let properties = input.get_mut("properties").and_then(Value::as_object_mut);
        for (name, schema) in properties.into_iter().flatten() {
            let marked = schema
                .as_object_mut()
                .and_then(|schema| schema.shift_remove(file::MARK));
            if marked.is_some() {
                names.push(name.clone());
            }
        }
        if has_mark(input) {
            return Err(self.tool_error(
                "has a file inside a list or another object: hosts fill in files at the top level of the input only",
            ));
        }
        if !names.is_empty() {
            self.meta.insert(FILE_PARAMS.to_owned(), json!(names));
        }
        Ok(())
    }

    /// Adds the widget and the audience to `_meta`, under the keys of every host.
    fn add_widget_meta(&mut self, registry: &ResourceRegistry) -> Result<(), BuildError> {
        let mut ui = Map::new();
        if let Some(name) = self.widget.take() {
            let Some(widget) = registry.widget(&name) else {
                let known: Vec<&str> = registry.widget_names().collect();
                return Err(self.tool_error(format!(
                    "renders the widget `{name}`, which the app does not have: add it with `AppBuilder::widget` \
                     (it has: {})",
                    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
                )));
            };
            let uri = json!(widget.standard.uri);
            let template = if widget.lists_skybridge {
                json!(widget.skybridge.uri)
            } else {
                uri.clone()
            };
            self.meta.insert(FLAT_RESOURCE_URI.to_owned(), uri.clone());
            self.meta.insert(OUTPUT_TEMPLATE.to_owned(), template);
            ui.insert("resourceUri".to_owned(), uri);
            self.audience = self.audience.or(Some(ToolAudience::Everyone));
        }
        if let Some(audience) = self.audience {
            if audience == ToolAudience::Widgets && registry.widget_names().next().is_none() {
                return Err(self.tool_error(
                    "is for widgets only, but the app has none: add a widget, or let the model call it",
                ));
            }
            let (names, by_widgets) = match audience {
                ToolAudience::Model => (json!(["model"]), false),
                ToolAudience::Widgets => (json!(["app"]), true),
                ToolAudience::Everyone => (json!(["model", "app"]), true),
            };
            ui.insert("visibility".to_owned(), names);
            self.meta
                .insert("openai/widgetAccessible".to_owned(), by_widgets.into());
            if audience == ToolAudience::Widgets {
                self.meta
                    .insert("openai/visibility".to_owned(), "private".into());
            }
        }
        if !ui.is_empty() {
            match self.meta.entry("ui").or_insert_with(|| json!({})) {
                Value::Object(existing) => existing.extend(ui),
                _ => {
                    return Err(self
                        .tool_error("has a `ui` in its `_meta` that is no object: leave it out"));
                }
            }
        }
        Ok(())
    }

    /// Validates the finished `_meta`, so that hand-written members obey the same rules.
    fn check_meta(&self, input: &Value, registry: &ResourceRegistry) -> Result<(), BuildError> {
        for key in [INVOKING, INVOKED] {
            let Some(text) = self.meta.get(key) else {
                continue;
            };
            let length = text.as_str().map_or(0, |text| text.trim().chars().count());
            if !(1..=MAX_STATUS_CHARS).contains(&length) {
                return Err(self.tool_error(format!(
                    "has a status text of {length} characters, hosts take 1 to {MAX_STATUS_CHARS}: reword {text}"
                )));
            }
        }
        let nested = self.meta.get("ui").and_then(|ui| ui.get("resourceUri"));
        let flat = [FLAT_RESOURCE_URI, OUTPUT_TEMPLATE]
            .iter()
            .filter_map(|key| self.meta.get(*key));
        for uri in nested.into_iter().chain(flat) {
            if uri.as_str().is_none_or(|uri| registry.find(uri).is_none()) {
                return Err(self.tool_error(format!(
                    "renders {uri}, which is not a resource of the app: add the page with `AppBuilder::widget`"
                )));
            }
        }
        let files = self.meta.get(FILE_PARAMS).and_then(Value::as_array);
        for name in files.into_iter().flatten() {
            let known = name
                .as_str()
                .and_then(|name| input.get("properties")?.get(name));
            if known.is_none() {
                return Err(self.tool_error(format!(
                    "names the file parameter {name}, which is not at the top of its input: add it there"
                )));
            }
        }
        Ok(())
    }
}

/// Adds the default security schemes to a finished descriptor, in both places, unless it has its own.
pub(crate) fn add_security_schemes(tool: &mut Value, schemes: &[Security]) {
    let Some(tool) = tool
        .as_object_mut()
        .filter(|tool| !tool.contains_key("securitySchemes"))
    else {
        return;
    };
    let schemes: Vec<Value> = schemes.iter().map(Security::wire).collect();
    tool.insert("securitySchemes".to_owned(), json!(schemes));
    let meta = tool.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("securitySchemes".to_owned(), json!(schemes));
    }
}

const INVOKING: &str = "openai/toolInvocation/invoking";
const INVOKED: &str = "openai/toolInvocation/invoked";
const OUTPUT_TEMPLATE: &str = "openai/outputTemplate";
const FILE_PARAMS: &str = "openai/fileParams";
/// The first key of the MCP Apps standard, which its SDK still writes beside the current one.
const FLAT_RESOURCE_URI: &str = "ui/resourceUri";

fn has_mark(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key(file::MARK) || members.values().any(has_mark)
        }
        Value::Array(items) => items.iter().any(has_mark),
        _ => false,
    }
}
