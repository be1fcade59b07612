//! The tool trait and its adapter: a tool has typed input and output, and the adapter generates the JSON schemas and
//! the JSON.

use std::future::Future;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::content::ContentBlock;
use crate::descriptor::{ToolDescriptor, ToolSchemas};
use crate::error::{BuildError, Failure};
use crate::json_writer::{EscapedJson, JsonObject};
use crate::request_context::Context;
use crate::resource_registry::ResourceRegistry;
use crate::result::{Answer, ResultPayloads};
use crate::schema::{InputSchema, OutputForm, OutputSchema};

/// A tool, which the model can call.
///
/// The schemas that hosts see are generated from the two types. With `deny_unknown_fields` on the input, a misspelled
/// argument is an error instead of being ignored.
///
/// ```rust
/// use docent_mcp::{Answer, App, Context, Failure, Tool, ToolAnnotations, ToolDescriptor};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Query {
///     /// A harbour, such as `Port Ellin`.
///     harbour: String,
/// }
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Tides {
///     high_water: Vec<String>,
/// }
///
/// struct FindTides;
///
/// impl Tool for FindTides {
///     type Input = Query;
///     type Output = Tides;
///
///     fn descriptor(&self) -> ToolDescriptor {
///         let text = "Use this when the user asks for the tides of a harbour.";
///         ToolDescriptor::new("find_tides", "Find tides", text, ToolAnnotations::READ_ONLY)
///     }
///
///     async fn call(&self, query: Query, _: Context) -> Result<Answer<Tides>, Failure> {
///         if query.harbour != "Port Ellin" {
///             return Err(Failure::caller("unknown harbour").hint("try `Port Ellin`"));
///         }
///         let high_water = vec!["04:12".to_owned(), "16:40".to_owned()];
///         Ok(Answer::new(Tides { high_water }))
///     }
/// }
///
/// let app = App::builder("tides", "1.0.0").tool(FindTides).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
pub trait Tool: Send + Sync + 'static {
    /// The input: a struct with named fields, or `()` for a tool without arguments.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The output. An object (a struct, a map, an enum whose variants are objects) is the structured data of the
    /// result, a string is plain text without data, and `()` is neither. Every other type becomes the member `result`
    /// of an object, because clients accept no other data. A [`Value`] has no schema; each value is treated by what
    /// it is.
    type Output: Serialize + JsonSchema + Send;

    /// Returns the tool as hosts list it. It is called again whenever the app announces that its tools changed.
    fn descriptor(&self) -> ToolDescriptor;

    /// Runs the tool with checked input. The future is dropped when the client cancels or the handler timeout
    /// expires.
    fn call(
        &self,
        input: Self::Input,
        context: Context,
    ) -> impl Future<Output = Result<Answer<Self::Output>, Failure>> + Send;

    /// Serializes the output by hand, for a tool whose output is mostly long texts and which can write it faster than
    /// its `Serialize` implementation (see [`JsonObject`](crate::JsonObject)). The result must be the same JSON.
    fn json(&self, _output: &Self::Output) -> Option<EscapedJson> {
        None
    }

    /// Renders the output as prose, for apps with [`TextForm::Prose`](crate::TextForm::Prose).
    fn prose(&self, _output: &Self::Output) -> Option<String> {
        None
    }
}

/// A tool with its types erased, so that tools of different types fit in one list.
pub(crate) trait ErasedTool: Send + Sync {
    fn descriptor(&self) -> ToolDescriptor;
    fn wire(&self, registry: &ResourceRegistry) -> Result<Value, BuildError>;
    fn call<'a>(
        &'a self,
        arguments: &'a str,
        contract: OutputContract,
        context: Context,
    ) -> BoxFuture<'a, Result<ResultPayloads, Failure>>;
}

/// The form of a tool's results, fixed by its descriptor when the app was built.
///
/// `dual` repeats the `results` of the data beside `content`. With `has_output_schema`, clients expect structured
/// data in every result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputContract {
    pub(crate) dual: bool,
    pub(crate) has_output_schema: bool,
}

pub(crate) struct ToolAdapter<T> {
    tool: T,
    input: InputSchema,
    output: OutputSchema,
}

impl<T: Tool> ToolAdapter<T> {
    pub(crate) fn new(tool: T) -> Self {
        Self {
            tool,
            input: InputSchema::of::<T::Input>(),
            output: OutputSchema::of::<T::Output>(),
        }
    }
}

impl<T: Tool> ErasedTool for ToolAdapter<T> {
    fn descriptor(&self) -> ToolDescriptor {
        self.tool.descriptor()
    }

    fn wire(&self, registry: &ResourceRegistry) -> Result<Value, BuildError> {
        let schemas = ToolSchemas {
            input: &self.input.schema,
            output: &self.output,
        };
        self.tool.descriptor().wire(schemas, registry)
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        contract: OutputContract,
        context: Context,
    ) -> BoxFuture<'a, Result<ResultPayloads, Failure>> {
        async move {
            let input = self.read(arguments)?;
            let prose = context.prose;
            let answer = self.tool.call(input, context).await?;
            self.erase(answer, prose, contract)
        }
        .boxed()
    }
}

