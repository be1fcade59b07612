//! Build MCP servers and ChatGPT apps that every host accepts.
//!
//! An [`App`] has [tools](Tool), [resources](Resource) and [prompts](Prompt). It is served over
//! [HTTP](http::serve) or [stdio](stdio::serve), in every revision of the protocol at once, and
//! keeps nothing between requests. A [`Widget`] is a page that hosts show in the conversation.
//!
//! ```
//! use docent_mcp::{Answer, App, Context, Descriptor, Failure, Hints, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Name { name: String }
//!
//! struct Greet;
//! impl Tool for Greet {
//!     type Input = Name;
//!     type Output = String;
//!     fn descriptor(&self) -> Descriptor {
//!         Descriptor::new("greet", "Greet", "Use this to greet someone.", Hints::READ_ONLY)
//!     }
//!     async fn call(&self, input: Name, _: Context) -> Result<Answer<String>, Failure> {
//!         Ok(Answer::new(format!("Hello, {}", input.name)))
//!     }
//! }
//!
//! let app = App::builder("greeter", "1.0.0").tool(Greet).build()?;
//! # Ok::<(), docent_mcp::BuildError>(())
//! ```

mod app;
mod ask;
mod auth;
mod call;
mod changes;
mod complete;
mod content;
mod conversation;
pub mod csp;
mod descriptor;
mod era;
mod error;
mod exchange;
mod file;
mod greeting;
mod handler;
pub mod http;
mod json;
mod listeners;
mod locale;
mod message;
mod observe;
mod prompt;
mod rate;
mod reply;
mod request;
mod resource;
mod result;
mod revision;
mod rpc;
mod schema;
mod shelf;
pub mod stdio;
mod told;
mod tool;
mod trace;
mod widget;

pub use app::{App, AppBuilder, Icon};
pub use ask::Elicitation;
pub use auth::server as sign_in;
pub use auth::{
    ApiKeyGrant, ApiKeyInfo, ApiKeyStore, Auth, AuthBuilder, AuthError, AuthRejection,
    AuthRequirement, Caller, CertificateAuthorities, InvalidAuthorities, Issuer, IssuerNetwork,
    IssuerTransport, LinkKey, LocalKeys, MAX_AUTHORITIES_BYTES, SignatureAlgorithm,
};
pub use changes::ChangeNotifier;
pub use complete::Completer;
pub use content::{ContentBlock, ResourceText};
pub use descriptor::{Security, ToolAnnotations, ToolAudience, ToolDescriptor};
pub use error::{BuildError, ErrorExplainer, Failure};
pub use file::FileParam;
pub use json::{EscapedJson, JsonObject};
pub use observe::{CallKind, CallObserver, CallRecord, CallStatus, MAX_TOUCHED};
pub use prompt::{Prompt, PromptArguments, PromptMessage, PromptRole};
pub use request::{Context, LogLevel};
pub use resource::{Resource, ResourceBody, ResourceTemplate, TemplateVars};
pub use result::{Answer, DualFormat, TextForm};
pub use revision::Revision;
pub use told::{ClientHints, Pseudonym, UserLocation};
pub use tool::Tool;
pub use trace::{REQUEST_SPAN, SPANS, TraceParent};
pub use widget::{Widget, WidgetPermission, claude_domain};

/// The guides' examples compile, or the tests fail.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/kit.md")]
#[doc = include_str!("../../../docs/apps.md")]
#[doc = include_str!("../../../docs/guides/app.md")]
struct Guides;
