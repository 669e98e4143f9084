//! What PostgreSQL's manual promises of commits that a client was told of.
//!
//! Not here: whether it keeps its promise, which the data tell (`isobench-comparison`).

/// The values of `synchronous_commit` (PostgreSQL manual, "Write Ahead Log", table
/// "`synchronous_commit` Modes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SynchronousCommit {
    /// A commit is told of before it is written.
    Off,
    /// After it is flushed by the server itself.
    Local,
    /// And handed to the operating system by the synchronous standbys.
    RemoteWrite,
    /// And flushed by the synchronous standbys.
    On,
    /// And applied by the synchronous standbys.
    RemoteApply,
}

/// What commits have to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// The server's processes end at once, and it starts again on the same data. The operating system
    /// and its cache survive.
    Crash,
    /// The server is stopped in order, and starts again on the same data.
    Shutdown,
    /// The server is lost with its data, and the standby that has the most takes its place.
    Failover,
    /// The server pauses, and goes on.
    Pause,
}

impl SynchronousCommit {
    /// The value by the name that the server shows; `None` for another one.
    pub fn of(shown: &str) -> Option<SynchronousCommit> {
        Some(match shown {
            "off" => SynchronousCommit::Off,
            "local" => SynchronousCommit::Local,
            "remote_write" => SynchronousCommit::RemoteWrite,
            "on" => SynchronousCommit::On,
            "remote_apply" => SynchronousCommit::RemoteApply,
            _ => return None,
        })
    }

    /// True if a commit that a client was told of survives the outage. `standbys`: some are
    /// synchronous (`synchronous_standby_names` isn't empty).
    ///
    /// PostgreSQL manual: "Asynchronous Commit" (a crash may lose the last commits; an immediate
    /// shutdown is a crash; an orderly one loses nothing), the table named above for synchronous
    /// standbys, and "Failover" (an asynchronous standby may lack what the primary has told of).
    pub fn survives(self, outage: Outage, standbys: bool) -> bool {
        match outage {
            Outage::Pause | Outage::Shutdown => true,
            Outage::Crash => self != SynchronousCommit::Off,
            Outage::Failover => {
                standbys && !matches!(self, SynchronousCommit::Off | SynchronousCommit::Local)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_survive_what_the_manual_says() {
        let values = ["off", "local", "remote_write", "on", "remote_apply"];
        let surviving = |outage, standbys| {
            let survives = |name: &&str| SynchronousCommit::of(name).unwrap().survives(outage, standbys);
            values.into_iter().filter(survives).collect::<Vec<_>>()
        };
        assert_eq!(surviving(Outage::Crash, false), ["local", "remote_write", "on", "remote_apply"]);
        assert_eq!(surviving(Outage::Crash, true), surviving(Outage::Crash, false));
        assert_eq!(surviving(Outage::Failover, false), Vec::<&str>::new());
        assert_eq!(surviving(Outage::Failover, true), ["remote_write", "on", "remote_apply"]);
        assert_eq!(surviving(Outage::Shutdown, false), values);
        assert_eq!(surviving(Outage::Pause, true), values);
        assert_eq!(SynchronousCommit::of("true"), None);
    }
}
