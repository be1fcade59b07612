//! Prompts: named message templates that a user picks and fills with arguments.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::completion::Completer;
use crate::content::ContentBlock;
use crate::error::Failure;
use crate::request_context::Context;

/// The arguments that the user gave, by name.
pub type PromptArguments = BTreeMap<String, String>;

type PromptRenderer = Arc<
    dyn Fn(PromptArguments, Context) -> BoxFuture<'static, Result<Vec<PromptMessage>, Failure>>
        + Send
        + Sync,
>;

/// A prompt, which hosts offer to their users.
///
/// ```rust
/// use docent_mcp::{App, ContentBlock, Context, Prompt, PromptArguments, PromptMessage};
///
/// let render = |arguments: PromptArguments, _: Context| async move {
///     let harbour = arguments.get("harbour").cloned().unwrap_or_default();
///     let text = format!("Plan a day in {harbour} around its tides.");
///     Ok(vec![PromptMessage::user(ContentBlock::text(text))])
/// };
/// let prompt = Prompt::new("plan_day", "Plan a day", "Plans a day around the tides.", render)
///     .required("harbour", "The harbour to visit.");
/// let app = App::builder("tides", "1.0.0").prompt(prompt).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Prompt {
    pub(crate) name: String,
    title: String,
    description: String,
    arguments: Vec<PromptArgument>,
    pub(crate) completers: BTreeMap<String, Completer>,
    render: PromptRenderer,
}

#[derive(Clone, Serialize)]
struct PromptArgument {
    name: String,
    description: String,
    required: bool,
}

/// The author of a prompt message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptRole {
    /// The message is the user's.
    User,
    /// The message is the model's.
    Assistant,
}

/// One message of a prompt, as [`Prompt::new`] renders it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptMessage {
    /// The author of the message.
    pub role: PromptRole,
    /// The content of the message.
    pub content: ContentBlock,
}

impl PromptMessage {
    /// Creates a message of the user.
    #[must_use]
    pub const fn user(content: ContentBlock) -> Self {
        Self {
            role: PromptRole::User,
            content,
        }
    }
}

impl Prompt {
    /// Creates a prompt; `render` writes its messages from the arguments.
    #[must_use]
    pub fn new<F, R>(
        name: impl Into<String>,
        title: impl Into<String>,
        description: impl Into<String>,
        render: F,
    ) -> Self
    where
        F: Fn(PromptArguments, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<PromptMessage>, Failure>> + Send + 'static,
    {
        Self {
            name: name.into(),
            title: title.into(),
            description: description.into(),
            arguments: Vec::new(),
            completers: BTreeMap::new(),
            render: Arc::new(move |arguments, context| render(arguments, context).boxed()),
        }
    }

    /// Adds a required argument.
    #[must_use]
    pub fn required(self, name: &str, description: &str) -> Self {
        self.argument(name, description, true)
    }

    /// Adds an optional argument.
    #[must_use]
    pub fn optional(self, name: &str, description: &str) -> Self {
        self.argument(name, description, false)
    }

    /// Adds completion for an argument.
    #[must_use]
    pub fn complete(mut self, argument: &str, completer: Completer) -> Self {
        self.completers.insert(argument.to_owned(), completer);
        self
    }

    fn argument(mut self, name: &str, description: &str, required: bool) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        self.arguments.push(PromptArgument {
            name,
            description,
            required,
        });
        self
    }

    pub(crate) fn wire(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": self.arguments,
        })
    }

    pub(crate) async fn get(
        &self,
        given: Map<String, Value>,
        context: Context,
    ) -> Result<Value, Failure> {
        let mut arguments = PromptArguments::new();
        for (name, value) in given {
            let Value::String(text) = value else {
                return Err(Failure::refused(format!(
                    "argument `{name}` is not a string"
                )));
            };
            arguments.insert(name, text);
        }
        let missing = self
            .arguments
            .iter()
            .find(|a| a.required && !arguments.contains_key(&a.name));
        if let Some(PromptArgument { name, .. }) = missing {
            return Err(Failure::refused(format!("argument `{name}` is missing")));
        }
        let messages = (self.render)(arguments, context).await?;
        Ok(json!({"description": self.description, "messages": messages}))
    }
}
