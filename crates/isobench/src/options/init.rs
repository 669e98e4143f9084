//! Options of `isobench init`, and those of the tables for all commands.

use clap::Args;
use isobench_database::{InitOptions, PartitionMethod, Steps};

use super::ConnectionOptions;
use isobench_comparison::{Failure, Outcome};

/// Options of `isobench init`.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// The server; `init` needs one that outlives it.
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// The tables.
    #[command(flatten)]
    pub tables: TableOptions,
    /// Make the tables of this checked workload instead of pgbench's (see isobench workloads)
    #[arg(
        long,
        short = 'w',
        value_name = "NAME",
        conflicts_with_all = [
            "scale",
            "init_steps",
            "no_vacuum",
            "tablespace",
            "index_tablespace",
            "partitions",
            "partition_method",
        ]
    )]
    pub workload: Option<String>,
    /// Multiply the number of rows by this factor
    #[arg(
        short,
        long,
        default_value_t = 1,
        value_name = "NUM",
        value_parser = clap::value_parser!(u32).range(1..=21_474)
    )]
    pub scale: u32,
    /// Steps: d drop, t create tables, g/G fill from here/by the server, v vacuum, p primary, f
    /// foreign keys
    #[arg(short = 'I', long, value_name = "[dtgGvpf]+")]
    pub init_steps: Option<String>,
    /// Run no VACUUM after loading
    #[arg(short, long)]
    pub no_vacuum: bool,
    /// Show progress only every five seconds
    #[arg(short, long)]
    pub quiet: bool,
    /// Create tables in this tablespace
    #[arg(long, value_name = "TABLESPACE")]
    pub tablespace: Option<String>,
    /// Create indexes in this tablespace
    #[arg(long, value_name = "TABLESPACE")]
    pub index_tablespace: Option<String>,
    /// Partition the accounts table into this many parts
    #[arg(long, default_value_t = 0, value_name = "NUM")]
    pub partitions: u32,
    /// How to partition: range or hash
    #[arg(long, value_name = "(range|hash)")]
    pub partition_method: Option<String>,
    /// Database name, connection string or URI
    #[arg(value_name = "DBNAME")]
    pub database: Option<String>,
}

/// Options of the TPC-B-like tables.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tables")]
pub struct TableOptions {
    /// Fill factor of the tables, 10 to 100
    #[arg(
        short = 'F',
        long,
        default_value_t = 100,
        value_name = "NUM",
        value_parser = clap::value_parser!(u8).range(10..=100)
    )]
    pub fillfactor: u8,
    /// Create the tables as unlogged
    #[arg(long)]
    pub unlogged_tables: bool,
    /// Create foreign keys between the tables
    #[arg(long)]
    pub foreign_keys: bool,
}

impl TableOptions {
    /// Returns the tables at a scale, created by the default steps.
    pub fn at_scale(&self, scale: u32) -> InitOptions {
        InitOptions {
            scale,
            fillfactor: self.fillfactor,
            unlogged: self.unlogged_tables,
            foreign_keys: self.foreign_keys,
            quiet: true,
            ..InitOptions::default()
        }
    }
}

impl InitArguments {
    /// Returns the settings of the load.
    ///
    /// # Errors
    /// Unknown steps or an unknown partition method.
    pub fn resolve(&self) -> Outcome<InitOptions> {
        let mut options = InitOptions {
            quiet: self.quiet,
            tablespace: self.tablespace.clone(),
            index_tablespace: self.index_tablespace.clone(),
            partitions: self.partitions,
            ..self.tables.at_scale(self.scale)
        };
        if let Some(steps) = &self.init_steps {
            options.steps = steps.parse::<Steps>().map_err(Failure::setup)?;
        }
        if self.no_vacuum {
            options.steps = options.steps.without_vacuum();
        }
        match self.partition_method.as_deref() {
            None => {}
            Some("range") => options.partition_method = PartitionMethod::Range,
            Some("hash") => options.partition_method = PartitionMethod::Hash,
            Some(other) => {
                return Err(Failure::setup(format!(
                    "invalid partition method, expecting \"range\" or \"hash\", got: \"{other}\""
                )));
            }
        }
        if self.partition_method.is_some() && self.partitions == 0 {
            return Err(Failure::setup("--partition-method requires greater than zero --partitions"));
        }
        Ok(options)
    }
}
