//! A server into findings: does this MCP server do what hosts ask of one?
//!
//! [`check`] talks to the server as ChatGPT and Claude would, keeps every exchange, and holds what it saw
//! against one dated table of [`rules`]. This crate shares no code with the servers it looks at, so that
//! a mistake made on both sides cannot hide.

mod browser;
mod connection;
mod exchange;
mod probe;
mod profile;
pub mod render;
mod report;
mod request_builder;
mod rule;
mod rules;
mod schema;
mod sse;
mod static_analysis;
mod survey;
mod text;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use browser::find as find_browser;
use connection::TargetConnection;
use connection::http::HttpTarget;
use connection::stdio::ProgramTarget;
use exchange::RecordedExchange;
pub use probe::{ProbeError, ProbeSearch, ProbeSummary, ProbedPage, ToolOutcome, call, get, probe};
pub use profile::CheckProfile;
pub use report::{CheckReport, RuleFinding, Severity, SeverityCounts};
use request_builder::ClientIdentity;
pub use rule::{CheckRule, RuleSource, SourceBasis};
use survey::ServerSurvey;

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    /// The address of an MCP endpoint.
    Url(String),
    /// A program with its arguments, which speaks MCP on its pipes.
    Program(Vec<String>),
}

/// How it is checked.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// For whom; empty for those that the server shows itself to be made for.
    pub profiles: Vec<CheckProfile>,
    /// The longest one call may take. Hosts give up at about a minute; a server that needs half of that
    /// has a problem.
    pub call_timeout: Duration,
    /// Questions that the server's `search` should be able to answer; without them it is asked for words
    /// that it uses of itself.
    pub queries: Vec<String>,
    /// A token that is sent with every request.
    pub token: Option<String>,
    /// Whether to sign in where the server asks for it and there is no token: `progress` then hears
    /// `sign in at` and the address of the login page, and the user has five minutes.
    pub login: bool,
    /// The client id to sign in with; without it one is registered.
    pub client_id: Option<String>,
    /// Whether tools may be called that do not say that they only read.
    pub allow_writes: bool,
    /// Whether addresses that search returns are opened.
    pub open_urls: bool,
    /// Whether one request is left half sent, to see how long the server waits for it.
    pub slow: bool,
    /// How long that is waited for.
    pub slow_wait: Duration,
    /// The Chromium in which widgets are mounted; without it they are only read.
    pub browser: Option<PathBuf>,
    /// The tools that a host saw at another time, to compare with.
    pub baseline: Option<Vec<Value>>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            profiles: Vec::new(),
            call_timeout: Duration::from_secs(30),
            queries: Vec::new(),
            token: None,
            login: false,
            client_id: None,
            allow_writes: false,
            open_urls: false,
            slow: false,
            slow_wait: Duration::from_secs(40),
            browser: None,
            baseline: None,
        }
    }
}

impl CheckOptions {
    /// As ChatGPT, unless only Claude is asked about.
    fn identity(&self) -> ClientIdentity {
        if self.profiles == [CheckProfile::Claude] {
            ClientIdentity::Claude
        } else {
            ClientIdentity::ChatGpt
        }
    }
}

/// Every rule, in the order of the report.
pub fn rules() -> impl Iterator<Item = &'static CheckRule> {
    rules::GROUPS.iter().flat_map(|group| group.iter())
}

/// Whether an address answers with 200 just now; for waiting until a server is ready.
#[must_use]
pub fn is_up(url: &str) -> bool {
    let brief = Duration::from_secs(2);
    let http = HttpTarget::new(url, brief, ClientIdentity::ChatGpt.user_agent(), None);
    let exchange = http
        .ok()
        .map(|http| TargetConnection::http(http).send(connection::OutgoingRequest::get(url)));
    exchange.and_then(|exchange| exchange.status()) == Some(200)
}