/// An output in the form of a result: the JSON of an object in `data`, the same JSON escaped for a string in
/// `quoted`, or plain text for the model in `text`.
#[derive(Default)]
struct ErasedOutput {
    data: Option<String>,
    quoted: Option<String>,
    text: Option<String>,
}

/// A tool whose output violates its own output schema.
#[derive(Debug, thiserror::Error)]
#[error("the tool's output is not an object, but its output schema requires one")]
struct OutputNotObject;

impl<T: Tool> ToolAdapter<T> {
    fn read(&self, arguments: &str) -> Result<T::Input, Failure> {
        let bad = |error: serde_json::Error| bad_arguments(&error.to_string());
        if !self.input.is_unit {
            return serde_json::from_str(arguments).map_err(bad);
        }
        let members: Map<String, Value> = serde_json::from_str(arguments).map_err(bad)?;
        match members.keys().next() {
            Some(name) => Err(bad_arguments(&format!(
                "unknown field `{name}`, there are no fields"
            ))),
            None => serde_json::from_value(Value::Null).map_err(bad),
        }
    }

    fn erase(
        &self,
        answer: Answer<T::Output>,
        prose: bool,
        contract: OutputContract,
    ) -> Result<ResultPayloads, Failure> {
        let ErasedOutput { data, quoted, text } =
            self.data(&answer.output, contract.has_output_schema)?;
        let prose_text = || prose.then(|| self.tool.prose(&answer.output)).flatten();
        let content = answer
            .content
            .or_else(|| Some(vec![ContentBlock::text(prose_text().or(text)?)]));
        Ok(ResultPayloads {
            structured: data,
            quoted,
            content,
            meta: answer.meta,
            raw_meta: answer.raw_meta,
            dual: contract.dual,
            touched: answer.touched,
        })
    }

    fn data(&self, output: &T::Output, has_schema: bool) -> Result<ErasedOutput, Failure> {
        let form = self.output.form;
        if form == OutputForm::Empty {
            return Ok(ErasedOutput::default());
        }
        let (json, quoted) = match self.tool.json(output) {
            Some(EscapedJson { text, quoted }) => (text, Some(quoted)),
            None => (serde_json::to_string(output)?, None),
        };
        let first = json.bytes().next();
        let is_fixed = form == OutputForm::Object || (form == OutputForm::Dynamic && has_schema);
        Ok(match (form, first) {
            (OutputForm::Object | OutputForm::Dynamic, Some(b'{')) => ErasedOutput {
                data: Some(json),
                quoted,
                text: None,
            },
            _ if is_fixed => return Err(OutputNotObject.into()),
            (OutputForm::Text | OutputForm::Dynamic, Some(b'"')) => ErasedOutput {
                text: Some(serde_json::from_str(&json)?),
                ..ErasedOutput::default()
            },
            (OutputForm::Text, _) => ErasedOutput {
                text: Some(json),
                ..ErasedOutput::default()
            },
            (OutputForm::Dynamic, Some(b'n')) => ErasedOutput::default(),
            _ => ErasedOutput {
                data: Some(wrapped(&json)),
                ..ErasedOutput::default()
            },
        })
    }
}

/// Wraps an output that is not an object in the member `result`, which its generated schema declares.
fn wrapped(json: &str) -> String {
    let mut object = JsonObject::with_capacity(json.len() + 16);
    object.raw("result", json);
    object.end()
}

fn bad_arguments(error: &str) -> Failure {
    // The position inside a re-serialized string means nothing to the model, which wrote an object.
    let cause = error
        .rsplit_once(" at line ")
        .map_or(error, |(cause, _)| cause);
    Failure::caller(format!("the arguments do not fit: {cause}"))
        .hint("compare the arguments with the tool's `inputSchema`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::descriptor::ToolAnnotations;

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct CounterInput {
        /// How many things to count.
        #[expect(dead_code, reason = "only its schema is looked at")]
        count: u32,
    }

    struct CounterTool(&'static str, &'static str);

    impl Tool for CounterTool {
        type Input = CounterInput;
        type Output = ();
        fn descriptor(&self) -> ToolDescriptor {
            ToolDescriptor::new(self.0, self.1, "Counts things.", ToolAnnotations::WRITES)
        }
        async fn call(&self, _: CounterInput, _: Context) -> Result<Answer<()>, Failure> {
            Ok(Answer::new(()).text("done"))
        }
    }

    #[test]
    fn schemas_are_exact_and_all_hints_are_said() {
        let tool = ToolAdapter::new(CounterTool("count", "Count"))
            .wire(&ResourceRegistry::default())
            .unwrap();
        assert_eq!(
            tool["inputSchema"],
            json!({"type":"object","properties":{"count":{"description":"How many things to count.","type":"integer",
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
        let wire = |name: &'static str, title| {
            ToolAdapter::new(CounterTool(name, title)).wire(&ResourceRegistry::default())
        };
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
