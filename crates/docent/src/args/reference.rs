//! What `docent completions` and `docent man` take.

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

/// What `docent completions` takes.
#[derive(Debug, Flags)]
#[command(after_help = COMPLETIONS)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// What `docent man` takes.
#[derive(Debug, Flags)]
#[command(after_help = MAN)]
pub struct ManPageArgs {
    /// The page of one command; without it, the page of docent itself
    #[arg(conflicts_with_all = ["dir", "markdown"])]
    pub command: Option<String>,

    /// Write all pages into a folder instead
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,

    /// Print all commands as one page of Markdown instead
    #[arg(long, conflicts_with = "dir")]
    pub markdown: bool,
}
