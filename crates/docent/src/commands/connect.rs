//! `docent connect`: a client and a folder into what connects them, tried and explained, and written into the
//! client's own configuration where that is asked for.

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
use crate::output::{self, AnsiStyler, StepSpinner};
use crate::settings::shorten;

/// How long the server may take for each answer; a client waits about as long when it starts.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(connect: &ConnectArgs, flags: SettingOverrides) -> Result<ExitCode, CliError> {
    let Some(client) = connect.client else {
        list(connect.print)?;
        return Ok(ExitCode::SUCCESS);
    };
    let desk = CommandContext::open(&connect.path, flags)?;
    let wish = connection_spec(connect, client, &desk)?;
    let place = ConfigDirs::of_user()?.find(client, connect.scope);
    if connect.write || connect.remove {
        // What cannot be written is said before anything is started.
        let place = place
            .as_ref()
            .ok_or_else(|| no_config_file(client, connect))?;
        let done = edit_config(connect, &wish, place)?;
        return finish(connect, &wish, Some(place), Some(&done));
    }
    finish(connect, &wish, place.as_ref(), None)
}

fn finish(
    connect: &ConnectArgs,
    wish: &ConnectionSpec,
    place: Option<&ConfigLocation>,
    done: Option<&EditOutcome>,
) -> Result<ExitCode, CliError> {
    let tried = (!connect.no_verify && !connect.remove).then(|| probe_server(wish));
    let standing = if connect.remove {
        ConnectionStatus::default()
    } else {
        connection_status(wish, tried.as_ref())
    };
    let shown = ConnectReport {
        wish,
        place,
        done,
        tried: tried.as_ref(),
        standing: &standing,
    };
    match connect.print {
        PrintFormat::Json => output::json(&shown.json())?,
        PrintFormat::Text => output::styled(&shown.text(AnsiStyler::for_data()))?,
    }
    Ok(if standing.missing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn connection_spec(
    connect: &ConnectArgs,
    client: McpClient,
    desk: &CommandContext,
) -> Result<ConnectionSpec, CliError> {
    let title = desk.settings.title.clone().unwrap_or_else(|| desk.name());
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
        transport: client_transport(connect, client, desk)?,
        token_env: connect.token_env.clone(),
        scope: connect.scope,
        folder: desk.folder.display().to_string(),
        listen: desk.settings.server.listen.to_string(),
    })
}

fn client_transport(
    connect: &ConnectArgs,
    client: McpClient,
    desk: &CommandContext,
) -> Result<ClientTransport, CliError> {
    let server = &desk.settings.server;
    let typed = connect.url.as_deref().map(address).transpose()?;
    let public = server.public_url.as_ref().map(|url| endpoint(url.clone()));
    let own = || address(&format!("http://{}/mcp", loopback_address(server.listen)));
    let url = match typed {
        Some(url) => Some(url),
        None if connect.http => Some(own()?),
        None if connect.stdio => None,
        None => match (public, client.reach()) {
            (Some(url), _) if client.takes_addresses() => Some(url),
            // It cannot work yet, and the address is part of saying why.
            (_, ClientLocation::Remote) => Some(own()?),
            _ => None,
        },
    };
    match url {
        Some(_) if !client.takes_addresses() => Err(CliError::usage(format!(
            "{} takes programs in its file, no addresses",
            client.title()
        ))
        .hint("leave `--url` and `--http` out, or connect it as `claude`, with a public address")),
        Some(url) => Ok(ClientTransport::Http(url)),
        None if !client.starts_programs() => Err(CliError::usage(format!(
            "{} cannot start programs on this machine",
            client.title()
        ))
        .hint("give a public address with `--url`")),
        None => program(desk),
    }
}

/// The command that serves the folder, with absolute paths, since nobody knows where a client starts it.
fn program(desk: &CommandContext) -> Result<ClientTransport, CliError> {
    let binary = std::env::current_exe().map_err(|error| {
        CliError::failed("the place of docent itself is not known").because(error)
    })?;
    let text = |path: &std::path::Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            CliError::usage(format!(
                "`{}` is not text, and a client's file holds text",
                path.display()
            ))
            .hint("serve it over HTTP and use `--http`")
        })
    };
    let words = [
        text(&binary)?,
        "serve".to_owned(),
        text(&desk.folder)?,
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

/// The MCP endpoint below a public address.
pub(super) fn endpoint(mut public: Url) -> Url {
    let path = public.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/mcp") {
        public.set_path(&format!("{path}/mcp"));
    }
    public
}

/// Where clients on this machine find a server that listens on every address.
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
        return CliError::usage(format!("{title} has no file for a project"))
            .hint("use `--scope user`");
    }
    let flag = if connect.write { "--write" } else { "--remove" };
    CliError::usage(format!("{title} has no file that could be changed here")).hint(format!(
        "follow what `docent connect {id}` shows, without `{flag}`"
    ))
}

