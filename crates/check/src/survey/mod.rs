//! A server into everything that rules look at: greeted, asked for its lists, called, and tried at its
//! edges, in the order in which hosts do it. Nothing here judges.

mod calls;
mod greeting;
mod lists;
mod login;
mod signin;
mod transport;
mod widgets;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::Options;
use crate::exchange::Exchange;
use crate::voice::{Identity, Voice};
use crate::wire::Wire;

pub(crate) use calls::{Call, Purpose};
pub(crate) use lists::ToolList;
pub(crate) use login::{Login, Step};
pub(crate) use signin::{Document, SignIn};
pub(crate) use transport::STRANGER;
pub(crate) use widgets::{Widget, templates};

/// Everything that was seen of a server.
#[derive(Default)]
pub(crate) struct Seen {
    /// The address as it was typed; `None` for a program.
    pub url: Option<String>,
    pub is_local: bool,
    pub is_https: bool,
    /// The answer that led here from the address that was typed.
    pub redirect: Option<Arc<Exchange>>,
    /// ChatGPT's first question, `server/discover`.
    pub discover: Option<Arc<Exchange>>,
    /// `initialize` with each version that was asked for.
    pub greetings: Vec<(String, Arc<Exchange>)>,
    /// Whether sign-in stood in the way.
    pub is_locked: bool,
    /// Whether a token was sent all the same.
    pub has_token: bool,
    /// Whether a conversation came about at all.
    pub is_open: bool,
    /// The eras that the server answers in.
    pub modern: bool,
    pub legacy: bool,
    /// Whether the server hands out session ids.
    pub has_session: bool,
    /// Capabilities, instructions and the like, as the first conversation got them.
    pub hello: Value,
    /// The tools of the first conversation, and whether their list came to an end.
    pub tools: ToolList,
    pub tools_listed: bool,
    /// Every page of every list of tools, by era.
    pub tool_pages: Vec<(bool, Arc<Exchange>)>,
    /// The tools of the other era and those of a second asking, where there were any.
    pub tools_other_era: Option<ToolList>,
    pub tools_again: Option<ToolList>,
    /// Single questions by their names.
    pub probes: BTreeMap<&'static str, Arc<Exchange>>,
    /// Every tool call.
    pub calls: Vec<Call>,
    pub widgets: Vec<Widget>,
    /// What happened when a browser showed them, where one was asked for.
    pub mounts: Option<Result<Vec<crate::browser::Mount>, crate::browser::Trouble>>,
    pub sign_in: Option<SignIn>,
    /// How a login went, where one was asked for.
    pub login: Option<Login>,
    /// Everything, in order.
    pub log: Vec<Arc<Exchange>>,
    /// What a host saw at another time.
    pub baseline: Option<Vec<Value>>,
}

impl Seen {
    pub(crate) fn probe(&self, name: &str) -> Option<&Exchange> {
        let found = self.probes.get(name).map(AsRef::as_ref);
        found.filter(|exchange| !exchange.is_unsent())
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
pub(crate) struct Visit<'a> {
    pub wire: &'a Wire,
    pub options: &'a Options,
    pub identity: Identity,
    /// The conversation in which most is asked.
    pub main: Option<Voice>,
    /// The one of the other era.
    pub other: Option<Voice>,
    pub seen: Seen,
    pub progress: &'a dyn Fn(&str),
}

impl Visit<'_> {
    /// Asks one question and keeps it under a name.
    fn probe(&mut self, name: &'static str, ask: crate::wire::Ask) -> Arc<Exchange> {
        let exchange = self.wire.send(ask);
        self.seen.probes.insert(name, Arc::clone(&exchange));
        exchange
    }
}

/// Looks at the server behind `wire`.
pub(crate) fn survey(wire: &Wire, options: &Options, progress: &dyn Fn(&str)) -> Seen {
    let http = wire.as_http();
    let mut visit = Visit {
        wire,
        options,
        identity: options.identity(),
        main: None,
        other: None,
        seen: Seen {
            url: http.map(|http| http.url.clone()),
            is_local: http.is_none_or(|http| http.is_local),
            is_https: http.is_some_and(crate::wire::http::Http::is_https),
            has_token: options.token.is_some(),
            baseline: options.baseline.clone(),
            ..Seen::default()
        },
        progress,
    };
    progress("greeting");
    greeting::greet(&mut visit);
    // A server that nobody could talk to has one problem, and what follows from it is not asked.
    if http.is_some() && (visit.seen.is_open || visit.seen.is_locked) {
        progress("sign-in");
        signin::look(&mut visit);
        if options.login && visit.seen.is_locked {
            login::sign_in(&mut visit);
        }
    }
    if visit.seen.is_open && !visit.seen.is_locked {
        progress("lists");
        lists::read(&mut visit);
        progress("calls");
        calls::call(&mut visit);
        progress("widgets");
        widgets::read(&mut visit);
        progress("edges");
        transport::probe(&mut visit);
        greeting::leave(&mut visit);
        if let Some(program) = options.browser.as_deref()
            && !visit.seen.widgets.is_empty()
        {
            progress("browser");
            visit.seen.mounts = Some(crate::browser::mount(program, &visit.seen));
        }
    }
    visit.seen.log = wire.log();
    visit.seen
}
