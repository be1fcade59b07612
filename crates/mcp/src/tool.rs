//! Tools: typed input in, typed output out, and the one adapter that speaks JSON for all of them.

use std::future::Future;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::content::Content;
use crate::descriptor::{Descriptor, Schemas};
use crate::error::{BuildError, Failure};
use crate::json::Data;
use crate::request::Context;
use crate::result::{Answer, Payloads};
use crate::shelf::Shelf;

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

    /// The output as JSON, for a tool whose output is mostly long texts and who writes it faster than
    /// its `Serialize` does (see [`JsonObject`](crate::JsonObject)). It must be what serializing gives.
    fn json(&self, _output: &Self::Output) -> Option<Data> {
        None
    }

    /// The output as sentences, for apps whose text items are prose.
    fn prose(&self, _output: &Self::Output) -> Option<String> {
        None
    }
}

/// A tool without its types.
pub(crate) trait AnyTool: Send + Sync {
    fn descriptor(&self) -> Descriptor;
    fn wire(&self, shelf: &Shelf) -> Result<Value, BuildError>;
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

    fn wire(&self, shelf: &Shelf) -> Result<Value, BuildError> {
        let schemas = Schemas {
            input: schema_of::<T::Input>(),
            output: Some(schema_of::<T::Output>())
                .filter(|schema| schema.get("type") != Some(&json!("null"))),
        };
        self.0.descriptor().wire(schemas, shelf)
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
        let (data, quoted) = match self.0.json(&answer.output) {
            Some(Data { text, quoted }) => (text, Some(quoted)),
            None => (serde_json::to_string(&answer.output)?, None),
        };
        // `()` serializes as `null`: a tool without data.
        let structured = Some(data).filter(|data| data != "null");
        let content = answer.content.or_else(|| {
            let words = prose.then(|| self.0.prose(&answer.output)).flatten()?;
            Some(vec![Content::text(words)])
        });
        Ok(Payloads {
            structured,
            quoted,
            content,
            meta: answer.meta,
            raw_meta: answer.raw_meta,
            dual,
            touched: answer.touched,
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
    use crate::descriptor::Hints;

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
        let tool = Adapter(Counter("count", "Count"))
            .wire(&Shelf::default())
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
        let wire =
            |name: &'static str, title| Adapter(Counter(name, title)).wire(&Shelf::default());
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
