//! The actions on the TPC-B-like tables for each product and step. Pure, without a server.
//!
//! Not here: the tables themselves (`table.rs`), carrying out the actions (`init.rs`), the text of
//! the rows (`fill.rs`).

use std::fmt;
use std::ops::RangeInclusive;

use crate::database::Database;
use crate::facts::dialect::{Dialect, Empty, Load, PrimaryKey};
use crate::options::{InitOptions, PartitionMethod};
use crate::quoting::identifier;
use crate::steps::InitStep;
use crate::table::{ACCOUNTS, TELLERS, Table};

/// From this scale on, account numbers are `bigint`, because they don't fit into `int`.
const BIG_SCALE: u32 = 20_000;

/// pgbench's order of CREATE TABLE.
const CREATE_ORDER: [Table; 4] = [Table::History, Table::Tellers, Table::Accounts, Table::Branches];
/// pgbench's order of VACUUM.
const VACUUM_ORDER: [Table; 4] = [Table::Branches, Table::Tellers, Table::Accounts, Table::History];
/// Referencing tables first, for products that check foreign keys table by table.
const REFERRING_FIRST: [Table; 4] = [Table::History, Table::Accounts, Table::Tellers, Table::Branches];
/// pgbench's order of DROP and TRUNCATE, which decides the order of the notices.
const ALPHABETICAL: [Table; 4] = [Table::Accounts, Table::Branches, Table::History, Table::Tellers];
/// The tables that start with rows, in the order of filling.
const FILLED: [Table; 3] = [Table::Branches, Table::Tellers, Table::Accounts];

/// The foreign keys: table, column, referenced table.
const FOREIGN_KEYS: [(Table, &str, Table); 5] = [
    (Table::Tellers, "bid", Table::Branches),
    (Table::Accounts, "bid", Table::Branches),
    (Table::History, "bid", Table::Branches),
    (Table::History, "tid", Table::Tellers),
    (Table::History, "aid", Table::Accounts),
];

fn names(tables: [Table; 4]) -> String {
    tables.map(Table::name).join(", ")
}

/// One action on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableAction {
    /// A command.
    Run(String),
    /// Client-side rows are sent.
    Load {
        /// The table.
        table: Table,
        /// The method.
        how: LoadMethod,
        /// Number of rows.
        rows: u64,
    },
    /// Reports to the user that this many partitions of the accounts are created next.
    ReportPartitions(u32),
    /// Reports to the user why the step does nothing on this product.
    Report(String),
}

/// The method to send client-side rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMethod {
    /// One COPY in the open transaction.
    Copy(Freeze),
    /// A COPY of this many rows in a transaction of its own, repeatedly.
    CopyBatches(u64),
    /// An INSERT of this many rows, repeatedly.
    InsertBatches(u64),
}

/// Freezing of copied rows, which spares VACUUM the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    /// Rows aren't frozen.
    Never,
    /// Rows are frozen, unless the table turns out to be partitioned, because the server refuses it
    /// then.
    Possible,
    /// Rows are frozen; the server may refuse.
    Always,
}

impl fmt::Display for TableAction {
    /// One line, for golden tests and `--debug`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableAction::Run(sql) => write!(f, "{sql};"),
            TableAction::Load { table, how, rows } => {
                let command = match how {
                    LoadMethod::Copy(freeze) => copy_command(*table, "", *freeze != Freeze::Never),
                    LoadMethod::CopyBatches(_) => copy_in_batches(*table),
                    LoadMethod::InsertBatches(_) => insert_in_batches(*table),
                };
                write!(f, "-- load {rows} rows: {command}")?;
                match how {
                    LoadMethod::Copy(Freeze::Possible) => write!(f, ", unless it is partitioned"),
                    LoadMethod::Copy(_) => Ok(()),
                    LoadMethod::CopyBatches(batch) => write!(f, ", {batch} rows in each transaction"),
                    LoadMethod::InsertBatches(batch) => write!(f, " … ({batch} rows in each command)"),
                }
            }
            TableAction::ReportPartitions(count) => write!(f, "-- creating {count} partitions"),
            TableAction::Report(what) => write!(f, "-- {what}"),
        }
    }
}

/// The command that copies all columns, or these.
pub(crate) fn copy_command(table: Table, columns: &str, freeze: bool) -> String {
    let options = if freeze { " with (freeze on)" } else { "" };
    format!("copy {}{columns} from stdin{options}", table.name())
}

/// The command that copies a batch of rows.
pub(crate) fn copy_in_batches(table: Table) -> String {
    copy_command(table, &format!("({})", table.loaded_columns()), false)
}

