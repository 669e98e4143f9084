//! What the tables shall look like: pgbench's initialisation options as values.

use crate::steps::{InitStep, Steps};

/// How the TPC-B-like tables are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitOptions {
    /// The steps, in order (pgbench: `-I`).
    pub steps: Steps,
    /// The scale factor, from 1: branches; ten tellers and 100,000 accounts each (pgbench: `-s`).
    pub scale: u32,
    /// The fill factor of all tables but the history, 10 to 100 (pgbench: `-F`).
    pub fillfactor: u8,
    /// Whether tables are unlogged where the product knows that (pgbench: `--unlogged-tables`).
    pub unlogged: bool,
    /// Whether step `f` is added if it isn't there (pgbench: `--foreign-keys`).
    pub foreign_keys: bool,
    /// Whether the caller wants few progress reports (pgbench: `-q`); the steps don't change.
    pub quiet: bool,
    /// The tablespace of the tables (pgbench: `--tablespace`).
    pub tablespace: Option<String>,
    /// The tablespace of the primary keys (pgbench: `--index-tablespace`).
    pub index_tablespace: Option<String>,
    /// The number of partitions of the accounts; 0: not partitioned (pgbench: `--partitions`).
    pub partitions: u32,
    /// How the accounts are partitioned (pgbench: `--partition-method`).
    pub partition_method: PartitionMethod,
    /// What else differs between versions of pgbench.
    pub habits: Habits,
}

/// What versions of pgbench do differently when they make tables on PostgreSQL. The default is what
/// the newest does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Habits {
    /// Branches and tellers are inserted row by row instead of copied, so that further columns may
    /// exist.
    pub insert_small_tables: bool,
    /// Accounts are copied with `FREEZE` unless partitions were asked for, instead of looking at
    /// the table.
    pub freeze_blindly: bool,
    /// With partitions, `unlogged` goes for all tables, even the partitioned one, instead of the
    /// partitions alone.
    pub unlogged_everywhere: bool,
}

/// How the accounts are partitioned by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionMethod {
    /// Equal ranges of numbers.
    #[default]
    Range,
    /// The number's hash.
    Hash,
}

impl Default for InitOptions {
    /// pgbench's defaults.
    fn default() -> Self {
        InitOptions {
            steps: Steps::default(),
            scale: 1,
            fillfactor: 100,
            unlogged: false,
            foreign_keys: false,
            quiet: false,
            tablespace: None,
            index_tablespace: None,
            partitions: 0,
            partition_method: PartitionMethod::Range,
            habits: Habits::default(),
        }
    }
}

impl InitOptions {
    /// The steps that will run: `steps`, and `f` where foreign keys are wanted.
    pub fn effective_steps(&self) -> Steps {
        if self.foreign_keys { self.steps.clone().with_foreign_keys() } else { self.steps.clone() }
    }

    /// The steps that make the same tables from nothing, vacuumed and with their keys, whatever
    /// `steps` leaves out.
    pub(crate) fn complete_steps(&self) -> Steps {
        let wanted = self.effective_steps();
        let generate =
            if wanted.contains(InitStep::ServerGenerate) && !wanted.contains(InitStep::ClientGenerate) {
                InitStep::ServerGenerate
            } else {
                InitStep::ClientGenerate
            };
        let mut steps = vec![
            InitStep::DropTables,
            InitStep::CreateTables,
            generate,
            InitStep::Vacuum,
            InitStep::PrimaryKeys,
        ];
        if wanted.contains(InitStep::ForeignKeys) {
            steps.push(InitStep::ForeignKeys);
        }
        steps.into()
    }
}
