//! Everything that the workers share during a run: the settings, the scripts, and how errors are
//! classified.

use std::time::Duration;

use isobench_isolation::history::Mode;
use isobench_isolation::observed::ObservedDescription;
use isobench_pgwire::{Connection, frame};
use isobench_script::{CommandKind, Slot, Store};

use crate::program::{Classify, Program, RunWorkload};
use crate::recorder::{AssertionRecord, BranchRecord, Recorder};
use crate::recording::{Recording, RecordingError, Storage};
use crate::spec::RunSpec;

/// A workload with the settings it runs under. Can run any number of times.
pub struct Job {
    pub(crate) spec: RunSpec,
    pub(crate) workload: RunWorkload,
    pub(crate) program: Program,
    pub(crate) classify: Box<Classify>,
    pub(crate) reconnect: Option<Box<Reconnect>>,
    pub(crate) recording: Option<Recording>,
    /// The query for the isolation level of the transaction that it is executed in, if transactions
    /// are asked.
    pub(crate) level_question: Option<String>,
    /// The query for the snapshot of the transaction that it is executed in, if transactions are asked.
    pub(crate) snapshot_question: Option<String>,
    /// The variable that holds a unique number for each attempt, if a script uses it.
    pub(crate) attempt_id: Option<Slot>,
    /// The variable that counts the attempts of each transaction, from 1, if a script uses it.
    pub(crate) attempt: Option<Slot>,
    /// The variable that counts the transactions of each client in a run, from 1, if a script uses
    /// it.
    pub(crate) transaction: Option<Slot>,
    /// A client may block its worker, by running a program.
    pub(crate) blocks: bool,
    /// The modes of each script's transactions; empty if they aren't of interest.
    modes: Vec<Mode>,
    /// The clients that run only some of the scripts.
    pub(crate) readers: Option<Readers>,
}

/// Clients that run only some of the scripts, such as those whose sessions are on a standby.
pub(crate) struct Readers {
    /// The first of them; all that follow are.
    pub(crate) first: usize,
    /// What they choose from: the scripts by their numbers in the mix.
    pub(crate) scripts: Vec<usize>,
    /// What they send before each attempt.
    pub(crate) before: Option<Box<BeforeReading>>,
}

/// Returns the statement that a reader sends before an attempt; `None` if there is nothing to send. It is
/// called by workers, so it must not wait.
pub type BeforeReading = dyn Fn() -> Option<String> + Send + Sync;

/// Opens a connection for the client of this number, which has none, within this time (`None`:
/// without a limit). The error is a text for the user.
pub type Reconnect = dyn Fn(usize, Option<Duration>) -> Result<Connection, String> + Send + Sync;

/// The most memory that all clients of a job keep of the server's messages: incomplete messages,
/// results for variables, and the reads of an attempt.
const MOST_KEPT: usize = 1 << 30;

/// Each client may keep this much, however many there are.
const LEAST_KEPT: usize = 1 << 16;

impl Job {
    /// Encodes the workload for sending.
    pub fn new(spec: RunSpec, workload: RunWorkload, classify: Box<Classify>) -> Job {
        let program = Program::new(&workload.mix, spec.protocol);
        let ours = |name| {
            let slot = workload.symbols.lookup(name);
            slot.filter(|slot| spec.rules.numbers_attempts() && !workload.variables.is_set(*slot))
        };
        let (attempt_id, attempt, transaction) = (ours("attempt_id"), ours("attempt"), ours("transaction"));
        let commands = workload.mix.scripts().iter().flat_map(|weighted| &weighted.script.commands);
        let runs_program =
            |kind: &CommandKind| matches!(kind, CommandKind::Shell { .. } | CommandKind::SetShell { .. });
        let blocks = commands.map(|command| &command.kind).any(runs_program);
        Job {
            spec,
            workload,
            program,
            classify,
            reconnect: None,
            recording: None,
            level_question: None,
            snapshot_question: None,
            attempt_id,
            attempt,
            transaction,
            blocks,
            modes: Vec::new(),
            readers: None,
        }
    }

    /// Records the reads and writes that the scripts' lines `--@` describe, in all runs of the
    /// fleet opened with the job.
    ///
    /// # Errors
    /// The recording can't be kept there.
    pub fn recording(mut self, storage: Storage) -> Result<Job, RecordingError> {
        let recording = Recording::new(&self.workload.mix, storage)?;
        self.program.annotate(&self.workload.mix, &recording);
        self.recording = Some(recording);
        Ok(self)
    }

    /// Records the rows that the scripts' statements show ([`isobench_script::ObservedStatement`]),
    /// in all runs of the fleet opened with the job. Lines `--@` are compared with them.
    ///
    /// `description` has the tables and conditions that the statements refer to. The recording is
    /// kept in memory up to `most` bytes, and the rest in a temporary file.
    #[must_use]
    pub fn observing(mut self, mut description: ObservedDescription, most: usize) -> Job {
        self.program.show_rows(&self.workload.mix, &mut description);
        // What readers see may lag behind.
        description.fresh &= self.readers.is_none();
        let recording = Recording::observing(description, most);
        self.program.annotate(&self.workload.mix, &recording);
        self.recording = Some(recording);
        self
    }

    /// Asks some transactions for the isolation level they run at, just before their COMMIT: the
    /// first one of every client in each run, and one in 128 of those that follow.
    ///
    /// The answer is the first column of the first row ([`crate::RunOutcome::levels`]). Statements
    /// outside a block can't be asked.
    #[must_use]
    pub fn asking_level(mut self, question: &str) -> Job {
        self.level_question = Some(question.to_owned());
        self
    }

