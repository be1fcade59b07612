//! `docent connect`: shows how to connect a client to the server of a folder, edits the client's configuration on
//! request, and tests the connection.

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;
use docent_check::{CheckTarget, ProbeError, ProbeSummary};
use serde_json::{Value, json};
use url::Url;

use super::CommandContext;
use crate::args::{ConnectArgs, PrintFormat, SettingOverrides};
use crate::cli_error::CliError;
use crate::connect::config_edit::{self, NameConflictPolicy};
use crate::connect::config_location::{ConfigDirs, ConfigLocation};
use crate::connect::config_store::{self, EditOutcome};
use crate::connect::connection_status::{ConnectionStatus, connection_status};
use crate::connect::server_entry::ServerEntry;
use crate::connect::setup_steps::{SetupStep, after_writing, steps};
use crate::connect::{
    ClientLocation, ClientTransport, ConnectionSpec, McpClient, is_name, name_of,
};
use crate::display_text::shorten;
use crate::output::{self, AnsiStyler, StepSpinner};

/// Timeout of each response in the connection test. Clients use about the same timeout when they start.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(connect: &ConnectArgs, flags: SettingOverrides) -> Result<ExitCode, CliError> {
    let Some(client) = connect.client else {
        list(connect.print)?;
        return Ok(ExitCode::SUCCESS);
    };
    let context = CommandContext::open(&connect.path, flags)?;
    let spec = connection_spec(connect, client, &context)?;
    let location = ConfigDirs::of_user()?.find(client, connect.scope);
    if connect.write || connect.remove {
        // Fails before anything is started if the client has no file to edit.
        let location = location
            .as_ref()
            .ok_or_else(|| no_config_file(client, connect))?;
        let edit = edit_config(connect, &spec, location)?;
        return finish(connect, &spec, Some(location), Some(&edit));
    }
    finish(connect, &spec, location.as_ref(), None)
}

fn finish(
    connect: &ConnectArgs,
    spec: &ConnectionSpec,
    location: Option<&ConfigLocation>,
    edit: Option<&EditOutcome>,
) -> Result<ExitCode, CliError> {
    let probed = (!connect.no_verify && !connect.remove).then(|| probe_server(spec));
    let status = if connect.remove {
        ConnectionStatus::default()
    } else {
        connection_status(spec, probed.as_ref())
    };
    let shown = ConnectReport {
        spec,
        location,
        edit,
        probed: probed.as_ref(),
        status: &status,
    };
    match connect.print {
        PrintFormat::Json => output::json(&shown.json())?,
        PrintFormat::Text => output::styled(&shown.text(AnsiStyler::for_data()))?,
    }
    Ok(if status.missing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn connection_spec(
    connect: &ConnectArgs,
    client: McpClient,
    context: &CommandContext,
) -> Result<ConnectionSpec, CliError> {
    let title = context
        .settings
        .title
        .clone()
        .unwrap_or_else(|| context.name());
    let name = match &connect.name {
        Some(name) if is_name(name) => name.clone(),
        Some(name) => {
            return Err(CliError::usage(format!(
                "`{}` is not a name for a server",
                shorten(name, 80)
            ))
            .hint("use 1 to 32 letters, digits, dashes and underscores"));
        }
        None => name_of(&title),
    };
    let variable = |name: &String| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty()
            && name.len() <= 100
            && name.chars().all(fits)
            && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    if let Some(name) = connect.token_env.as_ref().filter(|name| !variable(name)) {
        return Err(CliError::usage(format!(
            "`{}` is not the name of an environment variable",
            shorten(name, 80)
        ))
        .hint("name the variable, such as `DOCS_TOKEN`; not the token itself"));
    }
    Ok(ConnectionSpec {
        client,
        name,
        title,
        transport: client_transport(connect, client, context)?,
        token_env: connect.token_env.clone(),
        scope: connect.scope,
        folder: context.folder.display().to_string(),
        listen: context.settings.server.listen.to_string(),
    })
}

fn client_transport(
    connect: &ConnectArgs,
    client: McpClient,
    context: &CommandContext,
) -> Result<ClientTransport, CliError> {
    let server = &context.settings.server;
    let typed = connect.url.as_deref().map(address).transpose()?;
    let public = server.public_url.as_ref().map(|url| endpoint(url.clone()));
    let own = || address(&format!("http://{}/mcp", loopback_address(server.listen)));
    let url = match typed {
        Some(url) => Some(url),
        None if connect.http => Some(own()?),
        None if connect.stdio => None,
        None => match (public, client.reach()) {
            (Some(url), _) if client.takes_addresses() => Some(url),
            // A private URL cannot work for a remote client; the diagnosis explains that and needs the URL.
            (_, ClientLocation::Remote) => Some(own()?),
            _ => None,
        },
    };
    match url {
        Some(_) if !client.takes_addresses() => Err(CliError::usage(format!(
            "{} accepts only programs in its file, not URLs",
            client.title()
        ))
        .hint("remove `--url` and `--http`, or connect it as `claude`, with a public URL")),
        Some(url) => Ok(ClientTransport::Http(url)),
        None if !client.starts_programs() => Err(CliError::usage(format!(
            "{} cannot start programs on this machine",
            client.title()
        ))
        .hint("set a public URL with `--url`")),
        None => program(context),
    }
}

/// The stdio command that serves the folder. Paths are absolute, because clients start it in an unknown directory.
fn program(context: &CommandContext) -> Result<ClientTransport, CliError> {
    let binary = std::env::current_exe().map_err(|error| {
        CliError::failed("cannot determine the path of the docent executable").because(error)
    })?;
    let text = |path: &std::path::Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            CliError::usage(format!(
                "`{}` is not UTF-8, which a configuration file requires",
                path.display()
            ))
            .hint("serve it over HTTP and use `--http`")
        })
    };
    let words = [
        text(&binary)?,
        "serve".to_owned(),
        text(&context.folder)?,
        "--stdio".to_owned(),
    ];
    Ok(ClientTransport::Stdio(words.to_vec()))
}