/// Checks a server, waiting for its answers; `progress` hears what is done meanwhile. Trouble in talking
/// to it is a finding too.
#[must_use]
pub fn check(target: &CheckTarget, options: &CheckOptions, progress: &dyn Fn(&str)) -> CheckReport {
    let (name, wire) = match target {
        CheckTarget::Url(url) => {
            let agent = options.identity().user_agent();
            let http = HttpTarget::new(url, options.call_timeout, agent, options.token.clone());
            (url.clone(), http.ok().map(TargetConnection::http))
        }
        CheckTarget::Program(command) => {
            let program = ProgramTarget::new(command.clone(), options.call_timeout);
            (command.join(" "), Some(TargetConnection::program(program)))
        }
    };
    let mut seen = match &wire {
        Some(wire) => survey::survey(wire, options, progress),
        None => ServerSurvey {
            url: Some(name.clone()),
            ..ServerSurvey::default()
        },
    };
    if let Some((url, redirect)) = same_host_redirect(&seen)
        && let Some(http) = wire.as_ref().and_then(TargetConnection::as_http)
    {
        // What its name leads to was settled before the first request.
        seen = survey::survey(
            &TargetConnection::http(http.with_url(&url)),
            options,
            progress,
        );
        seen.redirect = Some(redirect);
    }
    build_report(&name, &seen, options)
}

/// Where the address leads that was typed, if to another place on the same host. It is followed once, so that
/// the rest of the server is seen too; other hosts are left alone.
fn same_host_redirect(seen: &ServerSurvey) -> Option<(String, Arc<RecordedExchange>)> {
    let (_, greeted) = seen.greetings.first()?;
    let received = greeted.received()?;
    let location = received
        .header("location")
        .filter(|_| (300..400).contains(&received.status))?;
    let url = seen.url.as_deref()?;
    let after_scheme = url.find("://")? + 3;
    let path_at = url
        .get(after_scheme..)?
        .find('/')
        .map_or(url.len(), |at| after_scheme + at);
    let origin = url.get(..path_at)?;
    let target = match location.strip_prefix(origin) {
        Some(rest) if rest.starts_with('/') => location.to_owned(),
        _ if location.starts_with('/') && !location.starts_with("//") => {
            format!("{origin}{location}")
        }
        _ => return None,
    };
    Some((target, Arc::clone(greeted)))
}

fn build_report(name: &str, seen: &ServerSurvey, options: &CheckOptions) -> CheckReport {
    let profiles = if options.profiles.is_empty() {
        detect_profiles(seen)
    } else {
        options.profiles.clone()
    };
    let mut report = CheckReport::new(name, &profiles);
    for rule in rules() {
        if let Some(weight) = rule.severity_for(&profiles) {
            let verdict = match rules::skip_reason(rule, seen) {
                Some(reason) => rule::RuleVerdict::Skipped(reason),
                None => (rule.evaluate)(seen),
            };
            report.add(rule, weight, verdict);
        }
    }
    report.facts = rules::measured_facts(seen);
    report.tools = seen.tools.iter().cloned().collect();
    if let Some(Err(trouble)) = &seen.mounts {
        report.trouble = Some(trouble.to_string());
    }
    report.sort();
    report
}

/// The profiles that a server shows itself to be made for.
fn detect_profiles(seen: &ServerSurvey) -> Vec<CheckProfile> {
    let mut fitting = vec![CheckProfile::Protocol, CheckProfile::ChatGpt];
    // Others have tools of these names too, for other things.
    let takes = |tool: &str, argument: &str| {
        let schema = seen.tool(tool).and_then(|tool| tool.get("inputSchema"));
        schema.is_some_and(|schema| {
            schema
                .get("properties")
                .is_some_and(|all| all.get(argument).is_some())
        })
    };
    if takes("search", "query") && takes("fetch", "id") {
        fitting.extend([CheckProfile::DeepResearch, CheckProfile::CompanyKnowledge]);
    }
    fitting.push(CheckProfile::Claude);
    if !seen.widgets.is_empty() {
        fitting.push(CheckProfile::Apps);
    }
    fitting
}
