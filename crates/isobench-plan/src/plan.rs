//! A plan as written. New options are added here, and interpreted where the plan is resolved
//! (`isobench-comparison`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use isobench_isolation::{Allocation, Level};
use serde::{Deserialize, Serialize};

use crate::{
    Background, EventLoop, Experiment, FaultFactor, MIXED, Observe, Requirement, RetriedState, Setting,
    Share, StandbyMode, Vary, time,
};

/// The strategy of a plan that names none: the client repeats the transaction.
pub const DEFAULT_STRATEGY: &str = "retry";

/// The headings of the options in help.
mod heading {
    pub const FACTORS: &str = "What to compare";
    pub const LENGTH: &str = "Duration and precision";
    pub const LOAD: &str = "Load and retries";
    pub const FAULTS: &str = "Standbys and faults";
    pub const REQUIRED: &str = "Output";
    pub const EXPERT: &str = "Advanced";
}

/// A plan as written on the command line, in a TOML file under the same names, or in a result,
/// where every value that has a default is given.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case")]
pub struct Plan {
    /// Isolation levels: ru, rc, rr, ser [default: rc,rr,ser]
    ///
    /// Also their full names. In the order of the table; the first is what the others are compared
    /// with.
    #[arg(
        long,
        visible_alias = "isolation",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = heading::FACTORS
    )]
    pub levels: Option<Vec<Level>>,
    /// A level for each script, such as 'pay.sql=ser,report.sql=rr ro,*=rc' (repeatable)
    ///
    /// Measured along with --levels; every transaction of the comparison then asks for its level. A
    /// script has the name of its file, with or without the ending; * are the others. After a level:
    /// ro for READ ONLY, and deferrable.
    #[arg(long, value_name = "SCRIPT=LEVEL,…", help_heading = heading::FACTORS)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Vec<Allocation>>,
    /// Checked workload, built-in script or script file (repeatable) [default: orders]
    ///
    /// Checked workloads are registers, write-skew+for-update and others (see isobench workloads),
    /// built-in scripts tpcb-like, simple-update and select-only. Several are compared with each
    /// other.
    #[arg(long, short = 'w', value_name = "NAME|FILE", help_heading = heading::FACTORS)]
    pub workload: Option<Vec<String>>,
    /// Script file, - for standard input; several are one mix (repeatable)
    ///
    /// With scripts of -b, they are one workload, in which each is chosen as often as its weight
    /// says.
    #[arg(long, short = 'f', value_name = "FILE[@WEIGHT]", help_heading = heading::FACTORS)]
    pub file: Option<Vec<String>>,
    /// Built-in script, by its name or a prefix (repeatable)
    #[arg(
        long,
        short = 'b',
        value_name = "NAME[@WEIGHT]",
        help_heading = heading::FACTORS,
        hide_short_help = true
    )]
    pub builtin: Option<Vec<String>>,
    /// How the application copes with conflicts: retry, for-update, …
    ///
    /// One or more of retry, procedure, swallow, single-statement, savepoint, for-update,
    /// advisory-lock, reorder, or any variant of a checked workload [default: the workload itself,
    /// which retries]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = heading::FACTORS)]
    pub strategies: Option<Vec<String>>,
    /// Number of clients, or several to compare [default: 8]
    #[arg(
        long,
        short = 'c',
        visible_alias = "client",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = heading::FACTORS
    )]
    pub clients: Option<Vec<u32>>,
    /// Values to compare, such as setting:fsync=on,off (repeatable)
    ///
    /// Of a parameter of the workload (rows=10,1000) or of pgbench's tables (scale,
    /// foreign-keys=off,on, unlogged-tables, fillfactor, script-scale), of a variable of your own
    /// scripts, of a setting (setting:NAME, read back), server-version=14,18, server-bin=DIR,DIR or
    /// endpoint=direct,CONNINFO (a pooler). A
    /// single value sets it.
    #[arg(long, value_name = "NAME=VALUE,VALUE", help_heading = heading::FACTORS)]
    pub vary: Option<Vec<Vary>>,
    /// Scale of pgbench's tables [default: 1]
    ///
    /// At 1 there is one branch, which every client updates.
    #[arg(long, short = 's', value_name = "NUM", help_heading = heading::FACTORS)]
    pub scale: Option<u32>,
    /// SQL script that makes the tables of your own scripts
    ///
    /// Run before every cell, instead of making pgbench's tables.
    #[arg(long, value_name = "FILE.sql", help_heading = heading::FACTORS)]
    pub setup: Option<PathBuf>,
    /// Query that returns true as long as the data are right (repeatable)
    ///
    /// Such as 'total: SELECT sum(balance) = 1000, sum(balance) FROM account'. Asked before the first
    /// round and after every one. NAME: and a second column, the value to show, may be left out.
    #[arg(long, value_name = "[NAME:] SQL", help_heading = heading::FACTORS, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invariant: Option<Vec<String>>,
    /// Use your own tables in this schema of a server; needs --keep-data
    ///
    /// isobench makes and drops nothing there.
    #[arg(long, value_name = "NAME", help_heading = heading::FACTORS, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// With --schema: agree that the scripts change the data there
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::FACTORS,
        hide_short_help = true
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_data: Option<bool>,
    /// With --schema: SQL script that restores the data before every cell
    ///
    /// Without it each cell starts with the data that the one before it left.
    #[arg(long, value_name = "FILE.sql", help_heading = heading::FACTORS, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<PathBuf>,
    /// Seconds of each row in each round, also 500ms or 2min [default: 1.5]
    #[arg(long, short = 'T', value_name = "SECONDS", value_parser = time::seconds, help_heading = heading::LENGTH)]
    #[serde(deserialize_with = "time::in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub time: Option<f64>,
    /// Least seconds that a cell runs before the next takes its turn [default: 0.25]
    ///
    /// Also 250ms. 0: each cell is measured in one piece.
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = time::seconds,
        help_heading = heading::LENGTH,
        hide_short_help = true
    )]
    #[serde(deserialize_with = "time::in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub slice: Option<f64>,
    /// Transactions of each client in each cell, instead of a time
    #[arg(long, short = 't', value_name = "NUM", help_heading = heading::LENGTH, hide_short_help = true)]
    pub transactions: Option<u64>,
    /// Number of rounds, in each of which the rows take turns [default: 8]
    #[arg(long, value_name = "NUM", help_heading = heading::LENGTH)]
    pub rounds: Option<u32>,
    /// Measure until every ratio is known to this precision, such as 2%
    ///
    /// Or until --time-limit.
    #[arg(long, value_name = "PERCENT", help_heading = heading::LENGTH)]
    pub resolve: Option<Share>,
    /// Time for trying the scripts' interleavings, such as 30s; 0: none
    ///
    /// After the first round (before it with --transactions and --stop-on-broken, and if it takes more
    /// than a minute), on tables of their own, one transaction is split by others, at each level, and
    /// the outcome compared with every serial order [default: 5 s, but no longer than what is measured;
    /// none with --transactions, --no-verdict, --sweep, --fault, --schema and published experiments]
    #[arg(
        long = "try",
        value_name = "TIME",
        value_parser = time::seconds,
        help_heading = heading::LENGTH,
        hide_short_help = true
    )]
    #[serde(rename = "try", deserialize_with = "time::in_seconds", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(rename = "try", with = "Option<f64>"))]
    pub tries: Option<f64>,
    /// Most seconds of further rounds if the planned ones don't settle which level to use
    ///
    /// Further rounds follow three planned ones or more, until the levels differ measurably in cost, or
    /// are shown to cost the same within 5 %. 0: never [default: 30, and no more than 70 in all; 0
    /// with --resolve, --sweep, --fault, --transactions and published experiments]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = time::seconds,
        help_heading = heading::LENGTH,
        hide_short_help = true
    )]
    #[serde(deserialize_with = "time::in_seconds", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub settle: Option<f64>,
    /// Start no round that would end after this many seconds [default: none; with --resolve 600]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = time::seconds,
        help_heading = heading::LENGTH,
        hide_short_help = true
    )]
    #[serde(deserialize_with = "time::in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub time_limit: Option<f64>,
    /// Warm-up of each cell in seconds, repeated until throughput is steady [default: 0.5]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = time::seconds,
        help_heading = heading::LENGTH,
        hide_short_help = true
    )]
    #[serde(deserialize_with = "time::in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub warmup: Option<f64>,
    /// The longest warm-up in seconds [default: three steps]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = time::seconds,
        help_heading = heading::LENGTH,
        hide_short_help = true
    )]
    #[serde(deserialize_with = "time::in_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub max_warmup: Option<f64>,
    /// Measure the first level twice in every round: smaller differences are noise
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::LENGTH,
        hide_short_help = true
    )]
    pub calibrate: Option<bool>,
    /// End at the first broken promise: an anomaly that the level forbids
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::LENGTH,
        hide_short_help = true
    )]
    pub stop_on_broken: Option<bool>,
    /// Transactions started per second by all clients [default: unlimited]
    ///
    /// Or several rates to compare. Latency counts from the scheduled start.
    #[arg(long, short = 'R', value_name = "LIST", value_delimiter = ',', help_heading = heading::LOAD)]
    pub rate: Option<Vec<f64>>,
    /// Milliseconds after which a transaction is late, and not retried
    #[arg(
        long,
        short = 'L',
        value_name = "MS",
        value_parser = time::milliseconds,
        help_heading = heading::LOAD,
        hide_short_help = true
    )]
    #[serde(deserialize_with = "time::in_milliseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub latency_limit: Option<f64>,
    /// Then search for each level's highest rate within --latency-limit
    ///
    /// The highest at which 99 % of the transactions commit within it.
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::LOAD,
        hide_short_help = true
    )]
    pub sweep: Option<bool>,
    /// Milliseconds a client pauses between two transactions
    #[arg(
        long,
        value_name = "MS",
        value_parser = time::milliseconds,
        help_heading = heading::LOAD,
        hide_short_help = true
    )]
    #[serde(deserialize_with = "time::in_milliseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub think_time: Option<f64>,
    /// Delay before a retry: none, fixed:5ms, exponential, … [default: none]
    ///
    /// Or several to compare. A wrong one lists them all.
    #[arg(long, value_name = "LIST", help_heading = heading::LOAD)]
    pub backoff: Option<Vec<String>>,
    /// Most attempts of one transaction; 0 is unlimited [default: 0]
    #[arg(long, value_name = "NUM", help_heading = heading::LOAD, hide_short_help = true)]
    pub max_tries: Option<u32>,
    /// SQLSTATEs of further errors to retry, such as 23505 (unique violation)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = heading::LOAD,
        hide_short_help = true
    )]
    pub retry_sqlstate: Option<Vec<RetriedState>>,
    /// Continue after an error that isn't retried, instead of ending the client
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::LOAD,
        hide_short_help = true
    )]
    pub continue_on_error: Option<bool>,
    /// Background work: old-snapshot, long-writer, vacuum, checkpoint, dump, none [default: none]
    ///
    /// What another session does meanwhile, or several to compare.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = heading::LOAD,
        hide_short_help = true
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Vec<Background>>,
    /// Fault during the run, such as crash@2 for a crash after 2 s
    ///
    /// crash@S, stop:fast@S, stop:immediate@S, promote@S, backend@S, freeze:SECONDS@S,
    /// partition:SECONDS@S, partition-standby:SECONDS@S, disconnect@S, command@S or none, S seconds
    /// after measuring has started. Several with commas are compared; given again, they all happen.
    /// Clients reconnect, and afterwards the data show which attempts were committed.
    #[arg(long, value_name = "KIND@S,…", help_heading = heading::FAULTS)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Vec<FaultFactor>>,
    /// Program that the fault command@S runs
    ///
    /// Without arguments and input. The only fault allowed on a server you connect to.
    // No key of a plan file: reading another's plan must not run their programs.
    #[arg(long, value_name = "PROGRAM", help_heading = heading::FAULTS, hide_short_help = true)]
    #[serde(skip)]
    pub fault_command: Option<String>,
    /// Number of standbys, at most 8 [default: 0, or 1 if an option needs one]
    ///
    /// They follow by streaming replication.
    #[arg(long, value_name = "NUM", help_heading = heading::FAULTS, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standbys: Option<u32>,
    /// How standbys replicate: async, sync, `remote_write`, `remote_apply` [default: async]
    ///
    /// Or several to compare.
    // Help has no backticks.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = heading::FAULTS,
        hide_short_help = true,
        help = "How standbys replicate: async, sync, remote_write, remote_apply [default: async]",
        long_help = "How standbys replicate: async, sync, remote_write, remote_apply [default: async]\n\nOr several to \
                     compare"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standby: Option<Vec<StandbyMode>>,
    /// Further clients that read on a standby [default: 0]
    ///
    /// They run the workload's read-only scripts, or those of --read-script. The verdict then
    /// covers primary and standby together.
    #[arg(long, value_name = "NUM", help_heading = heading::FAULTS, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<u32>,
    /// Script that --readers run, if the workload's own all write (repeatable)
    #[arg(long, value_name = "FILE|NAME", help_heading = heading::FAULTS, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_script: Option<Vec<String>>,
    /// Let --readers wait until the standby has caught up with the primary
    ///
    /// Before each transaction (WAIT FOR LSN, PostgreSQL 19).
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::FAULTS,
        hide_short_help = true
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for_lsn: Option<bool>,
    /// Reconnect after a lost session, with this backoff [default: with --fault fixed:10ms]
    ///
    /// Policies are those of --backoff. By default the client ends.
    #[arg(long, value_name = "POLICY", help_heading = heading::FAULTS, hide_short_help = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<String>,
    /// Protocol: simple, extended or prepared [default: simple]
    #[arg(long, short = 'M', value_name = "PROTOCOL", help_heading = heading::LOAD)]
    pub protocol: Option<String>,
    /// Worker threads of isobench itself [default: 1]
    #[arg(long, short = 'j', value_name = "NUM", help_heading = heading::EXPERT, hide_short_help = true)]
    pub jobs: Option<u32>,
    /// How isobench waits for its connections [default: auto]
    #[arg(long, value_name = "HOW", help_heading = heading::EXPERT, hide_short_help = true)]
    pub event_loop: Option<EventLoop>,
    /// Seed of all random numbers, also of the order of the cells [default: 1]
    #[arg(
        long,
        visible_alias = "random-seed",
        value_name = "NUM",
        help_heading = heading::EXPERT,
        hide_short_help = true
    )]
    pub seed: Option<u64>,
    /// Refuse a level that the server replaces by another one
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::EXPERT,
        hide_short_help = true
    )]
    pub strict_levels: Option<bool>,
    /// How reads and writes are tracked for the verdict [default: rows]
    #[arg(long, value_name = "HOW", help_heading = heading::EXPERT, hide_short_help = true)]
    pub observe: Option<Observe>,
    /// Don't sample the server's own statistics (waits, locks, counters)
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::EXPERT,
        hide_short_help = true
    )]
    pub no_server_side: Option<bool>,
    /// Make a new connection for each transaction
    #[arg(
        long,
        short = 'C',
        num_args = 0,
        default_missing_value = "true",
        value_name = "BOOL",
        help_heading = heading::EXPERT,
        hide_short_help = true
    )]
    pub connect: Option<bool>,
    /// Exit with 4 unless this holds, such as 'anomalies == 0' (repeatable)
    ///
    /// [LEVEL.]METRIC[.low|.high] OP NUMBER, such as 'serializable.ratio.low >= 0.5'; without a level
    /// for every row.
    #[arg(long, value_name = "EXPRESSION", help_heading = heading::REQUIRED)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Vec<Requirement>>,
    /// Settings of the embedded server, such as `autovacuum=off`. Has no option of this name:
    /// --server-setting adds to them
    #[arg(skip)]
    pub server_settings: Option<Vec<Setting>>,
    /// Changes that the plan's full size makes. Only in a file
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub full: Option<Box<Plan>>,
    /// The published experiment that the plan repeats. Only in a file and in a result
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
}

