//! `docent check`: checks an MCP server against the rules, prints the report in the chosen format, and returns an exit
//! status for scripts.

pub(super) mod spawned_server;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use docent_check::{CheckOptions, CheckProfile, CheckReport, CheckTarget, Severity, render};
use serde_json::{Value, json};
use url::Url;

use super::load_settings;
use crate::args::{CheckArgs, ReportFormat, SettingOverrides};
use crate::cli_error::CliError;
use crate::display_text::shorten;
use crate::output::{self, StepSpinner};

/// Maximum size of a baseline file in bytes.
const MAX_BASELINE: u64 = 8 * 1024 * 1024;

pub(super) fn run(check: &CheckArgs, flags: SettingOverrides) -> Result<ExitCode, CliError> {
    let format = if check.json {
        ReportFormat::Json
    } else {
        check.format
    };
    let profiles = profiles(&check.profiles)?;
    if check.list_rules {
        list(&profiles, format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = CheckOptions {
        profiles,
        call_timeout: Duration::from_secs(check.timeout),
        queries: check.query.clone(),
        token: check.token.clone(),
        login: check.login,
        client_id: check.client_id.clone(),
        allow_writes: check.allow_writes,
        open_urls: check.open_urls,
        slow: check.slow,
        browser: check.browser.as_ref().map(browser).transpose()?,
        baseline: check.baseline.as_deref().map(baseline).transpose()?,
        ..CheckOptions::default()
    };
    let report = match target(check)? {
        Some(target) => {
            load_settings(None, flags)?;
            run_check(&target, &options)
        }
        None => {
            let path = check.path.as_deref().unwrap_or(Path::new("."));
            // Resolved here, so that this process reports a bad setting, and not the child process.
            let context = super::CommandContext::open(path, flags)?;
            let server = spawned_server::SpawnedServer::start(&context)?;
            run_check(&CheckTarget::Url(server.url.clone()), &options)
        }
    };
    if let Some(path) = &check.save_tools {
        let tools = json!({"tools": report.tools});
        let written = std::fs::write(path, output::json_line(&tools) + "\n");
        written.map_err(|error| CliError::io("write", path, error))?;
    }
    print(&report, format)?;
    if let Some(trouble) = report.trouble {
        return Err(CliError::failed(trouble)
            .hint("widgets were not mounted; `--browser=PATH` names another Chromium"));
    }
    let failed = report.worst() == Some(Severity::Error);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

pub(super) fn run_check(target: &CheckTarget, options: &CheckOptions) -> CheckReport {
    let mut steps = StepSpinner::start("checking");
    let report = docent_check::check(target, options, &|step| {
        // Printed as a line of its own, so that the URL of the login page can be copied.
        if step.starts_with("sign in at ") {
            output::say(step);
        }
        steps.at(step.split(" at ").next().unwrap_or(step));
    });
    steps.finish();
    report
}

/// Target from the command line; `None` for the folder's own server.
fn target(check: &CheckArgs) -> Result<Option<CheckTarget>, CliError> {
    if check.stdio {
        if check.command.is_empty() {
            return Err(CliError::usage("there is no program to check")
                .hint("example: `docent check --stdio -- npx some-server`"));
        }
        return Ok(Some(CheckTarget::Program(check.command.clone())));
    }
    let Some(url) = &check.url else {
        return Ok(None);
    };
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if !Url::parse(url).is_ok_and(|url| is_web(&url)) {
        return Err(
            CliError::usage(format!("`{}` is not a web address", shorten(url, 80)))
                .hint("example: `https://docs.example.org/mcp`"),
        );
    }
    Ok(Some(CheckTarget::Url(url.clone())))
}

/// The chosen browser, or one on the PATH. Resolved before any request is sent, so that a missing browser fails early.
fn browser(named: &Option<PathBuf>) -> Result<PathBuf, CliError> {
    match named {
        Some(path) if path.is_file() => Ok(path.clone()),
        Some(path) => Err(
            CliError::usage(format!("there is no browser at `{}`", path.display()))
                .hint("name the program itself, such as `--browser=/usr/bin/chromium`"),
        ),
        None => docent_check::find_browser().ok_or_else(|| {
            CliError::usage("there is no Chromium or Chrome on the PATH")
                .hint("install one, or name it: `--browser=/path/to/chromium`")
        }),
    }
}

fn profiles(names: &[String]) -> Result<Vec<CheckProfile>, CliError> {
    let mut profiles = Vec::new();
    for name in names {
        if name == "all" {
            return Ok(CheckProfile::ALL.to_vec());
        }
        let profile = CheckProfile::from_name(name).ok_or_else(|| {
            let known = CheckProfile::ALL.map(CheckProfile::name).join(", ");
            CliError::usage(format!("there is no profile `{}`", shorten(name, 80)))
                .hint(format!("one of {known}, all"))
        })?;
        if !profiles.contains(&profile) {
            profiles.push(profile);
        }
    }
    Ok(profiles)
}

/// Reads the tools of a baseline: a JSON list, or a `tools/list` response that contains one.
fn baseline(path: &Path) -> Result<Vec<Value>, CliError> {
    let size = std::fs::metadata(path)
        .map_err(|error| CliError::io("read", path, error))?
        .len();
    if size > MAX_BASELINE {
        return Err(CliError::usage(format!(
            "`{}` has {size} bytes, the limit is {MAX_BASELINE}",
            path.display()
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| CliError::io("read", path, error))?;
    let bad = || {
        CliError::usage(format!("`{}` holds no list of tools", path.display()))
            .hint("write one with `docent check URL --save-tools FILE`")
    };
    let mut value: Value = serde_json::from_str(&text).map_err(|_| bad())?;
    for key in ["result", "tools"] {
        if let Some(inner) = value.get_mut(key) {
            value = inner.take();
        }
    }
    match value {
        Value::Array(tools) if tools.iter().all(Value::is_object) => Ok(tools),
        _ => Err(bad()),
    }
}

fn list(profiles: &[CheckProfile], format: ReportFormat) -> Result<(), CliError> {
    let profiles = if profiles.is_empty() {
        &CheckProfile::ALL
    } else {
        profiles
    };
    match format {
        ReportFormat::Json => output::json(&render::rules_json(profiles)),
        ReportFormat::Markdown => output::data(render::rules_markdown().trim_end()),
        ReportFormat::Text => output::data(&render::rules_text(profiles)),
        ReportFormat::Sarif | ReportFormat::Junit | ReportFormat::Html => Err(CliError::usage(
            "rules are listed as text, json or markdown",
        )),
    }
}

pub(super) fn print(report: &CheckReport, format: ReportFormat) -> Result<(), CliError> {
    match format {
        ReportFormat::Text => {
            let ink = if output::AnsiStyler::for_data().is_on() {
                render::TerminalStyle::Colour
            } else {
                render::TerminalStyle::Plain
            };
            output::styled(&render::terminal(report, ink))
        }
        ReportFormat::Json => output::json(&render::json(report)),
        ReportFormat::Sarif => output::json(&render::sarif(report)),
        ReportFormat::Junit => output::data(render::junit(report).trim_end()),
        ReportFormat::Markdown => output::data(render::markdown(report).trim_end()),
        ReportFormat::Html => output::data(render::html(report).trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_by_name() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            profiles(&names)
        };
        assert_eq!(
            named(&["claude", "claude"]).unwrap(),
            [CheckProfile::Claude]
        );
        assert_eq!(named(&["claude", "all"]).unwrap(), CheckProfile::ALL);
        assert_eq!(named(&[]).unwrap(), []);
        let problem = named(&["gemini"]).unwrap_err();
        assert_eq!(
            (problem.exit, problem.message.as_str()),
            (2, "there is no profile `gemini`")
        );
    }

    #[test]
    fn a_baseline_is_a_list_or_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = dir.path().join("tools.json");
            std::fs::write(&path, text).unwrap();
            baseline(&path)
        };
        for text in [
            "[{\"name\":\"a\"}]",
            "{\"tools\":[{\"name\":\"a\"}]}",
            "{\"result\":{\"tools\":[{\"name\":\"a\"}]}}",
        ] {
            assert_eq!(read(text).unwrap().len(), 1, "{text}");
        }
        for text in ["", "{}", "[1]", "{\"tools\":5}"] {
            assert_eq!(read(text).unwrap_err().exit, 2, "{text}");
        }
        let large = " ".repeat(MAX_BASELINE as usize) + "[]";
        assert!(read(&large).unwrap_err().message.contains("the limit is"));
    }
}