pub(super) fn address(text: &str) -> Result<Url, CliError> {
    let fits = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    };
    Url::parse(text).ok().filter(fits).ok_or_else(|| {
        CliError::usage(format!("`{}` is not a web address", shorten(text, 80)))
            .hint("example: `https://docs.example.org/mcp`")
    })
}

/// URL of the MCP endpoint below a public URL.
pub(super) fn endpoint(mut public: Url) -> Url {
    let path = public.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/mcp") {
        public.set_path(&format!("{path}/mcp"));
    }
    public
}

/// Replaces an unspecified listen address such as `0.0.0.0` by loopback, which clients on this machine can connect to.
fn loopback_address(listen: std::net::SocketAddr) -> std::net::SocketAddr {
    let mut listen = listen;
    if listen.ip().is_unspecified() {
        listen.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    listen
}

fn no_config_file(client: McpClient, connect: &ConnectArgs) -> CliError {
    let (title, id) = (client.title(), client.id());
    if client == McpClient::ClaudeDesktop {
        return CliError::usage(format!("{title} has no project configuration file"))
            .hint("use `--scope user`");
    }
    let flag = if connect.write { "--write" } else { "--remove" };
    CliError::usage(format!(
        "{title} has no configuration file that docent can edit"
    ))
    .hint(format!(
        "follow the steps of `docent connect {id}`, without `{flag}`"
    ))
}

fn edit_config(
    connect: &ConnectArgs,
    spec: &ConnectionSpec,
    location: &ConfigLocation,
) -> Result<EditOutcome, CliError> {
    let entry = ServerEntry::of(spec);
    let conflicts = if connect.force {
        NameConflictPolicy::Replace
    } else {
        NameConflictPolicy::Keep
    };
    config_store::edit(&location.file, |text| {
        if connect.remove {
            config_edit::remove_server(text, location, &spec.name, &entry, conflicts)
        } else {
            config_edit::insert_server(text, location, &spec.name, &entry, conflicts)
        }
    })
}

fn probe_server(spec: &ConnectionSpec) -> Result<ProbeSummary, ProbeError> {
    let target = match &spec.transport {
        ClientTransport::Http(url) => CheckTarget::Url(url.to_string()),
        ClientTransport::Stdio(command) => CheckTarget::Program(command.clone()),
    };
    let token = spec
        .token_env
        .as_ref()
        .and_then(|name| std::env::var(name).ok());
    let mut steps = StepSpinner::start("connecting");
    steps.at("testing as the client would");
    let probed = docent_check::probe(&target, token.as_deref(), RESPONSE_TIMEOUT);
    steps.finish();
    probed
}

fn list(print: PrintFormat) -> Result<(), CliError> {
    let clients: Vec<_> = McpClient::value_variants()
        .iter()
        .filter_map(|client| Some((client, client.to_possible_value()?)))
        .map(|(client, value)| {
            (
                client,
                value.get_name().to_owned(),
                value
                    .get_help()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            )
        })
        .collect();
    match print {
        PrintFormat::Json => {
            let dirs = ConfigDirs::of_user().ok();
            let rows = clients.iter().map(|(client, id, about)| {
                let file = dirs
                    .as_ref()
                    .and_then(|dirs| dirs.find(**client, crate::connect::ConfigScope::User));
                json!({"client": id, "about": about, "file": file.map(|found| found.file)})
            });
            output::json(&Value::Array(rows.collect()))
        }
        PrintFormat::Text => {
            let rows: Vec<_> = clients
                .iter()
                .map(|(_, id, about)| format!("{id:<15} {about}"))
                .collect();
            output::data(&rows.join("\n"))?;
            output::say("\nthen: docent connect CLIENT FOLDER");
            Ok(())
        }
    }
}

/// Report about one connection: the edit or the setup steps, and the diagnosis.
struct ConnectReport<'a> {
    spec: &'a ConnectionSpec,
    location: Option<&'a ConfigLocation>,
    edit: Option<&'a EditOutcome>,
    probed: Option<&'a Result<ProbeSummary, ProbeError>>,
    status: &'a ConnectionStatus,
}