/// The first of two plans wins, field by field; a field that is left out doesn't compile.
macro_rules! first_given {
    ($first:ident, $second:ident: $($field:ident),+ ; $($own:ident = $value:expr),+) => {
        Plan { $($field: $first.$field.or($second.$field),)+ $($own: $value),+ }
    };
}

impl Plan {
    /// The default of every option that has one.
    pub fn defaults() -> Plan {
        Plan {
            levels: Some(vec![Level::ReadCommitted, Level::RepeatableRead, Level::Serializable]),
            workload: Some(vec!["orders".to_owned()]),
            clients: Some(vec![8]),
            scale: Some(1),
            time: Some(1.5),
            rounds: Some(8),
            slice: Some(0.25),
            warmup: Some(0.5),
            calibrate: Some(false),
            stop_on_broken: Some(false),
            sweep: Some(false),
            backoff: Some(vec!["none".to_owned()]),
            max_tries: Some(0),
            continue_on_error: Some(false),
            protocol: Some("simple".to_owned()),
            jobs: Some(1),
            event_loop: Some(EventLoop::Auto),
            seed: Some(1),
            strict_levels: Some(false),
            observe: Some(Observe::Rows),
            no_server_side: Some(false),
            connect: Some(false),
            ..Plan::default()
        }
    }

