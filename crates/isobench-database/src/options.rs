//! pgbench's initialisation options as values.

use crate::steps::{InitStep, Steps};

/// Options for creating the TPC-B-like tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitOptions {
    /// The steps, in order (pgbench: `-I`).
    pub steps: Steps,
    /// The scale factor, at least 1: the number of branches, with ten tellers and 100,000 accounts
    /// each (pgbench: `-s`).
    pub scale: u32,
    /// The fill factor of all tables except the history, 10 to 100 (pgbench: `-F`).
    pub fillfactor: u8,
    /// Create unlogged tables, if the product has them (pgbench: `--unlogged-tables`).
    pub unlogged: bool,
    /// Add step `f` if it is missing (pgbench: `--foreign-keys`).
    pub foreign_keys: bool,
    /// Report progress less often (pgbench: `-q`). The steps don't change.
    pub quiet: bool,
    /// The tablespace of the tables (pgbench: `--tablespace`).
    pub tablespace: Option<String>,
    /// The tablespace of the primary keys (pgbench: `--index-tablespace`).
    pub index_tablespace: Option<String>,
    /// The number of partitions of the accounts; 0: not partitioned (pgbench: `--partitions`).
    pub partitions: u32,
    /// The partitioning method of the accounts (pgbench: `--partition-method`).
    pub partition_method: PartitionMethod,
    /// Other differences between versions of pgbench.
    pub variant: InitVariant,
}

/// Differences between versions of pgbench when they create tables on PostgreSQL. The default is
/// the newest version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InitVariant {
    /// Branches and tellers are inserted row by row instead of copied, so that the tables may have
    /// further columns.
    pub insert_small_tables: bool,
    /// Accounts are copied with `FREEZE` unless partitions were asked for, without looking at the
    /// table.
    pub freeze_unchecked: bool,
    /// With partitions, `unlogged` applies to all tables, even the partitioned one, rather than to
    /// the partitions alone.
    pub unlogged_everywhere: bool,
}

/// The partitioning method of the accounts, by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionMethod {
    /// Equal ranges of numbers.
    #[default]
    Range,
    /// The hash of the number.
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
            variant: InitVariant::default(),
        }
    }
}

impl InitOptions {
    /// The steps that will run: `steps`, and `f` if foreign keys are wanted.
    pub fn effective_steps(&self) -> Steps {
        if self.foreign_keys { self.steps.clone().with_foreign_keys() } else { self.steps.clone() }
    }

    /// The steps that create the same tables from scratch, with keys and vacuumed, even if `steps`
    /// omits some.
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
