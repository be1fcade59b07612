//! The survey of a server: runs the handshake, reads the lists, calls tools and probes edge cases, in the order in
//! which hosts do it. It only records; the rules judge afterwards.

mod auth_discovery;
mod calls;
mod handshake;
mod lists;
mod login;
mod transport;
mod widgets;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::CheckOptions;
use crate::connection::TargetConnection;
use crate::exchange::RecordedExchange;
use crate::request_builder::{ClientIdentity, McpRequestBuilder};

pub(crate) use auth_discovery::{MetadataDocument, SignInSurvey};
pub(crate) use calls::{CallPurpose, MAX_TITLE_CHARS, SurveyedCall};
pub(crate) use lists::ToolList;
pub(crate) use login::{LoginFlow, LoginStep};
pub(crate) use transport::STRANGER;
pub(crate) use widgets::{SurveyedWidget, templates};

/// Everything that the survey recorded about a server.
#[derive(Default)]
pub(crate) struct ServerSurvey {
    /// The URL of the endpoint as it was typed; `None` for a stdio program.
    pub url: Option<String>,
    pub is_local: bool,
    pub is_https: bool,
    /// The redirect that led to this URL from the one that was typed.
    pub redirect: Option<Arc<RecordedExchange>>,
    /// The `server/discover` request, which ChatGPT sends first.
    pub discover: Option<Arc<RecordedExchange>>,
    /// The `initialize` requests, each with the requested version.
    pub handshakes: Vec<(String, Arc<RecordedExchange>)>,
    /// Whether the server answered the handshake with 401.
    pub requires_sign_in: bool,
    /// Whether the requests carried a token.
    pub has_token: bool,
    /// Whether a handshake succeeded in either era.
    pub is_connected: bool,
    /// The protocol eras that the server supports.
    pub modern: bool,
    pub legacy: bool,
    /// Whether the server issues session ids.
    pub has_session: bool,
    /// The result of the main handshake: capabilities, instructions, server info.
    pub initialize_result: Value,
    /// The tools of the main session, and whether the list ended within the limits.
    pub tools: ToolList,
    pub tools_listed: bool,
    /// Every page of every tool list; the flag is true for 2026-07-28.
    pub tool_pages: Vec<(bool, Arc<RecordedExchange>)>,
    /// The tools of the other era, and those of a second request, where they were read in full.
    pub tools_other_era: Option<ToolList>,
    pub tools_again: Option<ToolList>,
    /// The single probes by name.
    pub probes: BTreeMap<&'static str, Arc<RecordedExchange>>,
    pub calls: Vec<SurveyedCall>,
    pub widgets: Vec<SurveyedWidget>,
    /// The widget mounts of the browser, where one was requested.
    pub mounts: Option<Result<Vec<crate::browser::WidgetMount>, crate::browser::BrowserError>>,
    pub sign_in: Option<SignInSurvey>,
    /// The outcome of the login, where one was requested.
    pub login: Option<LoginFlow>,
    /// Every logged exchange, in order.
    pub log: Vec<Arc<RecordedExchange>>,
    /// The tools that a host saw earlier, to compare with.
    pub baseline: Option<Vec<Value>>,
}

impl ServerSurvey {
    pub(crate) fn probe(&self, name: &str) -> Option<&RecordedExchange> {
        let found = self.probes.get(name).map(AsRef::as_ref);
        found.filter(|exchange| !exchange.was_not_sent())
    }

    pub(crate) fn is_http(&self) -> bool {
        self.url.is_some()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Value> {
        let is_it = |tool: &&Value| tool.get("name").is_some_and(|found| found == name);
        self.tools.iter().find(is_it)
    }
}

/// The state of a running survey: the connection, the options, the request builders, and the results so far.
pub(crate) struct SurveySession<'a> {
    pub wire: &'a TargetConnection,
    pub options: &'a CheckOptions,
    pub identity: ClientIdentity,
    /// The request builder of the main session, in which most requests are sent.
    pub main: Option<McpRequestBuilder>,
    /// The request builder of the other protocol era.
    pub other: Option<McpRequestBuilder>,
    pub survey: ServerSurvey,
    pub progress: &'a dyn Fn(&str),
}

impl SurveySession<'_> {
    /// Sends one request and records it under a name.
    fn probe(
        &mut self,
        name: &'static str,
        request: crate::connection::OutgoingRequest,
    ) -> Arc<RecordedExchange> {
        let exchange = self.wire.send(request);
        self.survey.probes.insert(name, Arc::clone(&exchange));
        exchange
    }
}

/// Surveys the server behind `wire`. The steps that depend on a failed handshake are not tried.
pub(crate) fn survey(
    wire: &TargetConnection,
    options: &CheckOptions,
    progress: &dyn Fn(&str),
) -> ServerSurvey {
    let http = wire.as_http();
    let mut ctx = SurveySession {
        wire,
        options,
        identity: options.identity(),
        main: None,
        other: None,
        survey: ServerSurvey {
            url: http.map(|http| http.url.clone()),
            is_local: http.is_none_or(|http| http.is_local),
            is_https: http.is_some_and(crate::connection::http::HttpTarget::is_https),
            has_token: options.token.is_some(),
            baseline: options.baseline.clone(),
            ..ServerSurvey::default()
        },
        progress,
    };
    progress("handshake");
    handshake::negotiate(&mut ctx);
    // A server that cannot be reached has one problem, and its consequences are not probed.
    if http.is_some() && (ctx.survey.is_connected || ctx.survey.requires_sign_in) {
        progress("sign-in");
        auth_discovery::discover(&mut ctx);
        if options.login && ctx.survey.requires_sign_in {
            login::sign_in(&mut ctx);
        }
    }
    if ctx.survey.is_connected && !ctx.survey.requires_sign_in {
        progress("lists");
        lists::read(&mut ctx);
        progress("calls");
        calls::call_tools(&mut ctx);
        progress("widgets");
        widgets::read(&mut ctx);
        progress("edges");
        transport::probe(&mut ctx);
        handshake::end_sessions(&mut ctx);
        if let Some(program) = options.browser.as_deref()
            && !ctx.survey.widgets.is_empty()
        {
            progress("browser");
            ctx.survey.mounts = Some(crate::browser::mount_widgets(program, &ctx.survey));
        }
    }
    ctx.survey.log = wire.log();
    ctx.survey
}