    /// Returns this plan's values, completed from `other`. `time` and `transactions` exclude each
    /// other, so if one of them is set here, the other isn't taken from `other`. So do `workload`
    /// and the mix of `file` and `builtin`.
    #[must_use]
    pub fn or(self, other: Plan) -> Plan {
        let limited = self.time.is_some() || self.transactions.is_some();
        let (time, transactions) = if limited { (None, None) } else { (other.time, other.transactions) };
        let worked = self.workload.is_some() || self.mixes();
        let (workload, file, builtin) =
            if worked { (None, None, None) } else { (other.workload, other.file, other.builtin) };
        first_given!(self, other:
            levels, allocation, strategies, clients, vary, scale, setup, invariant, schema, keep_data, reset, rounds, resolve,
            tries, settle, time_limit, slice, warmup, max_warmup, calibrate, stop_on_broken, rate, latency_limit, sweep, think_time,
            backoff, max_tries, retry_sqlstate, continue_on_error, background, fault, fault_command, standbys, standby,
            readers, read_script, wait_for_lsn, reconnect, protocol, jobs, event_loop, seed, strict_levels, observe, no_server_side, connect, require, server_settings, full, experiment;
            workload = self.workload.or(workload), file = self.file.or(file), builtin = self.builtin.or(builtin),
            time = self.time.or(time), transactions = self.transactions.or(transactions)
        )
    }

