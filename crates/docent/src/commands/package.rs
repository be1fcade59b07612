//! `docent package`: builds the bundle, the registry entry and the submission of a folder, runs the test cases first,
//! and reports what the reviewers' checks would find.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use docent_check::{CheckOptions, CheckProfile, CheckReport, CheckTarget, Severity};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::check::spawned_server::SpawnedServer;
use super::check::{self, run_check};
use super::{CommandContext, connect, search};
use crate::args::{PackageArgs, ReportFormat, SettingOverrides};
use crate::cli_error::CliError;
use crate::connect::name_of;
use crate::display_text::shorten;
use crate::output;
use crate::package::registry::{self, BundleDownload};
use crate::package::test_cases::{self, POSITIVE, TestCase};
use crate::package::{PackageInfo, bundle, submission};

pub(super) fn run(package: &PackageArgs, flags: SettingOverrides) -> Result<ExitCode, CliError> {
    let context = CommandContext::open(&package.path, flags)?;
    let info = package_info(package, &context)?;
    let server = SpawnedServer::start(&context)?;
    let target = match &info.url {
        Some(url) => CheckTarget::Url(url.to_string()),
        None => CheckTarget::Url(server.url.clone()),
    };
    let report = run_check(&target, &options());
    let cases = cases(&context, &CheckTarget::Url(server.url.clone()))?;
    drop(server);
    let out = &package.out;
    std::fs::create_dir_all(out).map_err(|error| CliError::io("make", out, error))?;
    let bundle_path = make(package, &info, &report.tools)?;
    submit(
        &out.join("chatgpt-app-submission.json"),
        &info,
        &report.tools,
        &cases,
    )?;
    register(package, &info, &bundle_path)?;
    finish(&info, &report, cases.len())
}

/// Options of the review check. Without a public URL it runs against the local server, in place of the future public
/// one.
fn options() -> CheckOptions {
    CheckOptions {
        profiles: vec![CheckProfile::Submission],
        call_timeout: Duration::from_secs(30),
        ..CheckOptions::default()
    }
}

fn package_info(package: &PackageArgs, context: &CommandContext) -> Result<PackageInfo, CliError> {
    let settings = &context.settings;
    let title = settings.title.clone().unwrap_or_else(|| context.name());
    let typed = package.url.as_deref().map(connect::address).transpose()?;
    let public = settings.server.public_url.clone().map(connect::endpoint);
    let plain = |text: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
        !text.is_empty()
            && text.len() <= 64
            && text.chars().all(fits)
            && text.starts_with(|c: char| c.is_ascii_digit())
    };
    if !plain(&package.version) {
        return Err(CliError::usage(format!(
            "`{}` is not a version",
            shorten(&package.version, 80)
        ))
        .hint("example: `1.0.0`"));
    }
    Ok(PackageInfo {
        name: name_of(&title),
        description: settings
            .description
            .clone()
            .unwrap_or_else(|| format!("Search, read and cite the documents of {title}")),
        title,
        version: package.version.clone(),
        author: shorten(&package.author, 120),
        url: typed.or(public),
        privacy: package
            .privacy_url
            .as_deref()
            .map(connect::address)
            .transpose()?,
    })
}

/// Draws test cases from the documents and keeps those that the server passes.
fn cases(context: &CommandContext, target: &CheckTarget) -> Result<Vec<TestCase>, CliError> {
    let engine = search::engine(context)?;
    super::runtime()?.block_on(test_cases::passing_cases(target, engine.as_ref()))
}

/// Writes the bundle and returns its path.
fn make(package: &PackageArgs, info: &PackageInfo, tools: &[Value]) -> Result<PathBuf, CliError> {
    let program = match &package.binary {
        Some(path) => path.clone(),
        None => std::env::current_exe().map_err(|error| {
            CliError::failed("cannot determine the path of the docent executable").because(error)
        })?,
    };
    let path = package.out.join(format!("{}.mcpb", info.name));
    bundle::write(&path, &bundle::manifest(info, tools), &program)?;
    let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
    output::say(&format!(
        "wrote `{}`: {} MB, for {}",
        path.display(),
        size.div_ceil(1_000_000),
        bundle::platform()
    ));
    Ok(path)
}

