//! The modes of a transaction: its level, and what it promised to the server.
//!
//! SQL: "SET TRANSACTION", the transaction modes.

use std::fmt;

use crate::level::Level;

/// The modes that a transaction ran with, as far as they concern its isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mode {
    /// The level.
    pub level: Level,
    /// True if it was `READ ONLY`.
    pub read_only: bool,
    /// True if it was `DEFERRABLE`. In PostgreSQL this matters to transactions that are serializable
    /// and read only.
    pub deferrable: bool,
}

/// The number of codes that [`Mode::code`] returns.
const CODES: u64 = 16;

impl Mode {
    /// A transaction at this level that may write.
    pub const fn of(level: Level) -> Mode {
        Mode { level, read_only: false, deferrable: false }
    }

    /// The modes as `BEGIN` and `SET TRANSACTION` take them: `ISOLATION LEVEL SERIALIZABLE, READ ONLY`.
    pub fn sql(self) -> String {
        let read_only = if self.read_only { ", READ ONLY" } else { "" };
        let deferrable = if self.deferrable { ", DEFERRABLE" } else { "" };
        format!("ISOLATION LEVEL {}{read_only}{deferrable}", self.level.sql())
    }

    /// The number in files: the level's place in [`Level::ALL`], 4 if it is read only, and 8 if it is
    /// deferrable.
    pub(crate) fn code(self) -> u64 {
        self.level as u64 | u64::from(self.read_only) << 2 | u64::from(self.deferrable) << 3
    }

    /// The mode with this number.
    pub(crate) fn of_code(code: u64) -> Option<Mode> {
        let level = usize::try_from(code & 3).ok().and_then(|place| Level::ALL.get(place))?;
        let mode = Mode { level: *level, read_only: code & 4 != 0, deferrable: code & 8 != 0 };
        (code < CODES).then_some(mode)
    }
}

impl fmt::Display for Mode {
    /// Writes "serializable, read only, deferrable".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.name())?;
        f.write_str(if self.read_only { ", read only" } else { "" })?;
        f.write_str(if self.deferrable { ", deferrable" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_code_of_its_own() {
        for code in 0..CODES {
            assert_eq!(Mode::of_code(code).map(Mode::code), Some(code));
        }
        assert_eq!(Mode::of_code(CODES), None);
        let deferrable = Mode { read_only: true, deferrable: true, ..Mode::of(Level::Serializable) };
        assert_eq!(deferrable.to_string(), "serializable, read only, deferrable");
    }
}