    /// The isolation levels; none in the result of a run at the server's own level.
    pub fn levels(&self) -> &[Level] {
        list(&self.levels)
    }

    /// The levels of each script, measured along with the levels for all.
    pub fn allocations(&self) -> &[Allocation] {
        list(&self.allocation)
    }

    /// True if the plan names the scripts of a mix.
    pub fn mixes(&self) -> bool {
        self.file.is_some() || self.builtin.is_some()
    }

    /// The script files of a mix, with their weights.
    pub fn files(&self) -> &[String] {
        list(&self.file)
    }

    /// The built-in scripts of a mix, with their weights.
    pub fn builtins(&self) -> &[String] {
        list(&self.builtin)
    }

    /// The names of the workloads; none if the plan has a mix.
    pub fn workload(&self) -> &[String] {
        list(&self.workload)
    }

    /// The names of the strategies; none if the plan has no such factor.
    pub fn strategies(&self) -> &[String] {
        list(&self.strategies)
    }

    /// The parameters that vary or are set.
    pub fn vary(&self) -> &[Vary] {
        list(&self.vary)
    }

    /// The user's own conditions, a query each.
    pub fn invariant(&self) -> &[String] {
        list(&self.invariant)
    }

    /// The numbers of clients.
    pub fn clients(&self) -> &[u32] {
        list(&self.clients)
    }