fn edit_config(
    connect: &ConnectArgs,
    wish: &ConnectionSpec,
    place: &ConfigLocation,
) -> Result<EditOutcome, CliError> {
    let entry = ServerEntry::of(wish);
    let others = if connect.force {
        NameConflictPolicy::Replace
    } else {
        NameConflictPolicy::Keep
    };
    config_store::edit(&place.file, |text| {
        if connect.remove {
            config_edit::remove_server(text, place, &wish.name, &entry, others)
        } else {
            config_edit::insert_server(text, place, &wish.name, &entry, others)
        }
    })
}

fn probe_server(wish: &ConnectionSpec) -> Result<ProbeSummary, ProbeError> {
    let target = match &wish.transport {
        ClientTransport::Http(url) => CheckTarget::Url(url.to_string()),
        ClientTransport::Stdio(command) => CheckTarget::Program(command.clone()),
    };
    let token = wish
        .token_env
        .as_ref()
        .and_then(|name| std::env::var(name).ok());
    let mut steps = StepSpinner::start("connecting");
    steps.at("as the client would");
    let tried = docent_check::probe(&target, token.as_deref(), PATIENCE);
    steps.finish();
    tried
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
            let homes = ConfigDirs::of_user().ok();
            let rows = clients.iter().map(|(client, id, about)| {
                let file = homes
                    .as_ref()
                    .and_then(|homes| homes.find(**client, crate::connect::ConfigScope::User));
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

/// Everything that is said about one connection.
struct ConnectReport<'a> {
    wish: &'a ConnectionSpec,
    place: Option<&'a ConfigLocation>,
    done: Option<&'a EditOutcome>,
    tried: Option<&'a Result<ProbeSummary, ProbeError>>,
    standing: &'a ConnectionStatus,
}

impl ConnectReport<'_> {
    fn text(&self, paint: AnsiStyler) -> String {
        let wish = self.wish;
        let mut lines = Vec::new();
        match (self.done, self.place) {
            (Some(done), Some(place)) => {
                let file = place.file.display();
                lines.push(paint.bold(&format!(
                    "{}: `{}` {} in {file}",
                    wish.client.title(),
                    wish.name,
                    done.what
                )));
                if let Some(backup) = &done.backup {
                    lines.push(paint.plain(&format!("  the file as it was: {}", backup.display())));
                }
                if done.what == "added" || done.what == "changed" {
                    lines.push(
                        paint.plain(&format!("  {}", after_writing(wish.client, wish.scope))),
                    );
                }
            }
            _ => {
                lines.push(paint.bold(&format!("{}: {}", wish.client.title(), wish.title)));
                for (number, step) in steps(wish).into_iter().enumerate() {
                    lines.push(paint.plain(&format!("  {}. {}", number + 1, step.say)));
                    if let Some(code) = step.paste {
                        let code = code.replace('\n', "\n       ");
                        lines.push(format!("\n       {}\n", paint.bold(&code)));
                    }
                }
                if let Some(place) = self.place {
                    let text = format!(
                        "  or let docent do it with --write: {}",
                        place.file.display()
                    );
                    lines.push(paint.plain(&text));
                }
            }
        }
        lines.extend(
            self.standing
                .good
                .iter()
                .map(|good| paint.plain(&format!("ok: {good}"))),
        );
        for missing in &self.standing.missing {
            lines.push(paint.bold(&format!("missing: {}", missing.what)));
            lines.push(paint.plain(&format!("  hint: {}", missing.hint)));
        }
        lines.join("\n")
    }

    fn json(&self) -> Value {
        let wish = self.wish;
        let step = |step: SetupStep| json!({"say": step.say, "paste": step.paste});
        let (url, command) = match &wish.transport {
            ClientTransport::Http(url) => (Some(url.as_str()), None),
            ClientTransport::Stdio(command) => (None, Some(command)),
        };
        let missing = self.standing.missing.iter();
        let missing = missing.map(|missing| json!({"what": missing.what, "hint": missing.hint}));
        json!({
            "client": wish.client.id(),
            "name": wish.name,
            "transport": if url.is_some() { "http" } else { "stdio" },
            "url": url,
            "command": command,
            "steps": steps(wish).into_iter().map(step).collect::<Vec<_>>(),
            "file": self.place.map(|place| json!({
                "path": place.file,
                "section": place.section,
                "entry": ServerEntry::of(wish).to_value(),
                "change": self.done.map(|done| done.what),
                "backup": self.done.and_then(|done| done.backup.as_ref()),
            })),
            "connection": self.tried.map(connection),
            "missing": missing.collect::<Vec<_>>(),
        })
    }
}

fn connection(tried: &Result<ProbeSummary, ProbeError>) -> Value {
    match tried {
        Ok(met) => {
            let search = met.search.as_ref().map(|search| match search {
                Ok(found) => {
                    json!({"query": found.query, "results": found.results, "first": found.first})
                }
                Err(why) => json!({"error": why}),
            });
            json!({
                "ok": true, "server": met.server, "version": met.version, "revision": met.revision,
                "tools": met.tools, "search": search,
            })
        }
        Err(unmet) => {
            json!({"ok": false, "error": unmet.to_string(), "sign_in": *unmet == ProbeError::SignInRequired})
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
