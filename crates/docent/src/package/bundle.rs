//! MCPB bundle: a zip file with the docent executable and a manifest. Claude Desktop installs it with one click and
//! asks the user for a folder.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::PackageInfo;
use crate::cli_error::CliError;

/// Maximum size of the executable in a bundle. Hosts accept packages of 100 MiB; the limit is higher for debug builds.
const MAX_PROGRAM: u64 = 1024 * 1024 * 1024;
/// Key of the user's folder in the manifest's `user_config`.
const FOLDER: &str = "documents";

/// Name of this platform in manifests, which use Node's names.
pub(crate) fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// Path of the executable inside the bundle.
fn entry() -> &'static str {
    if cfg!(windows) {
        "server/docent.exe"
    } else {
        "server/docent"
    }
}

/// Tools that exist for every folder. Other tools depend on the folder that the user chooses, so they are not listed.
const TOOLS: [&str; 3] = ["search", "fetch", "list_fields"];

/// Builds the manifest of the bundle.
pub(crate) fn manifest(info: &PackageInfo, tools: &[Value]) -> Value {
    let tools: Vec<_> = tools
        .iter()
        .filter_map(|tool| {
            let name = tool
                .get("name")?
                .as_str()
                .filter(|name| TOOLS.contains(name))?;
            let about = tool.get("title").or_else(|| tool.get("description"))?;
            Some(json!({"name": name, "description": about}))
        })
        .collect();
    let mut manifest = json!({
        "manifest_version": "0.3",
        "name": info.name,
        "display_name": info.title,
        "version": info.version,
        "description": info.description,
        "author": {"name": info.author},
        "server": {
            "type": "binary",
            "entry_point": entry(),
            "mcp_config": {
                "command": format!("${{__dirname}}/{}", entry()),
                "args": ["serve", format!("${{user_config.{FOLDER}}}"), "--stdio"],
            },
        },
        "user_config": {
            FOLDER: {
                "type": "directory",
                "title": "Documents",
                "description": "The folder to search; its files are read and never changed",
                "required": true,
            },
        },
        "tools": tools,
        "tools_generated": true,
        "compatibility": {"platforms": [platform()]},
    });
    if let (Some(object), Some(url)) = (manifest.as_object_mut(), &info.privacy) {
        object.insert("privacy_policies".to_owned(), json!([url.as_str()]));
    }
    manifest
}

/// Writes the bundle to `path` and syncs it to disk.
pub(crate) fn write(path: &Path, manifest: &Value, program: &Path) -> Result<(), CliError> {
    let mut binary = File::open(program).map_err(|error| CliError::io("read", program, error))?;
    let size = binary.metadata().map_or(0, |meta| meta.len());
    if size > MAX_PROGRAM {
        return Err(CliError::usage(format!(
            "`{}` has {size} bytes, the limit is {MAX_PROGRAM}",
            program.display()
        ))
        .hint("give a release build with `--binary`"));
    }
    let file = File::create(path).map_err(|error| CliError::io("write", path, error))?;
    let failed = |error: zip::result::ZipError| {
        CliError::failed(format!("cannot write `{}`", path.display())).because(error)
    };
    let mut zip = ZipWriter::new(file);
    put(
        &mut zip,
        "manifest.json",
        0o644,
        &mut format!("{manifest:#}\n").as_bytes(),
    )
    .map_err(failed)?;
    put(&mut zip, entry(), 0o755, &mut binary).map_err(failed)?;
    let file = zip.finish().map_err(failed)?;
    file.sync_all()
        .map_err(|error| CliError::io("write", path, error))
}

/// Adds a file with a fixed modification time, so that bundles are reproducible: the same input gives the same bytes.
fn put<W: Write + Seek>(
    zip: &mut ZipWriter<W>,
    name: &str,
    mode: u32,
    from: &mut impl std::io::Read,
) -> Result<(), zip::result::ZipError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(mode)
        .large_file(false);
    zip.start_file(name, options)?;
    std::io::copy(from, zip)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> PackageInfo {
        PackageInfo {
            name: "dam".to_owned(),
            title: "Dam".to_owned(),
            description: "Papers of the dam".to_owned(),
            version: "1.0.0".to_owned(),
            author: "The harbour office".to_owned(),
            url: None,
            privacy: None,
        }
    }

    #[test]
    fn a_bundle_holds_the_program_and_its_manifest() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("docent");
        std::fs::write(&program, "\u{7f}ELF and more").unwrap();
        let manifest = manifest(&info(), &[json!({"name": "search", "title": "Search"})]);
        let write_as = |name: &str| {
            let path = dir.path().join(name);
            write(&path, &manifest, &program).unwrap();
            path
        };
        let (one, two) = (write_as("one.mcpb"), write_as("two.mcpb"));
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(two).unwrap());
        let mut zip = zip::ZipArchive::new(File::open(one).unwrap()).unwrap();
        let names: Vec<_> = zip
            .file_names()
            .map(|name| name.unwrap().into_owned())
            .collect();
        assert_eq!(names, ["manifest.json", entry()]);
        assert_eq!(
            zip.by_name(entry()).unwrap().unix_mode().unwrap() & 0o777,
            0o755
        );
        let inside: Value = serde_json::from_reader(zip.by_name("manifest.json").unwrap()).unwrap();
        assert_eq!(inside["tools"][0]["name"], "search");
    }

    #[test]
    fn a_program_ends_at_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("docent");
        let file = File::create(&program).unwrap();
        file.set_len(MAX_PROGRAM + 1).unwrap();
        let problem = write(&dir.path().join("x.mcpb"), &json!({}), &program).unwrap_err();
        assert_eq!(problem.exit, 2, "{problem}");
        assert!(!dir.path().join("x.mcpb").exists());
    }
}