    /// The retry policies, a text each.
    pub fn backoff(&self) -> &[String] {
        list(&self.backoff)
    }

    /// Transactions started per second; none: as many as possible.
    pub fn rates(&self) -> &[f64] {
        list(&self.rate)
    }

    /// The thresholds that the result must keep.
    pub fn required(&self) -> &[Requirement] {
        list(&self.require)
    }

    /// Returns why a threshold concerns no cell of this plan, whose defaults are given; `None` if
    /// each concerns one.
    pub fn unmatched_requirement(&self) -> Option<String> {
        let selectors =
            self.required().iter().filter_map(|required| Some((required, required.of.selector.as_ref()?)));
        let compares = |name: &String| {
            self.levels().iter().any(|level| level.name() == name)
                || name == MIXED && !self.allocations().is_empty()
        };
        let uses = |name: &String| match self.strategies() {
            [] => name == DEFAULT_STRATEGY,
            strategies => strategies.contains(name),
        };
        selectors.into_iter().find_map(|(required, selector)| {
            if let Some(level) =
                selector.level.as_ref().filter(|name| !self.levels().is_empty() && !compares(name))
            {
                let mixed = (!self.allocations().is_empty()).then_some(MIXED);
                let levels: Vec<&str> = self.levels().iter().map(|level| level.name()).chain(mixed).collect();
                return Some(format!(
                    "--require \"{required}\": the level {level} isn't measured; the levels are {}",
                    levels.join(", ")
                ));
            }
            let strategy = selector.strategy.as_ref().filter(|name| !uses(name))?;
            let known = match self.strategies() {
                [] => "there are none (--strategies)".to_owned(),
                strategies => format!("the strategies are {}", strategies.join(", ")),
            };
            Some(format!("--require \"{required}\": the strategy {strategy} isn't measured; {known}"))
        })
    }

