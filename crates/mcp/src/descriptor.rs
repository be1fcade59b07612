//! A tool as `tools/list` shows it, in the spellings of every host.

use serde_json::{Map, Value, json};

use crate::app::Icon;
use crate::error::BuildError;
use crate::file;
use crate::resource_registry::ResourceRegistry;
use crate::schema::{self, OutputForm, OutputSchema};

/// The longest status text that ChatGPT takes.
const MAX_STATUS_CHARS: usize = 64;

/// What a tool does to the world. Hosts want all four said, never implied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// Nothing is created, changed, sent or queued.
    pub read_only: bool,
    /// Some use of it cannot be undone.
    pub destructive: bool,
    /// The same call twice does no more than once.
    pub idempotent: bool,
    /// It can change what is publicly visible outside.
    pub open_world: bool,
}

impl ToolAnnotations {
    /// Reads, and nothing else: hosts call it without asking the user.
    pub const READ_ONLY: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };
    /// Changes the user's own data in a way that can be undone.
    pub const WRITES: Self = Self {
        read_only: false,
        destructive: false,
        idempotent: false,
        open_world: false,
    };
    /// Deletes or overwrites, so that hosts ask first.
    pub const DESTRUCTIVE: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };
}

/// Who may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolAudience {
    /// The model alone.
    Model,
    /// The app's widgets alone: hosts hide the tool from the model.
    Widgets,
    /// Both.
    Everyone,
}

/// One way in which a tool may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Security {
    /// Without sign-in.
    NoAuth,
    /// Signed in, with these scopes.
    OAuth2(Vec<String>),
}

impl Security {
    /// Signed in, with these scopes.
    #[must_use]
    pub fn oauth2<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Self {
        Self::OAuth2(scopes.into_iter().map(Into::into).collect())
    }

    fn wire(&self) -> Value {
        match self {
            Self::NoAuth => json!({"type": "noauth"}),
            Self::OAuth2(scopes) => json!({"type": "oauth2", "scopes": scopes}),
        }
    }
}

/// A tool as `tools/list` shows it.
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

/// The schemas made from a tool's types.
#[derive(Clone, Copy)]
pub(crate) struct ToolSchemas<'a> {
    pub(crate) input: &'a Value,
    pub(crate) output: &'a OutputSchema,
}

impl ToolDescriptor {
    /// The four things hosts refuse to do without.
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

    /// A picture for the tool.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// A `_meta` member of the descriptor.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Renders the result in a widget of the app, by its name. Give it to a tool that shows, not to one
    /// that fetches: a host mounts the widget anew at every call.
    #[must_use]
    pub fn widget(mut self, name: impl Into<String>) -> Self {
        self.widget = Some(name.into());
        self
    }

    /// Who may call the tool. Without this the model may, and widgets where the host follows the standard.
    #[must_use]
    pub const fn audience(mut self, audience: ToolAudience) -> Self {
        self.audience = Some(audience);
        self
    }

    /// What ChatGPT shows while the tool works and when it is done, in at most 64 characters each.
    #[must_use]
    pub fn status(self, working: impl Into<String>, done: impl Into<String>) -> Self {
        self.meta(INVOKING, working.into())
            .meta(INVOKED, done.into())
    }

    /// How callers may sign in; several ways mean that each will do. Without [`Security::NoAuth`] among them nobody
    /// calls the tool anonymously: [`http::serve`](crate::http::serve) does not start with such a tool unless its options
    /// say who may sign in. Over stdio the caller is the owner of the process, who may call everything. It stands at the top of the
    /// descriptor, where ChatGPT looks, and again in `_meta`, because SDKs drop members that they do not
    /// know.
    #[must_use]
    pub fn security(mut self, ways: impl IntoIterator<Item = Security>) -> Self {
        self.security = Some(ways.into_iter().collect());
        self
    }

    /// Replaces the input schema made from the type, for contracts that fix every byte.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Replaces the output schema made from the type, for contracts that fix every byte. It describes
    /// the data as clients get it, an object.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// The tool sends log messages while it works, so that its answer is always a stream.
    /// Progress needs no such word: a client that wants it says so in its request.
    #[must_use]
    pub const fn streams(mut self) -> Self {
        self.streams = true;
        self
    }

