//! What a plan lets happen to the server while its clients work, and how its standbys follow it.
//!
//! Not here: doing it (`isobench-comparison`), and what a setting promises then
//! (`isobench-database`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::values::is_text;
use crate::{WrongValue, seconds};

/// What happens to the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultKind {
    /// All its processes are killed, and it is started again.
    Crash,
    /// It is stopped in order, and started again.
    StopFast,
    /// It is stopped without writing what is in memory, and started again.
    StopImmediate,
    /// It is killed, and the standby that has the most becomes the primary.
    Promote,
    /// All its processes stand still for these seconds.
    Freeze(f64),
    /// Nothing passes between it and the clients for these seconds; nothing is lost on the way.
    Partition(f64),
    /// Nothing passes between it and its standbys for these seconds.
    PartitionStandby(f64),
    /// The connections of all clients are cut.
    Disconnect,
    /// The process that serves one of the clients is killed, upon which the server ends all sessions
    /// and recovers by itself.
    Backend,
    /// A program of the user's is run.
    Command,
}

/// Something that happens to the server at a certain time.
///
/// Written as `KIND@SECONDS`, such as `crash@1.5` or `freeze:2@1`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// When: seconds from the start of the measured part.
    pub at: f64,
}

/// A fault as a factor: what happens in some cells, and what instead in others, `None` for nothing.
///
/// Written as `KIND@SECONDS,KIND@SECONDS`, with `none` for nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FaultFactor(pub Vec<Option<Fault>>);

/// How a standby follows its primary (PostgreSQL manual, "Synchronous Replication").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StandbyMode {
    /// No commit waits for it.
    Async,
    /// A commit waits as long as `synchronous_commit` says; by default until the standby has flushed
    /// it.
    Sync,
    /// A commit waits until the standby's operating system has it (`remote_write`).
    RemoteWrite,
    /// A commit waits until queries on the standby see it (`remote_apply`).
    RemoteApply,
}

/// The forms of a fault, for messages.
const FORMS: &str = "crash@S, stop:fast@S, stop:immediate@S, promote@S, backend@S, freeze:SECONDS@S, \
    partition:SECONDS@S, partition-standby:SECONDS@S, disconnect@S, command@S (S: seconds from the start of the \
    measured part)";

/// The word for no fault.
const NONE: &str = "none";

impl FaultKind {
    /// Its name, without how long it lasts.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Crash => "crash",
            FaultKind::StopFast => "stop:fast",
            FaultKind::StopImmediate => "stop:immediate",
            FaultKind::Promote => "promote",
            FaultKind::Freeze(_) => "freeze",
            FaultKind::Partition(_) => "partition",
            FaultKind::PartitionStandby(_) => "partition-standby",
            FaultKind::Disconnect => "disconnect",
            FaultKind::Backend => "backend",
            FaultKind::Command => "command",
        }
    }

    /// How long it lasts, in seconds, if it passes by itself.
    pub fn lasts(self) -> Option<f64> {
        match self {
            FaultKind::Freeze(seconds)
            | FaultKind::Partition(seconds)
            | FaultKind::PartitionStandby(seconds) => Some(seconds),
            _ => None,
        }
    }

    /// True if it needs a standby.
    pub fn needs_standby(self) -> bool {
        matches!(self, FaultKind::Promote | FaultKind::PartitionStandby(_))
    }

    /// True if it acts on the way between clients and server.
    pub fn is_on_the_way(self) -> bool {
        matches!(self, FaultKind::Partition(_) | FaultKind::Disconnect)
    }
}