/// The command that inserts a batch, up to where its rows start.
pub(crate) fn insert_in_batches(table: Table) -> String {
    format!("insert into {}({}) values ", table.name(), table.loaded_columns())
}

/// The actions of a step on this server.
pub fn actions(db: &Database, opts: &InitOptions, step: InitStep) -> Vec<TableAction> {
    match step {
        InitStep::DropTables => vec![drop_tables(db)],
        InitStep::CreateTables => create_tables(db, opts),
        InitStep::ClientGenerate => client_generate(db, opts),
        InitStep::ServerGenerate => server_generate(db, opts),
        InitStep::Vacuum => vacuum(db),
        InitStep::PrimaryKeys => primary_keys(db, opts),
        InitStep::ForeignKeys => foreign_keys(db),
    }
}

fn drop_tables(db: &Database) -> TableAction {
    // CockroachDB and H2 check foreign keys table by table, PostgreSQL all at once.
    let order = if db.product.dialect.load == Load::CopyAtOnce { ALPHABETICAL } else { REFERRING_FIRST };
    TableAction::Run(format!("drop table if exists {}", names(order)))
}

fn create_tables(db: &Database, opts: &InitOptions) -> Vec<TableAction> {
    let dialect = &db.product.dialect;
    // The spaces are pgbench's; they are visible where the server or pgbench quotes the statement.
    let aid = if opts.scale >= BIG_SCALE { "bigint" } else { "   int" };
    let partitions = if dialect.storage { opts.partitions } else { 0 };
    let unlogged = if opts.unlogged && dialect.unlogged { "unlogged " } else { "" };
    // A partitioned table has no rows of its own to log, and since version 18 the server refuses to
    // create an unlogged one.
    let unlogged_whole = if partitions == 0 || opts.variant.unlogged_everywhere { unlogged } else { "" };
    let fillfactor =
        if dialect.fillfactor { format!(" with (fillfactor={})", opts.fillfactor) } else { String::new() };
    let tablespace = match &opts.tablespace {
        Some(name) if dialect.storage => format!(" tablespace {}", identifier(name)),
        _ => String::new(),
    };
    let mut actions = ignored_options(db, opts);
    for table in CREATE_ORDER {
        let key = match table.key() {
            Some(key) if dialect.primary_key == PrimaryKey::InCreateTable => format!(",primary key ({key})"),
            _ => String::new(),
        };
        let storage = match (table, opts.partition_method) {
            (Table::Accounts, PartitionMethod::Range) if partitions > 0 => " partition by range (aid)",
            (Table::Accounts, PartitionMethod::Hash) if partitions > 0 => " partition by hash (aid)",
            (Table::History, _) => "",
            _ => fillfactor.as_str(),
        };
        actions.push(TableAction::Run(format!(
            "create {unlogged_whole}table {}({}{key}){storage}{tablespace}",
            table.name(),
            table.columns(aid)
        )));
    }
    if partitions > 0 {
        actions.push(TableAction::ReportPartitions(partitions));
        for number in 1..=partitions {
            actions.push(TableAction::Run(format!(
                "create {unlogged}table {name}_{number}\n  partition of {name}\n  for values {}{fillfactor}",
                partition_bounds(opts, number),
                name = Table::Accounts.name(),
            )));
        }
    }
    actions
}

/// Options that the product doesn't support.
fn ignored_options(db: &Database, opts: &InitOptions) -> Vec<TableAction> {
    let (name, dialect) = (db.product.name, &db.product.dialect);
    let storage = opts.partitions > 0 || opts.tablespace.is_some() || opts.index_tablespace.is_some();
    let reports = [
        (opts.unlogged && !dialect.unlogged, format!("{name} has no unlogged tables; these are logged")),
        (opts.fillfactor != 100 && !dialect.fillfactor, format!("{name} has no fill factor; it is ignored")),
        (
            storage && !dialect.storage,
            format!(
                "isobench makes no partitions and uses no tablespaces on {name}; these options are ignored"
            ),
        ),
    ];
    reports.into_iter().filter(|(ignored, _)| *ignored).map(|(_, text)| TableAction::Report(text)).collect()
}

fn partition_bounds(opts: &InitOptions, number: u32) -> String {
    let (number, count) = (u64::from(number), u64::from(opts.partitions));
    if opts.partition_method == PartitionMethod::Hash {
        return format!("with (modulus {count}, remainder {})", number - 1);
    }
    let size = Table::Accounts.rows(opts.scale).div_ceil(count);
    let from = if number == 1 { "minvalue".to_owned() } else { ((number - 1) * size + 1).to_string() };
    let to = if number == count { "maxvalue".to_owned() } else { (number * size + 1).to_string() };
    format!("from ({from}) to ({to})")
}

