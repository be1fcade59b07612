//! Tools: typed input in, typed output out, and the one adapter that speaks JSON for all of them.

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

/// Something the model can call.
///
/// The schemas that hosts see are made from the two types; `deny_unknown_fields` on the input
/// makes it exact.
pub trait Tool: Send + Sync + 'static {
    /// What the tool takes: a struct with named fields, or `()` for nothing.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// What the tool gives. An object (a struct, a map, an enum whose variants are objects) is the
    /// data of the result, a string is plain text without data, and `()` is neither. Every other type
    /// becomes the member `result` of an object, because clients take no other data. A
    /// [`Value`] has no schema; each value is treated by what it is.
    type Output: Serialize + JsonSchema + Send;

    /// The tool as hosts list it. Asked again whenever the app says that its tools changed.
    fn descriptor(&self) -> ToolDescriptor;

    /// Does the work.
    fn call(
        &self,
        input: Self::Input,
        context: Context,
    ) -> impl Future<Output = Result<Answer<Self::Output>, Failure>> + Send;

    /// The output as JSON, for a tool whose output is mostly long texts and who writes it faster than
    /// its `Serialize` does (see [`JsonObject`](crate::JsonObject)). It must be what serializing gives.
    fn json(&self, _output: &Self::Output) -> Option<EscapedJson> {
        None
    }

    /// The output as sentences, for apps whose text items are prose.
    fn prose(&self, _output: &Self::Output) -> Option<String> {
        None
    }
}

/// A tool without its types.
pub(crate) trait ErasedTool: Send + Sync {
    fn descriptor(&self) -> ToolDescriptor;
    fn wire(&self, shelf: &ResourceRegistry) -> Result<Value, BuildError>;
    fn call<'a>(
        &'a self,
        arguments: &'a str,
        contract: OutputContract,
        context: Context,
    ) -> BoxFuture<'a, Result<ResultPayloads, Failure>>;
}

/// What a tool's descriptor said when the app was built, for the form of its results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputContract {
    /// Its `results` also stand beside `content`.
    pub(crate) dual: bool,
    /// Hosts were shown an output schema, so that every result must have data.
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

    fn wire(&self, shelf: &ResourceRegistry) -> Result<Value, BuildError> {
        let schemas = ToolSchemas {
            input: &self.input.schema,
            output: &self.output,
        };
        self.tool.descriptor().wire(schemas, shelf)
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

/// An output as a result holds it.
#[derive(Default)]
struct ErasedOutput {
    /// JSON of an object.
    data: Option<String>,
    quoted: Option<String>,
    /// What the model reads where there is no data.
    text: Option<String>,
}

/// A tool that broke what it told hosts about itself.
#[derive(Debug, thiserror::Error)]
#[error("the output is no object, though the tool's output schema says so")]
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
        let words = || prose.then(|| self.tool.prose(&answer.output)).flatten();
        let content = answer
            .content
            .or_else(|| Some(vec![ContentBlock::text(words().or(text)?)]));
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

/// An output that is no object, under the name that its schema has for it.
fn wrapped(json: &str) -> String {
    let mut object = JsonObject::with_capacity(json.len() + 16);
    object.raw("result", json);
    object.end()
}

fn bad_arguments(error: &str) -> Failure {
    // The position inside a re-serialized string means nothing to the model that wrote an object.
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
        /// How many.
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
