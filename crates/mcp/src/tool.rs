//! Tools: typed input in, typed output out, and the one adapter that speaks JSON for all of them.

use std::future::Future;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::app::Icon;
use crate::content::Content;
use crate::error::{BuildError, Failure};
use crate::request::Context;
use crate::result::{Answer, Payloads};

/// Something the model can call.
///
/// The schemas that hosts see are made from the two types; `deny_unknown_fields` on the input
/// makes it exact. An output of `()` means that the tool has text but no data.
pub trait Tool: Send + Sync + 'static {
    /// What the tool takes: a struct with named fields.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// What the tool gives: any serializable type, or `()`.
    type Output: Serialize + JsonSchema + Send;

    /// The tool as hosts list it. Asked again whenever the app says that its tools changed.
    fn descriptor(&self) -> Descriptor;

    /// Does the work.
    fn call(
        &self,
        input: Self::Input,
        context: Context,
    ) -> impl Future<Output = Result<Answer<Self::Output>, Failure>> + Send;

    /// The output as JSON text, for a tool whose output is mostly long texts and who writes it
    /// faster than its `Serialize` does (see [`JsonObject`](crate::JsonObject)). It must be what
    /// serializing gives.
    fn json(&self, _output: &Self::Output) -> Option<String> {
        None
    }

    /// The output as sentences, for apps whose text items are prose.
    fn prose(&self, _output: &Self::Output) -> Option<String> {
        None
    }
}

/// What a tool does to the world. Hosts want all four said, never implied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Nothing is created, changed, sent or queued.
    pub read_only: bool,
    /// Some use of it cannot be undone.
    pub destructive: bool,
    /// The same call twice does no more than once.
    pub idempotent: bool,
    /// It can change what is publicly visible outside.
    pub open_world: bool,
}

impl Hints {
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
}

/// A tool as `tools/list` shows it.
#[derive(Debug, Clone)]
pub struct Descriptor {
    pub(crate) name: String,
    title: String,
    description: String,
    hints: Hints,
    icons: Vec<Icon>,
    meta: Map<String, Value>,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    pub(crate) streams: bool,
    pub(crate) dual: bool,
}

impl Descriptor {
    /// The four things hosts refuse to do without.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        description: impl Into<String>,
        hints: Hints,
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

    /// How callers may sign in, as a list of schemes. It stands at the top of the descriptor, where
    /// ChatGPT looks, and again in `_meta`, because SDKs drop members that they do not know.
    #[must_use]
    pub fn security_schemes(self, schemes: Value) -> Self {
        self.meta("securitySchemes", schemes)
    }

    /// Replaces the input schema made from the type, for contracts that fix every byte.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Replaces the output schema made from the type, for contracts that fix every byte.
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
        Ok(())
    }
}

/// A tool without its types.
pub(crate) trait AnyTool: Send + Sync {
    fn descriptor(&self) -> Descriptor;
    fn wire(&self) -> Result<Value, BuildError>;
    fn call<'a>(
        &'a self,
        arguments: &'a str,
        dual: bool,
        context: Context,
    ) -> BoxFuture<'a, Result<Payloads, Failure>>;
}

pub(crate) struct Adapter<T>(pub(crate) T);

impl<T: Tool> AnyTool for Adapter<T> {
    fn descriptor(&self) -> Descriptor {
        self.0.descriptor()
    }