fn empty_tables(db: &Database) -> Vec<TableAction> {
    match db.product.dialect.empty {
        Empty::Truncate => vec![TableAction::Run(format!("truncate table {}", names(ALPHABETICAL)))],
        Empty::Delete => REFERRING_FIRST
            .iter()
            .map(|table| TableAction::Run(format!("delete from {}", table.name())))
            .collect(),
    }
}

/// Puts actions between `begin` and `commit`.
fn in_transaction(actions: Vec<TableAction>) -> Vec<TableAction> {
    let (begin, commit) = (TableAction::Run("begin".to_owned()), TableAction::Run("commit".to_owned()));
    std::iter::once(begin).chain(actions).chain(std::iter::once(commit)).collect()
}

fn client_generate(db: &Database, opts: &InitOptions) -> Vec<TableAction> {
    let load = db.product.dialect.load;
    let mut actions = empty_tables(db);
    for table in FILLED {
        let rows = table.rows(opts.scale);
        let how = match load {
            Load::CopyAtOnce if opts.variant.insert_small_tables && table != Table::Accounts => {
                actions.extend((1..=rows).map(|number| single_insert(table, number)));
                continue;
            }
            Load::CopyAtOnce => LoadMethod::Copy(freeze(db, opts, table)),
            Load::CopyBatches(rows) => LoadMethod::CopyBatches(rows),
            Load::Insert(rows) => LoadMethod::InsertBatches(rows),
        };
        actions.push(TableAction::Load { table, how, rows });
    }
    if load == Load::CopyAtOnce { in_transaction(actions) } else { actions }
}

fn freeze(db: &Database, opts: &InitOptions, table: Table) -> Freeze {
    // Before version 14, FREEZE left the visibility map empty.
    if !db.at_least(14, 0) {
        return Freeze::Never;
    }
    match (opts.variant.freeze_unchecked, table) {
        (false, _) => Freeze::Possible,
        (true, Table::Accounts) if opts.partitions > 0 => Freeze::Never,
        (true, _) => Freeze::Always,
    }
}

/// Inserts a row of a small table, in the words of pgbench's older versions.
fn single_insert(table: Table, number: u64) -> TableAction {
    let values = match table {
        Table::Tellers => format!(" ({number},{},0)", (number - 1) / TELLERS + 1),
        _ => format!("({number},0)"),
    };
    TableAction::Run(format!("insert into {}({}) values{values}", table.name(), table.loaded_columns()))
}

fn server_generate(db: &Database, opts: &InitOptions) -> Vec<TableAction> {
    let dialect = &db.product.dialect;
    let mut actions = empty_tables(db);
    for table in FILLED {
        let rows = table.rows(opts.scale);
        for range in batches(rows, dialect.series_batch.unwrap_or(rows)) {
            actions.push(TableAction::Run(series_insert(table, &range, dialect)));
        }
    }
    if dialect.series_batch.is_none() { in_transaction(actions) } else { actions }
}

/// The numbers 1 to `rows` in pieces of at most `size`.
pub(crate) fn batches(rows: u64, size: u64) -> impl Iterator<Item = RangeInclusive<u64>> {
    let size = size.max(1);
    (0..rows.div_ceil(size)).map(move |batch| {
        let first = batch * size + 1;
        first..=(first + size - 1).min(rows)
    })
}

fn series_insert(table: Table, range: &RangeInclusive<u64>, dialect: &Dialect) -> String {
    let division = dialect.integer_division;
    let values = match table {
        Table::Branches => "bid, 0".to_owned(),
        Table::Tellers => format!("tid, (tid - 1) {division} {TELLERS} + 1, 0"),
        Table::Accounts => format!("aid, (aid - 1) {division} {ACCOUNTS} + 1, 0, ''"),
        Table::History => String::new(),
    };
    let key = table.key().unwrap_or("tid");
    // PostgreSQL gives the column the table's alias; other products need both.
    let alias = if dialect.series_batch.is_none() { key.to_owned() } else { format!("numbers({key})") };
    format!(
        "insert into {}({}) select {values} from generate_series({}, {}) as {alias}",
        table.name(),
        table.loaded_columns(),
        range.start(),
        range.end(),
    )
}

fn vacuum(db: &Database) -> Vec<TableAction> {
    match db.product.dialect.vacuum {
        Some(command) => each_table(command),
        None => vec![TableAction::Report(format!("no vacuum on {}; step v is left out", db.product.name))],
    }
}

/// A maintenance command for each table, in pgbench's order.
fn each_table(command: &str) -> Vec<TableAction> {
    VACUUM_ORDER.iter().map(|table| TableAction::Run(format!("{command} {}", table.name()))).collect()
}

