//! The verdicts on a schedule.

use serde::Serialize;

/// The verdict on a schedule, judged by the serial orders of the same commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No serial order leaves the tables so, not even one without the commands that failed.
    WrongState,
    /// A command failed, but some of what it wrote stays.
    Partial,
    /// The tables are as a serial order leaves them, but no serial order answers so.
    WrongAnswer,
    /// As if the command had not been, but its user sees an error: a status from 500 on, or an exit status.
    Error,
    /// The same, but the application says so: a status from 400 to 499, or another page.
    Declined,
    /// As after a serial order.
    Serial,
    /// A command waited for another one within the application, so their statements didn't mix.
    NotInterleaved,
    /// It took too long.
    Infeasible,
}

impl Verdict {
    /// All verdicts, the gravest first.
    pub const ALL: [Verdict; 8] = [
        Verdict::WrongState,
        Verdict::Partial,
        Verdict::WrongAnswer,
        Verdict::Error,
        Verdict::Declined,
        Verdict::Serial,
        Verdict::NotInterleaved,
        Verdict::Infeasible,
    ];

    /// True if the commands race.
    pub fn is_race(self) -> bool {
        self <= Verdict::WrongAnswer
    }

    /// True if the schedule says whether the commands race.
    pub fn is_conclusive(self) -> bool {
        self <= Verdict::Serial
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::WrongState => "wrong state",
            Verdict::Partial => "partial",
            Verdict::WrongAnswer => "wrong answer",
            Verdict::Error => "error",
            Verdict::Declined => "declined",
            Verdict::Serial => "serial",
            Verdict::NotInterleaved => "not interleaved",
            Verdict::Infeasible => "too slow",
        }
    }
}