    /// The tool takes part in the dual format: its `results` also stand beside `content`.
    #[must_use]
    pub const fn dual(mut self) -> Self {
        self.dual = true;
        self
    }

    /// The descriptor as JSON, or what hosts would refuse about it.
    pub(crate) fn wire(
        mut self,
        schemas: ToolSchemas<'_>,
        shelf: &ResourceRegistry,
    ) -> Result<Value, BuildError> {
        self.check()?;
        let mut input = self.input(schemas.input)?;
        let output = self.output(schemas.output)?;
        self.add_file_params(&mut input)?;
        self.add_widget_meta(shelf)?;
        self.check_meta(&input, shelf)?;
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
        if let Some(ways) = self.security {
            let schemes: Vec<Value> = ways.iter().map(Security::wire).collect();
            set("securitySchemes", json!(schemes));
            self.meta
                .insert("securitySchemes".to_owned(), json!(schemes));
        }
        if !self.meta.is_empty() {
            set("_meta", Value::Object(self.meta));
        }
        Ok(tool)
    }

    /// The input schema, written by hand or made from the type.
    fn input(&mut self, made: &Value) -> Result<Value, BuildError> {
        let by_hand = self.input_schema.take();
        // A choice by hand is the author's word; one that came of a type is a surprise.
        if by_hand.is_none() && schema::is_choice(made) {
            return Err(self.tool_error(
                "takes one of several shapes, which hosts refuse in an input: use one struct with optional fields",
            ));
        }
        let input = by_hand.unwrap_or_else(|| made.clone());
        if input.get("type") != Some(&json!("object")) {
            return Err(BuildError::Input(self.name.clone()));
        }
        match schema::schema_root_error(&input) {
            Some(flaw) => Err(self.tool_error(format!("has an input schema {flaw}"))),
            None => Ok(input),
        }
    }

    /// The output schema, written by hand or made from the type.
    fn output(&mut self, made: &OutputSchema) -> Result<Option<Value>, BuildError> {
        let Some(by_hand) = self.output_schema.take() else {
            return Ok(made.schema.clone());
        };
        if matches!(made.form, OutputForm::Empty | OutputForm::Text) {
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
        // The protocol allows 128, but both stores refuse more than 64.
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
                "names no way to call it: add `Security::NoAuth` or `Security::oauth2`",
            ));
        }
        self.icons.iter().try_for_each(Icon::check)
    }

    /// Lists the input's files, by their type, and takes the marks of that type out of the schema.
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
                "has a file inside a list or another object: hosts fill in files at the top of the input alone",
            ));
        }
        if !names.is_empty() {
            self.meta.insert(FILE_PARAMS.to_owned(), json!(names));
        }
        Ok(())
    }

    /// Says who may call the tool and what shows its result, in every spelling.
    fn add_widget_meta(&mut self, shelf: &ResourceRegistry) -> Result<(), BuildError> {
        let mut ui = Map::new();
        if let Some(name) = self.widget.take() {
            let Some(widget) = shelf.widget(&name) else {
                let known: Vec<&str> = shelf.widget_names().collect();
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
            if audience == ToolAudience::Widgets && shelf.widget_names().next().is_none() {
                return Err(self.tool_error(
                    "is for widgets alone, but the app has none: add a widget, or let the model call it",
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
                Value::Object(said) => said.extend(ui),
                _ => {
                    return Err(self
                        .tool_error("has a `ui` in its `_meta` that is no object: leave it out"));
                }
            }
        }
        Ok(())
    }

    /// Looks at the finished `_meta`, so that what was put there by hand is held to the same rules.
    fn check_meta(&self, input: &Value, shelf: &ResourceRegistry) -> Result<(), BuildError> {
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
            if uri.as_str().is_none_or(|uri| shelf.find(uri).is_none()) {
                return Err(self.tool_error(format!(
                    "renders {uri}, where nothing can be read: add the page with `AppBuilder::widget`"
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

/// Says in a finished descriptor how callers may sign in, in both places, unless it says so itself.
pub(crate) fn add_security_schemes(tool: &mut Value, ways: &[Security]) {
    let Some(tool) = tool
        .as_object_mut()
        .filter(|tool| !tool.contains_key("securitySchemes"))
    else {
        return;
    };
    let schemes: Vec<Value> = ways.iter().map(Security::wire).collect();
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
/// The first spelling of the standard, which its own SDK still writes beside the present one.
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
