//! Reference material generated from the command-line definition: shell completions, manual pages and `docs/cli.md`.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::CliArgs;
use crate::cli_error::CliError;

/// The name of the program in completions and pages.
const NAME: &str = "docent";
/// Fixed width of help texts, so that generated pages do not depend on the terminal.
const WIDTH: usize = 100;

/// Generates the completion script for a shell.
pub(crate) fn completions(shell: Shell) -> Result<String, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CliArgs::command(), NAME, &mut script);
    text(script)
}

/// Generates all manual pages, each with its file name, such as `docent-serve.1`.
pub(crate) fn pages() -> Result<Vec<(String, String)>, CliError> {
    let mut root = CliArgs::command();
    root.build();
    let mut pages = vec![(format!("{NAME}.1"), page(root.clone())?)];
    for command in commands(&root) {
        let name = format!("{NAME}-{}", command.get_name());
        pages.push((format!("{name}.1"), page(command.clone())?));
    }
    Ok(pages)
}

fn page(command: Command) -> Result<String, CliError> {
    let mut page = Vec::new();
    Man::new(command.term_width(WIDTH))
        .render(&mut page)
        .map_err(|error| CliError::failed("cannot generate a manual page").because(error))?;
    text(page)
}

fn text(bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes)
        .map_err(|error| CliError::failed("the generated text is not UTF-8").because(error))
}

/// Writes all manual pages into a folder and returns their number.
pub(crate) fn write_pages(folder: &Path) -> Result<usize, CliError> {
    std::fs::create_dir_all(folder).map_err(|error| CliError::io("make", folder, error))?;
    let pages = pages()?;
    for (name, page) in &pages {
        let path = folder.join(name);
        std::fs::write(&path, page).map_err(|error| CliError::io("write", &path, error))?;
    }
    Ok(pages.len())
}

/// Generates `docs/cli.md`: the `-h` output of every command and subcommand on one Markdown page.
pub(crate) fn markdown() -> String {
    let mut page = String::from(
        "# Commands\n\n\
         This page shows the help of every command, as `docent COMMAND -h` prints it. `docent man --markdown` generates it, and\n\
         a test compares it. For settings without a flag, see [settings.md](settings.md).\n",
    );
    let mut root = CliArgs::command();
    root.build();
    sections(&mut page, NAME, &root);
    page
}

/// Appends a section for a command, and one for each of its subcommands.
fn sections(page: &mut String, name: &str, command: &Command) {
    section(page, name, &mut command.clone().term_width(WIDTH));
    for inner in commands(command) {
        sections(page, &format!("{name} {}", inner.get_name()), inner);
    }
}

fn section(page: &mut String, name: &str, command: &mut Command) {
    let help = command.render_help().to_string();
    let lines: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
    page.push_str(&format!(
        "\n## {name}\n\n```text\n{}\n```\n",
        lines.join("\n")
    ));
}

/// The visible subcommands, without clap's own `help`.
fn commands(root: &Command) -> impl Iterator<Item = &Command> {
    root.get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_page_and_its_completions() {
        let pages = pages().unwrap();
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::PowerShell,
            Shell::Elvish,
        ] {
            let script = completions(shell).unwrap();
            for name in ["serve", "connect", "doctor", "--public-url"] {
                let name = if shell == Shell::Fish {
                    name.trim_start_matches('-')
                } else {
                    name
                };
                assert!(script.contains(name), "{shell} does not know {name}");
            }
        }
        for name in [
            "docent.1",
            "docent-serve.1",
            "docent-connect.1",
            "docent-man.1",
        ] {
            let page = pages.iter().find(|(file, _)| file == name);
            assert!(
                page.is_some_and(|(_, text)| text.contains(".SH NAME")),
                "{name}"
            );
        }
    }

    /// If this fails, regenerate the page with `docent man --markdown > docs/cli.md`.
    #[test]
    fn the_page_of_commands_is_fresh() {
        let page = include_str!("../../../docs/cli.md");
        assert!(
            page == markdown(),
            "docs/cli.md is not what `docent man --markdown` makes"
        );
    }
}
