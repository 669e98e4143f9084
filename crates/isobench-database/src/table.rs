//! The four TPC-B-like tables: names, columns, numbers of rows.
//!
//! They are those of pgbench's manual page and of the real `pgbench -i`. Not here: operations on
//! them (`tables.rs`).

/// Tellers per branch.
pub const TELLERS: u64 = 10;
/// Accounts per branch.
pub const ACCOUNTS: u64 = 100_000;

/// One of the four tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// `pgbench_history`: one row for each transaction that writes it; starts empty.
    History,
    /// `pgbench_tellers`: ten for each branch.
    Tellers,
    /// `pgbench_accounts`: 100,000 for each branch.
    Accounts,
    /// `pgbench_branches`: as many as the scale.
    Branches,
}

impl Table {
    /// The table's name.
    pub const fn name(self) -> &'static str {
        match self {
            Table::History => "pgbench_history",
            Table::Tellers => "pgbench_tellers",
            Table::Accounts => "pgbench_accounts",
            Table::Branches => "pgbench_branches",
        }
    }

    /// The primary key's column; the history has none.
    pub(crate) const fn key(self) -> Option<&'static str> {
        match self {
            Table::History => None,
            Table::Tellers => Some("tid"),
            Table::Accounts => Some("aid"),
            Table::Branches => Some("bid"),
        }
    }

    /// Rows at the start.
    pub fn rows(self, scale: u32) -> u64 {
        u64::from(scale)
            * match self {
                Table::History => 0,
                Table::Tellers => TELLERS,
                Table::Accounts => ACCOUNTS,
                Table::Branches => 1,
            }
    }

    /// The columns filled by a load that names its columns.
    pub(crate) const fn loaded_columns(self) -> &'static str {
        match self {
            Table::History => "tid,bid,aid,delta,mtime",
            Table::Tellers => "tid,bid,tbalance",
            Table::Accounts => "aid,bid,abalance,filler",
            Table::Branches => "bid,bbalance",
        }
    }

    /// The columns with their types; `aid` is that of account numbers.
    pub(crate) fn columns(self, aid: &str) -> String {
        match self {
            Table::History => {
                format!("tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)")
            }
            Table::Tellers => "tid int not null,bid int,tbalance int,filler char(84)".to_owned(),
            Table::Accounts => format!("aid {aid} not null,bid int,abalance int,filler char(84)"),
            Table::Branches => "bid int not null,bbalance int,filler char(88)".to_owned(),
        }
    }
}