impl FromStr for Fault {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Fault, WrongValue> {
        let wrong = || WrongValue(format!("\"{text}\" isn't a fault; there are {FORMS}, and {NONE}"));
        let (kind, at) = text.trim().split_once('@').ok_or_else(wrong)?;
        let at = seconds(at.trim()).map_err(|error| WrongValue(format!("\"{text}\": {error}")))?;
        let long = |text: &str| seconds(text).ok().filter(|seconds| *seconds > 0.0).ok_or_else(wrong);
        let kind = match kind.trim() {
            "crash" => FaultKind::Crash,
            "stop" | "stop:fast" => FaultKind::StopFast,
            "stop:immediate" => FaultKind::StopImmediate,
            "promote" => FaultKind::Promote,
            "backend" => FaultKind::Backend,
            "disconnect" => FaultKind::Disconnect,
            "command" => FaultKind::Command,
            kind => match kind.split_once(':') {
                Some(("freeze", time)) => FaultKind::Freeze(long(time)?),
                Some(("partition", time)) => FaultKind::Partition(long(time)?),
                Some(("partition-standby", time)) => FaultKind::PartitionStandby(long(time)?),
                _ => return Err(wrong()),
            },
        };
        if !(at >= 0.0 && at.is_finite()) {
            return Err(wrong());
        }
        Ok(Fault { kind, at })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.lasts() {
            None => write!(f, "{}@{}", self.kind.name(), self.at),
            Some(seconds) => write!(f, "{}:{seconds}@{}", self.kind.name(), self.at),
        }
    }
}

impl FromStr for FaultFactor {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<FaultFactor, WrongValue> {
        let one = |text: &str| match text.trim() {
            NONE => Ok(None),
            text => text.parse().map(Some),
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(FaultFactor)
    }
}

impl fmt::Display for FaultFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |fault: &Option<Fault>| fault.map_or_else(|| NONE.to_owned(), |fault| fault.to_string());
        f.write_str(&self.0.iter().map(text).collect::<Vec<_>>().join(","))
    }
}

impl StandbyMode {
    /// All of them.
    pub const ALL: [StandbyMode; 4] =
        [StandbyMode::Async, StandbyMode::Sync, StandbyMode::RemoteWrite, StandbyMode::RemoteApply];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            StandbyMode::Async => "async",
            StandbyMode::Sync => "sync",
            StandbyMode::RemoteWrite => "remote_write",
            StandbyMode::RemoteApply => "remote_apply",
        }
    }
}

impl FromStr for StandbyMode {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<StandbyMode, WrongValue> {
        StandbyMode::ALL.into_iter().find(|mode| mode.name() == text.trim()).ok_or_else(|| {
            let names = StandbyMode::ALL.map(StandbyMode::name).join(", ");
            WrongValue(format!("\"{text}\" isn't a way for a standby to follow; there are {names}"))
        })
    }
}

impl fmt::Display for StandbyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

is_text!(FaultFactor, StandbyMode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_and_written_as_one_text() {
        for text in [
            "crash@1.5",
            "stop:fast@0",
            "none,crash@1,promote@1",
            "freeze:2@1",
            "backend@1",
            "partition:1@0.5,disconnect@2",
            "partition-standby:0.5@1,command@2",
        ] {
            assert_eq!(text.parse::<FaultFactor>().unwrap().to_string(), text);
        }
        assert_eq!(" stop@500ms , none".parse::<FaultFactor>().unwrap().to_string(), "stop:fast@0.5,none");
        assert_eq!("remote_apply".parse::<StandbyMode>().unwrap().to_string(), "remote_apply");
    }

    #[test]
    fn other_forms_are_refused_with_those_that_there_are() {
        for text in [
            "",
            "crash",
            "crash@",
            "boom@1",
            "freeze@1",
            "partition@1",
            "disconnect:1@1",
            "freeze:0@1",
            "freeze:x@1",
            "crash@-1",
            "crash@1,",
        ] {
            let message = text.parse::<FaultFactor>().unwrap_err().to_string();
            assert!(message.contains("isn't a") || message.contains("crash@"), "{message}");
        }
        assert!("remote".parse::<StandbyMode>().unwrap_err().to_string().contains("remote_apply"));
    }
}
