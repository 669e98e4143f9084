//! Options of the commands about isobench itself: `help`, `completions`, `man`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

/// Options of `isobench help`.
#[derive(Debug, Args)]
pub struct HelpOptions {
    /// A command (one below another in two words), a page of the manual, such as levels, anomalies
    /// or verdict, or a word of options and pages [default: a list of commands and pages]
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}

/// A shell that completes words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
    /// Elvish
    Elvish,
    /// PowerShell
    Powershell,
}

impl Shell {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
            Shell::Elvish => "elvish",
            Shell::Powershell => "powershell",
        }
    }
}

/// Options of `isobench completions`.
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell
    pub shell: Shell,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}

/// Options of `isobench man`.
#[derive(Debug, Args)]
pub struct ManOptions {
    /// Write a page for every command into this folder [default: print that of isobench]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}