fn submit(
    path: &Path,
    info: &PackageInfo,
    tools: &[Value],
    cases: &[TestCase],
) -> Result<(), CliError> {
    let file = submission::file(info, tools, cases).map_err(|wrong| {
        CliError::failed(format!(
            "the tools `{}` are not declared read-only",
            wrong.join("`, `")
        ))
        .hint("check that the URL is that of a docent server")
    })?;
    write_json(path, &file)?;
    output::say(&format!(
        "wrote `{}`: {} test cases, each of them run",
        path.display(),
        cases.len()
    ));
    if cases.len() < POSITIVE {
        let text = format!(
            "only {} of {POSITIVE} test cases could be drawn from the documents",
            cases.len()
        );
        output::warn(
            &text,
            Some("add more documents, or write the others by hand"),
        );
    }
    Ok(())
}

fn register(package: &PackageArgs, info: &PackageInfo, bundle_path: &Path) -> Result<(), CliError> {
    let named = match (&package.registry_name, &info.url) {
        (Some(name), _) if !registry::is_name(name) => {
            return Err(CliError::usage(format!(
                "`{}` is not a name in the registry",
                shorten(name, 80)
            ))
            .hint("example: `org.example/docs`"));
        }
        (Some(name), _) => Some(name.clone()),
        (None, Some(url)) => registry::registry_name(url, &info.name),
        (None, None) => None,
    };
    let Some(name) = named else {
        let hint = "set `--registry-name`, or a public URL with `--url`";
        output::warn(
            "`server.json` is skipped: it needs a name in the registry",
            Some(hint),
        );
        return Ok(());
    };
    let url = package
        .bundle_url
        .as_deref()
        .map(connect::address)
        .transpose()?;
    let download = match url {
        Some(url) => Some(BundleDownload {
            url,
            sum: sha256_of(bundle_path)?,
        }),
        None => None,
    };
    if download.is_none() && info.url.is_none() {
        let hint = "set `--url`, or `--bundle-url` with the URL of the bundle";
        output::warn("`server.json` contains no URL yet", Some(hint));
    }
    let path = package.out.join("server.json");
    write_json(&path, &registry::entry(&name, info, download.as_ref()))?;
    output::say(&format!("wrote `{}`: `{name}`", path.display()));
    Ok(())
}

fn sha256_of(path: &Path) -> Result<String, CliError> {
    let failed = |error| CliError::io("read", path, error);
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = std::io::Read::read(&mut file, &mut buffer).map_err(failed)?;
        match buffer.get(..read) {
            Some([]) | None => break,
            Some(bytes) => sum.update(bytes),
        }
    }
    Ok(sum
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn write_json(path: &Path, value: &Value) -> Result<(), CliError> {
    std::fs::write(path, format!("{value:#}\n")).map_err(|error| CliError::io("write", path, error))
}

/// Prints the findings of the review check, and the steps that only the owner can do.
fn finish(info: &PackageInfo, report: &CheckReport, cases: usize) -> Result<ExitCode, CliError> {
    check::print(report, ReportFormat::Text)?;
    let mut remaining = vec![
        "a square logo, screenshots, and the addresses of your website, support and terms"
            .to_owned(),
    ];
    if info.privacy.is_none() {
        remaining.push("a privacy policy (`--privacy-url`)".to_owned());
    }
    if info.url.is_none() {
        remaining
            .push("a public https URL (`--url`), which can never change afterwards".to_owned());
    }
    remaining.push("the token of the domain check, as `server.openai_challenge`".to_owned());
    output::say(&format!("remaining steps:\n  {}", remaining.join("\n  ")));
    let failed = report.worst() == Some(Severity::Error) || cases < POSITIVE;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
