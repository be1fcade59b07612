//! What a try came to, into plain words: what works, what is still missing and what to do about it.

use docent_check::{ProbeError, ProbeSummary};

use super::setup_steps::shell_quote;
use super::{ClientLocation, ClientTransport, ConnectionSpec};

/// Something that is still missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionIssue {
    pub what: String,
    /// The cure.
    pub hint: String,
}

/// How a connection stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConnectionStatus {
    /// What works, or is as it should be.
    pub good: Vec<String>,
    pub missing: Vec<ConnectionIssue>,
}

/// What is to be said about a connection that was tried; `None` when it was not.
pub(crate) fn connection_status(
    wish: &ConnectionSpec,
    tried: Option<&Result<ProbeSummary, ProbeError>>,
) -> ConnectionStatus {
    let mut standing = ConnectionStatus::default();
    match tried {
        Some(Ok(met)) => report_success(met, &mut standing),
        Some(Err(ProbeError::SignInRequired)) => report_sign_in(wish, &mut standing),
        Some(Err(unmet)) => standing.missing.push(probe_issue(wish, unmet)),
        None => {}
    }
    if wish.client.reach() == ClientLocation::Remote && !wish.transport.is_public() {
        standing.missing.push(private_address_issue(wish));
    }
    standing
}

fn report_success(met: &ProbeSummary, standing: &mut ConnectionStatus) {
    let tools = met.tools.join(", ");
    standing.good.push(format!(
        "{} {} answers, with the tools {tools}",
        met.server, met.version
    ));
    match &met.search {
        Some(Ok(found)) if found.results > 0 => {
            let first = found.first.as_deref().unwrap_or("a document without a title");
            standing.good.push(format!("search found {} documents, the first is `{first}`", found.results));
        }
        Some(Ok(_)) => standing.good.push("search answers; nothing is found yet, perhaps because the folder is still being indexed".to_owned()),
        Some(Err(why)) => standing.missing.push(ConnectionIssue {
            what: format!("search fails: {why}"),
            hint: "look at it with `docent doctor` and `docent check`".to_owned(),
        }),
        None => standing.missing.push(ConnectionIssue {
            what: "the server has no tool called `search`".to_owned(),
            hint: "is the address the one of a docent server?".to_owned(),
        }),
    }
}

fn report_sign_in(wish: &ConnectionSpec, standing: &mut ConnectionStatus) {
    use super::McpClient;
    standing
        .good
        .push("the server answers and asks for sign-in".to_owned());
    match wish.client {
        McpClient::OpenaiApi | McpClient::ClaudeApi | McpClient::Inspector
            if wish.token_env.is_none() =>
        {
            standing.missing.push(ConnectionIssue {
                what: format!("{} cannot sign in by itself", wish.client.title()),
                hint: "give the variable that holds a token with `--token-env`".to_owned(),
            });
        }
        _ if wish.token_env.is_some() => standing.missing.push(ConnectionIssue {
            what: "the token is refused, or the variable is not set".to_owned(),
            hint: "look at its expiry and audience".to_owned(),
        }),
        _ => standing.good.push(format!(
            "{} opens the sign-in page when it connects",
            wish.client.title()
        )),
    }
}

fn probe_issue(wish: &ConnectionSpec, unmet: &ProbeError) -> ConnectionIssue {
    let serve = format!("docent serve {}", shell_quote(&wish.folder));
    let hint = match (&wish.transport, unmet) {
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
                    "start the server with `{serve} --public-url {}`, and what leads to it",
                    origin(url)
                )
            } else if listen == wish.listen {
                format!("start it with `{serve}`")
            } else {
                format!("start it with `{serve} --listen {listen}`")
            }
        }
        (ClientTransport::Http(url), ProbeError::Refused(_)) => {
            format!(
                "let it be called by that name: `{serve} --public-url {}`",
                origin(url)
            )
        }
        (_, ProbeError::Redirected(_)) => {
            "give the address that it leads to; some clients follow none".to_owned()
        }
        (_, ProbeError::NotMcp(_)) => "the address usually ends in `/mcp`".to_owned(),
        _ => "try again; look at it with `docent doctor`".to_owned(),
    };
    ConnectionIssue {
        what: unmet.to_string(),
        hint,
    }
}

fn private_address_issue(wish: &ConnectionSpec) -> ConnectionIssue {
    let serve = format!("docent serve {}", shell_quote(&wish.folder));
    let port = wish.listen.rsplit(':').next().unwrap_or("8787");
    ConnectionIssue {
        what: format!(
            "{} calls from outside and needs a public https address",
            wish.client.title()
        ),
        hint: format!(
            "open a tunnel, such as `cloudflared tunnel --url http://127.0.0.1:{port}`, or put a proxy in front; \
             then `{serve} --public-url https://…`, and give that address here with `--url`"
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

    fn wish(client: McpClient, url: &str) -> ConnectionSpec {
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

    fn hints(wish: &ConnectionSpec, tried: &Result<ProbeSummary, ProbeError>) -> Vec<String> {
        let standing = connection_status(wish, Some(tried));
        standing
            .missing
            .into_iter()
            .map(|missing| missing.hint)
            .collect()
    }

    fn met() -> ProbeSummary {
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
        let local = wish(McpClient::ClaudeCode, "http://127.0.0.1:8787/mcp");
        assert_eq!(
            hints(&local, &nobody()),
            ["start it with `docent serve /srv/dam`"]
        );
        let other = wish(McpClient::ClaudeCode, "http://127.0.0.1:9000/mcp");
        assert_eq!(
            hints(&other, &nobody()),
            ["start it with `docent serve /srv/dam --listen 127.0.0.1:9000`"]
        );
    }

    #[test]
    fn hosts_elsewhere_need_a_public_address() {
        assert_eq!(
            hints(
                &wish(McpClient::Chatgpt, "http://127.0.0.1:8787/mcp"),
                &Ok(met())
            )
            .len(),
            1
        );
        assert_eq!(
            hints(
                &wish(McpClient::Chatgpt, "https://dam.example/mcp"),
                &Ok(met())
            )
            .len(),
            0
        );
        assert_eq!(
            hints(
                &wish(McpClient::ClaudeCode, "http://127.0.0.1:8787/mcp"),
                &Ok(met())
            )
            .len(),
            0
        );
        let refused = Err(ProbeError::Refused("host".to_owned()));
        let hint = hints(
            &wish(McpClient::Chatgpt, "https://dam.example/mcp"),
            &refused,
        );
        assert_eq!(
            hint,
            [
                "let it be called by that name: `docent serve /srv/dam --public-url https://dam.example`"
            ]
        );
    }

    #[test]
    fn sign_in_is_missing_only_where_nobody_can_do_it() {
        let locked = || Err(ProbeError::SignInRequired);
        assert_eq!(
            hints(
                &wish(McpClient::Chatgpt, "https://dam.example/mcp"),
                &locked()
            )
            .len(),
            0
        );
        assert_eq!(
            hints(
                &wish(McpClient::ClaudeApi, "https://dam.example/mcp"),
                &locked()
            )
            .len(),
            1
        );
        let with_token = ConnectionSpec {
            token_env: Some("T".to_owned()),
            ..wish(McpClient::Codex, "https://dam.example/mcp")
        };
        assert_eq!(hints(&with_token, &locked()).len(), 1);
    }
}