    /// Settings of the embedded server: values by name.
    pub fn server_settings(&self) -> BTreeMap<String, String> {
        let settings = self.server_settings.iter().flatten();
        settings.map(|setting| (setting.name.clone(), setting.value.clone())).collect()
    }

    /// True if the first level is measured twice in every round.
    pub fn calibrates(&self) -> bool {
        self.calibrate == Some(true)
    }

    /// True if the highest rate within the latency limit is searched for.
    pub fn sweeps(&self) -> bool {
        self.sweep == Some(true)
    }

    /// True if a level that the server runs as another one is refused.
    pub fn is_strict(&self) -> bool {
        self.strict_levels == Some(true)
    }

    /// True if the first broken promise ends everything.
    pub fn stops_on_broken(&self) -> bool {
        self.stop_on_broken == Some(true)
    }

    /// The errors that are retried although they are no conflicts.
    pub fn retried(&self) -> &[RetriedState] {
        list(&self.retry_sqlstate)
    }

    /// True if a client goes on after an error that isn't retried.
    pub fn continues(&self) -> bool {
        self.continue_on_error == Some(true)
    }

    /// True if each transaction has a connection of its own.
    pub fn connects(&self) -> bool {
        self.connect == Some(true)
    }

    /// How the reads and writes of transactions are observed.
    pub fn observe(&self) -> Observe {
        self.observe.unwrap_or_default()
    }

    /// True if the server's own statistics are sampled.
    pub fn watches_server(&self) -> bool {
        self.no_server_side == Some(false)
    }

    /// What goes on beside the clients, a factor; nothing if the plan doesn't say.
    pub fn background(&self) -> &[Background] {
        self.background.as_deref().unwrap_or(&[Background::None])
    }

    /// What happens to the server, each a factor.
    pub fn faults(&self) -> &[FaultFactor] {
        list(&self.fault)
    }

    /// The number of clients on a standby.
    pub fn readers(&self) -> u32 {
        self.readers.unwrap_or_default()
    }

    /// The scripts that these run, if not the workload's.
    pub fn read_scripts(&self) -> &[String] {
        list(&self.read_script)
    }

    /// True if these wait until the standby has caught up.
    pub fn waits_for_lsn(&self) -> bool {
        self.wait_for_lsn == Some(true)
    }

