//! Conformance checker for MCP servers: does a server do what its hosts require?
//!
//! [`check`] talks to the server as ChatGPT and Claude would, records every request with its response, and evaluates
//! one dated table of [`rules`] against the recording. This crate shares no code with the servers that it checks, so
//! that a mistake made on both sides cannot hide.

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

/// The server to check: an HTTP endpoint, or a program that is spawned and spoken to over stdio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    /// The URL of an MCP endpoint (streamable HTTP).
    Url(String),
    /// A program and its arguments, which speaks MCP over stdin and stdout.
    Program(Vec<String>),
}

/// The options of one check. The default sends nothing that could change data on the server and opens no other host.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The profiles whose rules apply; empty to detect them from the tools and widgets of the server.
    pub profiles: Vec<CheckProfile>,
    /// The timeout of one call, 30 seconds by default. Hosts give up at about a minute; a server that needs half of
    /// that has a problem.
    pub call_timeout: Duration,
    /// Queries that the server's `search` should be able to answer; without them the check takes words from the
    /// server's own instructions and descriptions.
    pub queries: Vec<String>,
    /// A bearer token that is sent with every request to the server, and to no other host.
    pub token: Option<String>,
    /// Whether to run the OAuth login where the server requires sign-in and there is no token. `progress` is then
    /// called with `sign in at` and the address of the login page, and the user has five minutes.
    pub login: bool,
    /// The OAuth client id for the login; without it the check registers a client.
    pub client_id: Option<String>,
    /// Whether tools without `readOnlyHint: true` may be called.
    pub allow_writes: bool,
    /// Whether to open the first few URLs that `search` returns.
    pub open_urls: bool,
    /// Whether to send one partial request, to see whether the server times out slow clients (slowloris).
    pub slow: bool,
    /// How long to wait for the server to close the partial request.
    pub slow_wait: Duration,
    /// The Chromium in which widgets are mounted; without it they are only analysed statically.
    pub browser: Option<PathBuf>,
    /// The tools that a host saw earlier, to compare the current ones with.
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
    /// The client identity of the requests: ChatGPT, unless Claude is the only profile.
    fn identity(&self) -> ClientIdentity {
        if self.profiles == [CheckProfile::Claude] {
            ClientIdentity::Claude
        } else {
            ClientIdentity::ChatGpt
        }
    }
}

/// All rules, in the order of the report.
pub fn rules() -> impl Iterator<Item = &'static CheckRule> {
    rules::GROUPS.iter().flat_map(|group| group.iter())
}

/// Readiness probe: whether a GET of the URL returns status 200 within two seconds.
#[must_use]
pub fn is_up(url: &str) -> bool {
    let brief = Duration::from_secs(2);
    let http = HttpTarget::new(url, brief, ClientIdentity::ChatGpt.user_agent(), None);
    let exchange = http
        .ok()
        .map(|http| TargetConnection::http(http).send(connection::OutgoingRequest::get(url)));
    exchange.and_then(|exchange| exchange.status()) == Some(200)
}

/// Checks a server and blocks until the report is complete; `progress` is called with the name of each step. A server
/// that cannot be reached is not an error of this function but a finding of the report.
#[must_use]
pub fn check(target: &CheckTarget, options: &CheckOptions, progress: &dyn Fn(&str)) -> CheckReport {
    let (name, connection) = match target {
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
    let mut survey = match &connection {
        Some(connection) => survey::survey(connection, options, progress),
        None => ServerSurvey {
            url: Some(name.clone()),
            ..ServerSurvey::default()
        },
    };
    if let Some((url, redirect)) = same_host_redirect(&survey)
        && let Some(http) = connection.as_ref().and_then(TargetConnection::as_http)
    {
        // The host name was resolved before the first request and is not resolved again.
        survey = survey::survey(
            &TargetConnection::http(http.with_url(&url)),
            options,
            progress,
        );
        survey.redirect = Some(redirect);
    }
    build_report(&name, &survey, options)
}

/// The target of a redirect from the given URL to another path of the same origin. The check follows it once, so that
/// one redirect does not hide the rest of the server; a redirect to another host is only reported.
fn same_host_redirect(survey: &ServerSurvey) -> Option<(String, Arc<RecordedExchange>)> {
    let (_, exchange) = survey.handshakes.first()?;
    let received = exchange.received()?;
    let location = received
        .header("location")
        .filter(|_| (300..400).contains(&received.status))?;
    let url = survey.url.as_deref()?;
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
    Some((target, Arc::clone(exchange)))
}

fn build_report(name: &str, survey: &ServerSurvey, options: &CheckOptions) -> CheckReport {
    let profiles = if options.profiles.is_empty() {
        detect_profiles(survey)
    } else {
        options.profiles.clone()
    };
    let mut report = CheckReport::new(name, &profiles);
    for rule in rules() {
        if let Some(severity) = rule.severity_for(&profiles) {
            let verdict = match rules::skip_reason(rule, survey) {
                Some(reason) => rule::RuleVerdict::Skipped(reason),
                None => (rule.evaluate)(survey),
            };
            report.add(rule, severity, verdict);
        }
    }
    report.facts = rules::measured_facts(survey);
    report.tools = survey.tools.iter().cloned().collect();
    if let Some(Err(trouble)) = &survey.mounts {
        report.trouble = Some(trouble.to_string());
    }
    report.sort();
    report
}

/// Detects the profiles that fit a server from its tools and widgets.
fn detect_profiles(survey: &ServerSurvey) -> Vec<CheckProfile> {
    let mut profiles = vec![CheckProfile::Protocol, CheckProfile::ChatGpt];
    // Unrelated tools have these names too, so the argument must match as well.
    let takes = |tool: &str, argument: &str| {
        let schema = survey.tool(tool).and_then(|tool| tool.get("inputSchema"));
        schema.is_some_and(|schema| {
            schema
                .get("properties")
                .is_some_and(|all| all.get(argument).is_some())
        })
    };
    if takes("search", "query") && takes("fetch", "id") {
        profiles.extend([CheckProfile::DeepResearch, CheckProfile::CompanyKnowledge]);
    }
    profiles.push(CheckProfile::Claude);
    if !survey.widgets.is_empty() {
        profiles.push(CheckProfile::Apps);
    }
    profiles
}
