//! The versions of pgbench that can be imitated (`--compat`), and every difference between them,
//! with its reason.
//!
//! No other file compares versions; it asks a question answered here.

use isobench_database::InitVariant;
use isobench_script::Dialect;

/// A major version of pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    /// PostgreSQL 15.
    V15,
    /// PostgreSQL 16.
    V16,
    /// PostgreSQL 17.
    V17,
    /// PostgreSQL 18, the default.
    #[default]
    V18,
    /// PostgreSQL 19.
    V19,
}

impl Version {
    /// All versions, the oldest first.
    pub const ALL: [Version; 5] = [Version::V15, Version::V16, Version::V17, Version::V18, Version::V19];

    /// The value of `--compat`.
    pub const fn number(self) -> u32 {
        match self {
            Version::V15 => 15,
            Version::V16 => 16,
            Version::V17 => 17,
            Version::V18 => 18,
            Version::V19 => 19,
        }
    }

    /// The version with this number.
    pub fn from_number(text: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.number().to_string() == text)
    }

    /// The release that is imitated: the one that the differential suite compares with.
    pub const fn release(self) -> &'static str {
        match self {
            Version::V15 => "15.18",
            Version::V16 => "16.14",
            Version::V17 => "17.12",
            Version::V18 => "18.4",
            Version::V19 => "19.0",
        }
    }

    /// The line of `--version`.
    pub fn line(self) -> String {
        format!("pgbench (PostgreSQL) {} (isobench {})\n", self.release(), env!("CARGO_PKG_VERSION"))
    }

    /// `--exit-on-abort` exists since 17.
    pub fn exit_on_abort(self) -> bool {
        self >= Version::V17
    }

    /// Names of settings are in quotation marks in messages since 17 (a convention of all of
    /// PostgreSQL).
    pub fn quotes_settings(self) -> bool {
        self >= Version::V17
    }

    /// `--continue-on-error` exists since 19, and with it failures other than conflicts.
    pub fn continue_on_error(self) -> bool {
        self >= Version::V19
    }

    /// The name of `-c` in messages. The minor releases of 2026 after 15.18, 16.14 and 18.4 correct
    /// the long name; of those imitated, 17.12 and 19 have that.
    pub fn clients_option(self) -> &'static str {
        if matches!(self, Version::V17 | Version::V19) { "-c/--client" } else { "-c/--clients" }
    }

    /// With more clients than files may be open, the limit is raised as far as possible. Since 18;
    /// earlier versions refuse such a run.
    pub fn raises_open_files(self) -> bool {
        self >= Version::V18
    }

    /// The summary counts all ended transactions of a script, and continues if none of them
    /// committed. Since 18; earlier versions count committed ones, and report neither rate nor
    /// latency of a run in which all failed.
    pub fn reports_scripts_by_ends(self) -> bool {
        self >= Version::V18
    }

    /// The columns of the report on commands are one space apart since 18; before, two.
    pub fn narrow_command_report(self) -> bool {
        self >= Version::V18
    }

    /// Branches and tellers are copied, and lines about rows name their table. Since 17; before,
    /// they were inserted one by one without reports.
    pub fn names_filled_table(self) -> bool {
        self >= Version::V17
    }

    /// On a terminal the line about rows is erased at the end. Since 17; before, it stayed.
    pub fn erases_row_line(self) -> bool {
        self >= Version::V17
    }

    /// Differences in creating tables: before 17, small tables were inserted and `FREEZE` followed
    /// the options; before 18, a partitioned table was created as unlogged, too, which servers of
    /// version 18 refuse.
    pub fn init_variant(self) -> InitVariant {
        InitVariant {
            insert_small_tables: self < Version::V17,
            freeze_unchecked: self < Version::V17,
            unlogged_everywhere: self < Version::V18,
        }
    }

    /// The script language: `\syncpipeline` exists since 17; before, it was an invalid command.
    pub fn dialect(self) -> Dialect {
        Dialect { syncpipeline: self >= Version::V17, annotations: false, dumps: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_releases_agree() {
        for version in Version::ALL {
            let number = version.number().to_string();
            assert_eq!(Version::from_number(&number), Some(version));
            assert_eq!(version.release().split('.').next(), Some(number.as_str()));
        }
        assert_eq!(Version::from_number("018"), None);
        assert!(Version::default().line().starts_with("pgbench (PostgreSQL) 18.4 (isobench "));
    }
}
