//! A server into everything that rules look at: greeted, asked for its lists, called, and tried at its
//! edges, in the order in which hosts do it. Nothing here judges.

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
pub(crate) use calls::{CallPurpose, SurveyedCall};
pub(crate) use lists::ToolList;
pub(crate) use login::{LoginFlow, LoginStep};
pub(crate) use transport::STRANGER;
pub(crate) use widgets::{SurveyedWidget, templates};

/// Everything that was seen of a server.
#[derive(Default)]
pub(crate) struct ServerSurvey {
    /// The address as it was typed; `None` for a program.
    pub url: Option<String>,
    pub is_local: bool,
    pub is_https: bool,
    /// The answer that led here from the address that was typed.
    pub redirect: Option<Arc<RecordedExchange>>,
    /// ChatGPT's first question, `server/discover`.
    pub discover: Option<Arc<RecordedExchange>>,
    /// `initialize` with each version that was asked for.
    pub greetings: Vec<(String, Arc<RecordedExchange>)>,
    /// Whether sign-in stood in the way.
    pub requires_sign_in: bool,
    /// Whether a token was sent all the same.
    pub has_token: bool,
    /// Whether a conversation came about at all.
    pub is_connected: bool,
    /// The eras that the server answers in.
    pub modern: bool,
    pub legacy: bool,
    /// Whether the server hands out session ids.
    pub has_session: bool,
    /// Capabilities, instructions and the like, as the first conversation got them.
    pub initialize_result: Value,
    /// The tools of the first conversation, and whether their list came to an end.
    pub tools: ToolList,
    pub tools_listed: bool,
    /// Every page of every list of tools, by era.
    pub tool_pages: Vec<(bool, Arc<RecordedExchange>)>,
    /// The tools of the other era and those of a second asking, where there were any.
    pub tools_other_era: Option<ToolList>,
    pub tools_again: Option<ToolList>,
    /// Single questions by their names.
    pub probes: BTreeMap<&'static str, Arc<RecordedExchange>>,
    /// Every tool call.
    pub calls: Vec<SurveyedCall>,
    pub widgets: Vec<SurveyedWidget>,
    /// What happened when a browser showed them, where one was asked for.
    pub mounts: Option<Result<Vec<crate::browser::WidgetMount>, crate::browser::BrowserError>>,
    pub sign_in: Option<SignInSurvey>,
    /// How a login went, where one was asked for.
    pub login: Option<LoginFlow>,
    /// Everything, in order.
    pub log: Vec<Arc<RecordedExchange>>,
    /// What a host saw at another time.
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

    /// A tool by its name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Value> {
        let is_it = |tool: &&Value| tool.get("name").is_some_and(|found| found == name);
        self.tools.iter().find(is_it)
    }
}

/// The parts of a visit: the way, the voices, and what to spare.
pub(crate) struct SurveySession<'a> {
    pub wire: &'a TargetConnection,
    pub options: &'a CheckOptions,
    pub identity: ClientIdentity,
    /// The conversation in which most is asked.
    pub main: Option<McpRequestBuilder>,
    /// The one of the other era.
    pub other: Option<McpRequestBuilder>,
    pub survey: ServerSurvey,
    pub progress: &'a dyn Fn(&str),
}

impl SurveySession<'_> {
    /// Asks one question and keeps it under a name.
    fn probe(
        &mut self,
        name: &'static str,
        ask: crate::connection::OutgoingRequest,
    ) -> Arc<RecordedExchange> {
        let exchange = self.wire.send(ask);
        self.survey.probes.insert(name, Arc::clone(&exchange));
        exchange
    }
}

/// Looks at the server behind `wire`.
pub(crate) fn survey(
    wire: &TargetConnection,
    options: &CheckOptions,
    progress: &dyn Fn(&str),
) -> ServerSurvey {
    let http = wire.as_http();
    let mut visit = SurveySession {
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
    progress("greeting");
    handshake::negotiate(&mut visit);
    // A server that nobody could talk to has one problem, and what follows from it is not asked.
    if http.is_some() && (visit.survey.is_connected || visit.survey.requires_sign_in) {
        progress("sign-in");
        auth_discovery::discover(&mut visit);
        if options.login && visit.survey.requires_sign_in {
            login::sign_in(&mut visit);
        }
    }
    if visit.survey.is_connected && !visit.survey.requires_sign_in {
        progress("lists");
        lists::read(&mut visit);
        progress("calls");
        calls::call_tools(&mut visit);
        progress("widgets");
        widgets::read(&mut visit);
        progress("edges");
        transport::probe(&mut visit);
        handshake::end_sessions(&mut visit);
        if let Some(program) = options.browser.as_deref()
            && !visit.survey.widgets.is_empty()
        {
            progress("browser");
            visit.survey.mounts = Some(crate::browser::mount_widgets(program, &visit.survey));
        }
    }
    visit.survey.log = wire.log();
    visit.survey
}
