//! The extent of the language.

/// The extent of the language, which differs between versions of pgbench and is larger in isobench.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Dialect {
    /// `\syncpipeline` is a meta-command, as it is since pgbench 17.
    pub syncpipeline: bool,
    /// Lines `--@` before an SQL command describe what it reads and writes. To pgbench they are
    /// comments.
    pub annotations: bool,
    /// `\restrict` and `\unrestrict`, by which newer versions of `pg_dump` enclose a dump for psql,
    /// are passed over.
    pub dumps: bool,
}

impl Default for Dialect {
    /// Everything that isobench supports.
    fn default() -> Self {
        Self { syncpipeline: true, annotations: true, dumps: false }
    }
}

impl Dialect {
    pub(super) fn knows(self, meta_command: &str) -> bool {
        self.syncpipeline || meta_command != "syncpipeline"
    }

    pub(super) fn passes_over(self, meta_command: &str) -> bool {
        self.dumps && matches!(meta_command, "restrict" | "unrestrict")
    }
}