impl ConnectReport<'_> {
    fn text(&self, styler: AnsiStyler) -> String {
        let spec = self.spec;
        let mut lines = Vec::new();
        match (self.edit, self.location) {
            (Some(edit), Some(location)) => {
                let file = location.file.display();
                lines.push(styler.bold(&format!(
                    "{}: `{}` {} in {file}",
                    spec.client.title(),
                    spec.name,
                    edit.what
                )));
                if let Some(backup) = &edit.backup {
                    lines.push(styler.plain(&format!(
                        "  backup of the previous file: {}",
                        backup.display()
                    )));
                }
                if edit.what == "added" || edit.what == "changed" {
                    lines.push(
                        styler.plain(&format!("  {}", after_writing(spec.client, spec.scope))),
                    );
                }
            }
            _ => {
                lines.push(styler.bold(&format!("{}: {}", spec.client.title(), spec.title)));
                for (number, step) in steps(spec).into_iter().enumerate() {
                    lines.push(styler.plain(&format!("  {}. {}", number + 1, step.say)));
                    if let Some(code) = step.paste {
                        let code = code.replace('\n', "\n       ");
                        lines.push(format!("\n       {}\n", styler.bold(&code)));
                    }
                }
                if let Some(location) = self.location {
                    let text = format!(
                        "  or let docent edit the file with --write: {}",
                        location.file.display()
                    );
                    lines.push(styler.plain(&text));
                }
            }
        }
        lines.extend(
            self.status
                .good
                .iter()
                .map(|good| styler.plain(&format!("ok: {good}"))),
        );
        for missing in &self.status.missing {
            lines.push(styler.bold(&format!("missing: {}", missing.what)));
            lines.push(styler.plain(&format!("  hint: {}", missing.hint)));
        }
        lines.join("\n")
    }

    fn json(&self) -> Value {
        let spec = self.spec;
        let step = |step: SetupStep| json!({"say": step.say, "paste": step.paste});
        let (url, command) = match &spec.transport {
            ClientTransport::Http(url) => (Some(url.as_str()), None),
            ClientTransport::Stdio(command) => (None, Some(command)),
        };
        let missing = self.status.missing.iter();
        let missing = missing.map(|missing| json!({"what": missing.what, "hint": missing.hint}));
        json!({
            "client": spec.client.id(),
            "name": spec.name,
            "transport": if url.is_some() { "http" } else { "stdio" },
            "url": url,
            "command": command,
            "steps": steps(spec).into_iter().map(step).collect::<Vec<_>>(),
            "file": self.location.map(|location| json!({
                "path": location.file,
                "section": location.section,
                "entry": ServerEntry::of(spec).to_value(),
                "change": self.edit.map(|edit| edit.what),
                "backup": self.edit.and_then(|edit| edit.backup.as_ref()),
            })),
            "connection": self.probed.map(connection),
            "missing": missing.collect::<Vec<_>>(),
        })
    }
}

fn connection(probed: &Result<ProbeSummary, ProbeError>) -> Value {
    match probed {
        Ok(summary) => {
            let search = summary.search.as_ref().map(|search| match search {
                Ok(found) => {
                    json!({"query": found.query, "results": found.results, "first": found.first})
                }
                Err(why) => json!({"error": why}),
            });
            json!({
                "ok": true, "server": summary.server, "version": summary.version, "revision": summary.revision,
                "tools": summary.tools, "search": search,
            })
        }
        Err(error) => {
            json!({"ok": false, "error": error.to_string(), "sign_in": *error == ProbeError::SignInRequired})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_stands_below_the_public_address() {
        for (public, expected) in [
            ("https://docs.example.org", "https://docs.example.org/mcp"),
            (
                "https://docs.example.org/mcp/",
                "https://docs.example.org/mcp/",
            ),
            ("https://example.org/docs/", "https://example.org/docs/mcp"),
        ] {
            assert_eq!(endpoint(Url::parse(public).unwrap()).as_str(), expected);
        }
        assert_eq!(
            loopback_address("0.0.0.0:1".parse().unwrap()).to_string(),
            "127.0.0.1:1"
        );
        assert!(address("ftp://a.example").is_err() && address("https://u:p@a.example/").is_err());
    }
}
