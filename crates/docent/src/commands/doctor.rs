//! `docent doctor`: runs all diagnostics of a folder and prints the findings. Changes nothing.

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use crate::args::{DoctorArgs, SettingOverrides};
use crate::cli_error::CliError;
use crate::doctor::{self, DoctorFinding, FindingStatus, folder, index, network, system};
use crate::index_location::{self, IndexLocation};
use crate::model_settings::{self, CpuCoreLimit};
use crate::output::{self, AnsiStyler, StepSpinner};
use crate::settings::{self, FILE, SettingSources, Settings};

pub(super) fn run(doctor: &DoctorArgs, flags: SettingOverrides) -> Result<ExitCode, CliError> {
    let root = super::folder(&doctor.path)?;
    let mut steps = StepSpinner::start("checking");
    let (mut findings, settings) = load_settings(&root, flags);
    crate::logging::start(&settings.log, None);
    steps.at("folder");
    let scan = folder::scan(&root, SystemTime::now());
    findings.extend(folder::findings(&root, &scan));
    steps.at("index");
    let location = IndexLocation::new(
        &root,
        settings.index_dir.as_deref(),
        index_location::cache(),
    );
    let dir = location.existing();
    findings.extend(super::runtime()?.block_on(index::findings(dir, &root, &settings)));
    findings.push(model(&settings));
    steps.at("machine");
    findings.extend(system::disk(dir));
    if settings.watch {
        findings.extend(system::watches(scan.folders));
    }
    findings.push(system::sandbox(&settings.ingest));
    steps.at("network");
    let server = &settings.server;
    findings.push(network::port(server.listen));
    let shown = root.display().to_string();
    findings.extend(network::public(
        server.public_url.as_ref(),
        server.listen,
        &shown,
    ));
    steps.finish();
    if doctor.json {
        output::json(&doctor::json(&findings))?;
    } else {
        output::styled(&doctor::text(&findings, AnsiStyler::for_data()))?;
    }
    Ok(match doctor::worst(&findings) {
        FindingStatus::Wrong => ExitCode::FAILURE,
        FindingStatus::Good | FindingStatus::Warning => ExitCode::SUCCESS,
    })
}

/// Resolves the settings. If one is invalid, that is a finding, and the other checks run with the defaults.
fn load_settings(root: &Path, flags: SettingOverrides) -> (Vec<DoctorFinding>, Settings) {
    let environment = std::env::vars_os().collect();
    let resolved = settings::resolve(SettingSources {
        folder: Some(root),
        environment,
        flags,
    });
    match resolved {
        Ok(resolved) => {
            let file = root.join(FILE);
            let from = if file.is_file() {
                format!("`{}` and the environment are fine", file.display())
            } else {
                "the defaults, without a `docent.toml`".to_owned()
            };
            let mut findings = vec![DoctorFinding::good("settings", from)];
            for name in resolved.unknown_variables {
                findings.push(DoctorFinding::warning(
                    "settings",
                    format!("environment variable `{name}` is not a setting"),
                    "see docs/settings.md for their names",
                ));
            }
            (findings, resolved.settings)
        }
        Err(problem) => {
            let origin = problem
                .origin
                .as_ref()
                .map_or_else(String::new, |from| format!(" ({from})"));
            let hint = problem
                .hint
                .clone()
                .unwrap_or_else(|| "fix or remove it".to_owned());
            let finding =
                DoctorFinding::wrong("settings", format!("{}{origin}", problem.chain()), hint);
            (vec![finding], Settings::default())
        }
    }
}

fn model(settings: &Settings) -> DoctorFinding {
    match model_settings::embedder(settings, CpuCoreLimit::Half) {
        Ok(Some(_)) => DoctorFinding::good("model", format!("`{}` is ready", settings.model.name)),
        Ok(None) => DoctorFinding::good("model", "not needed: search is lexical only"),
        Err(problem) => {
            let hint = problem
                .hint
                .clone()
                .unwrap_or_else(|| "set `model.name = \"granite\"`".to_owned());
            DoctorFinding::wrong("model", problem.chain(), hint)
        }
    }
}
