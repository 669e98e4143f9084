//! Options of commands whose answer is a gate of continuous integration.

use std::path::PathBuf;

use clap::Args;

/// The files for services.
#[expect(clippy::doc_markdown, reason = "the help shows names as they are written")]
#[derive(Debug, Clone, Default, Args)]
pub struct GateOptions {
    /// Write a test for each question to this file, as JUnit does
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write what is wrong or undecided to this file, as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
}

impl GateOptions {
    /// The first option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let junit = self.junit.as_ref().map(|_| "--junit");
        junit.or(self.sarif.as_ref().map(|_| "--sarif"))
    }
}
