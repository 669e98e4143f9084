//! Options of `isobench probe`.

use std::path::PathBuf;

use clap::Args;
use isobench_isolation::{Allocation, Level};
use isobench_pgserver::MajorVersion;
use isobench_probe::Tables;
use isobench_probe::anomalies::Tests;

use super::{ConnectionOptions, EmbeddedOptions, GateOptions};

/// Options of `isobench probe`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct ProbeOptions {
    /// Isolation levels: ru, rc, rr, ser [default: all; with --spec the server's]
    ///
    /// Also their full names.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = level)]
    pub levels: Option<Vec<Level>>,
    /// Interleavings: anomalies, races (of applications), indexes, or tpcc (TPC-C's isolation tests)
    #[arg(long, value_name = "NAME", default_value = "anomalies", conflicts_with_all = ["file", "builtin", "workload"])]
    pub tests: Tests,
    /// Write servers, levels, anomalies, races and steps, as HTML or as FILE.md
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "builtin", "workload", "json", "verbose"])]
    pub certificate: Option<PathBuf>,
    /// Versions of the embedded server for the certificate, such as 14,15,16,17,18
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "certificate", conflicts_with_all = ["version", "bin"])]
    pub versions: Vec<MajorVersion>,
    /// Kinds of tables: ordinary, unlogged, partitioned [default: ordinary]
    ///
    /// Several for the certificate.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["file", "builtin", "workload"])]
    tables: Vec<Tables>,
    /// Table access method of PostgreSQL for the tables
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "builtin", "workload"])]
    pub table_access_method: Option<String>,
    /// Run these specs of PostgreSQL's isolation tester, and print what it would print
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "json")]
    pub spec: Vec<PathBuf>,
    /// Try the interleavings of these script files
    ///
    /// Each transaction is split by the others. An outcome that no serial order of the same
    /// transactions gives is wrong, whatever the SQL is. Needs --setup.
    #[arg(long, short = 'f', value_name = "FILE", conflicts_with = "spec")]
    pub file: Vec<String>,
    /// Try the interleavings of these built-in scripts
    #[arg(long, short = 'b', value_name = "NAME", conflicts_with = "spec")]
    pub builtin: Vec<String>,
    /// Try the interleavings of a checked workload (isobench workloads)
    #[arg(long, short = 'w', value_name = "NAME", conflicts_with_all = ["spec", "file", "builtin"])]
    pub workload: Option<String>,
    /// SQL script that makes the tables of your own scripts
    #[arg(long, value_name = "FILE.sql", requires = "file")]
    pub setup: Option<PathBuf>,
    /// Query that returns true as long as the data are right (repeatable)
    ///
    /// Such as 'total: SELECT sum(balance) = 1000 FROM account'.
    #[arg(long, value_name = "[NAME:] SQL", requires = "setup")]
    pub invariant: Vec<String>,
    /// Define a variable for the scripts
    #[arg(long, short = 'D', value_name = "VARNAME=VALUE", value_parser = definition)]
    pub define: Vec<(String, String)>,
    /// A level for each script, such as 'pay.sql=ser,report.sql=rr ro,*=rc' (repeatable)
    ///
    /// Tried along with --levels. A script has the name of its file, with or without the ending; *
    /// are the others. After a level: ro for READ ONLY, and deferrable.
    #[arg(long, value_name = "SCRIPT=LEVEL,…")]
    pub allocation: Vec<Allocation>,
    /// Time for trying interleavings, such as 30s
    #[arg(long = "try", value_name = "TIME", default_value = "5s", value_parser = isobench_plan::seconds)]
    pub budget: f64,
    /// Write the first wrong outcome to this file, as a spec that --spec replays
    #[arg(long, value_name = "FILE.spec", requires = "setup")]
    pub replay: Option<PathBuf>,
    /// Write the result to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The files for services.
    #[command(flatten)]
    pub gates: GateOptions,
    /// Exit with status 3 also for a known limitation of the product
    #[arg(long, conflicts_with = "spec")]
    pub strict: bool,
    /// Also probe reading on a standby of the embedded server
    ///
    /// With commits that wait for a synchronous standby which doesn't exist.
    #[arg(long, conflicts_with = "spec")]
    pub standby: bool,
    /// Show every step of every interleaving
    #[arg(long, short = 'v')]
    pub verbose: bool,
    /// Cancel a step after this many seconds; after the same time again, give up
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub step_timeout: f64,
    /// Milliseconds after which a step counts as waiting, if the server doesn't report it
    #[arg(long, value_name = "MS", default_value_t = 300)]
    pub wait_after: u64,
    /// The embedded server.
    #[command(flatten)]
    pub embedded: EmbeddedOptions,
    /// The named server.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl ProbeOptions {
    /// The option that a probe of specifications alone has no use for, if one is given.
    pub fn useless_for_specs(&self) -> Option<&'static str> {
        let given = [("--tables", !self.tables.is_empty()), ("--tests", self.tests != Tests::default())];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// The kinds of tables; at least one.
    pub fn tables(&self) -> Vec<Tables> {
        if self.tables.is_empty() { vec![Tables::Ordinary] } else { self.tables.clone() }
    }
}

fn level(text: &str) -> Result<Level, String> {
    text.parse().map_err(|error: isobench_isolation::UnknownLevel| error.to_string())
}

/// Parses the definition of a variable.
fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("use VARNAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses a time of up to a day in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds @ 0.01..=86_400.0) => Ok(seconds),
        _ => Err("use 0.01 to 86400".to_owned()),
    }
}
