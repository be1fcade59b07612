//! Arguments of `docent completions` and `docent man`.

use std::path::PathBuf;

use clap::Args as Flags;
use clap_complete::Shell;

const COMPLETIONS: &str = "\
Examples:
  docent completions bash > ~/.local/share/bash-completion/completions/docent
  docent completions zsh  > \"${fpath[1]}/_docent\"
  docent completions fish > ~/.config/fish/completions/docent.fish";

const MAN: &str = "\
Examples:
  docent man | man -l -
  docent man serve | man -l -
  docent man --dir ~/.local/share/man/man1";

/// Arguments of `docent completions`, which prints a script for a shell.
#[derive(Debug, Flags)]
#[command(after_help = COMPLETIONS)]
pub struct CompletionsArgs {
    /// The shell to complete for
    pub shell: Shell,
}

/// Arguments of `docent man`, which prints pages, writes them, or prints docs/cli.md.
#[derive(Debug, Flags)]
#[command(after_help = MAN)]
pub struct ManPageArgs {
    /// The command whose page to print [default: the page of docent itself]
    #[arg(conflicts_with_all = ["dir", "markdown"])]
    pub command: Option<String>,

    /// Write all pages into this folder instead
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,

    /// Print the help of all commands as one Markdown page instead
    #[arg(long, conflicts_with = "dir")]
    pub markdown: bool,
}
