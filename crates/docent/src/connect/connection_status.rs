//! Diagnosis of a connection test: what works, what is missing, and a hint for each problem.

use docent_check::{ProbeError, ProbeSummary};

use super::setup_steps::shell_quote;
use super::{ClientLocation, ClientTransport, ConnectionSpec};

/// A problem that prevents the connection, and the hint that fixes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionIssue {
    pub what: String,
    pub hint: String,
}

/// Result of the diagnosis: successful checks, and problems. Without problems, the command exits with 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConnectionStatus {
    pub good: Vec<String>,
    pub missing: Vec<ConnectionIssue>,
}

/// Diagnoses a connection from the probe's result; `None` means that the connection was not tested.
pub(crate) fn connection_status(
    spec: &ConnectionSpec,
    probed: Option<&Result<ProbeSummary, ProbeError>>,
) -> ConnectionStatus {
    let mut status = ConnectionStatus::default();
    match probed {
        Some(Ok(summary)) => report_success(summary, &mut status),
        Some(Err(ProbeError::SignInRequired)) => report_sign_in(spec, &mut status),
        Some(Err(error)) => status.missing.push(probe_issue(spec, error)),
        None => {}
    }
    if spec.client.reach() == ClientLocation::Remote && !spec.transport.is_public() {
        status.missing.push(private_address_issue(spec));
    }
    status
}

fn report_success(summary: &ProbeSummary, status: &mut ConnectionStatus) {
    let tools = summary.tools.join(", ");
    status.good.push(format!(
        "{} {} answers, with the tools {tools}",
        summary.server, summary.version
    ));
    match &summary.search {
        Some(Ok(found)) if found.results > 0 => {
            let first = found.first.as_deref().unwrap_or("a document without a title");
            status.good.push(format!("search found {} documents, the first is `{first}`", found.results));
        }
        Some(Ok(_)) => status.good.push("search answers; nothing is found yet, perhaps because the folder is still being indexed".to_owned()),
        Some(Err(why)) => status.missing.push(ConnectionIssue {
            what: format!("search fails: {why}"),
            hint: "diagnose it with `docent doctor` and `docent check`".to_owned(),
        }),
        None => status.missing.push(ConnectionIssue {
            what: "the server has no tool called `search`".to_owned(),
            hint: "check that the URL is that of a docent server".to_owned(),
        }),
    }
}

fn report_sign_in(spec: &ConnectionSpec, status: &mut ConnectionStatus) {
    use super::McpClient;
    status
        .good
        .push("the server answers and asks for sign-in".to_owned());
    match spec.client {
        McpClient::OpenaiApi | McpClient::ClaudeApi | McpClient::Inspector
            if spec.token_env.is_none() =>
        {
            status.missing.push(ConnectionIssue {
                what: format!("{} cannot sign in by itself", spec.client.title()),
                hint: "name the variable that holds a token with `--token-env`".to_owned(),
            });
        }
        _ if spec.token_env.is_some() => status.missing.push(ConnectionIssue {
            what: "the token is rejected, or the variable is not set".to_owned(),
            hint: "check its expiry and audience".to_owned(),
        }),
        _ => status.good.push(format!(
            "{} opens the sign-in page when it connects",
            spec.client.title()
        )),
    }
}

fn probe_issue(spec: &ConnectionSpec, error: &ProbeError) -> ConnectionIssue {
    let serve = format!("docent serve {}", shell_quote(&spec.folder));
    let hint = match (&spec.transport, error) {
        (ClientTransport::Stdio(_), _) => format!("see why with `{serve} --stdio`"),
        (ClientTransport::Http(url), ProbeError::Unreachable(_)) => {
            let local = url
                .host_str()
                .is_some_and(|host| ["127.0.0.1", "localhost", "[::1]"].contains(&host));
            let listen = url
                .port()
                .map_or_else(String::new, |port| format!("127.0.0.1:{port}"));
            if !local {
                format!(
                    "start the server with `{serve} --public-url {}`, and the proxy or tunnel in front of it",
                    origin(url)
                )
            } else if listen == spec.listen {
                format!("start it with `{serve}`")
            } else {
                format!("start it with `{serve} --listen {listen}`")
            }
        }
        (ClientTransport::Http(url), ProbeError::Refused(_)) => {
            format!(
                "allow this host name: `{serve} --public-url {}`",
                origin(url)
            )
        }
        (_, ProbeError::Redirected(_)) => {
            "use the URL that it redirects to; some clients do not follow redirects".to_owned()
        }
        (_, ProbeError::NotMcp(_)) => "the URL usually ends in `/mcp`".to_owned(),
        _ => "try again, or diagnose it with `docent doctor`".to_owned(),
    };
    ConnectionIssue {
        what: error.to_string(),
        hint,
    }
}