/// The actions of a reset to update statistics if there is no vacuum.
pub(crate) fn analyze(db: &Database) -> Vec<TableAction> {
    match db.product.dialect {
        Dialect { vacuum: None, analyze: Some(command), .. } => each_table(command),
        _ => Vec::new(),
    }
}

/// The actions that put loaded tables of this scale back into their starting state: the history is
/// emptied, changed balances become 0 again, one branch's accounts per transaction, and foreign
/// keys exist if they are wanted.
pub fn put_back(db: &Database, scale: u32, keys: ForeignKeys) -> Vec<TableAction> {
    let history = Table::History.name();
    let mut actions = match keys {
        ForeignKeys::Drop => drop_foreign_keys(db),
        ForeignKeys::Keep | ForeignKeys::Add => Vec::new(),
    };
    actions.push(TableAction::Run(match db.product.dialect.empty {
        Empty::Truncate => format!("truncate table {history}"),
        Empty::Delete => format!("delete from {history}"),
    }));
    for (table, balance) in [(Table::Branches, "bbalance"), (Table::Tellers, "tbalance")] {
        let name = table.name();
        actions.push(TableAction::Run(format!("update {name} set {balance} = 0 where {balance} <> 0")));
    }
    actions.extend(batches(Table::Accounts.rows(scale), ACCOUNTS).map(|range| {
        TableAction::Run(format!(
            "update {} set abalance = 0 where abalance <> 0 and aid between {} and {}",
            Table::Accounts.name(),
            range.start(),
            range.end()
        ))
    }));
    if keys == ForeignKeys::Add {
        actions.extend(foreign_keys(db));
    }
    actions
}

/// The foreign keys of tables whose rows are put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignKeys {
    /// Stay as they are.
    Keep,
    /// Are added: the tables have none.
    Add,
    /// Are dropped, with everything created for them.
    Drop,
}

fn drop_foreign_keys(db: &Database) -> Vec<TableAction> {
    let mut actions = Vec::new();
    for (table, column, _) in FOREIGN_KEYS {
        let name = table.name();
        actions.push(TableAction::Run(format!(
            "alter table {name} drop constraint if exists {name}_{column}_fkey"
        )));
        if db.product.dialect.foreign_key_index {
            actions.push(TableAction::Run(format!("drop index if exists {name}_{column}_idx")));
        }
    }
    actions
}

fn primary_keys(db: &Database, opts: &InitOptions) -> Vec<TableAction> {
    if db.product.dialect.primary_key == PrimaryKey::InCreateTable {
        let text = format!("on {} the primary keys are part of step t; step p is left out", db.product.name);
        return vec![TableAction::Report(text)];
    }
    let tablespace = match &opts.index_tablespace {
        Some(name) if db.product.dialect.storage => format!(" using index tablespace {}", identifier(name)),
        _ => String::new(),
    };
    [Table::Branches, Table::Tellers, Table::Accounts]
        .into_iter()
        .filter_map(|table| Some((table, table.key()?)))
        .map(|(table, key)| {
            TableAction::Run(format!("alter table {} add primary key ({key}){tablespace}", table.name()))
        })
        .collect()
}

fn foreign_keys(db: &Database) -> Vec<TableAction> {
    let mut actions = Vec::new();
    for (table, column, to) in FOREIGN_KEYS {
        let name = table.name();
        if db.product.dialect.foreign_key_index {
            let index = format!("create index if not exists {name}_{column}_idx on {name}({column})");
            actions.push(TableAction::Run(index));
        }
        actions.push(TableAction::Run(format!(
            "alter table {name} add constraint {name}_{column}_fkey foreign key ({column}) references {}",
            to.name()
        )));
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cover_every_number_once() {
        let all = |rows, size| batches(rows, size).flatten().collect::<Vec<_>>();
        for (rows, size) in [(10, 3), (9, 3), (1, 100), (0, 5), (5, 0)] {
            assert_eq!(all(rows, size), (1..=rows).collect::<Vec<_>>(), "{rows} by {size}");
        }
    }

    #[test]
    fn big_scales_use_big_numbers() {
        let db = Database::from_version_text("PostgreSQL 15.18 on x");
        let text = |scale| {
            let opts = InitOptions { scale, ..InitOptions::default() };
            actions(&db, &opts, InitStep::CreateTables).iter().map(ToString::to_string).collect::<String>()
        };
        assert!(!text(19_999).contains("bigint"));
        assert!(text(20_000).contains("aid bigint not null"));
        assert_eq!(Table::Accounts.rows(u32::MAX), 429_496_729_500_000);
    }
}