    fn wire(&self) -> Result<Value, BuildError> {
        let descriptor = self.0.descriptor();
        descriptor.check()?;
        let input = descriptor
            .input_schema
            .unwrap_or_else(schema_of::<T::Input>);
        if input.get("type") != Some(&json!("object")) {
            return Err(BuildError::Input(descriptor.name));
        }
        let output = descriptor.output_schema.or_else(|| {
            Some(schema_of::<T::Output>())
                .filter(|schema| schema.get("type") != Some(&json!("null")))
        });
        let mut tool = json!({
            "name": descriptor.name,
            "title": descriptor.title,
            "description": descriptor.description,
            "inputSchema": input,
        });
        let mut set =
            |key: &str, value: Value| tool.as_object_mut().map(|t| t.insert(key.into(), value));
        if let Some(output) = output {
            set("outputSchema", output);
        }
        set(
            "annotations",
            json!({
                "title": descriptor.title,
                "readOnlyHint": descriptor.hints.read_only,
                "destructiveHint": descriptor.hints.destructive,
                "idempotentHint": descriptor.hints.idempotent,
                "openWorldHint": descriptor.hints.open_world,
            }),
        );
        if !descriptor.icons.is_empty() {
            set("icons", json!(descriptor.icons));
        }
        if let Some(schemes) = descriptor.meta.get("securitySchemes") {
            set("securitySchemes", schemes.clone());
        }
        if !descriptor.meta.is_empty() {
            set("_meta", Value::Object(descriptor.meta));
        }
        Ok(tool)
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        dual: bool,
        context: Context,
    ) -> BoxFuture<'a, Result<Payloads, Failure>> {
        async move {
            let input = serde_json::from_str(arguments).map_err(|error| bad_arguments(&error))?;
            let prose = context.prose;
            let answer = self.0.call(input, context).await?;
            self.erase(answer, prose, dual)
        }
        .boxed()
    }
}

impl<T: Tool> Adapter<T> {
    fn erase(
        &self,
        answer: Answer<T::Output>,
        prose: bool,
        dual: bool,
    ) -> Result<Payloads, Failure> {
        let data = match self.0.json(&answer.output) {
            Some(json) => json,
            None => serde_json::to_string(&answer.output)?,
        };
        // `()` serializes as `null`: a tool without data.
        let structured = Some(data).filter(|data| data != "null");
        let content = answer.content.or_else(|| {
            let words = prose.then(|| self.0.prose(&answer.output)).flatten()?;
            Some(vec![Content::text(words)])
        });
        Ok(Payloads {
            structured,
            content,
            meta: answer.meta,
            raw_meta: answer.raw_meta,
            dual,
        })
    }
}

fn bad_arguments(error: &serde_json::Error) -> Failure {
    // The position inside a re-serialized string means nothing to the model that wrote an object.
    let text = error.to_string();
    let cause = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(cause, _)| cause)
        .to_owned();
    Failure::caller(format!("the arguments do not fit: {cause}"))
        .hint("compare the arguments with the tool's `inputSchema`")
}

/// JSON Schema 2020-12 of a type, in one piece and without the members that only name it: that
/// dialect is the protocol's default, and hosts trip over `$ref`.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(object) = schema.as_object_mut() {
        object.shift_remove("title");
        object.shift_remove("description");
        if object.get("type") == Some(&json!("object")) {
            object.entry("properties").or_insert_with(|| json!({}));
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {
        /// How many.
        #[expect(dead_code, reason = "only its schema is looked at")]
        count: u32,
    }

    struct Counter(&'static str, &'static str);

    impl Tool for Counter {
        type Input = Input;
        type Output = ();
        fn descriptor(&self) -> Descriptor {
            Descriptor::new(self.0, self.1, "Counts things.", Hints::WRITES)
        }
        async fn call(&self, _: Input, _: Context) -> Result<Answer<()>, Failure> {
            Ok(Answer::new(()).text("done"))
        }
    }

    #[test]
    fn schemas_are_exact_and_all_hints_are_said() {
        let tool = Adapter(Counter("count", "Count")).wire().unwrap();
        assert_eq!(
            tool["inputSchema"],
            json!({"type":"object","properties":{"count":{"description":"How many.","type":"integer",
                "format":"uint32","minimum":0}},"required":["count"],"additionalProperties":false})
        );
        assert!(tool.get("outputSchema").is_none());
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint}");
        }
    }

    #[test]
    fn a_bad_descriptor_does_not_build() {
        let long = "x".repeat(65);
        let wire = |name: &'static str, title| Adapter(Counter(name, title)).wire();
        assert!(wire(Box::leak("x".repeat(64).into_boxed_str()), "t").is_ok());
        for name in ["", "has space", "ümlaut", Box::leak(long.into_boxed_str())] {
            assert!(
                matches!(wire(name, "t"), Err(BuildError::Name(_))),
                "{name}"
            );
        }
        assert!(matches!(
            wire("count", " "),
            Err(BuildError::Missing { what: "title", .. })
        ));
    }
}