fn private_address_issue(spec: &ConnectionSpec) -> ConnectionIssue {
    let serve = format!("docent serve {}", shell_quote(&spec.folder));
    let port = spec.listen.rsplit(':').next().unwrap_or("8787");
    ConnectionIssue {
        what: format!(
            "{} connects from the internet and needs a public https URL",
            spec.client.title()
        ),
        hint: format!(
            "open a tunnel, such as `cloudflared tunnel --url http://127.0.0.1:{port}`, or put a proxy in front; \
             then run `{serve} --public-url https://…`, and pass that URL here with `--url`"
        ),
    }
}

fn origin(url: &url::Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use docent_check::ProbeSearch;
    use url::Url;

    use super::super::{ConfigScope, McpClient};
    use super::*;

    fn spec(client: McpClient, url: &str) -> ConnectionSpec {
        ConnectionSpec {
            client,
            name: "dam".to_owned(),
            title: "Dam".to_owned(),
            transport: ClientTransport::Http(Url::parse(url).unwrap()),
            token_env: None,
            scope: ConfigScope::User,
            folder: "/srv/dam".to_owned(),
            listen: "127.0.0.1:8787".to_owned(),
        }
    }

    fn hints(spec: &ConnectionSpec, probed: &Result<ProbeSummary, ProbeError>) -> Vec<String> {
        let status = connection_status(spec, Some(probed));
        status
            .missing
            .into_iter()
            .map(|missing| missing.hint)
            .collect()
    }

    fn summary() -> ProbeSummary {
        ProbeSummary {
            server: "Dam".to_owned(),
            name: "docent".to_owned(),
            version: "1".to_owned(),
            revision: "2025-11-25".to_owned(),
            tools: vec!["search".to_owned()],
            search: Some(Ok(ProbeSearch {
                query: "Dam".to_owned(),
                results: 2,
                first: None,
            })),
        }
    }

    #[test]
    fn a_server_that_is_not_running_is_started_with_what_is_said() {
        let nobody = || Err(ProbeError::Unreachable("refused".to_owned()));
        let local = spec(McpClient::ClaudeCode, "http://127.0.0.1:8787/mcp");
        assert_eq!(
            hints(&local, &nobody()),
            ["start it with `docent serve /srv/dam`"]
        );
        let other = spec(McpClient::ClaudeCode, "http://127.0.0.1:9000/mcp");
        assert_eq!(
            hints(&other, &nobody()),
            ["start it with `docent serve /srv/dam --listen 127.0.0.1:9000`"]
        );
    }

    #[test]
    fn hosts_elsewhere_need_a_public_address() {
        assert_eq!(
            hints(
                &spec(McpClient::Chatgpt, "http://127.0.0.1:8787/mcp"),
                &Ok(summary())
            )
            .len(),
            1
        );
        assert_eq!(
            hints(
                &spec(McpClient::Chatgpt, "https://dam.example/mcp"),
                &Ok(summary())
            )
            .len(),
            0
        );
        assert_eq!(
            hints(
                &spec(McpClient::ClaudeCode, "http://127.0.0.1:8787/mcp"),
                &Ok(summary())
            )
            .len(),
            0
        );
        let refused = Err(ProbeError::Refused("host".to_owned()));
        let hint = hints(
            &spec(McpClient::Chatgpt, "https://dam.example/mcp"),
            &refused,
        );
        assert_eq!(
            hint,
            ["allow this host name: `docent serve /srv/dam --public-url https://dam.example`"]
        );
    }

    #[test]
    fn sign_in_is_missing_only_where_nobody_can_do_it() {
        let locked = || Err(ProbeError::SignInRequired);
        assert_eq!(
            hints(
                &spec(McpClient::Chatgpt, "https://dam.example/mcp"),
                &locked()
            )
            .len(),
            0
        );
        assert_eq!(
            hints(
                &spec(McpClient::ClaudeApi, "https://dam.example/mcp"),
                &locked()
            )
            .len(),
            1
        );
        let with_token = ConnectionSpec {
            token_env: Some("T".to_owned()),
            ..spec(McpClient::Codex, "https://dam.example/mcp")
        };
        assert_eq!(hints(&with_token, &locked()).len(), 1);
    }
}