    /// Asks every transaction for its snapshot, in front of its COMMIT and together with it. Only what
    /// rows show can be recorded with it ([`Job::observing`]).
    ///
    /// The answer is one row: the transaction's own number, or NULL if it has none; the snapshot as
    /// PostgreSQL writes it (`xmin:xmax:xip,…`); and true if all statements of the transaction read
    /// from it. Transactions that don't end by a COMMIT of its own, outside of a pipeline, are recorded
    /// without.
    #[must_use]
    pub fn asking_snapshot(mut self, question: &str) -> Job {
        self.snapshot_question = Some(question.to_owned());
        self
    }

    /// Records with each transaction that its script ran in these modes, one for each script. The
    /// scripts' text asks for them ([`isobench_script::Script::in_modes`]).
    #[must_use]
    pub fn in_modes(mut self, modes: Vec<Mode>) -> Job {
        self.modes = modes;
        self
    }

    /// The modes of a script's transactions, if they are known.
    pub(crate) fn mode(&self, script: usize) -> Option<Mode> {
        self.modes.get(script).copied()
    }

    /// The recording so far, if the job is recorded.
    pub fn recorded(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Returns the recording, after the last run.
    pub fn into_recording(self) -> Option<Recording> {
        self.recording
    }

    /// Sets how a connection is opened for each transaction ([`RunSpec::connect_each`]).
    #[must_use]
    pub fn reconnecting(mut self, connect: Box<Reconnect>) -> Job {
        self.reconnect = Some(connect);
        self
    }

    /// Lets the clients from number `first` on run only these scripts, each as often as the others.
    #[must_use]
    pub fn with_readers(mut self, first: usize, scripts: Vec<usize>) -> Job {
        self.readers =
            Some(Readers { first, scripts, before: None }).filter(|readers| !readers.scripts.is_empty());
        self
    }

    /// Lets readers ([`Job::with_readers`]) send a statement before each attempt, such as one that waits
    /// until the standby has caught up. It is a part of the attempt, but not of its script.
    #[must_use]
    pub fn before_reading(mut self, statement: Box<BeforeReading>) -> Job {
        if let Some(readers) = &mut self.readers {
            readers.before = Some(statement);
        }
        self
    }

    /// The most bytes of the server's messages that one client keeps.
    pub(crate) fn most_kept(&self) -> usize {
        (MOST_KEPT / self.spec.clients.max(1)).clamp(LEAST_KEPT, frame::DEFAULT_LIMIT)
    }

    /// The settings.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// The workload.
    pub fn workload(&self) -> &RunWorkload {
        &self.workload
    }

    /// An empty recorder for the scripts.
    pub(crate) fn recorder(&self) -> Recorder {
        let counts = self.workload.mix.scripts().iter().map(|weighted| weighted.script.commands.len());
        let mut recorder = Recorder::new(counts, self.spec.per_command);
        for (record, names) in recorder.scripts.iter_mut().zip(&self.program.assertions) {
            record.assertions = names.iter().map(|name| AssertionRecord::new(name)).collect();
        }
        for (record, weighted) in recorder.scripts.iter_mut().zip(self.workload.mix.scripts()) {
            let commands = weighted.script.commands.iter().enumerate();
            let conditions = commands
                .filter(|(_, command)| matches!(command.kind, CommandKind::If(_) | CommandKind::Elif(_)));
            let branch = |(command, _)| BranchRecord { command, ..BranchRecord::default() };
            record.branches = conditions.map(branch).collect();
        }
        recorder
    }

    pub(crate) fn commands(&self, script: usize) -> &[isobench_script::Command] {
        &self.workload.mix.scripts()[script].script.commands
    }

    /// pgbench's word for a command in messages about errors before anything is sent: the
    /// meta-command's name, also `gset` and `aset`.
    pub fn command_kind(&self, script: usize, command: usize) -> &'static str {
        match self.commands(script).get(command).map(|command| &command.kind) {
            Some(CommandKind::Sql(sql)) => match sql.store {
                Store::None => "SQL",
                Store::Gset { .. } => "gset",
                Store::Aset { .. } => "aset",
            },
            Some(kind) => kind.name(),
            None => "end",
        }
    }

    /// The place of a command for messages: file, line and text. Past the last command it is the
    /// last one's.
    pub fn place(&self, script: usize, command: usize) -> String {
        let script = &self.workload.mix.scripts()[script].script;
        script
            .commands
            .get(command)
            .or(script.commands.last())
            .map_or_else(String::new, |at| format!("{}:{}: {}", script.name, at.line, at.text.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use isobench_script::{Mix, Symbols, Variables, Weighted, parse};

    use super::*;
    use crate::program::ErrorClass;

    #[test]
    fn the_more_clients_the_less_each_keeps() {
        for (clients, most) in [(1, 256 << 20), (4, 256 << 20), (64, 16 << 20), (1_000_000, 64 << 10)] {
            let mut symbols = Symbols::new();
            let script = parse("test.sql", "SELECT 1;", &mut symbols).expect("a script");
            let mix = Mix::new(vec![Weighted { script, weight: 1 }]).expect("a mix");
            let workload = RunWorkload { mix, variables: Variables::new(&symbols), symbols };
            let spec = RunSpec { clients, ..RunSpec::default() };
            assert_eq!(Job::new(spec, workload, Box::new(|_| ErrorClass::Other)).most_kept(), most);
        }
    }
}