    /// The ways in which standbys follow; none if the plan doesn't say.
    pub fn standby(&self) -> &[StandbyMode] {
        list(&self.standby)
    }

    /// The number of rounds.
    pub fn rounds(&self) -> u32 {
        self.rounds.unwrap_or_default()
    }

    /// The scale of the tables.
    pub fn scale(&self) -> u32 {
        self.scale.unwrap_or_default()
    }

    /// The number of worker threads.
    pub fn jobs(&self) -> u32 {
        self.jobs.unwrap_or_default()
    }

    /// How workers wait for their connections.
    pub fn event_loop(&self) -> EventLoop {
        self.event_loop.unwrap_or_default()
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &str {
        self.protocol.as_deref().unwrap_or_default()
    }

    /// The most attempts of a transaction; `None`: unlimited.
    pub fn max_tries(&self) -> Option<u32> {
        self.max_tries.filter(|tries| *tries > 0)
    }

    /// Seconds of a step of the warm-up; 0: none.
    pub fn warmup(&self) -> f64 {
        self.warmup.unwrap_or_default()
    }

    /// Seconds of the longest warm-up.
    pub fn max_warmup(&self) -> f64 {
        self.max_warmup.unwrap_or_default()
    }

    /// Seconds measured in each cell and round; `None` if transactions are counted.
    pub fn seconds(&self) -> Option<f64> {
        self.time.filter(|_| self.transactions.is_none())
    }
}

#[expect(clippy::ref_option, reason = "so that fields can be handed in")]
fn list<T>(values: &Option<Vec<T>>) -> &[T] {
    values.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_limit_takes_the_others_place() {
        let timed = Plan { time: Some(3.0), ..Plan::default() };
        let counted = Plan { transactions: Some(7), ..Plan::default() };
        let plan = counted.clone().or(timed.clone());
        assert_eq!((plan.time, plan.transactions), (None, Some(7)));
        let plan = timed.or(counted);
        assert_eq!((plan.time, plan.transactions), (Some(3.0), None));
    }

    #[test]
    fn a_threshold_of_what_isnt_measured_is_noticed() {
        let plan = |text: &str, strategies: &[&str]| Plan {
            require: Some(vec![text.parse().unwrap()]),
            strategies: Some(strategies.iter().map(|name| (*name).to_owned()).collect()),
            ..Plan::defaults()
        };
        let why = |text, strategies| plan(text, strategies).unmatched_requirement();
        assert_eq!(why("tps > 1", &[]), None);
        assert_eq!(why("ser+retry.tps > 1", &[]), None);
        assert_eq!(why("ser+for-update.tps > 1", &["retry", "for-update"]), None);
        let message = why("ru.tps > 1", &[]).unwrap();
        assert!(
            message.contains("read uncommitted isn't measured; the levels are read committed,"),
            "{message}"
        );
        let message = why("ser+swallow.tps > 1", &["retry", "for-update"]).unwrap();
        assert!(
            message.contains("swallow isn't measured; the strategies are retry, for-update"),
            "{message}"
        );
        assert!(why("ser+swallow.tps > 1", &[]).unwrap().contains("--strategies"));
        let at_server_default = Plan { levels: Some(Vec::new()), ..plan("ser.tps > 1", &[]) };
        assert_eq!(at_server_default.unmatched_requirement(), None, "known only when it was measured");
    }

    #[test]
    fn a_result_keeps_what_was_written() {
        let plan = Plan {
            vary: Some(vec!["rows=10,100".parse().unwrap()]),
            resolve: Some(Share(0.07)),
            seed: Some(u64::MAX),
            ..Plan::defaults()
        };
        let json = serde_json::to_value(&plan).unwrap();
        assert_eq!(json["vary"][0], "rows=10,100");
        assert_eq!(json["resolve"], "7%");
        assert_eq!(json["levels"][0], "read committed");
        assert_eq!(json["max-tries"], 0);
        assert_eq!(serde_json::from_value::<Plan>(json).unwrap(), plan);
    }
}
