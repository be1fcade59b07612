//! Build MCP servers and ChatGPT apps that every host accepts.
//!
//! An [`App`] has [tools](Tool), [resources](Resource) and [prompts](Prompt). It is served over [HTTP](http::serve)
//! or [stdio](stdio::serve), speaks every revision of the protocol at once, and keeps no state between requests. A
//! [`Widget`] is a page that hosts show in the conversation.
//!
//! ```
//! use docent_mcp::{Answer, App, Context, Failure, Tool, ToolAnnotations, ToolDescriptor};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Name { name: String }
//!
//! struct Greet;
//! impl Tool for Greet {
//!     type Input = Name;
//!     type Output = String;
//!     fn descriptor(&self) -> ToolDescriptor {
//!         let text = "Use this to greet someone.";
//!         ToolDescriptor::new("greet", "Greet", text, ToolAnnotations::READ_ONLY)
//!     }
//!     async fn call(&self, input: Name, _: Context) -> Result<Answer<String>, Failure> {
//!         Ok(Answer::new(format!("Hello, {}", input.name)))
//!     }
//! }
//!
//! let app = App::builder("greeter", "1.0.0").tool(Greet).build()?;
//! # Ok::<(), docent_mcp::BuildError>(())
//! ```
//!
//! # Features
//!
//! All of them are on by default. A server that clients start as a process needs `stdio` alone, which leaves out two of
//! five dependencies.
//!
//! | feature | adds |
//! |---|---|
//! | `stdio` | the module [`stdio`] |
//! | `http` | the module [`http`]: both HTTP transports, limits, request guard, routes of your own |
//! | `auth` | [`Auth`] and everything that makes one, signed links, and the module [`oauth`]; implies `http` |
//! | `tls` | [`ServerTls`](http::ServerTls), so that the server speaks https itself; implies `http` |
//!
//! Without `auth` and `tls`, the types [`Auth`] and [`ServerTls`](http::ServerTls) have no values: the options of a
//! server are the same, but neither can be set.

#![cfg_attr(
    not(all(feature = "http", feature = "stdio", feature = "auth", feature = "tls")),
    allow(
        dead_code,
        unreachable_pub,
        reason = "parts that transports share; a build with all features finds what nobody uses"
    )
)]

mod answer_error;
mod answer_queue;
mod app;
mod auth;
mod byte_budget;
mod call;
mod call_observer;
mod call_rate_limiter;
mod change_notifier;
mod client_hints;
mod completion;
mod content;
pub mod csp;
mod descriptor;
mod dispatcher;
mod elicitation;
mod error;
mod file;
mod fingerprint;
mod html;
#[cfg(feature = "http")]
pub mod http;
mod icon;
#[cfg(feature = "http")]
mod json_response;
mod json_writer;
mod limits;
mod listeners;
mod locale;
mod mcp_connection;
mod methods;
#[cfg(feature = "auth")]
pub mod oauth;
mod prompt;
mod protocol_version;
mod reply;
mod request_context;
mod request_meta;
mod resource;
mod resource_registry;
mod result;
mod revision;
#[cfg(feature = "http")]
mod route;
mod rpc;
mod rpc_message;
mod schema;
mod security;
mod server_info;
#[cfg(feature = "stdio")]
pub mod stdio;
mod tool;
mod trace;
mod uri_template;
mod widget;

pub use app::{App, AppBuilder};
#[cfg(not(feature = "auth"))]
pub use auth::Auth;
pub use auth::Caller;
#[cfg(feature = "auth")]
pub use auth::{
    ApiKeyGrant, ApiKeyInfo, ApiKeyStore, Auth, AuthBuilder, AuthError, AuthRejection,
    AuthRequirement, CertificateAuthorities, IntrospectionClient, InvalidAuthorities, Issuer,
    IssuerNetwork, IssuerTransport, LinkKey, LocalKeys, MAX_AUTHORITIES_BYTES, SignatureAlgorithm,
};
pub use call_observer::{CallKind, CallObserver, CallRecord, CallStatus};
pub use change_notifier::ChangeNotifier;
pub use client_hints::{ClientHints, Pseudonym, UserLocation};
pub use completion::Completer;
pub use content::{ContentBlock, ResourceText};
pub use descriptor::{ToolAnnotations, ToolAudience, ToolDescriptor};
pub use elicitation::Elicitation;
pub use error::{BuildError, ErrorExplainer, Failure};
pub use file::FileParam;
pub use html::escape_html;
pub use icon::Icon;
pub use json_writer::{EscapedJson, JsonObject};
pub use limits::HttpLimits;
pub use prompt::{Prompt, PromptArguments, PromptMessage, PromptRole};
pub use request_context::{Context, LogLevel, MAX_TOUCHED};
pub use resource::{Resource, ResourceBody, ResourceTemplate};
pub use result::{Answer, DualFormat, TextForm};
pub use revision::Revision;
pub use security::Security;
pub use tool::Tool;
pub use trace::{REQUEST_SPAN, SPANS, TraceParent};
pub use uri_template::TemplateVars;
pub use widget::{Widget, WidgetPermission, claude_domain};

/// Compiles the code blocks of the guides as doc tests, so that a page cannot show code that no longer builds.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/kit.md")]
#[doc = include_str!("../../../docs/apps.md")]
#[doc = include_str!("../../../docs/guides/app.md")]
struct Guides;
