//! The description of the flags into what is made of it: completions for shells, manual pages, and the page
//! `docs/cli.md`.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::CliArgs;
use crate::cli_error::CliError;

/// The name that people type.
const NAME: &str = "docent";
/// How wide help is in the documentation, whatever the terminal of who makes it.
const WIDTH: usize = 100;

/// The script that completes commands and flags in a shell.
pub(crate) fn completions(shell: Shell) -> Result<String, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CliArgs::command(), NAME, &mut script);
    text(script)
}

/// Every manual page with the name of its file, such as `docent-serve.1`.
pub(crate) fn pages() -> Result<Vec<(String, String)>, CliError> {
    let mut whole = CliArgs::command();
    whole.build();
    let mut pages = vec![(format!("{NAME}.1"), page(whole.clone())?)];
    for command in commands(&whole) {
        let name = format!("{NAME}-{}", command.get_name());
        pages.push((format!("{name}.1"), page(command.clone())?));
    }
    Ok(pages)
}

fn page(command: Command) -> Result<String, CliError> {
    let mut page = Vec::new();
    Man::new(command.term_width(WIDTH))
        .render(&mut page)
        .map_err(|error| CliError::failed("a manual page cannot be made").because(error))?;
    text(page)
}

fn text(bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes)
        .map_err(|error| CliError::failed("what was made is not text").because(error))
}

/// Writes every manual page into a folder.
pub(crate) fn write_pages(folder: &Path) -> Result<usize, CliError> {
    std::fs::create_dir_all(folder).map_err(|error| CliError::io("make", folder, error))?;
    let pages = pages()?;
    for (name, page) in &pages {
        let path = folder.join(name);
        std::fs::write(&path, page).map_err(|error| CliError::io("write", &path, error))?;
    }
    Ok(pages.len())
}

/// All commands on one page of Markdown: what `--help` says, command by command.
pub(crate) fn markdown() -> String {
    let mut page = String::from(
        "# Commands\n\n\
         What `docent --help` says, made by `docent man --markdown`; a test compares it. Settings that have no flag are\n\
         in [settings.md](settings.md).\n",
    );
    let mut whole = CliArgs::command().term_width(WIDTH);
    whole.build();
    section(&mut page, NAME, &mut whole.clone());
    for command in commands(&whole) {
        let name = format!("{NAME} {}", command.get_name());
        section(&mut page, &name, &mut command.clone().term_width(WIDTH));
    }
    page
}

fn section(page: &mut String, name: &str, command: &mut Command) {
    let help = command.render_help().to_string();
    let lines: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
    page.push_str(&format!(
        "\n## {name}\n\n```text\n{}\n```\n",
        lines.join("\n")
    ));
}

/// The commands that people see.
fn commands(whole: &Command) -> impl Iterator<Item = &Command> {
    whole
        .get_subcommands()
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

    /// The page is made anew with `docent man --markdown > docs/cli.md`.
    #[test]
    fn the_page_of_commands_is_fresh() {
        let page = include_str!("../../../docs/cli.md");
        assert!(
            page == markdown(),
            "docs/cli.md is not what `docent man --markdown` makes"
        );
    }
}
