//! The faults, as data.

use super::stage::Command;

/// A fault.
pub struct Fault {
    pub title: &'static str,
    /// Its description.
    pub text: &'static str,
    pub what: What,
    /// Time that each command takes to end; other commands aren't tried.
    ends: &'static [(Command, &'static str)],
}

impl Fault {
    /// Returns the time that the command takes to end after the fault, in words.
    pub fn ends(&self, command: Command) -> Option<&'static str> {
        self.ends.iter().find(|(of, _)| *of == command).map(|(_, ends)| *ends)
    }
}

/// The way a fault is caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// SIGSTOP to all processes of the server while clients work.
    Stop,
    /// The same, followed by this many Ctrl-C.
    StopAndInterrupt(u32),
    /// SIGKILL to all processes of the server while clients work.
    Kill,
    /// A proxy in front of the server stops forwarding and accepting connections.
    Cut,
    /// A script whose statement sends endless notices.
    Notices,
    /// The result goes to a full device.
    FullDisk,
    /// The result is limited to this many blocks of the shell.
    FileLimit,
    /// Ctrl-C while clients work.
    Interrupt,
    /// SIGHUP while clients work.
    HangUp,
    /// The same, with SIGHUP ignored from the start.
    NoHangUp,
    /// Fewer file descriptors than clients.
    NoDescriptors,
    /// No memory for the stacks of threads.
    NoThreads,
}

impl What {
    /// Returns whether the server doesn't survive it in order.
    pub const fn hurts_the_server(self) -> bool {
        matches!(self, What::Stop | What::StopAndInterrupt(_) | What::Kill)
    }

    /// Returns whether the command can only wait until its limits are reached.
    pub const fn is_waited_out(self) -> bool {
        matches!(self, What::Stop | What::StopAndInterrupt(1) | What::Cut | What::Notices)
    }

    /// The factor for isobench's limits: where nothing answers any more, it needn't wait long to see
    /// that.
    pub const fn patience(self) -> &'static str {
        match self {
            What::Stop | What::StopAndInterrupt(_) | What::Kill | What::Cut => "0.1",
            // It keeps the processors busy until then.
            What::Notices => "0.3",
            _ => "1",
        }
    }
}

use Command::{Audit, Compare, Init, Pgbench, Probe, Run, RunConnect};

const CHECKED: &str = "T + 60 s";

pub const FAULTS: &[Fault] = &[
    Fault {
        title: "The server stops answering",
        text: "SIGSTOP to all its processes. isobench cancels clients' statements ten seconds after T, and leaves them \
               two seconds later. Checking and tidying up have ten seconds for each step.",
        what: What::Stop,
        ends: &[(Run, CHECKED), (RunConnect, CHECKED), (Compare, CHECKED), (Audit, CHECKED)],
    },
    Fault {
        title: "The server stops answering, and Ctrl-C once",
        text: "As before, and then one SIGINT.",
        what: What::StopAndInterrupt(1),
        ends: &[
            (Run, "40 s"),
            (RunConnect, "40 s"),
            (Compare, "60 s"),
            (Audit, "60 s"),
            (Probe, "60 s"),
            (Init, "at once"),
            (Pgbench, "5 s"),
        ],
    },
    Fault {
        title: "The server stops answering, and Ctrl-C twice",
        text: "As before, and a second SIGINT.",
        what: What::StopAndInterrupt(2),
        ends: &[
            (Run, "15 s"),
            (RunConnect, "15 s"),
            (Compare, "15 s"),
            (Audit, "15 s"),
            (Probe, "15 s"),
            (Pgbench, "at once"),
        ],
    },
    Fault {
        title: "The server is killed",
        text: "SIGKILL to all its processes. It gets ten seconds to restart, so that isobench can check the tables.",
        what: What::Kill,
        ends: &[
            (Run, "15 s"),
            (RunConnect, "15 s"),
            (Compare, "15 s"),
            (Audit, "15 s"),
            (Probe, "at once"),
            (Init, "at once"),
            (Pgbench, "at once"),
        ],
    },
    Fault {
        title: "The network is cut",
        text: "A proxy in between forwards and answers nothing any more.",
        what: What::Cut,
        ends: &[(Run, CHECKED), (RunConnect, CHECKED), (Compare, CHECKED), (Audit, CHECKED)],
    },
    Fault {
        title: "A statement sends notices without end",
        text: "A statement raises notices in a loop. isobench cancels it ten seconds after T.",
        what: What::Notices,
        ends: &[(Run, "T + 15 s"), (RunConnect, "T + 15 s"), (Compare, "T + 30 s")],
    },
    Fault {
        title: "The disk is full",
        text: "`--json` names a full device. isobench prints what was measured.",
        what: What::FullDisk,
        ends: &[
            (Run, "as planned"),
            (RunConnect, "as planned"),
            (Compare, "as planned"),
            (Audit, "as planned"),
            (Probe, "as planned"),
        ],
    },
    Fault {
        title: "Files may not grow",
        text: "`ulimit -f 1`. isobench prints what was measured.",
        what: What::FileLimit,
        ends: &[(Run, "as planned"), (RunConnect, "as planned"), (Compare, "as planned")],
    },
    Fault {
        title: "Ctrl-C",
        text: "One SIGINT. Clients have three seconds to finish; isobench reports what was measured.",
        what: What::Interrupt,
        ends: &[
            (Run, "15 s"),
            (RunConnect, "15 s"),
            (Compare, "15 s"),
            (Audit, "15 s"),
            (Probe, "15 s"),
            (Init, "at once"),
            (Pgbench, "5 s"),
        ],
    },
    Fault {
        title: "The terminal is closed",
        text: "SIGHUP, as Ctrl-C.",
        what: What::HangUp,
        ends: &[
            (Run, "15 s"),
            (RunConnect, "15 s"),
            (Compare, "15 s"),
            (Audit, "15 s"),
            (Probe, "15 s"),
            (Init, "at once"),
        ],
    },
    Fault {
        title: "The terminal is closed, under nohup",
        text: "SIGHUP to a command that was started with SIGHUP ignored.",
        what: What::NoHangUp,
        ends: &[
            (Run, "as planned"),
            (RunConnect, "as planned"),
            (Compare, "as planned"),
            (Audit, "as planned"),
            (Probe, "as planned"),
        ],
    },
    Fault {
        title: "Too few file descriptors",
        text: "`ulimit -n` below the number of clients.",
        what: What::NoDescriptors,
        ends: &[(Run, "at once"), (Compare, "at once"), (Audit, "at once"), (Pgbench, "at once")],
    },
    Fault {
        title: "No threads",
        text: "Memory (`ulimit -v`) for fewer threads than `--jobs`.",
        what: What::NoThreads,
        ends: &[(Run, "at once"), (Compare, "at once"), (Audit, "at once"), (Pgbench, "at once")],
    },
];
